"""Operations of the table are planned as a whole: no step is left to slower execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from locum import InputError, indices, tokens, where  # noqa: E402
from locum.execution import run_all  # noqa: E402
from locum.torch.program import Program  # noqa: E402
from tests.old.torch.opinfo import capture, difference  # noqa: E402

ATEN = torch.ops.aten


def _numbers(*shape: int) -> Any:
    """Return numbers of both signs, none twice, in no order."""
    size = torch.Size(shape).numel()
    return ((torch.arange(size) * 37 + 11) % 101 / 50 - 1).reshape(shape)


def _rows(heads: Any) -> Any:
    """Return [batch, head, place, feature] as rows of features, one for each place."""
    return heads.transpose(1, 2).reshape(-1, heads.shape[1] * heads.shape[3])


X, Y, Z = _numbers(3, 4), _numbers(4, 5), _numbers(3, 5)
IMAGE, KERNEL = _numbers(2, 4, 5, 4), _numbers(6, 2, 3, 2)
W4, CHANNELS = _numbers(4), (_numbers(4).abs() + 0.5)
TARGET = torch.tensor([1, 0, 3])
NORM = ATEN.native_layer_norm(X, [4], W4, W4, 1e-5)
SCORES = X.log_softmax(1)

CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "mm": (ATEN.mm, [X, Y]),
    "mm transposed": (lambda x, y: ATEN.mm(x.t(), y), [X, Z]),
    "bmm": (ATEN.bmm, [_numbers(2, 3, 4), _numbers(2, 4, 5)]),
    "mm with a constant": (
        lambda x: ATEN.mm(x, torch.arange(20.0).bfloat16().reshape(4, 5)),
        [X.bfloat16()],
    ),
    "addmm": (lambda *x: ATEN.addmm(*x, beta=2, alpha=0.5), [_numbers(5), X, Y]),
    "addmm of half precision": (ATEN.addmm, [_numbers(5).bfloat16(), X.bfloat16(), Y.bfloat16()]),
    "baddbmm": (ATEN.baddbmm, [_numbers(2, 3, 5), _numbers(2, 3, 4), _numbers(2, 4, 5)]),
    "addbmm": (ATEN.addbmm, [Z, _numbers(2, 3, 4), _numbers(2, 4, 5)]),
    "dot": (ATEN.dot, [W4, W4]),
    "mv": (ATEN.mv, [X, W4]),
    "addmv": (ATEN.addmv, [_numbers(3), X, W4]),
    "trilinear": (
        lambda a, b, c: ATEN._trilinear(a, b, c, [1, 3], [0], [1, 2], [2, 3]),
        [X, _numbers(2, 4, 5), Z],
    ),
    "mm of concatenated heads": (
        lambda x, w: ATEN.mm(ATEN.cat([_rows(x.tanh()), _rows(x.exp())], 1), w),
        [_numbers(2, 2, 5, 2), _numbers(8, 3)],
    ),
    "mm of integers": (ATEN.mm, [(X * 9).long(), (Y * 9).long()]),
    "sum": (lambda x: ATEN.sum(x, [0]), [X]),
    "mean": (lambda x: ATEN.mean(x, [1], True), [X]),
    "var": (lambda x: ATEN.var.correction(x, [1]), [X]),
    "std": (lambda x: ATEN.std.correction(x, [0, 1], correction=0), [X]),
    "var_mean": (lambda x: ATEN.var_mean.correction(x, [1]), [X]),
    "std_mean": (lambda x: ATEN.std_mean.correction(x, [1]), [X]),
    "amax": (lambda x: ATEN.amax(x, [0]), [X]),
    "amin": (lambda x: ATEN.amin(x, [1]), [X]),
    "max": (ATEN.max, [X]),
    "max.dim": (lambda x: ATEN.max.dim(x, 0), [X]),
    "min.dim": (lambda x: ATEN.min.dim(x, 1), [X]),
    "argmax": (lambda x: ATEN.argmax(x, 1), [X]),
    "argmin": (ATEN.argmin, [X]),
    "any": (lambda x: ATEN.any.dim(x, 1), [X > 0.5]),
    "all": (ATEN.all, [X > -2]),
    "prod": (lambda x: ATEN.prod.dim_int(x, 0), [X]),
    "cumsum": (lambda x: ATEN.cumsum(x, 0), [X]),
    "cumprod": (lambda x: ATEN.cumprod(x, 1), [X]),
    "logsumexp": (lambda x: ATEN.logsumexp(x, [1]), [X]),
    "dist": (lambda x, y: ATEN.dist(x, y, 3), [X, X.flip(0)]),
    "vector_norm": (lambda x: ATEN.linalg_vector_norm(x, 3, [0]), [X]),
    "softmax": (lambda x: ATEN._softmax(x, 0, False), [X]),
    "log_softmax": (lambda x: ATEN._log_softmax(x, 1, False), [X]),
    "safe_softmax": (lambda x: ATEN._safe_softmax(x, 1), [X]),
    "softmax backward": (
        lambda g, y: ATEN._softmax_backward_data(g, y, 1, torch.float32),
        [X, X.softmax(1)],
    ),
    "log_softmax backward": (
        lambda g, y: ATEN._log_softmax_backward_data(g, y, 0, torch.float32),
        [X, X.log_softmax(0)],
    ),
    "layer_norm": (lambda *x: ATEN.native_layer_norm(x[0], [4], x[1], x[2], 1e-5), [X, W4, W4]),
    "layer_norm backward": (
        lambda g, x, m, r, w: ATEN.native_layer_norm_backward(g, x, [4], m, r, w, w, [True] * 3),
        [X, X.flip(0), *NORM[1:], W4],
    ),
    "group_norm": (
        lambda x, w: ATEN.native_group_norm(x, w, w, 2, 4, 20, 2, 1e-5),
        [IMAGE, W4],
    ),
    "group_norm backward": (
        lambda g, x, m, r, w: ATEN.native_group_norm_backward(g, x, m, r, w, 2, 4, 20, 2, [True] * 3),
        [IMAGE.flip(0), IMAGE, *ATEN.native_group_norm(IMAGE, W4, W4, 2, 4, 20, 2, 1e-5)[1:], W4],
    ),
    "batch_norm": (
        lambda x, w, v: ATEN._native_batch_norm_legit_functional(x, w, w, w, v, True, 0.1, 1e-5),
        [IMAGE, W4, CHANNELS],
    ),
    "batch_norm evaluation": (
        lambda x, w, v: ATEN._native_batch_norm_legit_no_training(x, w, w, w, v, 0.1, 1e-5),
        [IMAGE, W4, CHANNELS],
    ),
    "batch_norm backward": (
        lambda g, x, w, m, r: ATEN.native_batch_norm_backward(
            g, x, w, None, None, m, r, True, 1e-5, [True] * 3
        ),
        [IMAGE.flip(0), IMAGE, W4, W4, CHANNELS],
    ),
    "convolution": (
        lambda x, w, b: ATEN.convolution(x, w, b, [2, 1], [1, 2], [1, 2], False, [0, 0], 2),
        [IMAGE, KERNEL, _numbers(6)],
    ),
    "transposed convolution": (
        lambda x, w: ATEN.convolution(x, w, None, [3, 2], [1, 1], [2, 1], True, [1, 0], 2),
        [IMAGE, _numbers(4, 3, 3, 2)],
    ),
    "convolution backward": (
        lambda g, x, w: ATEN.convolution_backward(
            g, x, w, [6], [2, 1], [1, 0], [1, 1], False, [0, 0], 2, [True] * 3
        ),
        [_numbers(2, 6, 3, 3), IMAGE, KERNEL],
    ),
    "avg_pool2d": (lambda x: ATEN.avg_pool2d(x, [3, 2], [2, 1], [1, 1], True, False), [IMAGE]),
    "avg_pool2d backward": (
        lambda g, x: ATEN.avg_pool2d_backward(g, x, [2, 2], [1, 2], [1, 0], False, True, None),
        [_numbers(2, 4, 6, 2), IMAGE],
    ),
    "avg_pool2d backward of a constant": (
        lambda x: ATEN.avg_pool2d_backward(
            torch.full((2, 3, 1, 3), 0.5), x, [1, 3], [1, 3], [0, 0], False, True, None
        ),
        [_numbers(2, 3, 1, 9)],
    ),
    "max_pool2d": (
        lambda x: ATEN.max_pool2d_with_indices(x, [3, 2], [2, 1], [1, 1], [1, 2]),
        [IMAGE.where(IMAGE > 0.5, -torch.inf)],
    ),
    "max_pool2d backward": (
        lambda g, x, i: ATEN.max_pool2d_with_indices_backward(
            g, x, [2, 2], [1, 1], [0, 0], [1, 1], False, i
        ),
        [_numbers(2, 4, 4, 3), IMAGE, ATEN.max_pool2d_with_indices(IMAGE, [2, 2], [1, 1])[1]],
    ),
    "nll_loss": (lambda x, t: ATEN.nll_loss_forward(x, t, None, 1, -100), [SCORES, TARGET]),
    "nll_loss2d": (
        lambda x, t, w: ATEN.nll_loss2d_forward(x, t, w, 2, 1),
        [IMAGE, torch.arange(40).reshape(2, 5, 4) % 4, CHANNELS],
    ),
    "nll_loss backward": (
        lambda g, x, t, n: ATEN.nll_loss_backward(g, x, t, None, 1, 0, n),
        [torch.tensor(0.5), SCORES, TARGET, torch.tensor(2.0)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operation_is_planned_and_right(name: str) -> None:
    function, given = CASES[name]
    program = Program.of(capture(function, given), "fast", "forbidden")
    found = program(*given)
    assert program.on_u
    assert program.plan is not None
    assert not program.plan.opaque
    expected = function(*given)
    results = expected if isinstance(expected, tuple) else (expected,)
    assert not difference(results, found)


def test_choices_have_the_promoted_type() -> None:
    """A number does not widen a tensor; pieces of one array are not rounded to the first one's type."""
    x = torch.tensor([1.0, -2.0, 3.0, -4.0])
    (found,) = run_all({where(tokens > 0, tokens, 0.0).node: range(4)}, [x], 4)
    assert found.dtype == torch.float32
    pieces = where(indices % 2 == 0, tokens, 0.3)
    (found,) = run_all({pieces.node: range(4)}, [x.bfloat16()], 4)
    assert found.tolist() == [1.0, 0.3, 3.0, 0.3]


def test_graph_without_a_plan_is_rejected() -> None:
    program = Program.of(capture(torch.sort, [torch.randn(40_000)]), "fast", "forbidden")
    with pytest.raises(
        InputError, match=r"executor fast: expected a graph that has a plan.*; try options="
    ):
        program(torch.randn(40_000))
