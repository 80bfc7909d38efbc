"""Programs for lengths between two lengths give eager's results, or are made for each length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import locum.torch  # noqa: E402
from locum.execution.fast.interpolation import NotLinearError, draw_line  # noqa: E402

WEIGHT = torch.linspace(-1, 1, 24).reshape(4, 6)


def attend(q: Any, k: Any) -> Any:
    """Attend from one query to a number of keys."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, k)


LINEAR: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x @ WEIGHT,
    "softmax": lambda x: torch.softmax(x.sum(1), 0),
    "attention": lambda x: attend(x[None, None, -1:], x[None, None]),
    "joined": lambda x: torch.cat([x, x[:2] * 2], 0).exp(),
    "last rows": lambda x: x[-3:].exp(),
    "positions": lambda x: x + torch.arange(x.shape[0], dtype=torch.float32)[:, None],
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "half": lambda x: x[: x.shape[0] // 2] * 2,
    "even length": lambda x: torch.nn.functional.pad(x, (0, 0, 0, x.shape[0] % 2)).exp(),
    "square": lambda x: x @ x.T,
    "sums": lambda x: x.cumsum(0),
    "parity": lambda x: x + x.shape[0] % 2,
    "scaled": lambda x: x * x.shape[0],
}


@pytest.mark.parametrize("name", [*LINEAR, *OTHERS])
@pytest.mark.parametrize("step", [1, 2])
def test_growing_lengths(name: str, step: int) -> None:
    function = (LINEAR | OTHERS)[name]
    compiled = torch.compile(function, backend="locum", fullgraph=True, dynamic=True)
    lengths = [*range(5, 5 + 12 * step, step), 40, 6, 9, 60]
    for length in lengths:
        x = torch.randn(length, 4)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=1e-5)
    report = locum.torch.report(compiled)
    assert report.runs == report.calls == len(lengths)
    if name in LINEAR and step == 1:
        assert report.plans <= 5
    assert report.share == 1.0


@pytest.mark.parametrize("lengths", [(20, 19, 18, 17, 3, 2), (70, 68, 66, 64), (131, 129, 127, 125)])
def test_falling_lengths(lengths: tuple[int, ...]) -> None:
    compiled = torch.compile(torch.sin, backend="locum", fullgraph=True, dynamic=True)
    for length in lengths:
        x = torch.randn(length, 4)
        torch.testing.assert_close(compiled(x), torch.sin(x))


def test_graphs_without_results_of_u() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="locum", fullgraph=True, dynamic=True)
    for length in range(5, 10):
        x = torch.randn(length, 4, requires_grad=True)
        compiled(x).sum().backward()
        assert torch.equal(x.grad, torch.ones(length, 4))


def test_multiply_adds_of_interpolated_programs() -> None:
    compiled = torch.compile(LINEAR["product"], backend="locum", fullgraph=True, dynamic=True)
    lengths = range(5, 25)
    for length in lengths:
        compiled(torch.randn(length, 4))
    assert locum.torch.report(compiled).multiply_adds == sum(length * 24 for length in lengths)


def test_recorded_lengths() -> None:
    compiled = torch.compile(torch.nn.Linear(4, 4), backend="locum", fullgraph=True, dynamic=True)
    for length in range(5, 15):
        x = torch.randn(length, 4)
        with locum.torch.record("*") as record:
            found = compiled(x)
        (steps,) = record.runs
        assert any(torch.equal(step, found) for module in steps.values() for step in module.values())
        torch.testing.assert_close(compiled(x), found)


@pytest.mark.parametrize(
    ("first", "last"),
    [((1, 2), (1, 2, 3)), ({"a": 1}, {"b": 1}), (1, 1.0), ("a", "b"), (True, False), (0.5, 0.25)],
)
def test_values_that_differ_in_more_than_integers(first: Any, last: Any) -> None:
    with pytest.raises(NotLinearError):
        draw_line(first, last, 4)(1)


def test_fractions_are_rejected() -> None:
    with pytest.raises(NotLinearError):
        draw_line((0,), (5,), 4)(1)
