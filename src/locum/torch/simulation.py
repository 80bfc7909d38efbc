"""Run a PyTorch model on U, and compare the result with eager execution."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from locum.errors import ExecutionError, InputError
from locum.torch.backend import read_options

#: Default tolerances by dtype: the maximum difference relative to the largest entry of a tensor.
TOLERANCES: dict[torch.dtype, float] = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}
#: Maximum number of graphs that Dynamo captures for one compiled form before it raises an error.
MOST_GRAPHS = 64
#: The attribute of a model that stores its compiled forms.
_ATTRIBUTE = "_locum_compiled"


class CompiledForms:
    """The compiled forms of a model for different options.

    Deep copies and pickles of the model contain no compiled forms.
    """

    def __init__(self) -> None:
        self.by_options: dict[tuple[str, str], Callable[..., Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


def simulate(
    model: torch.nn.Module,
    *arguments: Any,
    compare: bool = True,
    tolerance: float | None = None,
    executor: str = "fast",
    host: str = "allowed",
    **inputs: Any,
) -> Any:
    """Run a model on U and return its output.

    The first call with an ``executor`` and a ``host`` compiles the model with
    ``torch.compile(model, backend="locum", fullgraph=True)``, and later calls use the compiled model.
    The output has the same type as the output of the model, such as a ``ModelOutput`` of transformers.

    ``executor`` and ``host`` are options of the backend. With ``compare``, the model also runs
    eagerly. An :class:`ExecutionError` is raised if a tensor of the output differs by more than
    ``tolerance``, relative to the largest entry of the tensor. The error is also raised for differences
    in dtype, shape, integers, infinities or NaN. The default tolerance is 1e-9 for float64, 1e-4 for
    float32, 2e-2 for float16 and 1e-1 for bfloat16. The eager run uses copies of the inputs. Random
    number generators, buffers and caches in the inputs change as in a single run.
    """
    if not isinstance(model, torch.nn.Module):
        raise InputError(
            f"simulate: expected a torch.nn.Module, got {type(model).__name__}; "
            'try torch.compile(function, backend="locum", fullgraph=True) for functions'
        )
    compiled = _compile(model, executor, host)
    expected = _run_eagerly(model, arguments, inputs) if compare else None
    output = compiled(*arguments, **inputs)
    if compare:
        check_difference(expected, output, tolerance)
    return output


def _compile(model: torch.nn.Module, executor: str, host: str) -> Callable[..., Any]:
    """Return the compiled form of a model for these options, from the cache if possible."""
    options = {"executor": executor, "host": host}
    read_options(options, None)
    forms = vars(model).get(_ATTRIBUTE)
    if forms is None:
        # Stored in the model instead of a global table, since the compiled form refers to the model.
        forms = CompiledForms()
        object.__setattr__(model, _ATTRIBUTE, forms)
    if (executor, host) not in forms.by_options:
        # The type stubs of PyTorch lack the last two options.
        compile_model: Any = torch.compile
        forms.by_options[executor, host] = compile_model(
            model,
            backend="locum",
            fullgraph=True,
            options=options,
            recompile_limit=MOST_GRAPHS,
            isolate_recompiles=True,
        )
    return forms.by_options[executor, host]


def _run_eagerly(model: torch.nn.Module, arguments: Any, inputs: Any) -> Any:
    """Run a model on copies of its inputs, and restore buffers and random number generators
    afterwards.
    """
    with _unchanged_state(model):
        copied_arguments, copied_inputs = _copy((arguments, inputs))
        return model(*copied_arguments, **copied_inputs)


def _copy(value: Any) -> Any:
    """Return a deep copy of inputs, so that a run changes no cache and no tensor of the caller."""
    try:
        with torch.no_grad():
            return copy.deepcopy(value)
    except RuntimeError as error:
        raise InputError(
            "simulate: expected inputs that can be copied for the eager run, got tensors that autograd "
            "computed; try x.detach(), or compare=False"
        ) from error


@contextmanager
def _unchanged_state(model: torch.nn.Module) -> Iterator[None]:
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            with torch.no_grad():
                for name, buffer in model.named_buffers():
                    if name in buffers:
                        buffer.copy_(buffers[name])


def check_difference(expected: Any, found: Any, tolerance: float | None = None) -> float:
    """Return the largest relative difference between the tensors of two outputs.

    An :class:`ExecutionError` is raised if a difference exceeds ``tolerance``, or if the outputs
    contain different tensors.
    """
    wanted, got = list_tensors(expected), list_tensors(found)
    if list(wanted) != list(got):
        raise ExecutionError(
            f"simulate: expected the tensors {', '.join(wanted)}, got {', '.join(got)}",
            "",
            kind="difference",
        )
    for name, tensor in wanted.items():
        problem = _describe_difference(tensor, got[name], tolerance)
        if problem:
            raise ExecutionError(f"simulate: {name}: {problem}", "", kind="difference")
    return max((measure_difference(wanted[name], got[name]) for name in wanted), default=0.0)


def list_tensors(value: Any) -> dict[str, torch.Tensor]:
    """Return a mapping from paths to the tensors in an output, including tensors in caches."""
    found: dict[str, torch.Tensor] = {}

    def visit(path: str, part: Any, depth: int) -> None:
        if isinstance(part, torch.Tensor):
            found[path or "output"] = part
        elif depth > _DEEPEST:
            return
        elif isinstance(part, dict):
            for key, one in part.items():
                visit(f"{path}.{key}".lstrip("."), one, depth + 1)
        elif isinstance(part, (list, tuple)):
            for place, one in enumerate(part):
                visit(f"{path}[{place}]", one, depth + 1)
        elif hasattr(part, "__dict__") and not isinstance(part, (type, torch.nn.Module)):
            visit(path, vars(part), depth + 1)

    visit("", value, 0)
    return found


_DEEPEST = 12


def measure_difference(expected: torch.Tensor, found: torch.Tensor) -> float:
    """Return the largest difference of two tensors, relative to the largest magnitude in ``expected``.

    Only finite entries are compared in this way. The difference is infinite if the tensors differ in
    dtype, shape, integers, infinities or NaN.

    >>> measure_difference(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 5.0]))
    0.25
    """
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return math.inf
    if not (expected.is_floating_point() or expected.is_complex()):
        return 0.0 if torch.equal(expected, found) else math.inf
    if expected.is_complex():
        expected, found = (torch.view_as_real(part.resolve_conj()) for part in (expected, found))
    a, b = expected.detach().double(), found.detach().double()
    special = ~a.isfinite()
    if not torch.equal(special, ~b.isfinite()):
        return math.inf
    if not torch.equal(a[special].nan_to_num(0), b[special].nan_to_num(0)):
        return math.inf
    difference, scale = (a - b)[~special].abs(), a[~special].abs()
    if not difference.numel() or not float(difference.max()):
        return 0.0
    return float(difference.max()) / max(float(scale.max()), 1e-30)


def _describe_difference(
    expected: torch.Tensor, found: torch.Tensor, tolerance: float | None
) -> str | None:
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return (
            f"expected {expected.dtype} of shape {tuple(expected.shape)} as in eager execution, "
            f"got {found.dtype} of shape {tuple(found.shape)}"
        )
    allowed = TOLERANCES.get(expected.dtype, 0.0) if tolerance is None else tolerance
    difference = measure_difference(expected, found)
    if difference <= allowed:
        return None
    return (
        f"expected a relative difference from eager execution of at most {allowed:g}, "
        f"got {difference:.3g}"
    )
