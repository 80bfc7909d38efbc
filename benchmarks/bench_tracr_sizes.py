"""Compare the sizes of compiled networks with Tracr's: everyday programs, Weiss's files and
InterpBench.

Each program is compiled for maximum lengths 5, 10, 20 and 50, in float64 and float32, with softmax
heads and ReLU units as in Tracr. Each compilation runs in a process with a limit of 20 s of CPU time.
Its outputs are compared with dense execution on the shortest, the longest and random inputs. Tracr's
sizes are read from ``tracr_sizes.json``, which ``tracr_reference.py`` writes.

A row is an exception if Tracr's network is right on all its inputs, and the compiled network is deeper
or wider. The exit code is 1 if an output is wrong, or if more than 5 % of the compared rows are
exceptions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, machine
from benchmarks.limited_process import run_limited
from benchmarks.plots import line_chart
from benchmarks.size_programs import Case, everyday, interpbench, weiss
from benchmarks.tracr_reference import FILE, LENGTHS, SECONDS, draw_inputs
from locum import SOp
from locum.errors import ExecutionError
from locum.networks import compiler
from locum.networks.transformer import CompiledTransformer

DTYPES = ("float64", "float32")
_INPUTS = 8
#: Maximum fraction of compared rows that may be exceptions.
_EXCEPTIONS = 0.05


def measure(case: Case, length: int, dtype: str, options: Row) -> Row:
    """Compile one program; return the size of the network, and the number of correct outputs."""
    program = case.make(length)
    model = compiler.compile(
        program,
        length=length,
        vocabulary=case.vocabulary,
        dtype=dtype,
        attention="softmax",
        **options,
    )
    feeds = [layer.feed_forward for layer in model.weights.layers]
    row = {
        "layers": model.architecture.layers,
        "heads": max(model.architecture.heads, default=0),
        "d_model": model.architecture.d_model,
        "d_mlp": model.architecture.d_mlp,
        "units": sum(feed.W_out.shape[0] for feed in feeds if feed is not None),
        "error_bound": model.error_bound,
    }
    agreements = [_agrees(model, program, tokens) for tokens in draw_inputs(case, length, _INPUTS)]
    compared = [agrees for agrees in agreements if agrees is not None]
    return row | {"inputs": len(compared), "right": sum(compared)}


def _agrees(model: CompiledTransformer, program: SOp, tokens: Sequence[Any]) -> bool | None:
    """Return whether outputs differ by at most the error bound, or None if the program is undefined."""
    try:
        expected = program(list(tokens))
    except ExecutionError:
        return None
    return all(
        a == e or (not isinstance(e, str) and abs(a - e) <= model.error_bound)
        for a, e in zip(model(list(tokens)), expected, strict=True)
    )


def _is_right(stored: Row | None) -> bool:
    """Return whether Tracr compiled a program to a network that is right on all inputs."""
    return bool(stored and stored.get("inputs") and stored["right"] == stored["inputs"])


def compare(row: Row, stored: Row | None) -> None:
    """Add Tracr's sizes to a row, and the sizes in which the compiled network exceeds them."""
    row["tracr"] = stored
    row["exceeds"] = []
    if "layers" in row and stored is not None and _is_right(stored):
        row["exceeds"] = [name for name in ("layers", "d_model") if row[name] > stored[name]]


def rows_of(
    cases: Sequence[Case], lengths: Sequence[int], dtypes: Sequence[str], options: Row
) -> Iterator[Row]:
    """Compile each program for each length and dtype, and yield one row of sizes for each."""
    stored: dict[str, Row] = json.loads(FILE.read_text()) if FILE.exists() else {}
    for case in cases:
        for length in lengths:
            for dtype in dtypes:
                row: Row = {"suite": case.suite, "program": case.name, "length": length, "dtype": dtype}
                row |= run_limited(
                    lambda case=case, length=length, dtype=dtype: measure(  # type: ignore[misc]
                        case, length, dtype, options
                    ),
                    SECONDS,
                )
                compare(row, stored.get(f"{case.suite} {case.name} {length}"))
                yield row


def summarise(rows: Sequence[Row]) -> Row:
    """Count networks, wrong outputs, comparisons with Tracr and exceptions."""
    made = [row for row in rows if "layers" in row]
    compared = [row for row in made if _is_right(row["tracr"])]
    exceptions = [row for row in compared if row["exceeds"]]
    return {
        "rows": len(rows),
        "compiled": len(made),
        "not_compiled": len(rows) - len(made),
        "wrong": sum(row["right"] < row["inputs"] for row in made),
        "compared": len(compared),
        "exceptions": len(exceptions),
        "deeper": sum("layers" in row["exceeds"] for row in exceptions),
        "wider": sum("d_model" in row["exceeds"] for row in exceptions),
        "cpu_seconds": round(sum(row.get("cpu_seconds", SECONDS) for row in rows), 1),
    }


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table, then the exceptions, then the programs that were not compiled."""
    yield (
        f"{'suite':<12}{'program':<22}{'n':>4} {'dtype':<8}{'CPU s':>7}{'layers':>7}{'d_model':>8}"
        f"{'d_mlp':>7}{'units':>7}{'right':>7}  | Tracr: layers d_model d_mlp right"
    )
    for row in rows:
        yield _line(row)
    exceptions = [row for row in rows if row["exceeds"]]
    yield f"\nDeeper or wider than a network of Tracr's that is right ({len(exceptions)}):"
    for row in exceptions:
        yield f"  {_name(row)}: {_excess(row)}"
    missing = [row for row in rows if "layers" not in row]
    yield f"\nNot compiled ({len(missing)}):"
    for row in missing:
        yield f"  {_name(row)}: {row['reason']}"


def _name(row: Row) -> str:
    return f"{row['suite']} {row['program']}, length {row['length']}, {row['dtype']}"


def _excess(row: Row) -> str:
    return ", ".join(f"{name} {row[name]} (Tracr {row['tracr'][name]})" for name in row["exceeds"])


def _line(row: Row) -> str:
    head = f"{row['suite']:<12}{row['program']:<22}{row['length']:>4} {row['dtype']:<8}"
    tracr = row["tracr"]
    theirs = "not recorded" if tracr is None else "none"
    if tracr and "layers" in tracr:
        theirs = (
            f"{tracr['layers']:>6}{tracr['d_model']:>8}{tracr['d_mlp']:>6}"
            f"{tracr['right']:>4}/{tracr['inputs']}"
        )
    if "layers" not in row:
        return f"{head}{'none':>36}{'':>7}  |        {theirs}"
    return (
        f"{head}{row['cpu_seconds']:>7.2f}{row['layers']:>7}{row['d_model']:>8}{row['d_mlp']:>7}"
        f"{row['units']:>7}{row['right']:>5}/{row['inputs']}  |        {theirs}"
    )


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the median d_model as a function of the length, for Locum and Tracr.

    Only programs that both compile are included.
    """
    widths: dict[str, dict[int, list[int]]] = {"Locum": defaultdict(list), "Tracr": defaultdict(list)}
    for row in rows:
        if row["dtype"] == DTYPES[0] and "layers" in row and row["tracr"] and "layers" in row["tracr"]:
            widths["Locum"][row["length"]].append(row["d_model"])
            widths["Tracr"][row["length"]].append(row["tracr"]["d_model"])
    lengths = sorted(widths["Locum"])
    if not lengths:
        return
    medians = {
        name: [float(sorted(found[n])[len(found[n]) // 2]) for n in lengths]
        for name, found in widths.items()
    }
    chart = line_chart(
        "Residual width: median of common programs",
        lengths,
        medians,
        "maximum length (tokens)",
        values="d_model",
    )
    path.write_text(chart, encoding="utf-8")


def main() -> int:
    """Measure the programs, draw the chart, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, LENGTHS)), help="lengths, with commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="dtypes, with commas")
    parser.add_argument("--programs", help="names of programs, with commas")
    parser.add_argument("--weiss", type=Path, help="checkout of tech-srl/RASP")
    parser.add_argument("--interpbench", type=Path, help="checkout of FlyingPumba/InterpBench")
    parser.add_argument("--tracr", type=Path, help="checkout of google-deepmind/tracr")
    parser.add_argument("--options", default="{}", help="more options of compile, as JSON")
    parser.add_argument("--figure", type=Path, help="SVG file to draw")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    cases = list(everyday())
    if arguments.weiss:
        cases += weiss(arguments.weiss)
    if arguments.interpbench:
        if not arguments.tracr:
            parser.error("--interpbench needs --tracr: its programs import tracr.rasp")
        cases += interpbench(arguments.interpbench, arguments.tracr)
    if arguments.programs:
        cases = [case for case in cases if case.name in arguments.programs.split(",")]
    lengths = [int(size) for size in arguments.sizes.split(",")]
    rows = list(rows_of(cases, lengths, arguments.dtypes.split(","), json.loads(arguments.options)))
    if arguments.figure:
        draw(rows, arguments.figure)
    summary = summarise(rows)
    if arguments.json:
        head = {"benchmark": "tracr_sizes", "machine": machine()}
        print(json.dumps(head | summary | {"table": rows}))
    else:
        print(f"Sizes of compiled networks and of Tracr's ({machine()})")
        for line in lines(rows):
            print(line)
        print("\n" + ", ".join(f"{name} {value}" for name, value in summary.items()))
    holds = not summary["wrong"] and summary["exceptions"] <= _EXCEPTIONS * max(summary["compared"], 1)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
