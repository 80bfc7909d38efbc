"""Compare U and its plan with the same formula written in PyTorch: time, overhead and memory.

The measurements alternate in one process. Each round measures the direct expression twice, the plan,
PyTorch's fused attention and, for one head, ``U(T, X)``. A ratio is the median over the rounds of the
ratio of two times, with quartiles. The ratio of the two direct measurements is the control (A/A), which
shows the noise.

    python benchmarks/bench_speed.py                          # PyTorch on the CPU, float32, one thread
    python benchmarks/bench_speed.py --device cuda --orders 512,768,768 4096,1024,1024
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import interleave, ratio
from locum import tokens
from locum.constructions import Matrix, concatenate, matmul, multihead, softmax, transpose
from locum.execution import fast
from locum.simulators import Attention, UniversalSimulator

#: Orders (n, d, d_v) of single heads, and orders (heads, n, d) of several heads.
ORDERS = ["16,16,16", "64,64,64", "128,384,384", "128,768,768", "512,768,768"]
HEADS = ["12,128,64", "12,512,64"]
Work = Callable[[], Any]


def attention(x: Matrix, a: Matrix, v: Matrix) -> Matrix:
    """Build the formula of Theorem 1, softmax(X A Xᵀ) X V, as a program."""
    return matmul(softmax(matmul(matmul(x, a), transpose(x))), matmul(x, v))


def universal(heads: int, n: int, d: int, d_v: int) -> Matrix:
    """Build the formula of U as a program for one head, or several heads by the multi-head lemma."""
    if heads == 1:
        x, a, v = concatenate(tokens, (n, d), (d, d), (d, d_v))
        return attention(x, a, v)
    sizes = (n * d, d * d)
    firsts = [Matrix(tokens, n, d), Matrix(tokens, d, d, offset=heads * sizes[0])]
    firsts.append(Matrix(tokens, d, d_v, offset=heads * sum(sizes)))
    return multihead(attention, heads, *firsts)


def matrices(
    heads: int, n: int, d: int, d_v: int, device: str, dtype: torch.dtype
) -> list[torch.Tensor]:
    """Draw random matrices X, A and V, scaled so that the scores are not too large."""
    torch.manual_seed(0)
    batch = () if heads == 1 else (heads,)
    shapes = [(n, d), (d, d), (d, d_v)]
    scales = (1.0, d**-1.0, d**-0.5)
    return [
        (torch.randn(*batch, *shape) * scale).to(device, dtype)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def direct(x: torch.Tensor, a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute softmax(X A Xᵀ) X V directly in PyTorch."""
    return torch.softmax(x @ a @ x.mT, -1) @ (x @ v)


def with_sdpa(x: torch.Tensor, a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute softmax(X A Xᵀ) X V with PyTorch's fused attention; the result has batch axes."""
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, w = ((y if y.ndim == 3 else y[None])[None] for y in (x @ a, x, x @ v))
    return attend(q, k, w, scale=1.0)


def measure(
    case: str, several: bool, device: str, dtype: torch.dtype, seconds: float
) -> dict[str, Any]:
    """Return a row with the ratios, the planning time and the error for one order."""
    numbers = [int(part) for part in case.split(",")]
    heads, n, d, d_v = (*numbers, numbers[-1]) if several else (1, *numbers)
    x, a, v = matrices(heads, n, d, d_v, device, dtype)
    program = universal(heads, n, d, d_v)
    fast.forget_plans()
    started = time.perf_counter()
    plan = program.plan(like=x, segments=[tuple(part.shape) for part in (x, a, v)])
    planning = time.perf_counter() - started
    actual, expected = plan(x, a, v), direct(x, a, v)
    error = (actual.reshape(expected.shape) - expected).abs().max() / expected.abs().max()
    work: dict[str, Work] = {
        "direct": lambda: direct(x, a, v),
        "plan": lambda: plan(x, a, v),
        "control": lambda: direct(x, a, v),
        "sdpa": lambda: with_sdpa(x, a, v),
    }
    if not several:
        U, T = UniversalSimulator(n, d, d_v), Attention(a, v)
        error = max(error, (U(T, x) - expected).abs().max() / expected.abs().max())
        work["simulator"] = lambda: U(T, x)
    times = interleave(work, seconds, wait=_wait(device))
    row: dict[str, Any] = {
        "heads": heads,
        "order": [n, d, d_v],
        "matmul": plan.counts["matmul"],
        "gather": plan.counts["gather"],
        "mask": plan.counts["mask"],
        "planning_ms": planning * 1e3,
        "direct_ms": statistics.median(times["direct"]) * 1e3,
        "relative_error": float(error),
    }
    for name, (over, under) in {
        "ratio": ("plan", "direct"),
        "control": ("control", "direct"),
        "ratio_to_sdpa": ("plan", "sdpa"),
        "ratio_of_simulator": ("simulator", "direct"),
    }.items():
        if over not in times:
            continue
        row[name], row[f"{name}_quartiles"] = ratio(times[over], times[under])
    return row


def _wait(device: str) -> Work:
    return torch.cuda.synchronize if device == "cuda" else lambda: None


def overhead() -> float:
    """Return the time in seconds that a call of a plan needs in addition to its operations.

    The time is measured on 2×2 matrices.
    """
    x, a, v = matrices(1, 2, 2, 2, "cpu", torch.float32)
    plan = universal(1, 2, 2, 2).plan(like=x, segments=[(2, 2)] * 3)
    times = interleave({"plan": lambda: plan(x, a, v), "direct": lambda: direct(x, a, v)}, 1.0)
    return statistics.median(times["plan"]) - statistics.median(times["direct"])


# Memory -----------------------------------------------------------------------------------------------


def peak(case: str, several: bool, device: str, planned: bool) -> float | None:
    """Return the memory of a run in float32 in addition to its matrices, in MB, or None if unknown.

    The memory is measured in a separate process.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak, (case, several, device, planned))


def _peak(case: str, several: bool, device: str, planned: bool) -> float | None:
    torch.set_num_threads(1)
    numbers = [int(part) for part in case.split(",")]
    heads, n, d, d_v = (*numbers, numbers[-1]) if several else (1, *numbers)
    x, a, v = matrices(heads, n, d, d_v, device, torch.float32)
    plan = universal(heads, n, d, d_v).plan(like=x, segments=[tuple(p.shape) for p in (x, a, v)])
    work: Work = (lambda: plan(x, a, v)) if planned else (lambda: direct(x, a, v))
    if device == "cuda":
        work()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    try:
        clear = Path("/proc/self/clear_refs")
        clear.write_text("5", encoding="ascii")  # On Linux, this resets the memory peak.
    except OSError:
        return None
    before = _status("VmRSS")
    work()
    return (_status("VmHWM") - before) / 1e3


def _status(name: str) -> int:
    """Return a memory figure of this process in kB, such as ``VmRSS``."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def main() -> None:
    """Measure all orders, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--orders", nargs="*", default=ORDERS, help="n,d,d_v of single heads")
    parser.add_argument("--heads", nargs="*", default=HEADS, help="heads,n,d of several heads")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "float64", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="time for each row, in seconds")
    parser.add_argument("--no-memory", action="store_true", help="do not measure memory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    dtype = getattr(torch, arguments.dtype)
    device: str = arguments.device
    universal(1, 2, 2, 2).plan(segments=[(2, 2)] * 3)  # Imports modules before planning is measured.
    rows = []
    cases = [(case, False) for case in arguments.orders] + [(case, True) for case in arguments.heads]
    for case, several in cases:
        row = measure(case, several, device, dtype, arguments.seconds)
        if not arguments.no_memory:
            row["memory_direct_mb"] = peak(case, several, device, planned=False)
            row["memory_plan_mb"] = peak(case, several, device, planned=True)
        rows.append(row)
        if not arguments.json:
            show(row, first=len(rows) == 1)
    call = overhead()
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    machine = (
        f"torch {torch.__version__}, {arguments.dtype}, {device} ({name}), "
        f"{arguments.threads} thread(s), Python {platform.python_version()}"
    )
    if arguments.json:
        result = {"benchmark": "speed", "machine": machine, "overhead_us": call * 1e6, "rows": rows}
        print(json.dumps(result))
        return
    print(f"\na call of a plan costs {call * 1e6:.1f} µs beyond its operations\n({machine})")


def show(row: dict[str, Any], first: bool) -> None:
    """Print the measurements of one order as a line of the table."""
    if first:
        print(
            "U's plan over the same algebra written directly (median, quartiles; A/A is the control)\n"
        )
        print(
            f"{'heads':>5} {'(n, d, d_v)':>18} {'direct ms':>10} {'ratio':>7} {'quartiles':>13} "
            f"{'U(T, X)':>8} {'A/A':>6} {'to sdpa':>8} {'plan ms':>8} {'memory MB':>12} {'error':>8}"
        )
    quartiles: Sequence[float] = row["ratio_quartiles"]
    simulator = f"{row['ratio_of_simulator']:.3f}" if "ratio_of_simulator" in row else "–"
    memory = "–"
    if row.get("memory_plan_mb") is not None:
        memory = f"{row['memory_plan_mb']:.1f}/{row['memory_direct_mb']:.1f}"
    print(
        f"{row['heads']:>5} {tuple(row['order'])!s:>18} {row['direct_ms']:>10.3f} {row['ratio']:>7.3f} "
        f"{quartiles[0]:>6.3f}–{quartiles[1]:<6.3f} {simulator:>8} {row['control']:>6.3f} "
        f"{row['ratio_to_sdpa']:>8.3f} {row['planning_ms']:>8.1f} {memory:>12} "
        f"{row['relative_error']:>8.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
