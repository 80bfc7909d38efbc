"""Measure building and running RASP programs for 10 to 200 tokens, with recorded times of Weiss's RASP.

``build`` reads the text and builds the graph. ``run`` is one dense execution on an input of about N
tokens, or of 9 tokens for 3×3 matrices. Both are the minimum CPU time of several runs in seconds. The
times of Weiss's RASP were recorded on another machine with two cores, so the ratio gives only a rough
comparison. Weiss's implementation is not on the package index.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, least, main
from locum.rasp import Session

LISTINGS = resources.files("locum.paper").joinpath("listings")


def listing(name: str) -> str:
    """Return the text of a listing of the paper, in which the last expression is called ``program``."""
    text = LISTINGS.joinpath(f"{name}.rasp").read_text(encoding="utf-8").rstrip()
    body, _, call = text.rpartition("\n")
    return f"{body}\nprogram = {call}"


def unrolled_matmul(rows: int, columns: int) -> str:
    """Return the text of the paper's matrix product at another shape, one ``aggregate`` per head."""
    lines = ["tokens = tokens_float;", f"k = length / ({rows} + {columns});"]
    lines += [
        f"a{l} = aggregate(select(indices, indices % k + {l} * k, ==), tokens);" for l in range(rows)
    ]
    for m in range(columns):
        place = f"(indices % k) * {columns} + {rows} * k + {m}"
        lines.append(f"b{m} = aggregate(select(indices, {place}, ==), tokens);")
    heads = [
        f"aggregate(select(indices, k, <) and select({l * columns + m}, indices, ==), a{l} * b{m})"
        for l in range(rows)
        for m in range(columns)
    ]
    return "\n".join([*lines, f"program = k * ({' + '.join(heads)});"])


PROGRAMS: dict[str, str] = {
    "length": "program = length;",
    "reverse": "program = aggregate(select(indices, length - indices - 1, ==), tokens);",
    "hist": "program = selector_width(select(tokens, tokens, ==));",
    "sort": "program = sort(tokens, tokens);",
    "hist2": """
        first = not has_focus(select(tokens, tokens, ==) and select(indices, indices, <));
        hist = selector_width(select(tokens, tokens, ==));
        program = selector_width(select(hist, hist, ==) and select(first, True, ==));
    """,
    "most_freq": """
        hist = selector_width(select(tokens, tokens, ==));
        first = not has_focus(select(tokens, tokens, ==) and select(indices, indices, <));
        program = sort(tokens, -hist * indicator(first));
    """,
    "dyck1": """
        up_to_here = select(indices, indices, <=);
        balance = aggregate(up_to_here, indicator(tokens == "(") - indicator(tokens == ")"));
        broken = aggregate(up_to_here, indicator(balance < 0)) > 0;
        program = "F" if broken else ("T" if balance == 0 else "P");
    """,
    "transpose": listing("transpose"),
    "softmax": listing("softmax"),
    "matmul_3x4": listing("matmul"),
    "matmul_5x5": unrolled_matmul(5, 5),
    "relu": listing("relu"),
    "maxmin": listing("maxmin"),
    "match2": listing("match2"),
    "cofactor_det_3x3": listing("determinant"),
    "inverse_3x3": listing("inverse_corrected"),
}
NUMERIC = {"transpose", "softmax", "matmul_3x4", "matmul_5x5", "relu", "maxmin", "match2"}
#: Numbers of which the input length must be a multiple.
MULTIPLES = {"transpose": 3, "softmax": 3, "matmul_3x4": 7, "matmul_5x5": 10}
#: Recorded CPU times of Weiss's RASP in seconds: building, and running at about N = 10, 50, 100, 200.
WEISS: dict[str, tuple[float, dict[int, float]]] = {
    "length": (0.001, {10: 0.0012, 50: 0.0129, 100: 0.04043, 200: 0.1574}),
    "reverse": (0.004, {10: 0.00114, 50: 0.0249, 100: 0.09305, 200: 0.3002}),
    "hist": (0.006, {10: 0.00246, 50: 0.02674, 100: 0.1034, 200: 0.4797}),
    "sort": (0.005, {10: 0.00244, 50: 0.05381, 100: 0.2317, 200: 1.141}),
    "hist2": (0.368, {10: 0.00313, 50: 0.05496, 100: 0.2104, 200: 0.8144}),
    "most_freq": (0.306, {10: 0.00381, 50: 0.06958, 100: 0.2853, 200: 1.069}),
    "dyck1": (0.286, {10: 0.00129, 50: 0.01303, 100: 0.05381, 200: 0.1846}),
    "transpose": (0.017, {10: 0.00105, 50: 0.01838, 100: 0.07507, 200: 0.2837}),
    "softmax": (0.053, {10: 0.00322, 50: 0.06314, 100: 0.3095, 200: 1.302}),
    "matmul_3x4": (0.421, {10: 0.01118, 50: 0.4122, 100: 0.9916, 200: 4.031}),
    "matmul_5x5": (1.162, {10: 0.0244, 50: 0.5269, 100: 2.223, 200: 10.11}),
    "relu": (0.003, {10: 0.00025, 50: 0.00092, 100: 0.00176, 200: 0.00211}),
    "maxmin": (0.100, {10: 0.00667, 50: 0.07429, 100: 0.3499, 200: 1.48}),
    "match2": (0.018, {10: 0.00114, 50: 0.01778, 100: 0.06966, 200: 0.2036}),
    "cofactor_det_3x3": (0.106, {9: 0.00432}),
    "inverse_3x3": (0.160, {9: 0.00736}),
}


def tokens_for(name: str, size: int, chance: random.Random) -> list[Any]:
    """Draw an input on which the program is defined."""
    if name in NUMERIC or name.endswith("3x3"):
        return [float(chance.randint(1, 9)) for _ in range(size)]
    return [chance.choice("()" if name == "dyck1" else "abcdef") for _ in range(size)]


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Measure building and running each program at each size, and return one row for each."""
    chance, rows = random.Random(0), []
    Session()  # Reads the grammar and the library, once for each process.
    for name, source in PROGRAMS.items():
        build = least(lambda source=source: Session().define(source), repeats, time.process_time)  # type: ignore[misc]
        session = Session()
        session.define(source)
        program = session.get("program")
        asked = [9] if name.endswith("3x3") else sizes
        for size in asked:
            rounded = max(1, size // MULTIPLES.get(name, 1)) * MULTIPLES.get(name, 1)
            inputs = tokens_for(name, rounded, chance)
            seconds = least(lambda p=program, g=inputs: p(g), repeats, time.process_time)  # type: ignore[misc]
            theirs = WEISS[name][1].get(size)
            rows.append(
                {
                    "program": name,
                    "heads": program.architecture.heads,
                    "tokens": rounded,
                    "build_seconds": build,
                    "run_seconds": seconds,
                    "weiss_build_seconds": WEISS[name][0],
                    "weiss_run_seconds": theirs,
                    "weiss_over_ours": theirs / seconds if theirs and seconds else None,
                }
            )
    return rows


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table with the times of Locum and of Weiss's RASP."""
    yield f"{'program':<17} {'N':>4} {'build':>8} {'(Weiss)':>8} {'run':>9} {'(Weiss)':>9} {'ratio':>7}"
    for row in rows:
        theirs = row["weiss_run_seconds"]
        yield (
            f"{row['program']:<17} {row['tokens']:>4} {row['build_seconds']:>8.4f} "
            f"{row['weiss_build_seconds']:>8.3f} {row['run_seconds']:>9.5f} "
            + (f"{theirs:>9.5f} {row['weiss_over_ours']:>6.0f}×" if theirs else f"{'-':>9} {'-':>7}")
        )


if __name__ == "__main__":
    title = "RASP programs, dense execution, CPU seconds; Weiss's as recorded elsewhere"
    main("language", __doc__ or "", "10,50,100,200", measure, title, lines)
