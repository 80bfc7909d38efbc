"""Run PyTorch's own sample inputs (``op_db``) on U, and compare with eager execution.

>>> summary = run_samples("neg", "float32", limit=2)  # doctest: +SKIP
>>> summary.right, summary.wrong  # doctest: +SKIP
(2, [])

From a shell: ``python -m tests.torch.opinfo neg add --dtype float32 --executor dense``.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import settings
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._comparison import default_tolerances
from torch.utils import _pytree as pytree

from locum.errors import LocumError
from locum.torch.backend import decompositions
from locum.torch.program import Program
from locum.torch.table import TABLE

_PROFILE = settings.get_current_profile_name()
from torch.testing._internal.common_device_type import toleranceOverride  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

settings.load_profile(_PROFILE)  # importing these loads a profile of PyTorch's own tests

OPS: dict[str, Any] = {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in op_db}


class CaptureError(Exception):
    """PyTorch does not capture a sample as a graph: it depends on data, or on a tensor's memory."""


@dataclass
class Summary:
    """What became of the samples of an operation."""

    name: str
    right: int = 0
    #: Samples that raised one of Locum's errors: the messages.
    rejected: list[str] = field(default_factory=list)
    #: Samples that were accepted and differ from eager, or raised another error.
    wrong: list[str] = field(default_factory=list)
    #: Samples without a graph, or whose graph has no operation for U: nothing was tested.
    empty: int = 0
    #: Overloads of the table that were run.
    overloads: set[str] = field(default_factory=set)


def run_samples(
    name: str,
    dtype: str = "float32",
    *,
    executor: str = "fast",
    host: str = "allowed",
    gradients: bool = False,
    limit: int | None = None,
    largest: int = 2**20,
) -> Summary:
    """Run the sample inputs of one operation, each as a program of its own.

    ``limit`` is the number of samples; samples with more than ``largest`` entries are left out.
    """
    op = OPS[name]
    summary = Summary(name)
    kind = getattr(torch, dtype)
    if kind not in op.supported_dtypes("cpu") or (gradients and not op.supports_autograd):
        return summary
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", kind, requires_grad=gradients)):
        if limit is not None and number >= limit:
            break
        function, tensors = as_function(op, sample, gradients)
        if sum(tensor.numel() for tensor in tensors) <= largest:
            label = f"sample {number}"
            _judge(summary, label, op, function, tensors, executor, host, gradients, kind)
    return summary


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
        return sample.output_process_fn_grad(result) if gradients else result

    return function, [leaves[n] for n in places]


def _judge(
    summary: Summary,
    label: str,
    op: Any,
    function: Any,
    tensors: list[torch.Tensor],
    executor: str,
    host: str,
    gradients: bool,
    dtype: torch.dtype,
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, found, overloads = compare_run(function, tensors, executor, host, gradients)
    except LocumError as error:
        summary.rejected.append(f"{label}: {error}")
        return
    except CaptureError:
        summary.empty += 1
        return
    except Exception as error:
        summary.wrong.append(f"{label}: {type(error).__name__}: {error}"[:400])
        return
    if not overloads:
        summary.empty += 1
        return
    summary.overloads |= overloads
    if "empty" in op.name:  # the numbers are undefined
        expected, found = ([x.zero_() for x in results] for results in (expected, found))
    tolerances = stated_tolerances(op, dtype)
    problem = difference(expected, found, tolerances=tolerances)
    if problem and dtype.is_floating_point:
        exact = exact_values(function, tensors, gradients)
        problem = difference(expected, found, exact, tolerances)
    if problem:
        shapes = [tuple(tensor.shape) for tensor in tensors]
        summary.wrong.append(f"{label} {shapes}: {problem}")
    else:
        summary.right += 1


def compare_run(
    function: Any, tensors: list[torch.Tensor], executor: str, host: str, gradients: bool
) -> tuple[list[Any], list[Any], set[str]]:
    """Run a function of tensors eagerly and as a program; return both results, and what ran on U."""
    if gradients:
        function = with_gradients(function, tensors)
    state = torch.get_rng_state()
    expected, _ = pytree.tree_flatten(function(*(tensor.detach() for tensor in tensors)))
    torch.set_rng_state(state)
    given = [tensor.detach() for tensor in tensors]
    try:
        graph = capture(function, given)
    except Exception as error:
        raise CaptureError(str(error)) from error
    torch.set_rng_state(state)
    program = Program.of(graph, executor, host)
    found = program(*given)
    return expected, list(found), {str(node.target) for node in program.on_u if node.target in TABLE}


def capture(function: Any, tensors: list[torch.Tensor]) -> torch.fx.GraphModule:
    """Return the graph of a function as the backend receives it: without mutations."""
    flat = lambda *args: tuple(pytree.tree_leaves(function(*args)))  # noqa: E731
    graph = make_fx(
        functionalize(flat, remove="mutations"),
        decomposition_table=decompositions(),
        tracing_mode="fake",
    )(*tensors)
    schemas = [getattr(node.target, "_schema", None) for node in graph.graph.nodes]
    if any(schema is not None and schema.is_mutable for schema in schemas):
        # A decomposition wrote into a tensor; AOT autograd removes such writes, make_fx does not.
        raise CaptureError
    graph.graph.eliminate_dead_code()
    return graph


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
    if gradients:
        function = with_gradients(function, tensors)
    wide = [tensor.detach().double() if tensor.is_floating_point() else tensor for tensor in tensors]
    try:
        return pytree.tree_leaves(function(*wide))
    except RuntimeError:
        return []


def with_gradients(function: Any, tensors: list[torch.Tensor]) -> Any:
    """Return the function that also computes the gradients of a weighted sum of its results."""
    wanted = [n for n, tensor in enumerate(tensors) if tensor.requires_grad]

    def joint(*given: torch.Tensor) -> Any:
        def of(*chosen: torch.Tensor) -> Any:
            filled = list(given)
            for place, tensor in zip(wanted, chosen, strict=True):
                filled[place] = tensor
            results = [r for r in pytree.tree_leaves(function(*filled)) if isinstance(r, torch.Tensor)]
            return tuple(r for r in results if r.dtype.is_floating_point), results

        pulled: Any = torch.func.vjp(of, *(given[n] for n in wanted), has_aux=True)
        floating, pull_back, results = pulled
        return [*results, *pull_back(tuple(torch.full_like(r, 0.5) for r in floating))]

    return joint


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
    """Print a line for each operation; exit with 1 if one is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--executor", default="fast")
    parser.add_argument("--host", default="allowed")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--largest", type=int, default=2**20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for name in options.names or OPS:
        summary = run_samples(
            name,
            options.dtype,
            executor=options.executor,
            host=options.host,
            gradients=options.gradients,
            limit=options.limit,
            largest=options.largest,
        )
        wrong += len(summary.wrong)
        if options.json:
            print(json.dumps({**vars(summary), "overloads": sorted(summary.overloads)}))
        else:
            print(
                f"{name}: {summary.right} right, {len(summary.rejected)} rejected, "
                f"{len(summary.wrong)} wrong, {summary.empty} empty",
                flush=True,
            )
            for line in [*summary.wrong[:3], *summary.rejected[:1]]:
                print("   ", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
