"""Measure time and memory as functions of size: tokens of sequences, rows of X for U, layers of a
model.

- Sequences: programs run on arrays of 10³ to 10⁷ integers with ``executor="fast"``, and are compared
  with a NumPy expression for the same values. At 10⁵ tokens, the same program also runs on a list. Its
  time is compared with the time of ``np.asarray`` and a run.
- U: X is an n×64 matrix in float32, on one thread. U is compared with PyTorch's fused attention on the
  same matrices and, for up to 8,192 rows, with the same formula with all scores in memory.
- Layers: an encoder of n layers of width 256 runs on 64 tokens in float32 on one thread. It is compiled
  with ``backend="locum"``, and compared with eager execution.

The calls that are compared alternate in every round. Times are medians, and ratios are medians over the
rounds with quartiles. Memory is the peak of the Python memory for sequences. For U and layers, it is
the memory that a first run adds to a process after a small run. A slope is fitted to the logarithms
at the three largest sizes. The value "step" is the largest growth between two of these sizes, relative
to the growth that the slope predicts.

    python benchmarks/bench_scaling.py                                  # writes charts to build/scaling
    python benchmarks/bench_scaling.py --json > benchmarks/scaling.json
    python benchmarks/bench_scaling.py --read benchmarks/scaling.json --charts docs/pictures/scaling
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cases import sort

from benchmarks.harness import Row, interleave, machine, ratio
from benchmarks.plots import line_chart
from locum import (
    Attention,
    SOp,
    UniversalSimulator,
    aggregate,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
    where,
)

Integers = NDArray[np.int64]
Work = dict[str, Callable[[], Any]]
#: Numbers of different tokens: integers from 0 to 99, or 0 for an opening and 1 for a closing bracket.
_VALUES, _BRACKETS = 100, 2
_LIST = 10**5
#: Number of largest sizes to which slopes are fitted.
_FITTED = 3
#: Width of X, and maximum number of rows for which all scores are stored in memory.
_WIDTH, _HELD = 64, 8_192


class Sequences(NamedTuple):
    """A program, the equivalent NumPy function, and the number of different tokens."""

    program: SOp
    numpy: Callable[[Integers], Any]
    values: int = _VALUES


# Programs ----------------------------------------------------------------------------------------


def _shift(x: Integers) -> Integers:
    shifted = np.empty_like(x)
    shifted[0], shifted[1:] = 0, x[:-1]
    return shifted


def _reverse(x: Integers) -> Integers:
    return x[::-1].copy()


def _by_frequency(x: Integers) -> Integers:
    values, first, counts = np.unique(x, return_index=True, return_counts=True)
    result = np.full(len(x), -1)
    result[: len(values)] = values[np.lexsort((first, -counts))]
    return result


def _dyck(x: Integers) -> Integers:
    depth = np.cumsum(1 - 2 * x)
    return np.where(np.minimum.accumulate(depth) < 0, 2, np.where(depth == 0, 1, 0))


_same = select(tokens, tokens, "==")
_is_first = selector_width(_same & select(indices, indices, "<")) == 0
_up_to_here = select(indices, indices, "<=")
_balance = aggregate(_up_to_here, where(tokens == 0, 1, -1))
_broken = aggregate(_up_to_here, indicator(_balance < 0)) > 0

PROGRAMS = {
    "shift": Sequences(aggregate(select(indices, indices - 1, "=="), tokens), _shift),
    "reverse": Sequences(aggregate(select(indices, length - 1 - indices, "=="), tokens), _reverse),
    "sort": Sequences(sort(tokens, tokens), np.sort),
    "most frequent": Sequences(
        sort(where(_is_first, tokens, -1), -where(_is_first, selector_width(_same), -1)),
        _by_frequency,
    ),
    "Dyck": Sequences(where(_broken, 2, where(_balance == 0, 1, 0)), _dyck, _BRACKETS),
}


# Measuring ---------------------------------------------------------------------------------------


def measure_sequences(sizes: Sequence[int], seconds: float) -> list[Row]:
    """Measure each program at each number of tokens, relative to NumPy; return one row for each."""
    rows = []
    for name, (program, numpy, values) in PROGRAMS.items():
        for size in sizes:
            x = np.random.default_rng(size).integers(0, values, size)
            run = _running(program, x)
            assert np.array_equal(run(), numpy(x)), name
            work: Work = {"locum": run, "numpy": functools.partial(numpy, x)}
            times = interleave(work, seconds, rounds=5, warm=2)
            row: Row = {"kind": "sequences", "name": name, "size": size}
            row |= _ratio("ratio", times["locum"], times["numpy"])
            row["seconds"] = statistics.median(times["locum"])
            row["peer_seconds"] = statistics.median(times["numpy"])
            row["bytes"], row["peer_bytes"] = _traced(run), _traced(work["numpy"])
            if size == _LIST:  # Measured separately, because runs on lists change the cached memory.
                listed = x.tolist()
                on_list: Work = {
                    "list": _running(program, listed),
                    "array": functools.partial(_read_and_run, program, listed),
                }
                times = interleave(on_list, seconds, rounds=5, warm=2)
                row |= _ratio("list_ratio", times["list"], times["array"])
            rows.append(row)
    return rows


def _running(program: SOp, x: Any) -> Callable[[], Any]:
    return lambda: program(x, executor="fast")


def _read_and_run(program: SOp, listed: list[int]) -> Any:
    return program(np.asarray(listed), executor="fast")


def _ratio(name: str, over: Sequence[float], under: Sequence[float]) -> Row:
    median, quartiles = ratio(over, under)
    return {name: median, f"{name}_quartiles": quartiles}


def _traced(work: Callable[[], object]) -> int:
    """Return the peak of the Python memory during a call, in bytes."""
    tracemalloc.start()
    work()
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


def measure_against(kind: str, sizes: Sequence[int], seconds: float) -> list[Row]:
    """Measure U, or an encoder on U, at each size relative to PyTorch; return one row for each."""
    name, make = AGAINST[kind]
    rows = []
    for n in sizes:
        work = make(n)
        assert (work["locum"]() - work["peer"]()).abs().max() < 1e-4
        times = interleave(work, seconds, rounds=3, warm=1)
        row: Row = {"kind": kind, "name": name, "size": n}
        row |= _ratio("ratio", times["locum"], times["peer"])
        row["seconds"] = statistics.median(times["locum"])
        row["peer_seconds"] = statistics.median(times["peer"])
        row["bytes"], row["peer_bytes"] = _resident(kind, "locum", n), _resident(kind, "peer", n)
        if "direct" in times:
            row |= _ratio("direct_ratio", times["locum"], times["direct"])
        rows.append(row)
    return rows


def _attention(n: int) -> Work:
    """Return functions that run U, fused attention and, for few rows, the plain formula on n rows."""
    torch = _torch()
    torch.manual_seed(n)
    x, a, v = (torch.randn(rows, _WIDTH) / 8 for rows in (n, _WIDTH, _WIDTH))
    U, T = UniversalSimulator(n, _WIDTH, _WIDTH), Attention(a, v)
    attend = torch.nn.functional.scaled_dot_product_attention
    work: Work = {
        "locum": lambda: U(T, x),
        "peer": lambda: attend((x @ a)[None, None], x[None, None], (x @ v)[None, None], scale=1.0)[
            0, 0
        ],
    }
    if n <= _HELD:
        work["direct"] = lambda: torch.softmax(x @ a @ x.T, -1) @ (x @ v)
    return work


def _layers(n: int) -> Work:
    """Return functions that run an encoder of n layers on U and in eager execution."""
    torch = _torch()
    torch.manual_seed(n)
    torch._dynamo.reset()
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, n, enable_nested_tensor=False).eval()
    torch.backends.mha.set_fastpath_enabled(False)
    x = torch.randn(1, 64, 256)
    on_u = torch.compile(encoder, backend="locum", fullgraph=True)
    return {"locum": lambda: on_u(x), "peer": lambda: encoder(x)}


def _torch() -> Any:
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return torch


#: Measurements that depend on a size: the name in the rows, and a function that returns the calls.
AGAINST: dict[str, tuple[str, Callable[[int], Work]]] = {
    "U": ("U(T, X)", _attention),
    "layers": ("encoder on U", _layers),
}


def _resident(kind: str, name: str, n: int) -> int | None:
    """Return the bytes that a first run adds to a process after a small run.

    Return None if the memory peak cannot be reset, for example on systems other than Linux.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_resident_here, (kind, name, n))


def _resident_here(kind: str, name: str, n: int) -> int | None:
    make = AGAINST[kind][1]
    work = make(n)[name]
    make(256 if kind == "U" else 1)[name]()  # Loads all libraries.
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # Resets the memory peak.
    except OSError:
        return None
    before = _status("VmRSS")
    work()
    return 1024 * (_status("VmHWM") - before)


def _status(name: str) -> int:
    """Return a memory figure of this process in kB, such as ``VmRSS``."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


# Slopes and charts -------------------------------------------------------------------------------


def slope(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of the logarithms, and the largest growth relative to the slope.

    >>> slope([10, 100, 1000], [1.0, 10.0, 200.0])
    (1.15..., 1.41...)
    """
    fitted = float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
    steps = zip(itertools.pairwise(sizes), itertools.pairwise(values), strict=True)
    return fitted, max(b / a / (to / at) ** fitted for (at, to), (a, b) in steps)


def slopes(rows: Sequence[Row]) -> list[Row]:
    """Return the slopes of the time and the memory of each program, and of the time of its peer.

    The slopes are fitted at the largest sizes, because the fixed cost of a call dominates at small
    sizes.
    """
    fitted = []
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name][-_FITTED:]
        if len(own) < 2:
            continue
        for what in ("seconds", "peer_seconds", "bytes"):
            values = [row[what] for row in own]
            if all(values):
                exponent, step = slope([row["size"] for row in own], values)
                fitted.append({"name": name, "what": what, "slope": exponent, "step": step})
    return fitted


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the time and the memory of each kind of work, each in a separate SVG file."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    kinds = (
        ("sequences", "tokens", "NumPy", "programs on integers"),
        ("U", "rows of X", "PyTorch SDPA", "U(T, X)"),
        ("layers", "layers", "eager", "an encoder on U"),
    )
    quantities = (("seconds", "Time per call", "ms", 1e3), ("bytes", "Memory", "MB", 1e-6))
    for kind, label, peer, what_runs in kinds:
        own = [row for row in rows if row["kind"] == kind]
        sizes = sorted({row["size"] for row in own})
        if len(sizes) < 2:
            continue
        for what, quantity, unit, scale in quantities:
            lines = {
                name: [scale * row[what] for row in own if row["name"] == name]
                for name in dict.fromkeys(row["name"] for row in own if row["name"] != "reverse")
            }
            if kind in AGAINST:
                lines[peer] = [scale * row[f"peer_{what}"] for row in own]
            # The memory of a process grows in pages and arenas, so small values are inexact.
            y_scale = "log" if what == "seconds" or kind not in AGAINST else "linear"
            values = "MB added by the first call" if kind in AGAINST and what == "bytes" else unit
            title, scales = f"{quantity} of {what_runs}", f"log {y_scale}"
            chart = line_chart(title, sizes, lines, label, values=values, scales=scales)
            path = folder / f"{kind.lower()}_{what}.svg"
            path.write_text(chart, encoding="utf-8")
            drawn.append(path)
    return drawn


def main() -> None:
    """Measure, draw the charts, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=("sequences", *AGAINST), help="Measure one kind.")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000,10000000", help="Tokens.")
    parser.add_argument("--rows", default="512,1024,2048,4096,8192,16384,32768", help="Rows of X.")
    parser.add_argument("--layers", default="1,2,4,8,16,32", help="Layers of the encoder.")
    parser.add_argument("--seconds", type=float, default=1.0, help="Time for each row, in seconds.")
    parser.add_argument("--charts", type=Path, default=Path("build/scaling"), help="Folder for charts.")
    parser.add_argument("--read", type=Path, help="Draw the rows of a JSON file, without measuring.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    arguments = parser.parse_args()
    if arguments.read is not None:
        print(*draw(json.loads(arguments.read.read_text())["rows"], arguments.charts), sep="\n")
        return
    rows: list[Row] = []
    if arguments.only in (None, "sequences"):
        rows += measure_sequences([int(size) for size in arguments.sizes.split(",")], arguments.seconds)
    for kind, chosen in (("U", arguments.rows), ("layers", arguments.layers)):
        if arguments.only in (None, kind):
            rows += measure_against(kind, [int(n) for n in chosen.split(",")], arguments.seconds)
    fitted, drawn = slopes(rows), draw(rows, arguments.charts)
    torch: Any = sys.modules.get("torch")
    where_run = machine(*([f"torch {torch.__version__}, one thread"] if torch else []))
    if arguments.json:
        charts = [str(path) for path in drawn]
        result = {"benchmark": "scaling", "machine": where_run, "rows": rows, "slopes": fitted}
        print(json.dumps(result | {"charts": charts}))
        return
    print(f"Time and memory against size ({where_run})")
    titles = ("ms", "peer ms", "ratio", "quartiles", "MB", "peer MB", "list")
    print(f"{'':14} {'size':>10} " + " ".join(f"{title:>11}" for title in titles))
    for row in rows:
        low, high = row["ratio_quartiles"]
        cells = [f"{1e3 * row['seconds']:.3f}", f"{1e3 * row['peer_seconds']:.3f}"]
        cells += [f"{row['ratio']:.2f}", f"{low:.2f}–{high:.2f}"]
        cells += ["–" if row[b] is None else f"{row[b] / 1e6:.1f}" for b in ("bytes", "peer_bytes")]
        cells += [f"{row['list_ratio']:.2f}"] if "list_ratio" in row else []
        print(f"{row['name']:14} {row['size']:>10,} " + " ".join(f"{cell:>11}" for cell in cells))
    for fit in fitted:
        print(f"{fit['name']:14} {fit['what']:>13}: slope {fit['slope']:.2f}, step {fit['step']:.2f}")
    print(*drawn, sep="\n")


if __name__ == "__main__":
    main()
