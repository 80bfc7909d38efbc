"""Long sequences: programs in RASP text, from two hundred tokens to a million, list in and list out.

Every program is run by ``executor="auto"`` on strings and on the same tokens as numbers: the least
time (of the processor) of several runs, and the peak of the memory taken (in a run of its own, without
the tokens). Up to a thousand tokens: how many times faster than dense execution, in the same run.

At 200 tokens, also: how many times faster than Weiss's implementation of RASP
(github.com/tech-srl/RASP), which runs the same texts on the same tokens beside it. It is not part of
this project: say where it is with ``WEISS_RASP=FOLDER``, and with ``WEISS_PYTHON=PYTHON`` which
interpreter has what it needs (antlr4-python3-runtime 4.9, termcolor). Both give the same values, or the
benchmark fails.
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

#: Statements, one a line; the last one defines ``result``. Brackets are the tokens 1 2 and 3 4.
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
#: Dense execution takes a tenth of a second or so on so many tokens.
DENSE_TOKENS = 1_000

#: What Weiss's implementation is asked to do: build each program, apply it to each input, say how long.
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
    """The statements of a program."""
    return [line.strip() for line in PROGRAMS[name].strip().splitlines()]


def program(name: str) -> SOp:
    """The s-op ``result`` of a program."""
    session = Session()
    session.define("\n".join(statements(name)))
    value = session.get("result")
    assert isinstance(value, SOp)
    return value


def tokens_for(name: str, size: int, seed: int = 0) -> list[int]:
    """Digits; for brackets a word that stays balanced, for sorting numbers of many values."""
    random = np.random.default_rng([size, seed])
    if name.startswith("dyck"):
        return brackets(random, size, 1 if name == "dyck-1" else 2)
    most = 10**6 if name in ("sort", "inversions") else 10
    return list(random.integers(1, most, size).tolist())


def brackets(random: np.random.Generator, size: int, kinds: int) -> list[int]:
    """A balanced word: 1 opens and 2 closes, 3 opens and 4 closes."""
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
    """One row per program and size."""
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
    """The least time of several runs, in seconds of the processor."""
    return least(lambda: run(values, executor=executor), repeats, time.process_time)


def peak(run: SOp, values: list[Any]) -> int:
    """Most bytes held at a time while it runs."""
    tracemalloc.start()
    run(values, executor="auto")
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def weiss_seconds() -> dict[str, float]:
    """The least time of three that Weiss's implementation takes for each program; {} without it."""
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
    """The table."""
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
        yield "to Weiss: not measured (see --help for how to run Weiss's implementation beside it)"


if __name__ == "__main__":
    title = "Programs in RASP text on long sequences, executor auto"
    sizes = f"{WEISS_TOKENS},1000,10000,100000,1000000"
    main("sequences", __doc__ or "", sizes, measure, title, lines)
