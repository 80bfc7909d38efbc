"""Run PyTorch's own sample inputs (``op_db``) on U, and compare with eager execution.

>>> summary = run_samples("neg", "float32", limit=2)["fast"]  # doctest: +SKIP
>>> summary.right, summary.wrong  # doctest: +SKIP
(2, [])

From a shell: ``python -m tests.old.torch.opinfo neg add --dtypes float32 int64 --executors fast dense``.
Without names, all operations run. ``--json FILE`` writes the counts by dtype and executor.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import settings
from torch.testing._comparison import default_tolerances
from torch.utils import _pytree as pytree

from locum.errors import LocumError
from tests.old.torch.captured_function import (
    CapturedFunction,
    CaptureError,
    TooLargeError,
    capture,
    run,
)
from tests.torch.comparing import aliasing

_PROFILE = settings.get_current_profile_name()
from torch.testing._internal.common_device_type import toleranceOverride  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

settings.load_profile(_PROFILE)  # importing these loads a profile of PyTorch's own tests

__all__ = ["OPS", "capture", "compare_run", "difference", "exact_values", "run_samples"]

OPS: dict[str, Any] = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in op_db}
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool")
EXECUTORS = ("fast", "dense", "heads")
#: Greatest number of entries of a sample, and greatest length of a program, by executor.
LARGEST = {"fast": 2**16, "dense": 512, "heads": 512}


@dataclass(frozen=True)
class Sample:
    """A sample input: a function of tensors, and the tensors."""

    op: Any
    number: int
    function: Any
    tensors: list[torch.Tensor]
    dtype: torch.dtype
    gradients: bool
    #: The arguments after the first one.
    args: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """The number of entries of all tensors."""
        return sum(tensor.numel() for tensor in self.tensors)


@dataclass
class Summary:
    """What became of samples with one executor."""

    right: int = 0
    #: Samples that raised one of Locum's errors, though all operations are in the table: the messages.
    rejected: list[str] = field(default_factory=list)
    #: Samples that were accepted and differ from eager, or raised another error.
    wrong: list[str] = field(default_factory=list)
    #: Samples with an operation that is not in the table, which raised one of Locum's errors.
    unlisted: list[str] = field(default_factory=list)
    #: Samples that PyTorch does not capture, that have no operation for U, or that are too large.
    left_out: int = 0
    #: Right samples whose strides or aliasing PyTorch changed when it captured them.
    changed: int = 0

    def add(self, other: Summary) -> None:
        """Add what became of other samples."""
        self.right += other.right
        self.left_out += other.left_out
        self.rejected += other.rejected
        self.wrong += other.wrong
        self.unlisted += other.unlisted
        self.changed += other.changed

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of samples."""
        return {
            "right": self.right,
            "rejected": len(self.rejected),
            "wrong": len(self.wrong),
            "unlisted": len(self.unlisted),
            "left_out": self.left_out,
            "changed": self.changed,
        }


def find_samples(
    name: str, dtype: str, *, gradients: bool = False, limit: int | None = None
) -> Iterator[Sample]:
    """Iterate over the sample inputs of one operation, at most ``limit`` of them."""
    op, kind = OPS[name], getattr(torch, dtype)
    supported = op.supported_backward_dtypes("cpu") if gradients else op.supported_dtypes("cpu")
    if kind not in supported or (gradients and not op.supports_autograd):
        return
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", kind, requires_grad=gradients)):
        if limit is not None and number >= limit:
            return
        function, tensors = as_function(op, sample, gradients)
        yield Sample(op, number, function, tensors, kind, gradients, sample.args)


def run_samples(
    name: str,
    dtype: str = "float32",
    *,
    executors: Sequence[str] = ("fast",),
    host: str = "forbidden",
    gradients: bool = False,
    limit: int | None = None,
) -> dict[str, Summary]:
    """Run the sample inputs of one operation; return a summary for each executor."""
    summaries = {executor: Summary() for executor in executors}
    for sample in find_samples(name, dtype, gradients=gradients, limit=limit):
        for executor, summary in judge(sample, executors, host).items():
            summaries[executor].add(summary)
    return summaries


def as_function(op: Any, sample: Any, gradients: bool) -> tuple[Any, list[torch.Tensor]]:
    """Return a sample as a function of its tensors, and the tensors."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*given: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, given, strict=True):
            filled[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        result = op(first, *args, **kwargs)
        if gradients:
            return sample.output_process_fn_grad(result)
        # Integers are also returned as floats, which shows fractions that a cast would hide.
        return result, [x.double() for x in pytree.tree_leaves(result) if _is_whole(x)]

    return function, [leaves[n] for n in places]


def _is_whole(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point() and not value.is_complex()


def judge(sample: Sample, executors: Sequence[str], host: str) -> dict[str, Summary]:
    """Run a sample eagerly and with executors; return what became of it with each."""
    executors = [executor for executor in executors if sample.size <= LARGEST[executor]]
    captured = CapturedFunction(sample.function, host)
    found = {}
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        try:
            expected = run(sample.function, sample.tensors, gradients=sample.gradients)
        except Exception:  # the sample has no gradient
            return {executor: Summary(left_out=1) for executor in executors}
        for executor in executors:
            captured.executor, captured.longest = executor, LARGEST[executor]
            found[executor] = _judge_one(sample, captured, expected)
    return found


def _judge_one(sample: Sample, captured: CapturedFunction, expected: list[Any]) -> Summary:
    label = f"{sample.op.name} {sample.dtype} {sample.number}"
    try:
        found = run(captured, sample.tensors, gradients=sample.gradients)
    except LocumError as error:
        message = f"{label}: {error}"
        if captured.unlisted:
            return Summary(unlisted=[message])
        return Summary(rejected=[message])
    except (CaptureError, TooLargeError):
        return Summary(left_out=1)
    except Exception as error:
        return Summary(wrong=[f"{label}: {type(error).__name__}: {error}"[:400]])
    if not captured.overloads:
        return Summary(left_out=1)
    problem, is_changed = _compare(sample, captured, expected, found)
    if problem:
        shapes = [tuple(tensor.shape) for tensor in sample.tensors]
        return Summary(wrong=[f"{label} {shapes}: {problem}"])
    return Summary(right=1, changed=int(is_changed))


def _compare(
    sample: Sample, captured: CapturedFunction, expected: list[Any], found: list[Any]
) -> tuple[str, bool]:
    """Return how a run differs from eager execution, and whether PyTorch changed strides or aliasing.

    When PyTorch captures a function, it may choose other strides, or copy a result, which shared memory
    with another. Then these are compared with a run of the captured graph by PyTorch.
    """
    if "empty" in sample.op.name:  # the numbers are undefined
        expected, found = ([x.clone().zero_() for x in values] for values in (expected, found))
    tolerances = stated_tolerances(sample.op, sample.dtype)
    if sample.op.name == "topk" and not sample.gradients:
        expected = _accept_order_of_equals(sample, expected, found)
    shares = aliasing(expected)
    problem = _compare_aliasing(shares, found) or difference(expected, found, tolerances=tolerances)
    if not problem:
        return "", False
    captured.executor = "eager"
    laid_out = run(captured, sample.tensors, gradients=sample.gradients)
    wanted = [lay_out(x, y) for x, y in zip(expected, laid_out, strict=True)]
    is_changed = aliasing(laid_out) != shares or difference(expected, wanted) != ""
    problem = _compare_aliasing(aliasing(laid_out), found)
    exact: list[Any] = []
    if not problem and difference(wanted, found, tolerances=tolerances):
        if sample.dtype.is_floating_point:
            exact = _run_in_float64(sample.function, sample.tensors, sample.gradients)
        problem = difference(wanted, found, exact, tolerances)
    return problem, is_changed


def _accept_order_of_equals(sample: Sample, expected: list[Any], found: list[Any]) -> list[Any]:
    """Return the expected results of topk with the indices that were found, if these are right.

    PyTorch does not define which of equal entries topk returns, and in which order.
    """
    input_, indices, dim = sample.tensors[0].detach(), found[1], dict(enumerate(sample.args)).get(1, -1)
    if indices.shape != expected[1].shape or not indices.dim():
        return expected
    ordered = indices.sort(dim).values
    is_distinct = bool((ordered.diff(dim=dim) > 0).all())
    if not is_distinct or not torch.equal(input_.gather(dim, indices), expected[0]):
        return expected
    return [expected[0], indices, *expected[2:-2], indices.double(), expected[-1]]


def _compare_aliasing(expected: list[int], found: list[Any]) -> str:
    got = aliasing(found)
    return "" if got == expected else f"results share memory as {got} instead of {expected}"


def lay_out(values: Any, layout: Any) -> Any:
    """Return values with the strides of another tensor of the same shape."""
    if not isinstance(values, torch.Tensor) or values.shape != layout.shape:
        return values
    return torch.empty_strided(layout.shape, layout.stride(), dtype=values.dtype).copy_(values)


def compare_run(
    function: Any, tensors: list[torch.Tensor], executor: str, host: str, gradients: bool
) -> tuple[list[Any], list[Any], set[str]]:
    """Run a function of tensors eagerly and on U; return both results, and what ran on U."""
    captured = CapturedFunction(function, host)
    captured.executor = executor
    expected = run(function, tensors, gradients=gradients)
    found = run(captured, tensors, gradients=gradients)
    count = len(expected) - len(tensors)
    return expected[:count], found[:count], captured.overloads


def stated_tolerances(op: Any, dtype: torch.dtype) -> tuple[float, float]:
    """Return the relative and absolute tolerance that an OpInfo states for a type, or the usual one."""
    rtol, atol = default_tolerances(dtype) if dtype.is_floating_point else (0.0, 0.0)
    for information in op.decorators:
        for decorator in getattr(information, "decorators", ()):
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                stated = decorator.d[dtype]
                rtol, atol = max(rtol, stated.rtol), max(atol, stated.atol)
    return rtol, atol


def exact_values(function: Any, tensors: list[torch.Tensor], gradients: bool) -> list[Any]:
    """Return what a function gives on the same tensors in float64; none where it takes no float64."""
    found = _run_in_float64(function, tensors, gradients)
    return found[: len(found) - len(tensors)]


def _run_in_float64(function: Any, tensors: list[torch.Tensor], gradients: bool) -> list[Any]:
    wide = [
        tensor.detach().double().requires_grad_(tensor.requires_grad)
        if tensor.is_floating_point()
        else tensor
        for tensor in tensors
    ]
    try:
        return run(function, wide, gradients=gradients)
    except RuntimeError:
        return []


def difference(
    expected: Iterable[Any],
    found: Iterable[Any],
    exact: Iterable[Any] = (),
    tolerances: tuple[float, float] = (0.0, 0.0),
) -> str:
    """Return how results differ in dtype, shape, strides or values; "" where they do not.

    Entries that differ from the expected ones may be close to the ``exact`` ones, in float64, or all
    together as close to these as the expected ones are.
    """
    expected, found, exact = list(expected), list(found), list(exact)
    if len(expected) != len(found):
        return f"{len(found)} results instead of {len(expected)}"
    if len(exact) != len(expected):
        exact = [None] * len(expected)
    for number, (want, got, reference) in enumerate(zip(expected, found, exact, strict=True)):
        if not isinstance(want, torch.Tensor):
            if want != got:
                return f"result {number}: {got} instead of {want}"
            continue
        if not isinstance(got, torch.Tensor):
            return f"result {number}: {got} instead of a tensor"
        if want.dtype != got.dtype:
            return f"result {number}: dtype {got.dtype} instead of {want.dtype}"
        if want.shape != got.shape:
            return f"result {number}: shape {tuple(got.shape)} instead of {tuple(want.shape)}"
        apart = [n for n, size in enumerate(want.shape) if size > 1]
        if want.numel() and any(want.stride(n) != got.stride(n) for n in apart):
            return f"result {number}: strides {got.stride()} instead of {want.stride()}"
        usual = default_tolerances(want.dtype) if want.is_floating_point() else (0.0, 0.0)
        rtol, atol = map(max, usual, tolerances if want.is_floating_point() else usual)
        if isinstance(reference, torch.Tensor) and want.is_floating_point():
            better = torch.isclose(got, reference.to(want.dtype), rtol, atol) & want.isfinite()
            want = torch.where(better | is_as_exact(got, want, reference), got, want)
        try:
            torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return f"result {number}: {' '.join(str(error).split())[:240]}"
    return ""


def is_as_exact(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor) -> bool:
    """Return whether the error of a result is at most 1.1 times that of the expected one."""
    finite = exact.isfinite() & want.isfinite()
    if not torch.equal(got.isfinite(), want.isfinite()) or not finite.any():
        return False
    same = (got == want) | (got.isnan() & want.isnan()) | finite
    ours, eager = ((part.double() - exact)[finite].norm() for part in (got, want))
    return bool(same.all() and ours <= 1.1 * eager)


def main() -> int:
    """Print a line for each operation and dtype; exit with 1 if a sample is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--executors", nargs="+", default=EXECUTORS, choices=EXECUTORS)
    parser.add_argument("--host", default="forbidden", choices=("allowed", "forbidden"))
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json", type=Path, help="File for the counts by dtype and executor.")
    options = parser.parse_args()
    totals = {(d, e): Summary() for d in options.dtypes for e in options.executors}
    for name in options.names or OPS:
        for dtype in options.dtypes:
            summaries = run_samples(
                name,
                dtype,
                executors=options.executors,
                host=options.host,
                gradients=options.gradients,
                limit=options.limit,
            )
            for executor, summary in summaries.items():
                totals[dtype, executor].add(summary)
                counts = ", ".join(f"{n} {kind}" for kind, n in summary.counts.items() if n)
                if counts:
                    print(f"{name} {dtype} {executor}: {counts}", flush=True)
                for line in [*summary.wrong[:3], *summary.rejected[:1]]:
                    print("   ", line, flush=True)
    if options.json:
        sums = {f"{d} {e}": summary.counts for (d, e), summary in totals.items()}
        options.json.write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")
    return 1 if any(summary.wrong for summary in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
