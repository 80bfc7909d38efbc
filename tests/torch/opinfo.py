"""Run PyTorch's own sample inputs (``op_db``) on U, and compare with eager execution.

>>> summary = run_samples("neg", "float32", {"fast": 2})["fast"]  # doctest: +SKIP
>>> summary.right, summary.wrong  # doctest: +SKIP
(1, [])

``python -m tests.torch.opinfo neg add`` runs samples of some operations, without names of all.
``--json FILE`` writes the counts by dtype and executor.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import settings
from torch.testing._comparison import default_tolerances
from torch.utils import _pytree as pytree

from locum.errors import LocumError
from tests.torch.captured_function import (
    CapturedFunction,
    CaptureError,
    TooLargeError,
    capture,
    choose_weights,
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
LARGEST = {"fast": 2**16, "dense": 1024, "heads": 1024}


@dataclass(frozen=True)
class Sample:
    """A sample input: a function of tensors, and the tensors."""

    op: Any
    number: int
    function: Any
    #: The function that returns float64 if its arguments name a type.
    wide: Any
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
    #: Right samples whose strides, aliasing or overflow PyTorch changed when it captured them.
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
    def word(self) -> str:
        """The numbers of right, rejected and unlisted samples, as ``op_db.txt`` has them."""
        return f"{self.right}/{len(self.rejected)}/{len(self.unlisted)}"

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


def find_samples(name: str, dtype: str, *, gradients: bool = False) -> Iterator[Sample]:
    """Iterate over the sample inputs of one operation."""
    op, kind = OPS[name], getattr(torch, dtype)
    supported = op.supported_backward_dtypes("cpu") if gradients else op.supported_dtypes("cpu")
    if kind not in supported or (gradients and not op.supports_autograd):
        return
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", kind, requires_grad=gradients)):
        function, tensors = as_function(op, sample, gradients)
        wide, _ = as_function(op, sample, gradients, is_wide=True)
        yield Sample(op, number, function, wide, tensors, kind, gradients, sample.args)


def run_samples(
    name: str,
    dtype: str,
    most: Mapping[str, int],
    *,
    host: str = "forbidden",
    gradients: bool = False,
) -> dict[str, Summary]:
    """Run sample inputs of one operation; return a summary for each executor.

    ``most`` has the greatest number of samples for each executor. If there are more, samples at equal
    distances are run.
    """
    samples = list(find_samples(name, dtype, gradients=gradients))
    steps = {executor: -(-len(samples) // count) for executor, count in most.items()}
    summaries = {executor: Summary() for executor in most}
    for sample in samples:
        executors = [executor for executor, step in steps.items() if sample.number % step == 0]
        for executor, summary in judge(sample, executors, host).items():
            summaries[executor].add(summary)
    return summaries


@dataclass(frozen=True)
class Run:
    """A way to run samples."""

    dtypes: tuple[str, ...]
    #: Executor → greatest number of samples of an operation and dtype.
    most: Mapping[str, int]
    host: str = "forbidden"
    gradients: bool = False

    def __call__(self, name: str) -> dict[tuple[str, str], Summary]:
        """Run samples of an operation; return a summary for each dtype and executor."""
        return {
            (dtype, executor): summary
            for dtype in self.dtypes
            for executor, summary in run_samples(
                name, dtype, self.most, host=self.host, gradients=self.gradients
            ).items()
        }


#: What ``make fuzz`` runs of each operation.
RUNS = {
    "forward": Run(DTYPES[:1], {"fast": 10_000, "dense": 8, "heads": 8}),
    "dtypes": Run(DTYPES[1:], {"fast": 12, "dense": 4, "heads": 4}),
    "gradients": Run(DTYPES[:4], {"fast": 8, "dense": 2, "heads": 2}, gradients=True),
    "host": Run(DTYPES[:1], {"fast": 8}, host="allowed"),
}


def as_function(
    op: Any, sample: Any, gradients: bool, is_wide: bool = False
) -> tuple[Any, list[torch.Tensor]]:
    """Return a sample as a function of its tensors, and the tensors.

    ``is_wide`` replaces floating-point types among the arguments by float64.
    """
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if is_wide:
        leaves = [torch.float64 if _is_float_type(leaf) else leaf for leaf in leaves]

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


def _is_float_type(leaf: Any) -> bool:
    return isinstance(leaf, torch.dtype) and leaf.is_floating_point


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
    """Return how a run differs from eager execution, and whether PyTorch changed the function.

    When PyTorch captures a function, it may choose other strides, or copy a result that shares memory
    with another. Then these are compared with a run of the captured graph by PyTorch.
    """
    if "empty" in sample.op.name:  # the numbers are undefined
        expected, found = ([x.clone().zero_() for x in values] for values in (expected, found))
    tolerances = stated_tolerances(sample.op, sample.dtype)
    if sample.op.name == "topk":
        expected = _accept_order_of_equals(sample, expected, found)
    shares = aliasing(expected)
    problem = _compare_aliasing(shares, found) or difference(expected, found, tolerances=tolerances)
    if not problem:
        return "", False
    executor, captured.executor = captured.executor, "eager"
    laid_out = run(captured, sample.tensors, gradients=sample.gradients)
    wanted = [lay_out(x, y) for x, y in zip(expected, laid_out, strict=True)]
    is_changed = aliasing(laid_out) != shares or difference(expected, wanted) != ""
    problem = _compare_aliasing(aliasing(laid_out), found)
    exact: list[Any] = []
    if not problem and difference(wanted, found, tolerances=tolerances):
        if sample.dtype.is_floating_point:
            exact = _run_in_float64(sample.wide, sample.tensors, sample.gradients)
        problem = difference(wanted, found, exact, tolerances)
        if problem and _is_exact_as_captured(exact, laid_out, found, tolerances):
            return "", True
        if problem and sample.dtype.itemsize == 2:
            problem = _compare_operations(sample, captured, executor)
    return problem, is_changed


def _is_exact_as_captured(
    exact: list[Any], captured: list[Any], found: list[Any], tolerances: tuple[float, float]
) -> bool:
    """Return whether results are those of PyTorch for the captured graph, and right in float64.

    In half precision, a decomposition rounds at other steps than the operation, and may not overflow.
    The tolerance is doubled, because eager execution has an error, too.
    """
    rtol, atol = tolerances
    tolerances = 2 * rtol, 2 * atol
    if len(exact) != len(found) or difference(captured, found, tolerances=tolerances):
        return False
    pairs = zip(exact, found, strict=True)
    tensors = [(x, y) for x, y in pairs if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)]
    closest = [lay_out(x.to(y.dtype), y) for x, y in tensors]
    return not difference(closest, [y for _, y in tensors], tolerances=tolerances)


def _compare_operations(sample: Sample, captured: CapturedFunction, executor: str) -> str:
    """Return how an operation of a sample differs from eager execution for the same arguments.

    In half precision, another rounding of one result changes small results of later operations.
    """
    captured.executor = "eager"
    captured.calls = []
    run(captured, sample.tensors, gradients=sample.gradients)
    for target, arguments, options in captured.calls:
        leaves, spec = pytree.tree_flatten((arguments, options))
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]

        def function(
            *given: torch.Tensor, target: Any = target, leaves: Any = leaves, spec: Any = spec
        ) -> Any:
            parts = iter(given)
            filled = [next(parts) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            arguments, options = pytree.tree_unflatten(filled, spec)
            return target(*arguments, **options)

        expected, found, _ = compare_run(function, tensors, executor, captured.host, gradients=False)
        # PyTorch states another type of statistics when it captures batch normalisation.
        found = [y.to(x.dtype) for x, y in zip(expected, found, strict=True)]
        tolerances = stated_tolerances(sample.op, sample.dtype)
        problem = difference(expected, found, tolerances=tolerances)
        if problem:
            exact = exact_values(function, tensors, gradients=False)
            problem = difference(expected, found, exact, tolerances)
        if problem:
            return f"{target}: {problem}"
    return ""


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
    if sample.gradients:
        (weights,) = choose_weights(expected[:1])
        last = torch.zeros_like(input_).scatter(dim, indices, weights)
    else:
        last = indices.double()
    return [expected[0], indices, *expected[2:-2], last, expected[-1]]


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


def add_up(summaries: Iterable[Summary]) -> Summary:
    """Return what became of the samples of several summaries."""
    total = Summary()
    for summary in summaries:
        total.add(summary)
    return total


def main() -> int:
    """Print a line for each operation and dtype; exit with 1 if a sample is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="Entries of op_db, all by default.")
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--json", type=Path, help="File for the counts by run, dtype and executor.")
    parser.add_argument("--table", type=Path, help="File for the counts by operation and run.")
    options = parser.parse_args()
    totals: dict[str, Summary] = {}
    lines = []
    for name in options.names or OPS:
        words = [name]
        for kind in options.runs:
            summaries = RUNS[kind](name)
            for (dtype, executor), summary in summaries.items():
                label = f"{kind} {dtype} {executor}"
                totals.setdefault(label, Summary()).add(summary)
                counts = ", ".join(f"{n} {what}" for what, n in summary.counts.items() if n)
                if counts:
                    print(f"{name} {label}: {counts}", flush=True)
                for line in [*summary.wrong[:3], *summary.rejected[:1]]:
                    print("   ", line, flush=True)
            words.append(add_up(summaries.values()).word)
        lines.append(" ".join(words))
        if options.json:
            found = {label: summary.counts for label, summary in totals.items()}
            options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        if options.table:
            options.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if any(summary.wrong for summary in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
