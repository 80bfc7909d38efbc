"""Measure how many small faults in ``src`` two sets of tests find.

    python benchmarks/mutants.py --seed 1 --list
    python benchmarks/mutants.py --seed 1 --checkouts ../before ../after --output mutants.jsonl

A mutant changes one comparison, operator, ``and``, ``or``, ``not`` or constant inside a function.
Mutants are drawn at random, in proportion to the table ``PACKAGES``. Each mutant is applied alone to
each checkout (such as ``git worktree add`` makes), and the tests of its package run until the first
failure. The output has a line of JSON for each mutant. A second call continues the output of the first.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/locum")
#: Packages: the number of mutants among 40, and the folders of tests that run besides ALWAYS.
PACKAGES: dict[str, tuple[int, tuple[str, ...]]] = {
    "execution": (8, ("execution",)),
    "networks/compiler": (8, ("compiler",)),
    "languages": (6, ("dialects", "languages")),
    "rasp": (5, ("language", "rasp")),
    "constructions": (4, ("constructions", "simulators")),
    "torch": (5, ("torch",)),
    "networks/transformer": (4, ("transformer", "circuits")),
}
ALWAYS = ("tests/core", "tests/conformance", "tests/test_cases.py")

PAIRS: list[tuple[type, type]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.BitAnd, ast.BitOr),
]
#: What takes the place of a comparison or an operator.
CHANGED: dict[type, type] = {
    **{old: new for pair in PAIRS for old, new in (pair, pair[::-1])},
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
#: Fields that are not run, or only for messages.
SKIPPED = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """A replacement of the bytes ``start`` to ``end`` of a file of ``src/locum``."""

    package: str
    file: str
    line: int
    old: str
    new: str
    start: int
    end: int


def change(node: ast.AST) -> Any:
    """Return a mutant of an expression, or None if there is none."""
    new: Any = copy.copy(node)
    match new:
        case ast.Compare(ops=[first, *others]):
            new.ops = [CHANGED[type(first)](), *others]
        case ast.BinOp(left=ast.Constant(value=str())):
            return None
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in CHANGED:
            new.op = CHANGED[type(op)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)) if abs(value) < 100:
            new.value = value + 1
        case _:
            return None
    return new


def expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a function, except annotations and messages."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    yield node
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if name not in SKIPPED else ():
            if isinstance(child, ast.AST):
                yield from expressions(child)


def sites(path: Path) -> Iterator[ast.AST]:
    """Yield the expressions of a file that have a mutant, inside of functions."""
    for top in ast.parse(path.read_bytes()).body:
        for part in top.body if isinstance(top, ast.ClassDef) else [top]:
            if isinstance(part, ast.FunctionDef):
                yield from (node for node in expressions(part) if change(node) is not None)


def mutate(package: str, path: Path, node: Any) -> Mutant:
    """Return the mutant of an expression of a file."""
    raw, new = path.read_bytes(), change(node)
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    file = path.relative_to(ROOT / SOURCE).as_posix()
    text = f"({ast.unparse(new)})"
    return Mutant(package, file, node.lineno, raw[start:end].decode(), text, start, end)


def draw(seed: int, number: int) -> list[Mutant]:
    """Draw mutants of each package in proportion to ``PACKAGES``, in random order."""
    rng, drawn = random.Random(seed), []
    total = sum(share for share, _ in PACKAGES.values())
    for package, (share, _) in PACKAGES.items():
        files = sorted((ROOT / SOURCE / package).rglob("*.py"))
        every = [(path, node) for path in files for node in sites(path)]
        chosen = rng.sample(every, round(share * number / total))
        drawn += [mutate(package, path, node) for path, node in chosen]
    rng.shuffle(drawn)
    return drawn


def run_tests(checkout: Path, package: str, seconds: float, *options: str) -> dict[str, Any]:
    """Run the tests of a package until the first failure or the time limit."""
    folders = [f"tests/{place}{name}" for name in PACKAGES[package][1] for place in ("", "old/")]
    paths = [path for path in (*ALWAYS, *folders) if (checkout / path).exists()]
    command = [sys.executable, "-m", "pytest", "-qx", "--tb=no", "-p", "no:cacheprovider"]
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(checkout / "src"),
    }
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*command, *options, *paths],
        cwd=checkout,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        verdict = {0: "survived", 1: "killed"}.get(process.returncode, "error")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, verdict = process.communicate()[0], "limit"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    took = round(time.perf_counter() - begin, 1)
    return {"verdict": verdict, "seconds": took, "by": failed[1] if failed else ""}


@functools.cache
def check_collection(checkout: Path, package: str) -> None:
    """Stop if tests cannot be collected without a mutant, as each mutant would seem to be killed."""
    collected = run_tests(checkout, package, 600, "--collect-only")
    if collected["verdict"] != "survived":
        raise SystemExit(f"{checkout}: expected tests that can be collected, got {collected}")


def try_mutant(mutant: Mutant, checkout: Path, seconds: float) -> dict[str, Any]:
    """Run the tests on a checkout with a mutant, and restore the file."""
    path = checkout / SOURCE / mutant.file
    raw = path.read_bytes()
    if raw[mutant.start : mutant.end].decode() != mutant.old:
        raise SystemExit(f"{path}: expected the source of {ROOT}; try commits with the same src/")
    check_collection(checkout, mutant.package)
    try:
        path.write_bytes(raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :])
        return run_tests(checkout, mutant.package, seconds)
    finally:
        path.write_bytes(raw)


def main() -> None:
    """Draw mutants, and list them or run the tests on them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, required=True, help="seed of the draw")
    parser.add_argument("--number", type=int, default=40, help="number of mutants")
    parser.add_argument("--list", action="store_true", help="print all drawn mutants")
    parser.add_argument("--checkouts", type=Path, nargs="+", default=[], help="copies of the tree")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a run")
    parser.add_argument("--output", type=Path, default=Path("build/mutants.jsonl"))
    arguments = parser.parse_args()
    mutants = draw(arguments.seed, arguments.number)
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.file}:{mutant.line}: {mutant.old}  ->  {mutant.new}")
        return
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.touch()
    lines = map(json.loads, arguments.output.read_text("utf-8").splitlines())
    done = {(line["file"], line["start"], line["new"]) for line in lines}
    for mutant in mutants:
        if (mutant.file, mutant.start, mutant.new) in done:
            continue
        results = {
            str(checkout): try_mutant(mutant, checkout.resolve(), arguments.seconds)
            for checkout in arguments.checkouts
        }
        with arguments.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**asdict(mutant), "results": results}) + "\n")
        print(mutant.file, mutant.line, {name: r["verdict"] for name, r in results.items()}, flush=True)


if __name__ == "__main__":
    main()
