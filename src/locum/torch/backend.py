"""Define the backend "locum" of ``torch.compile``: its options, decompositions and use of AOT
autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from torch import (
    Tensor,
    add,
    addcmul,
    arange,
    float64,
    fx,
    get_default_dtype,
    ops,
    scalar_tensor,
    strided,
    where,
)
from torch._decomp import core_aten_decompositions
from torch._dynamo import config as dynamo_config
from torch._dynamo.backends.common import aot_autograd
from torch.nn.functional import gelu, layer_norm, linear, multilabel_margin_loss, relu

from locum.errors import InputError
from locum.settings import read_settings, settings_of
from locum.torch.compiled_graph import CompiledGraph, box_arguments
from locum.torch.host_operations import RANDOM
from locum.torch.program import Settings
from locum.torch.table import TABLE
from locum.torch.translation import UnsupportedOperationError
from locum.torch.usage import GraphUsage


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Decompose ``aten._native_multi_head_attention`` into simpler operations.

    Return the result of the attention, and the attention weights or None.
    """
    q, k, v = (
        linear(x, weight, bias).view(*x.shape[:2], num_head, -1).transpose(1, 2)
        for x, weight, bias in zip(
            (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
        )
    )
    scores = (q / math.sqrt(embed_dim // num_head)) @ k.mT
    if mask is not None:
        hidden = mask.bool()  # the fast path does not add the mask to the scores
        if mask_type == 1:  # a padding mask of keys, [batch, key]
            hidden = hidden[:, None, None, :]
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    result = linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Decompose ``aten._transformer_encoder_layer_fwd`` into simpler operations and return its
    result.
    """
    projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    masked: dict[str, Any] = {"mask": mask, "mask_type": mask_type}

    def attend(x: Tensor) -> Tensor:
        result, _ = attention(x, x, x, embed_dim, num_heads, *projections, need_weights=False, **masked)
        return result

    def feed_forward(x: Tensor) -> Tensor:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(hidden) if use_gelu else relu(hidden), ffn_weight_2, ffn_bias_2)

    def norm1(x: Tensor) -> Tensor:
        return layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm2(x: Tensor) -> Tensor:
        return layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(norm1(src))
        return x + feed_forward(norm2(x))
    x = norm1(src + attend(src))
    return norm2(x + feed_forward(x))


#: The decompositions of fused layers, by operation.
FUSED_LAYERS: dict[Any, Callable[..., Any]] = {
    ops.aten._native_multi_head_attention.default: attention,
    ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
}


#: Overloads whose decomposition in PyTorch computes integers in float32.
_LINSPACE = (
    ops.aten.linspace.default,
    ops.aten.linspace.Tensor_Tensor,
    ops.aten.linspace.Tensor_Scalar,
    ops.aten.linspace.Scalar_Tensor,
)


_LOGSPACE = (
    ops.aten.logspace.default,
    ops.aten.logspace.Tensor_Tensor,
    ops.aten.logspace.Tensor_Scalar,
    ops.aten.logspace.Scalar_Tensor,
)


#: Functions that PyTorch 2.13 decomposes to wrong operations. For ``multilabel_margin_loss``, only
#: eager execution ignores the labels after the first -1.
WRONG_DECOMPOSITIONS = frozenset({multilabel_margin_loss})


def backend(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph captured by Dynamo to RASP programs, and return the compiled function.

    The inference graph, or the forward and backward graphs, become separate programs.
    ``torch.compile(model, backend="locum", options={"executor": "fast", "host": "allowed"})`` calls
    this function for each graph that Dynamo captures.
    """
    settings = read_options(options, mode)
    check_graph_break(graph)
    check_functions(graph)
    check_inputs(inputs)
    usage = GraphUsage(settings, *_describe_graph(graph))

    def compile_as(kind: str) -> Callable[..., Any]:
        def compile_graph(captured: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            return box_arguments(CompiledGraph(captured, kind, usage))

        return compile_graph

    compiler = aot_autograd(
        fw_compiler=compile_as("forward"),
        bw_compiler=compile_as("backward"),
        inference_compiler=compile_as("inference"),
        decompositions=decompositions(),
    )
    try:
        return usage.count_calls(compiler(graph, inputs))
    except AssertionError as error:
        if "set_ on a graph input" not in str(error):
            raise
        raise InputError(
            "x.data = y: expected inputs that keep their memory, got one whose memory is replaced; "
            "try x.copy_(y)"
        ) from error


def read_options(options: Mapping[str, Any] | None, mode: str | None) -> Settings:
    """Return the ``options`` of ``torch.compile`` as :class:`Settings`.

    Raise an error for a mode, an unknown option or an unsupported value.
    """
    if mode is not None:
        raise InputError(
            f'mode: expected none for the backend "locum", got {mode!r}; '
            'try options={"executor": "fast"}'
        )
    return Settings(**read_settings(options or {}, settings_of(Settings), "options"))


def check_graph_break(graph: fx.GraphModule) -> None:
    """Raise an error if the graph ends at a graph break, since other parts of the function may run
    without U.

    A graph break before the first operation is not detected.
    """
    reason = getattr(graph, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        summary = str(reason.reason).strip().splitlines()[0]
        place = ""
        if reason.user_stack:
            line = reason.user_stack[-1]
            place = f' (File "{line.filename}", line {line.lineno}, in {line.name})'
        raise InputError(
            "graph break: expected a function that Dynamo captures as one graph, got "
            f"{summary!r}{place}; try torch.compile(..., fullgraph=True) for the reason"
        )


def check_functions(graph: fx.GraphModule) -> None:
    """Raise an error for a function that PyTorch decomposes to operations with other results."""
    for node in graph.graph.nodes:
        if node.target in WRONG_DECOMPOSITIONS:
            name = node.target.__name__
            raise UnsupportedOperationError(
                f"{name}: expected a function that PyTorch decomposes without changing results, "
                f"got {name}; try to compute the loss outside the compiled function"
            )


def check_inputs(inputs: Sequence[Any]) -> None:
    """Raise an error if an input is a nested tensor or a tensor without strides, such as a sparse
    tensor.
    """
    for value in inputs:
        if isinstance(value, Tensor) and (value.is_nested or value.layout is not strided):
            kind = "nested" if value.is_nested else value.layout
            raise InputError(
                f"inputs: expected strided tensors, got a {kind} one; try a padded or dense tensor"
            )


def _describe_graph(graph: fx.GraphModule) -> tuple[str, bool]:
    """Return the name of a graph, and whether Dynamo compiles no further graph of the same function."""
    name = graph.meta.get("dynamo_compile_id")
    if name is None:
        return "?", False
    limit = dynamo_config.recompile_limit
    return str(name), bool(name.frame_compile_id is not None and name.frame_compile_id + 1 >= limit)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions of operations that are not in the table of operations.

    The operations in ``RANDOM`` are not decomposed, since a decomposition would draw different random
    numbers.
    """
    chosen = dict(_decompositions_of_aten()) | FUSED_LAYERS
    chosen.update(dict.fromkeys(_LINSPACE, linspace))
    chosen.update(dict.fromkeys(_LOGSPACE, logspace))
    # Dynamo creates this operation from methods such as addcmul_, and registers it on first use.
    if hasattr(ops.prims, "fma"):
        chosen[ops.prims.fma.default] = multiply_add
    return chosen


@cache
def _decompositions_of_aten() -> dict[Any, Callable[..., Any]]:
    known: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    return {
        overload: function
        for overload, function in known.items()
        if overload not in TABLE and getattr(overload, "overloadpacket", None) not in RANDOM
    }


def linspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> Tensor:
    """Return ``steps`` equidistant numbers from ``start`` to ``end``, computed in float64 and then
    converted to ``dtype``.

    For an integer ``dtype``, ``start`` and ``end`` are first rounded towards 0, as in eager execution.
    """
    dtype = get_default_dtype() if dtype is None else dtype
    first, last = (
        end.to(float64) if isinstance(end, Tensor) else scalar_tensor(end, dtype=float64, device=device)
        for end in (start, end)
    )
    if not dtype.is_floating_point:
        first, last = first.trunc(), last.trunc()
    place = arange(steps, dtype=float64, device=device)
    step = (last - first) / max(steps - 1, 1)
    rest = last - step * (steps - 1 - place)
    return where(place < max(steps // 2, 1), first + step * place, rest).to(dtype)


def logspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> Tensor:
    """Return ``steps`` powers of ``base`` with equidistant exponents from ``start`` to ``end``.

    For an integer ``dtype``, eager execution rounds ``start`` and ``end`` towards 0 if ``steps`` is at
    least 2. A single power is computed with the exponent ``start``.
    """
    dtype = get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point and steps != 1:
        start, end = (n.to(dtype) if isinstance(n, Tensor) else int(n) for n in (start, end))
    exponents = linspace(start, end, steps, dtype=float64, device=device)
    return (base**exponents).to(dtype)


def multiply_add(a: Tensor, b: Tensor | float, c: Tensor) -> Tensor:
    """Decompose ``prims.fma``: return a · b + c."""
    return addcmul(c, a, b) if isinstance(b, Tensor) else add(c, a, alpha=b)
