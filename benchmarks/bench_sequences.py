"""Measure programs in RASP text on lists of two hundred to a million tokens.

Every program runs with ``executor="auto"`` on strings and on the same tokens as numbers. A row contains
the minimum CPU time of several runs, and the peak of the memory in a separate run, without the tokens.
For up to a thousand tokens, the row also contains the speed-up over dense execution.

With ``WEISS_RASP=FOLDER``, the row for 200 tokens also contains the speed-up over Weiss's
implementation of RASP (github.com/tech-srl/RASP), which runs the same texts on the same tokens. FOLDER
is a checkout of this implementation, which is not part of the project. ``WEISS_PYTHON=PYTHON`` states
the interpreter with its requirements, antlr4-python3-runtime 4.9 and termcolor. The benchmark fails if
the values of both implementations differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, least, main
from locum import SOp
from locum.rasp import Session

#: Programs with one statement per line; the last statement defines ``result``. The tokens 1 and 2, and
#: the tokens 3 and 4, are pairs of brackets.
PROGRAMS: dict[str, str] = {
    "histogram": "result = selector_width(select(tokens, tokens, ==));",
    "sort": "result = sort(tokens, tokens);",
    "reverse": "result = aggregate(select(indices, length - 1 - indices, ==), tokens);",
    "most frequent": """
        often = selector_width(select(tokens, tokens, ==));
        again = has_focus(select(tokens, tokens, ==) and select(indices, indices, <));
        score = -1 if again else often;
        shown = "-" if again else tokens;
        result = sort(shown, -score);
    """,
    "dyck-1": """
        so_far = select(indices, indices, <=);
        balance = aggregate(so_far, indicator(tokens == "1") - indicator(tokens == "2"));
        broken = aggregate(so_far, indicator(balance < 0)) > 0;
        result = "F" if broken else ("T" if balance == 0 else "P");
    """,
    "dyck-2": """
        so_far = select(indices, indices, <=);
        opens = tokens in ["1", "3"];
        depth = round((indices + 1) * aggregate(so_far, indicator(opens) - indicator(not opens)));
        level = depth if opens else depth + 1;
        number = selector_width(select(level, level, ==) and so_far);
        partner = select(level, level, ==) and select(number, number - 1, ==);
        fits = aggregate(partner, tokens, "-") + tokens in ["12", "34"];
        wrong = (not opens and not fits) or depth < 0;
        broken = aggregate(so_far, indicator(wrong)) > 0;
        result = "F" if broken else ("T" if depth == 0 else "P");
    """,
    "running mean": "result = aggregate(select(indices, indices, <=), tokens_float);",
    "inversions": "result = selector_width(select(tokens, tokens, >) and select(indices, indices, <));",
}
WEISS_TOKENS = 200
#: Maximum number of tokens for dense execution.
DENSE_TOKENS = 1_000

#: A script for Weiss's implementation. It builds each program, runs it on each input and reports times.
_WEISS = """
import contextlib, io, json, sys, time
asked = json.load(sys.stdin)
answers = {}
with contextlib.redirect_stdout(io.StringIO()):
    from RASP_support.REPL import REPL
    for name, lines in asked["programs"].items():
        repl = REPL()
        repl.silent = True
        repl.set_running_example("12")
        for line in lines:
            repl.run_given_line(line)
        program = repl.env.get_variable("result")
        answers[name] = []
        assert program is not None, name
        for given in asked["inputs"][name]:
            started = time.process_time()
            value = program.call(given)
            answers[name].append((time.process_time() - started, value.get_vals()))
json.dump(answers, sys.stdout)
"""


def statements(name: str) -> list[str]:
    """Return the statements of a program as a list of lines."""
    return [line.strip() for line in PROGRAMS[name].strip().splitlines()]


def program(name: str) -> SOp:
    """Build the s-op ``result`` from the statements of a program."""
    session = Session()
    session.define("\n".join(statements(name)))
    value = session.get("result")
    assert isinstance(value, SOp)
    return value


def tokens_for(name: str, size: int, seed: int = 0) -> list[int]:
    """Draw an input: a balanced word for brackets, otherwise numbers."""
    random = np.random.default_rng([size, seed])
    if name.startswith("dyck"):
        return brackets(random, size, 1 if name == "dyck-1" else 2)
    most = 10**6 if name in ("sort", "inversions") else 10
    return list(random.integers(1, most, size).tolist())


def brackets(random: np.random.Generator, size: int, kinds: int) -> list[int]:
    """Draw a balanced word, in which 1 opens and 2 closes, and 3 opens and 4 closes."""
    steps, word, opened = random.random(size), list[int](), list[int]()
    for step, left in zip(steps.tolist(), range(size, 0, -1), strict=True):
        if opened and (step < 0.5 or len(opened) >= left):
            word.append(opened.pop())
        else:
            kind = 2 * int(step * 1e6) % (2 * kinds)
            word.append(kind + 1)
            opened.append(kind + 2)
    return word


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Measure each program at each number of tokens, and return one row for each."""
    rows = []
    weiss = weiss_seconds() if WEISS_TOKENS in sizes else {}
    for name in PROGRAMS:
        run = program(name)
        for size in sizes:
            numbers = tokens_for(name, size)
            strings = [str(number) for number in numbers]
            expected = run(strings, executor="auto")
            assert [str(v) for v in run(numbers, executor="auto")] == [str(v) for v in expected]
            times = 20 * repeats if size <= DENSE_TOKENS else repeats
            row: Row = {
                "program": name,
                "tokens": size,
                "strings": seconds(run, strings, times),
                "numbers": seconds(run, numbers, times),
                "peak_bytes_per_token": peak(run, numbers) / size,
            }
            if size <= DENSE_TOKENS:
                assert run(numbers) == run(numbers, executor="auto")
                row["dense_ratio"] = seconds(run, numbers, repeats, "dense") / row["numbers"]
            if size == WEISS_TOKENS and name in weiss:
                row["weiss_seconds"] = weiss[name]
                row["weiss_ratio"] = weiss[name] / row["strings"]
            rows.append(row)
    return rows


def seconds(run: SOp, values: list[Any], repeats: int, executor: str = "auto") -> float:
    """Return the minimum CPU time of several runs in seconds."""
    return least(lambda: run(values, executor=executor), repeats, time.process_time)


def peak(run: SOp, values: list[Any]) -> int:
    """Return the peak of the Python memory during a run, in bytes."""
    tracemalloc.start()
    run(values, executor="auto")
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def weiss_seconds() -> dict[str, float]:
    """Return the minimum CPU time of Weiss's implementation for each program.

    The result is empty if ``WEISS_RASP`` is not set.
    """
    folder = os.environ.get("WEISS_RASP")
    if not folder:
        return {}
    inputs = {
        name: [[str(v) for v in tokens_for(name, WEISS_TOKENS, seed)] for seed in range(3)]
        for name in PROGRAMS
    }
    done = subprocess.run(
        [os.environ.get("WEISS_PYTHON", sys.executable), "-c", _WEISS],
        input=json.dumps({"programs": {name: statements(name) for name in PROGRAMS}, "inputs": inputs}),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(f"Weiss's implementation does not run in {folder}:\n{done.stderr}")
    answers = json.loads(done.stdout)
    for name, result in answers.items():
        for values, (_, theirs) in zip(inputs[name], result, strict=True):
            ours = program(name)(values, executor="auto")
            assert ours == theirs or np.allclose(ours, theirs, rtol=1e-12), name
    return {name: min(seconds for seconds, _ in result) for name, result in answers.items()}


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table with times, memory and speed-ups."""
    titles = ("strings s", "numbers s", "bytes/token", "to dense", "Weiss s", "to Weiss")
    yield f"{'program':<14} {'tokens':>8} " + " ".join(f"{t:>11}" for t in titles)
    for row in rows:
        times = (f"{row[name]:>11.5f}" for name in ("strings", "numbers"))
        dense = f"{row['dense_ratio']:.4g}×" if "dense_ratio" in row else ""
        weiss = f"{row['weiss_seconds']:.4f}" if "weiss_seconds" in row else ""
        ratio = f"{row['weiss_ratio']:.4g}×" if "weiss_ratio" in row else ""
        yield (
            f"{row['program']:<14} {row['tokens']:>8} {' '.join(times)} "
            f"{row['peak_bytes_per_token']:>11.0f} {dense:>11} {weiss:>11} {ratio:>11}"
        )
    if not any("weiss_ratio" in row for row in rows):
        yield "to Weiss: not measured (--help describes how to compare Weiss's implementation)"


if __name__ == "__main__":
    title = "Programs in RASP text on long sequences, executor auto"
    sizes = f"{WEISS_TOKENS},1000,10000,100000,1000000"
    main("sequences", __doc__ or "", sizes, measure, title, lines)
