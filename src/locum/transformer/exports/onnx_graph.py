"""Export a compiled transformer as an ONNX graph, written operator by operator.

The graph has one input, ``inputs`` [batch, position]: token ids (int64), or numbers, as
``model.encode`` gives them; and one output, ``logits`` [batch, position, d_vocab_out], which
``model.decode`` reads. Batch and position are dynamic. Hard heads are a maximum, an equality and a
mean; all operators are standard. Its initialisers have the names of :meth:`Weights.named`.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.files import write_file
from locum.graph.atoms import INT64_LIMIT
from locum.transformer.config import Config
from locum.transformer.exports.onnx_functions import Graph, functions_in_onnx
from locum.transformer.weights import HARD, AttentionWeights, FeedForwardWeights, Weights

#: Old enough for every runtime in use, new enough for all that is needed.
OPSET, IR_VERSION = 17, 8
_END = INT64_LIMIT


def write_onnx(config: Config, weights: Weights, path: str | Path) -> None:
    """Write the graph into a file, completely or not at all."""
    try:
        content = onnx_model(config, weights).SerializeToString(deterministic=True)
    except ValueError as error:  # protobuf's limit of 2 GiB
        raise CompileError(
            f"expected a transformer of at most 2 GiB, which is all that one file of ONNX holds, got a "
            f"larger one ({error}); try a smaller length or vocabulary"
        ) from None
    write_file(path, content)


def onnx_model(config: Config, weights: Weights) -> Any:
    """Return the graph as ONNX's own object, checked."""
    # Imported here, by name: the rest of the package is read and checked without it.
    onnx = importlib.import_module("onnx")
    helper = onnx.helper
    build = Graph(onnx, config.dtype, weights)
    stream = _embedded(build, config, weights)
    for number, layer in enumerate(weights.layers):
        prefix = f"blocks.{number}"
        if layer.attention is not None:
            out = _attention(build, layer.attention, stream, f"{prefix}.attn", config.causal)
            stream = build.op("Add", stream, out)
        if layer.feed_forward is not None:
            out = _feed_forward(build, layer.feed_forward, stream, f"{prefix}.mlp", config.sink)
            stream = build.op("Add", stream, out)
    read = build.op("MatMul", _without_sink(build, stream, config.sink), "unembed.W_U")
    build.nodes.append(helper.make_node("Add", [read, "unembed.b_U"], ["logits"]))
    input_type = build.kind if config.vocabulary is None else onnx.TensorProto.INT64
    graph = helper.make_graph(
        build.nodes,
        config.name or "locum",
        [helper.make_tensor_value_info("inputs", input_type, ["batch", "position"])],
        [
            helper.make_tensor_value_info(
                "logits", build.kind, ["batch", "position", weights.W_U.shape[1]]
            )
        ],
        build.initialisers,
    )
    model = helper.make_model(
        graph,
        producer_name="locum",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(
        model, {"program": config.program_hash, "weights": weights.fingerprint(), "name": config.name}
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _embedded(build: Graph, config: Config, weights: Weights) -> str:
    if config.vocabulary is None:
        column = build.op("Unsqueeze", "inputs", build.whole([2]))
        words = build.op("Mul", column, "embed.W_E")
    else:
        words = build.op("Gather", "embed.W_E", "inputs")
    if config.sink:
        words = _with_sink(build, words)
    size = build.op("Gather", build.op("Shape", words), build.whole([1]))
    places = build.op("Slice", "pos_embed.W_pos", build.whole([0]), size, build.whole([0]))
    return build.op("Add", words, places)


def _with_sink(build: Graph, name: str) -> str:
    """Put zeros before the first position of [batch, position, …]."""
    return build.op("Pad", name, build.whole([0, 1, 0, 0, 0, 0]), build.number(0))


def _without_sink(build: Graph, name: str, sink: bool) -> str:
    if not sink:
        return name
    return build.op("Slice", name, build.whole([1]), build.whole([_END]), build.whole([1]))


def _attention(build: Graph, weights: AttentionWeights, stream: str, prefix: str, causal: bool) -> str:
    each = build.op("Unsqueeze", stream, build.whole([1]))  # [batch, 1, position, slot]

    def projected(name: str) -> str:
        bias = build.op("Unsqueeze", f"{prefix}.b_{name}", build.whole([1]))
        return build.op("Add", build.op("MatMul", each, f"{prefix}.W_{name}"), bias)

    q, k, v = (projected(name) for name in "QKV")
    scores = build.op("MatMul", q, build.op("Transpose", k, perm=[0, 1, 3, 2]))
    if causal:
        scores = build.op("Where", _ahead(build, stream), build.number(-np.inf), scores)
    top = build.op("ReduceMax", scores, axes=[-1], keepdims=1)
    hard = np.array([kind == HARD for kind in weights.kinds])
    chosen = ""
    if hard.any():
        chosen = build.as_number(build.op("Equal", scores, top))
    if not hard.all():
        soft = build.op("Exp", build.op("Sub", scores, top))
        mask = build.constant(hard[:, None, None])
        chosen = build.op("Where", mask, chosen, soft) if chosen else soft
    counts = build.op("ReduceSum", chosen, build.whole([-1]), keepdims=1)
    z = build.op("Div", build.op("MatMul", chosen, v), counts)
    heads = build.op("MatMul", z, f"{prefix}.W_O")
    joined = build.op("ReduceSum", heads, build.whole([1]), keepdims=0)
    return build.op("Add", joined, f"{prefix}.b_O")


def _ahead(build: Graph, stream: str) -> str:
    """Return [query, key]: whether the key stands behind the query."""
    size = build.op("Gather", build.op("Shape", stream), build.whole(1))
    places = build.op("Range", build.whole(0), size, build.whole(1))
    queries = build.op("Unsqueeze", places, build.whole([1]))
    return build.op("Less", queries, places)


def _feed_forward(
    build: Graph, weights: FeedForwardWeights, stream: str, prefix: str, sink: bool
) -> str:
    before = build.op("Add", build.op("MatMul", stream, f"{prefix}.W_in"), f"{prefix}.b_in")
    if weights.functions is not None:
        real = _without_sink(build, before, sink)
        arguments = [
            build.op("Gather", real, build.whole(i), axis=2) for i in range(weights.functions.arguments)
        ]
        outputs = functions_in_onnx(build, weights.functions, arguments)
        columns = [build.op("Unsqueeze", name, build.whole([2])) for name in outputs]
        after = build.op("Concat", *columns, axis=2)
        after = _with_sink(build, after) if sink else after
    elif weights.kind == "glu":
        gate = build.op("Relu", build.op("MatMul", stream, f"{prefix}.W_gate"))
        after = build.op("Mul", gate, before)
    elif weights.kind == "gelu":
        erf = build.op("Erf", build.op("Div", before, build.number(math.sqrt(2))))
        half = build.op("Mul", before, build.number(0.5))
        after = build.op("Mul", half, build.op("Add", erf, build.number(1)))
    else:
        after = build.op("Relu", before)
    return build.op("Add", build.op("MatMul", after, f"{prefix}.W_out"), f"{prefix}.b_out")
