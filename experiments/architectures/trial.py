"""Run a small model in eager execution and on U, and compare all tensors of the results."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

import locum.torch
from experiments.architectures import small_models
from locum.errors import LocumError

#: Largest difference of a right result from eager execution, as returned by ``compare``.
TOLERANCE = 1e-5
#: Maximum number of parameters of a small model.
MOST_PARAMETERS = 3_000_000


@dataclass(frozen=True)
class Trial:
    """The outcome of running one model type for one task on U."""

    model_type: str
    task: str
    #: ``right``, ``wrong``, ``rejected`` (an error of Locum), ``not captured`` (an error of PyTorch),
    #: ``not built`` (no small model, or no result in eager execution) or ``not tried`` (too slow).
    outcome: str
    #: The error message, or a description of the result.
    detail: str
    difference: float = float("nan")
    share_on_u: float = 0.0
    multiply_adds: int = 0
    tokens: int = 0
    seconds: float = 0.0
    #: Whether the model was run in training mode, and its gradients were compared.
    backward: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as a JSON-compatible dictionary."""
        return asdict(self)


def try_model(model_type: str, task: str, *, backward: bool = False) -> Trial:
    """Compare the results of a small model on U with eager execution.

    With ``backward``, the gradients are also compared.
    """
    started = time.perf_counter()

    def outcome(name: str, detail: object, **numbers: Any) -> Trial:
        seconds = round(time.perf_counter() - started, 1)
        return Trial(model_type, task, name, str(detail), seconds=seconds, backward=backward, **numbers)

    try:
        model = small_models.build(model_type, task)
        size = sum(parameter.numel() for parameter in model.parameters())
        if size > MOST_PARAMETERS:
            return outcome("not built", f"{size:,} parameters in the small configuration")
        inputs = small_models.sample_inputs(model)
        other = copy.deepcopy(model)
        expected = run(other, inputs, backward)
        if not expected[0]:
            return outcome("not built", "an output without tensors")
    except Exception as error:  # The library raises various errors for an invalid configuration.
        return outcome("not built", f"{type(error).__name__}: {first_line(error)}")
    torch._dynamo.reset()
    try:
        model.compile(backend="locum", fullgraph=True, dynamic=False)
        found = run(model, inputs, backward)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, LocumError):
            cause = cause.__cause__ or getattr(cause, "inner_exception", None)
        if cause is not None:
            return outcome("rejected", first_line(cause))
        return outcome("not captured", f"{type(error).__name__}: {first_line(error)}")
    report = locum.torch.report(model)
    difference = max(compare(*results) for results in zip(expected, found, strict=True))
    numbers = {
        "difference": difference,
        "share_on_u": report.share,
        "multiply_adds": report.multiply_adds,
        "tokens": max((program.usage.tokens for program in report.programs), default=0),
    }
    if not difference <= TOLERANCE:
        return outcome("wrong", f"difference {difference:.1e}", **numbers)
    if report.share < 1 or not report.runs:
        return outcome("wrong", f"{report.share:.1%} of multiply-adds on U", **numbers)
    return outcome("right", f"difference {difference:.1e}", **numbers)


def run(
    model: torch.nn.Module, inputs: dict[str, Any], backward: bool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the tensors in the output of a model, and the gradients of its parameters.

    With ``backward``, the model is in training mode; otherwise the list of gradients is empty.
    """
    torch.manual_seed(0)
    if not backward:
        with torch.no_grad():
            return list(tensors(model(**inputs))), []
    model.train()
    results = list(tensors(model(**inputs)))
    parts = [r.double().square().mean() for r in results if r.requires_grad]
    loss: Any = sum(parts, torch.zeros(()))
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return results, gradients


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield all tensors in an output of the transformers library, including key-value caches."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) or hasattr(value, "items"):
        for _, part in value.items():
            yield from tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "layers"):
        for layer in value.layers:
            yield from tensors([getattr(layer, "keys", None), getattr(layer, "values", None)])
    elif hasattr(value, "self_attention_cache"):
        yield from tensors([value.self_attention_cache, value.cross_attention_cache])


def compare(expected: list[torch.Tensor], found: list[torch.Tensor]) -> float:
    """Return the largest difference between two lists of tensors, relative to the largest entry.

    If the tensors differ in number, shapes, dtypes or non-finite entries, the result is infinite. A
    difference is divided by the largest entry of its tensor, or by a tenth of the largest entry of all
    tensors if that is larger. Otherwise a gradient that is 0 except for rounding errors would have a
    large relative error.
    """
    if len(expected) != len(found):
        return float("inf")
    worst = 0.0
    sizes = [t.detach().double().nan_to_num(0, 0, 0).abs().max() for t in expected if t.numel()]
    largest = max(map(float, sizes), default=0.0)
    for one, other in zip(expected, found, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return float("inf")
        a, b = one.detach().double(), other.detach().double()
        kinds = (torch.isnan, torch.isposinf, torch.isneginf)
        if not all(torch.equal(is_kind(a), is_kind(b)) for is_kind in kinds):
            return float("inf")
        a, b = a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)
        if a.numel():
            scale = max(float(a.abs().max()), largest / 10, 1e-30)
            worst = max(worst, float((a - b).abs().max()) / scale)
    return worst


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, without paths of files on this machine."""
    lines = re.sub(r' \(File "[^)]*\)', "", str(error)).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
