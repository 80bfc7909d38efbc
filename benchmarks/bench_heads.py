"""Measure execution head by head: every live row of every head is scored against all keys.

``execution.heads`` (hard attention with exact position codes) runs a matrix product and the whole of U
= softmax(X A Xᵀ) X V. The results are compared with NumPy in float64. The table contains heads, live
rows, scored pairs, the minimum wall time of several runs in seconds, and the largest error relative to
the largest entry of the result. Dense execution would score N² pairs for each head.

    python benchmarks/bench_heads.py --order 64,64,64
    python benchmarks/bench_heads.py --device cuda --order 128,768,768

The benchmark requires NumPy and array-api-compat. With ``--device cuda`` or ``--library torch``, it
also requires PyTorch.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row
from locum import tokens
from locum.constructions.layout import concatenate
from locum.constructions.matmul import matmul
from locum.constructions.matrix import Matrix
from locum.constructions.softmax import softmax
from locum.constructions.transpose import transpose
from locum.execution import heads

Numbers = np.ndarray[Any, Any]


def product(n: int, d: int, dv: int) -> tuple[Matrix, list[Numbers], Numbers]:
    """Return the program of XA, its input matrices and its result."""
    random = np.random.default_rng(0)
    x, a = random.normal(size=(n, d)), random.normal(size=(d, d))
    first, second = concatenate(tokens, (n, d), (d, d))
    return matmul(first, second), [x, a], x @ a


def attention(n: int, d: int, dv: int) -> tuple[Matrix, list[Numbers], Numbers]:
    """Return the program of U, its input matrices and its result; the scores have about unit size."""
    random = np.random.default_rng(0)
    x, a, v = random.normal(size=(n, d)), random.normal(size=(d, d)) / d, random.normal(size=(d, dv))
    views = concatenate(tokens, (n, d), (d, d), (d, dv))
    scores = matmul(matmul(views[0], views[1]), transpose(views[0]))
    program = matmul(softmax(scores), matmul(views[0], views[2]))
    weights = np.exp(x @ a @ x.T - (x @ a @ x.T).max(axis=1, keepdims=True))
    return program, [x, a, v], weights / weights.sum(axis=1, keepdims=True) @ (x @ v)


PROGRAMS = {"product": product, "attention": attention}


def measure(name: str, order: tuple[int, int, int], arguments: argparse.Namespace) -> Row:
    """Run one program at one order, and return a row with counts, times and errors."""
    program, parts, expected = PROGRAMS[name](*order)
    inputs = np.concatenate([part.ravel() for part in parts]).astype(arguments.dtype)
    inputs = np.pad(inputs, (0, max(0, program.needs - len(inputs))))
    on_gpu = arguments.device != "cpu"
    array: Any = inputs
    if on_gpu or arguments.library == "torch":
        import torch

        array = torch.from_numpy(inputs).to(arguments.device)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
    seconds, report = [], heads.Report()
    actual: Any = None
    for _ in range(arguments.repeats):
        report = heads.Report()
        started = time.perf_counter()
        actual = heads.evaluate(
            program.sop.node,
            array,
            positions=range(expected.size),
            memory=arguments.memory,
            report=report,
        )
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    result = np.asarray(actual.cpu() if hasattr(actual, "cpu") else actual, dtype=np.float64)
    error = np.abs(result.reshape(expected.shape) - expected).max() / np.abs(expected).max()
    return {
        "program": name,
        "order": order,
        "tokens": len(inputs),
        "heads": report.heads,
        "rows": report.rows,
        "pairs": report.pairs,
        "dense_pairs": report.heads * len(inputs) ** 2,
        "width": report.width,
        "seconds": min(seconds),
        "first_seconds": seconds[0],
        "pairs_per_second": report.pairs / min(seconds),
        "relative_error": float(error),
        "gpu_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "families": report.families,
    }


def machine(arguments: argparse.Namespace) -> str:
    """Return text with the versions of Python and libraries, and the type of machine or the GPU."""
    words = f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"
    if arguments.device == "cpu" and arguments.library == "numpy":
        return words
    import torch

    name = "CPU" if arguments.device == "cpu" else torch.cuda.get_device_name()
    return f"{words}, torch {torch.__version__} on {name}"


def main() -> None:
    """Measure the programs, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", default="64,64,64", help="n,d,dv")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--library", default="numpy", choices=("numpy", "torch"), help="on the CPU")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="float32 by default on a GPU")
    parser.add_argument("--programs", default="product,attention", help="product, attention or both")
    parser.add_argument("--memory", type=int, help="bytes for one chunk of scores")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    arguments.dtype = arguments.dtype or ("float64" if arguments.device == "cpu" else "float32")
    n, d, dv = map(int, arguments.order.split(","))
    rows = [measure(name, (n, d, dv), arguments) for name in arguments.programs.split(",")]
    where = machine(arguments)
    if arguments.json:
        print(json.dumps({"benchmark": "heads", "machine": where, "rows": rows}))
        return
    print(f"Live rows of all heads against all keys, {arguments.dtype} ({where})")
    print(
        f"{'program':>10} {'order':>12} {'tokens':>8} {'heads':>7} {'rows':>8} {'pairs':>8} "
        f"{'seconds':>8} {'pairs/s':>8}  error"
    )
    for row in rows:
        print(
            f"{row['program']:>10} {arguments.order:>12} {row['tokens']:>8} {row['heads']:>7} "
            f"{row['rows']:>8} {row['pairs']:>8.1e} {row['seconds']:>8.2f} "
            f"{row['pairs_per_second']:>8.1e} {row['relative_error']:>6.0e}"
        )


if __name__ == "__main__":
    main()
