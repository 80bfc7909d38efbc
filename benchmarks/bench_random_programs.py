"""Compile random programs, by default without options: CPU time, peak memory and wrong outputs.

Each program is compiled for a maximum length from 5 to 30 tokens, in a process with a limit on CPU
time. The network is compared with dense execution on the shortest, the longest and random inputs. An
output is wrong if it differs by more than the certified bound.

The exit code is 1 if an output is wrong, or if a compilation fails with an error other than
``CompileError``. It is also 1 if a compilation takes more than 5 s of CPU time or more than 1 GB.
``--seed`` is the first seed of the programs, and each row contains its seed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.old.compiler import random_programs

from benchmarks.harness import Row, machine
from benchmarks.limited_process import run_limited
from locum import SOp
from locum.errors import CompileError, LocumError
from locum.networks import compiler
from locum.rasp import to_rasp
from locum.rasp.handles import wrap

SECONDS, MEGABYTES = 5, 1000
#: Limit of CPU time in seconds. It is larger than ``SECONDS``, so that longer times are also measured.
_STOP_SECONDS = 4 * SECONDS
_LENGTHS = (5, 8, 10, 15, 20, 30)
_INPUTS = 10


def measure(seed: int, options: Row) -> Row:
    """Compile the program of a seed; return the size, the CPU time and the outcomes of inputs."""
    program, vocabulary, length = _drawn(seed)
    row: Row = {"length": length, "tokens": len(vocabulary)}
    started = time.process_time()
    try:
        model = compiler.compile(program, length=length, vocabulary=vocabulary, **options)
    except CompileError as error:
        seconds = round(time.process_time() - started, 3)
        return row | {"compile_seconds": seconds, "rejected": " ".join(str(error).split())[:200]}
    row["compile_seconds"] = round(time.process_time() - started, 3)
    sizes = model.architecture
    row |= {"layers": sizes.layers, "d_model": sizes.d_model, "d_mlp": sizes.d_mlp}
    outcomes: Counter[str] = Counter()
    for tokens in _inputs(seed, vocabulary, length):
        outcomes[_outcome(model, program, tokens)] += 1
    row |= {"inputs": sum(outcomes.values()), "outcomes": dict(outcomes)}
    if outcomes["wrong"]:
        row["program"] = to_rasp(program)
    return row


def _drawn(seed: int) -> tuple[SOp, list[Any], int]:
    trial = random_programs.trial(seed)
    program = wrap(trial.program)
    assert isinstance(program, SOp)
    return program, list(trial.vocabulary), random.Random(seed).choice(_LENGTHS)


def _inputs(seed: int, vocabulary: Sequence[Any], length: int) -> list[list[Any]]:
    chance = random.Random(f"inputs {seed}")
    lengths = [1, 1, length, length, length]
    lengths += [chance.randrange(1, length + 1) for _ in range(_INPUTS - len(lengths))]
    return [chance.choices(vocabulary, k=size) for size in lengths]


def _outcome(model: Any, program: SOp, tokens: list[Any]) -> str:
    """Return the outcome of an input: "right", "wrong", "no value" or "rejected"."""
    try:
        expected = program(tokens)
    except LocumError:
        return "no value"
    try:
        actual = model(tokens)
    except LocumError:
        return "rejected"
    same = all(
        a == e or (not isinstance(e, str) and abs(a - e) <= model.error_bound)
        for a, e in zip(actual, expected, strict=True)
    )
    return "right" if same else "wrong"


def summarise(rows: Sequence[Row]) -> Row:
    """Count programs and outcomes, and find the slowest and the largest compilation."""
    outcomes: Counter[str] = Counter()
    for row in rows:
        outcomes.update(row.get("outcomes", {}))
    seconds: list[float] = [row.get("compile_seconds", _STOP_SECONDS) for row in rows]
    memory: list[int] = [row.get("peak_mb", 0) for row in rows]
    return {
        "programs": len(rows),
        "compiled": sum("layers" in row for row in rows),
        "rejected": sum("rejected" in row for row in rows),
        "failed": sum("reason" in row for row in rows),
        "answers": dict(outcomes),
        "over_seconds": sum(one > SECONDS for one in seconds),
        "over_memory": sum(one > MEGABYTES for one in memory),
        "median_seconds": sorted(seconds)[len(seconds) // 2],
        "most_seconds": max(seconds),
        "most_mb": max(memory),
    }


def main() -> int:
    """Measure the programs, and print a summary, or one JSON object with all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=500, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--options", default="{}", help="more options of compile, as JSON")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    options = json.loads(arguments.options)
    rows = []
    for seed in range(arguments.seed, arguments.seed + arguments.programs):
        row = run_limited(lambda seed=seed: measure(seed, options), _STOP_SECONDS)  # type: ignore[misc]
        rows.append({"seed": seed} | row)
    summary = summarise(rows)
    if arguments.json:
        print(
            json.dumps(
                {"benchmark": "random_programs", "machine": machine()} | summary | {"rows": rows}
            )
        )
    else:
        print(f"Random programs with the compiler's defaults ({machine()})")
        for name, value in summary.items():
            print(f"{name.replace('_', ' '):<16}{value}")
        for row in rows:
            too_much = row.get("compile_seconds", _STOP_SECONDS) > SECONDS or (
                row.get("peak_mb", 0) > MEGABYTES
            )
            if too_much or "reason" in row or "program" in row:
                print(f"  seed {row['seed']}: { ({k: v for k, v in row.items() if k != 'seed'}) }")
    wrong = summary["answers"].get("wrong", 0)
    return 1 if wrong or summary["failed"] or summary["over_seconds"] or summary["over_memory"] else 0


if __name__ == "__main__":
    sys.exit(main())
