"""Every overload that the torch table contains is computed by U, and gives what PyTorch gives.

A row is an overload with its arguments. The rows of a group are compiled together. ``report`` shows
which overloads ran on U, so a row that PyTorch replaces by other operations fails.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
from torch.utils import _pytree as pytree  # noqa: E402

from locum.torch import report  # noqa: E402
from locum.torch.table import TABLE  # noqa: E402

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*arguments: Any, **options: Any) -> Call:
    """Return the arguments of one row."""
    return arguments, options


def draw(*shape: int) -> Any:
    """Draw a tensor from a generator whose seed depends on the shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


X, Y, SQUARE, CUBE, VECTOR = draw(2, 3), draw(2, 3) + 0.1, draw(3, 3), draw(2, 3, 4), draw(3)
INTEGERS, SHIFTS, TRUTHS = (
    torch.tensor([5, -3, 7]),
    torch.tensor([1, 0, 2]),
    torch.tensor([1, 0, 1]) > 0,
)
POSITIVE, SMALL, INDEX = X.abs() + 0.1, X.clamp(-0.9, 0.9), torch.tensor([[2, 0], [1, 1]])
HALF, SCALE = X.bfloat16(), torch.tensor([0.5, 1.5, -1.0])
IMAGE, KERNEL, VOLUME = draw(1, 2, 4, 4), draw(3, 2, 2, 2), draw(1, 1, 4, 4, 4)
CHANNELS, MEANS, SPREADS = draw(2, 3, 4), draw(3), draw(3).abs() + 0.5


def named(names: str, *arguments: Any, **options: Any) -> dict[str, Call]:
    """Return rows of the same arguments."""
    return dict.fromkeys(names.split(), call(*arguments, **options))


ELEMENTWISE = {
    **named("neg abs sign sgn signbit floor ceil trunc round reciprocal exp exp2 expm1 sin cos tan", X),
    **named("tanh cosh sinh asinh erf relu sigmoid silu gelu leaky_relu elu hardtanh isnan isinf", X),
    **named("sqrt rsqrt log log1p log2 log10", POSITIVE),
    **named("atanh", SMALL),
    **named("acosh", POSITIVE + 1),
    **named("add.Tensor sub.Tensor mul.Tensor div.Tensor remainder.Tensor fmod.Tensor", X, Y),
    **named("copysign.Tensor hypot maximum minimum fmax fmin", X, Y),
    **named("add.Scalar sub.Scalar mul.Scalar div.Scalar remainder.Scalar fmod.Scalar", X, 0.75),
    **named("copysign.Scalar pow.Tensor_Scalar", X, 3.0),
    **named("pow.Tensor_Tensor", POSITIVE, Y),
    **named("pow.Scalar remainder.Scalar_Tensor", 2.0, X),
    **named("eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor", X.round(), Y.round()),
    **named("eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar", X.round(), 1.0),
    **named("sigmoid_backward tanh_backward silu_backward gelu_backward", X, SMALL),
    **named("logical_and logical_or logical_xor", TRUTHS, ~TRUTHS | TRUTHS.flip(0)),
    **named("logical_not bitwise_not", TRUTHS),
    **named("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", INTEGERS, SHIFTS),
    **named("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", INTEGERS, 3),
    **named("bitwise_left_shift.Tensor __lshift__.Tensor", INTEGERS, SHIFTS),
    **named("bitwise_right_shift.Tensor __rshift__.Tensor", INTEGERS, SHIFTS),
    **named("bitwise_left_shift.Tensor_Scalar __lshift__.Scalar", INTEGERS, 2),
    **named("bitwise_right_shift.Tensor_Scalar __rshift__.Scalar", INTEGERS, 1),
    "div.Tensor_mode": call(X, Y, rounding_mode="floor"),
    "div.Scalar_mode": call(X, 0.3, rounding_mode="trunc"),
    "addcmul": call(X, Y, SMALL, value=2.0),
    "addcdiv": call(X, Y, POSITIVE, value=0.5),
    "lerp.Scalar": call(X, Y, 0.3),
    "lerp.Tensor": call(X, Y, SMALL),
    "round.decimals": call(X, decimals=1),
    "ldexp.Tensor": call(X, torch.tensor([1, -2, 3])),
    "leaky_relu_backward": call(X, Y, 0.1, False),
    "threshold_backward": call(X, Y, 0.2),
    "clamp": call(X, -0.5, 0.5),
    "clamp.Tensor": call(X, SMALL - 0.2, SMALL + 0.1),
    "where.self": call(X > 0, X, Y),
}
VIEWS = {
    **named("view _unsafe_view view_copy", X, [3, 2]),
    **named("permute permute_copy", CUBE, [2, 0, 1]),
    **named("transpose.int transpose_copy.int", CUBE, 0, 2),
    **named("t t_copy alias alias_copy detach detach_copy clone", X),
    **named("expand expand_copy", X, [4, 2, 3]),
    **named("unsqueeze unsqueeze_copy", X, 1),
    **named("squeeze squeeze_copy", X[None, :, None]),
    **named("squeeze.dim squeeze_copy.dim", X[None], 0),
    **named("squeeze.dims squeeze_copy.dims", X[None, :, None], [0, 2]),
    **named("slice.Tensor slice_copy.Tensor", X, 1, 0, 3, 2),
    **named("select.int select_copy.int", X, 1, 2),
    **named("split.Tensor split_copy.Tensor", X, 2, 1),
    **named("split_with_sizes split_with_sizes_copy", X, [1, 2], 1),
    **named("unbind.int unbind_copy.int", X, 1),
    **named("diagonal diagonal_copy", SQUARE, 1),
    **named("unfold unfold_copy", X, 1, 2, 1),
    **named("as_strided as_strided_copy", X, [2, 2], [1, 2], 1),
    "_reshape_alias": call(X, [3, 2], [2, 1]),
    "narrow_copy": call(X, 1, 1, 2),
    "diagonal_scatter": call(SQUARE, VECTOR[:2], 1),
    "as_strided_scatter": call(X, SQUARE[:2, :2], [2, 2], [1, 2], 1),
    "cat": call([X, Y], 1),
    "stack": call([X, Y], 1),
    "constant_pad_nd": call(X, [1, 0, 2, -1], 0.5),
    "repeat": call(X, [2, 1, 2]),
    "flip": call(X, [0, 1]),
    "roll": call(X, [1, -1], [0, 1]),
    "slice_scatter": call(X, Y[:, :2], 1, 0, 3, 2),
    "select_scatter": call(X, VECTOR, 0, 1),
    "slice_backward": call(Y[:, :2], [2, 3], 1, 0, 3, 2),
    "select_backward": call(VECTOR, [2, 3], 0, 1),
    "lift_fresh_copy": call([1.5, 2.0]),
    "_to_copy": call(X, dtype=torch.float64),
    "copy": call(X, Y),
    "prims.convert_element_type": call(X, torch.int32),
}
CREATION = {
    **named("full", [2, 3], 1.5),
    **named("full_like", X, 1.5),
    **named("new_full", X, [2], 1.5),
    **named("zeros ones empty.memory_format _efficientzerotensor", [2, 3]),
    **named("zeros_like ones_like empty_like", X),
    **named("new_zeros new_ones new_empty", X, [2]),
    "empty_permuted": call([2, 3], [1, 0]),
    "empty_strided": call([2, 3], [1, 2]),
    "new_empty_strided": call(X, [2, 3], [1, 2]),
    "scalar_tensor": call(2.5),
    "arange.start_step": call(1, 9, 3),
}
INDEXING = {
    "embedding": call(SQUARE, INDEX),
    "index_select": call(SQUARE, 1, INDEX[0]),
    "gather": call(SQUARE, 1, INDEX),
    "index.Tensor": call(SQUARE, [None, INDEX]),
    "embedding_dense_backward": call(CUBE[:, :2], INDEX, 4, -1, False),
    **named("index_put _unsafe_index_put", SQUARE, [INDEX[1]], X, True),
    **named("_index_put_impl", SQUARE, [INDEX[0]], X),
    "scatter.src": call(SQUARE, 0, torch.tensor([[2, 0, 1]]), X),
    "scatter.value": call(SQUARE, 1, INDEX, 7.5),
    "scatter_add": call(SQUARE, 1, INDEX, X),
    "index_add": call(SQUARE, 0, INDEX[1], X, alpha=2),
    "index_copy": call(SQUARE, 0, INDEX[0], X),
    "sort": call(X, 1, True),
    "sort.stable": call(X.round(), stable=True, dim=1, descending=True),
    "topk": call(X, 2, 1),
}
DIMENSION = "var.correction std.correction var_mean.correction std_mean.correction"
REDUCTIONS = {
    **named("sum mean amax amin max min argmax argmin prod linalg_vector_norm", X),
    **named("any all", X > 0),
    **named("sum.dim_IntList mean.dim any.dims all.dims logsumexp", CUBE, [0, 2]),
    **named("any.dim all.dim max.dim min.dim prod.dim_int cumsum cumprod", X, 1),
    **named(DIMENSION, CUBE, [0, 2], correction=1, keepdim=True),
    "dist": call(X, Y, 3.0),
    "histc": call(X, 4, -2, 2),
    **named("avg_pool2d", IMAGE, [2, 3], [1, 2], [1, 0], True, False),
    **named("avg_pool3d", VOLUME, [2, 2, 2]),
    **named("avg_pool2d_backward", IMAGE[..., :2, :2], IMAGE, [2, 2], [], [0, 0], False, True, None),
    **named(
        "avg_pool3d_backward", VOLUME[..., :2, :2, :2], VOLUME, [2] * 3, [], [0] * 3, False, True, None
    ),
    **named("max_pool2d_with_indices", IMAGE, [2, 3], [1, 2], [1, 0], [1, 1], True),
    **named("max_pool3d_with_indices", VOLUME, [2, 2, 2]),
    "max_pool2d_with_indices_backward": call(
        IMAGE[..., :2, :2], IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False,
        torch.tensor([[[[0, 3], [9, 10]], [[5, 2], [12, 15]]]]),
    ),
    "max_pool3d_with_indices_backward": call(
        VOLUME[..., :1, :1, :1], VOLUME, [4] * 3, [4] * 3, [0] * 3, [1] * 3, False,
        torch.tensor([[[[[21]]]]]),
    ),
}  # fmt: skip
TARGET, LABELS = torch.tensor([1, 0]), torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
TWO = torch.tensor(2.0)
NORMALISATION = {
    **named("_softmax _log_softmax", X, 1, False),
    "_safe_softmax": call(torch.tensor([[0.0, -math.inf], [-math.inf, -math.inf]]), 1),
    **named("_softmax_backward_data _log_softmax_backward_data", X, Y, 1, torch.float32),
    "native_layer_norm": call(X, [3], SCALE, VECTOR, 1e-5),
    "native_layer_norm_backward": call(
        X, Y, [3], Y.mean(1, keepdim=True), POSITIVE[:, :1].contiguous(), SCALE, VECTOR, [True] * 3
    ),
    "native_group_norm": call(CHANNELS.repeat(1, 2, 1), SCALE.repeat(2), None, 2, 6, 4, 3, 1e-5),
    "native_group_norm_backward": call(
        CUBE.repeat(1, 2, 1), CHANNELS.repeat(1, 2, 1), draw(2, 3), POSITIVE, SCALE.repeat(2),
        2, 6, 4, 3, [True] * 3,
    ),
    "_native_batch_norm_legit_functional": call(CHANNELS, SCALE, None, MEANS, SPREADS, True, 0.1, 1e-5),
    "_native_batch_norm_legit.no_stats": call(CHANNELS, SCALE, VECTOR, True, 0.1, 1e-5),
    **named("_native_batch_norm_legit_no_training", CHANNELS, SCALE, VECTOR, MEANS, SPREADS, 0.1, 1e-5),
    "_batch_norm_with_update_functional": call(CHANNELS, SCALE, VECTOR, MEANS, SPREADS, 0.1, 1e-5),
    "_batch_norm_no_update": call(CHANNELS, SCALE, VECTOR, MEANS, SPREADS, 0.1, 1e-5),
    "native_batch_norm_backward": call(
        CHANNELS, CUBE, SCALE, MEANS, SPREADS, MEANS, SPREADS, True, 1e-5, [True] * 3
    ),
    "batch_norm_backward": call(
        CHANNELS, CUBE, SCALE, MEANS, SPREADS, MEANS, SPREADS, True, 1e-5, [True] * 3, torch.empty(0)
    ),
    "nll_loss_forward": call(X, TARGET, SCALE, 1, -100),
    "nll_loss2d_forward": call(draw(2, 3, 4, 1), LABELS[..., None], None, 2, -100),
    "nll_loss_backward": call(TWO, X, TARGET, None, 1, -100, TWO),
    "nll_loss2d_backward": call(
        TWO, draw(2, 3, 4, 1), LABELS[..., None], SCALE, 1, -100, torch.tensor(5.0)
    ),
}  # fmt: skip
ENDS = torch.tensor([1, 1, 2], dtype=torch.int32)
PRODUCTS = {
    "mm": call(X, SQUARE),
    "bmm": call(CUBE, CUBE.mT.contiguous()),
    "mm.dtype": call(HALF, HALF.T, torch.float32),
    "bmm.dtype": call(HALF[None], HALF.T[None], torch.float32),
    "addmm": call(VECTOR, X, SQUARE, beta=2, alpha=0.5),
    "addmm.dtype": call(X[:, :2], HALF, HALF.T, torch.float32),
    "baddbmm": call(VECTOR, CUBE, CUBE.mT.contiguous(), beta=0.5, alpha=2),
    "addbmm": call(SQUARE, CUBE, CUBE.mT.contiguous(), beta=0.5, alpha=2),
    "dot": call(VECTOR, SCALE),
    "mv": call(X, VECTOR),
    "addmv": call(TWO.expand(2), X, VECTOR, beta=3, alpha=2),
    "_trilinear": call(X, Y, SMALL, [2], [0], [1], [2]),
    "_grouped_mm": call(
        HALF.repeat(1, 3)[:, :8].contiguous(), torch.linspace(-1, 1, 192).view(3, 8, 8).bfloat16(), ENDS
    ),
    "transformers.grouped_mm_fallback": call(X, draw(3, 3, 2), ENDS),
    "transformers.grouped_mm_fallback_backward": call(X, draw(3, 3, 2), ENDS, X[:, :2]),
    "convolution": call(IMAGE, KERNEL, VECTOR, [2, 1], [1, 0], [1, 2], False, [0, 0], 1),
    "convolution_backward": call(
        draw(1, 3, 3, 3), IMAGE, KERNEL, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3
    ),
}


def attend(q: Any, k: Any, v: Any, bias: Any = 0.0) -> Any:
    """Return attention and log Σ exp of its scores by their definition."""
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + bias
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def attend_backward(gradient: Any, *inputs: Any) -> Any:
    """Return the gradients of the inputs of attention."""
    return torch.func.vjp(lambda *x: attend(*x)[0], *inputs)[1](gradient)


Q, K, V, GRADIENT = (draw(1, 2, 4, 8) * s for s in (1, 0.5, 2, 3))
BIAS, SEED = draw(1, 2, 4, 4), torch.zeros((), dtype=torch.int64)
(PLAIN, LOGARITHM), (BIASED, WITH_BIAS) = attend(Q, K, V), attend(Q, K, V, BIAS)
SDPA = "_scaled_dot_product_"
ATTENTION = {
    f"{SDPA}flash_attention_for_cpu": call(Q, K, V),
    f"{SDPA}flash_attention_for_cpu_backward": call(GRADIENT, Q, K, V, PLAIN, LOGARITHM, 0.0, False),
    f"{SDPA}flash_attention": call(Q, K, V),
    f"{SDPA}flash_attention_backward": call(
        GRADIENT, Q, K, V, PLAIN, LOGARITHM, None, None, 4, 4, 0.0, False, SEED, SEED
    ),
    f"{SDPA}efficient_attention": call(Q, K, V, BIAS, False),
    f"{SDPA}efficient_attention_backward": call(
        GRADIENT, Q, K, V, BIAS, BIASED, WITH_BIAS, SEED, SEED, 0.0, [True] * 4
    ),
    f"{SDPA}cudnn_attention": call(Q, K, V, BIAS, True),
    f"{SDPA}cudnn_attention_backward": call(
        GRADIENT, Q, K, V, BIASED, WITH_BIAS[..., None], SEED, SEED, BIAS, None, None, 4, 4, 0.0, False
    ),
}


def multiply(x: Any, y: Any, dtype: Any) -> Any:
    """Multiply in a larger type."""
    return x.to(dtype) @ y.to(dtype)


#: References of overloads that PyTorch computes on GPUs only. Further results are not compared.
REFERENCES: dict[str, Callable[..., Any]] = {
    "mm.dtype": multiply,
    "bmm.dtype": multiply,
    "addmm.dtype": lambda c, x, y, dtype: c + multiply(x, y, dtype),
    f"{SDPA}flash_attention": lambda *x: attend(*x)[:1],
    f"{SDPA}flash_attention_backward": lambda *x: attend_backward(*x[:4]),
    f"{SDPA}efficient_attention": lambda *x: attend(*x[:4])[:1],
    f"{SDPA}efficient_attention_backward": lambda *x: attend_backward(*x[:5]),
    f"{SDPA}cudnn_attention": lambda *x: attend(*x[:4])[:1],
    f"{SDPA}cudnn_attention_backward": lambda *x: attend_backward(*x[:4], x[8])[:3],
}
GROUPS = {
    "elementwise": ELEMENTWISE, "views": VIEWS, "creation": CREATION, "indexing": INDEXING,
    "reductions": REDUCTIONS, "normalisation": NORMALISATION, "products": PRODUCTS,
    "attention": ATTENTION,
}  # fmt: skip
COMPARED = {name: row for rows in GROUPS.values() for name, row in rows.items()}


def overload(name: str) -> Any:
    """Return the overload with a name such as ``mm`` or ``add.Tensor``."""
    parts = name.split(".")
    spaces = ["aten"] if parts[0] not in ("prims", "transformers") else []
    found = functools.reduce(getattr, [*spaces, *parts], torch.ops)
    return found if isinstance(found, torch._ops.OpOverload) else found.default


def function(name: str) -> Any:
    """Return the overload, or a function that PyTorch replaces by the overload."""
    return torch.tensor if name == "lift_fresh_copy" else overload(name)


@pytest.mark.parametrize("group", GROUPS)
def test_rows(group: str) -> None:
    """Compile all rows of a group as one function, and compare each row with eager execution."""
    if group == "products":
        pytest.importorskip("transformers.integrations.moe")
    rows = GROUPS[group]
    leaves, structure = pytree.tree_flatten(list(rows.values()))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    functions = [function(name) for name in rows]

    def run_all(*given: Any) -> list[Any]:
        remaining = iter(given)
        filled = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        calls = pytree.tree_unflatten(filled, structure)
        results = [f(*a, **b) for f, (a, b) in zip(functions, calls, strict=True)]
        # A view of an input would be no result of U.
        return [pytree.tree_map_only(torch.Tensor, torch.clone, result) for result in results]

    torch._dynamo.reset()
    compiled = torch.compile(run_all, backend="locum", fullgraph=True, options={"host": "forbidden"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compiled(*tensors)
    used = {name for module in report(compiled).on_u.values() for name in module}
    assert {str(overload(name)) for name in rows} - used == set()
    for (name, (arguments, options)), result in zip(rows.items(), found, strict=True):
        wanted = REFERENCES.get(name, function(name))(*arguments, **options)
        wanted, result = pytree.tree_leaves(wanted), pytree.tree_leaves(result)
        assert len(result) == len(wanted) or name in REFERENCES, name
        for want, have in zip(wanted, result, strict=False):
            assert (have.shape, have.dtype) == (want.shape, want.dtype), name
            if "empty" not in name:
                torch.testing.assert_close(
                    have, want, equal_nan=True, msg=lambda m, n=name: f"{n}: {m}"
                )


def test_every_overload_of_the_table_has_a_row() -> None:
    named = {row.name for row in TABLE.values()}
    if (missing := named - {str(overload(name)) for name in COMPARED}) or len(named) != len(COMPARED):
        raise AssertionError(sorted(missing))
