"""Export a compiled transformer as an ONNX graph that contains only standard operators.

The input of the graph is ``inputs`` [batch, position]: token ids (int64), or numbers, as returned by
``model.encode``. The output is ``logits`` [batch, position, d_vocab_out], which ``model.decode``
accepts. The batch and position sizes are dynamic. Hard heads are computed by a maximum, an equality and
a mean. The initialisers of the weights have the names of :meth:`Weights.named`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.execution.elementwise import MEANINGS
from locum.files import write_file
from locum.graph.atoms import EXACT_INTEGERS, INT64_LIMIT
from locum.networks.transformer.config import Config
from locum.networks.transformer.functions import Functions, Instruction
from locum.networks.transformer.weights import (
    HARD,
    AttentionWeights,
    FeedForwardWeights,
    NormWeights,
    Weights,
)


class Graph:
    """A builder that collects the nodes and constants of an ONNX graph."""

    def __init__(self, onnx: Any, dtype: str, weights: Weights) -> None:
        self.dtype = dtype
        self.kind = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.initialisers = [
            onnx.numpy_helper.from_array(np.ascontiguousarray(tensor), name)
            for name, tensor in weights.named()
        ]
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        name = f"{kind} {len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def number(self, value: Any) -> str:
        """Add a constant of the graph's dtype to the graph, and return its name."""
        return self.constant(np.asarray(value, dtype=self.dtype))

    def whole(self, value: Any) -> str:
        """Add a constant of type int64 to the graph, and return its name."""
        return self.constant(np.asarray(value, dtype=np.int64))

    def constant(self, array: Any) -> str:
        """Add a constant to the graph, and return its name; equal constants are stored once."""
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = f"constant {len(self._constants)}"
            self.initialisers.append(self._onnx.numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def type_of(self, name: str) -> Any:
        """Return the ONNX enumeration value of the tensor type ``name``."""
        return getattr(self._onnx.TensorProto, name)

    def as_number(self, name: str) -> str:
        """Convert a tensor to the graph's dtype, and return the name of the result; booleans become 1
        and 0.
        """
        return self.op("Cast", name, to=self.kind)


def functions_in_onnx(build: Graph, functions: Functions, arguments: Sequence[str]) -> list[str]:
    """Add symbolic functions to a graph and return the names of their output tensors.

    ``arguments`` are the names of input tensors of one shape.
    """
    names = list(arguments)
    for instruction in functions.instructions:
        inputs = [names[place] for place in instruction.inputs]
        names.append(_instruction(build, instruction, inputs, arguments[0]))
    return [names[place] for place in functions.outputs]


def _instruction(build: Graph, instruction: Instruction, inputs: Sequence[str], like: str) -> str:
    attributes = instruction.attributes
    match instruction.op:
        case "constant":
            return build.op("Expand", build.number(attributes["value"]), build.op("Shape", like))
        case "table":
            return _table(build, inputs, attributes["keys"], attributes["values"])
        case "member":
            return build.as_number(_member(build, inputs[0], attributes["values"]))
    meaning = MEANINGS.get(instruction.op)
    if meaning is not None and instruction.op in SPECIAL:
        result = SPECIAL[instruction.op](build, *inputs)
    elif meaning is not None and meaning.onnx is not None:
        result = build.op(meaning.onnx, *inputs)
    else:
        raise CompileError(
            f"ONNX does not support {instruction.op}", instruction.label or instruction.op
        )
    is_boolean = meaning.kind == "bool" or instruction.op == "indicator"
    return build.as_number(result) if is_boolean else result


def _table(build: Graph, inputs: Sequence[str], keys: Any, values: Any) -> str:
    """Add a table lookup at the nearest key, and return the name of its result.

    Of two equally near keys, ArgMin chooses the lower key.
    """
    flat = ""
    for name, among in zip(inputs, keys, strict=True):
        # Beyond the outermost keys, rounding could make several keys equally distant.
        inside = build.op("Min", build.op("Max", name, build.number(among[0])), build.number(among[-1]))
        column = build.op("Unsqueeze", inside, build.whole([-1]))
        distances = build.op("Abs", build.op("Sub", column, build.number(list(among))))
        place = build.op("ArgMin", distances, axis=-1, keepdims=0)
        before = build.op("Mul", flat, build.whole(len(among))) if flat else ""
        flat = build.op("Add", before, place) if before else place
    numbers = build.number([math.nan if value is None else float(value) for value in values])
    return build.op("Gather", numbers, flat)


def _member(build: Graph, value: str, among: Sequence[Any]) -> str:
    is_member = build.op("Not", build.op("Equal", value, value))  # False except for NaN
    for number in among:
        is_member = build.op("Or", is_member, build.op("Equal", value, build.number(number)))
    return is_member


def _nonzero(build: Graph, a: str) -> str:
    return build.op("Not", build.op("Equal", a, build.number(0)))


def _or_nan(build: Graph, condition: str, value: str) -> str:
    return build.op("Where", condition, value, build.number(math.nan))


def _divide(build: Graph, a: str, b: str) -> str:
    return _or_nan(build, _nonzero(build, b), build.op("Div", a, b))


def _exact(build: Graph, a: str, b: str) -> str:
    limit = build.number(EXACT_INTEGERS[build.dtype])
    within = [build.op("LessOrEqual", build.op("Abs", name), limit) for name in (a, b)]
    return build.op("And", _nonzero(build, b), build.op("And", *within))


def _remainder(build: Graph, a: str, b: str) -> tuple[str, str]:
    """Return the remainder of ``a`` and ``b`` as in C, and a mask.

    The mask is true for remainders other than 0 whose sign is not the sign of ``b``.
    """
    rest = build.op("Mod", a, b, fmod=1)
    zero = build.number(0)
    signs = build.op("Xor", build.op("Less", rest, zero), build.op("Less", b, zero))
    return rest, build.op("And", _nonzero(build, rest), signs)


def _modulo(build: Graph, a: str, b: str) -> str:
    rest, other = _remainder(build, a, b)
    return _or_nan(build, _exact(build, a, b), build.op("Where", other, build.op("Add", rest, b), rest))


def _floor_divide(build: Graph, a: str, b: str) -> str:
    rest, other = _remainder(build, a, b)
    quotient = build.op("Div", build.op("Sub", a, rest), b)  # an integer up to rounding
    whole = build.op("Sub", build.op("Round", quotient), build.as_number(other))
    return _or_nan(build, _exact(build, a, b), whole)


def _power(build: Graph, a: str, b: str) -> str:
    fine = build.op("Or", _nonzero(build, a), build.op("GreaterOrEqual", b, build.number(0)))
    return _or_nan(build, fine, build.op("Pow", a, b))


def _logarithm(build: Graph, a: str) -> str:
    return _or_nan(build, build.op("Greater", a, build.number(0)), build.op("Log", a))


def _either(build: Graph, predicate: str, a: str, b: str) -> str:
    return build.op("Where", build.op(predicate, a, b), a, b)


def _rounded(*kinds: str) -> Callable[[Graph, str], str]:
    """Return a function that adds a rounding through the float types ``kinds`` to a graph.

    A finite number that is too large for one of these types becomes NaN.
    """

    def rounded(build: Graph, a: str) -> str:
        value = a
        for kind in kinds:
            value = build.op("Cast", value, to=build.type_of(kind))
        value = build.as_number(value)
        overflows = build.op("And", build.op("IsInf", value), build.op("Not", build.op("IsInf", a)))
        return _or_nan(build, build.op("Not", overflows), value)

    return rounded


#: Operations without a single equivalent ONNX operator. The other instructions, except ``constant``,
#: ``table`` and ``member``, have such an operator in ``MEANINGS``.
SPECIAL: Mapping[str, Callable[..., str]] = {
    "divide": _divide,
    "modulo": _modulo,
    "floor_divide": _floor_divide,
    "power": _power,
    "log": _logarithm,
    "minimum": lambda build, a, b: _either(build, "Less", a, b),
    "maximum": lambda build, a, b: _either(build, "Greater", a, b),
    "not_equal": lambda build, a, b: build.op("Not", build.op("Equal", a, b)),
    "and": lambda build, a, b: build.op("And", _nonzero(build, a), _nonzero(build, b)),
    "or": lambda build, a, b: build.op("Or", _nonzero(build, a), _nonzero(build, b)),
    "not": lambda build, a: build.op("Equal", a, build.number(0)),
    "if_else": lambda build, a, b, c: build.op("Where", _nonzero(build, a), b, c),
    "indicator": _nonzero,
    "float64": _rounded("DOUBLE"),
    "float32": _rounded("FLOAT"),
    "float16": _rounded("FLOAT", "FLOAT16"),
    "bfloat16": _rounded("FLOAT", "BFLOAT16"),
}


#: Version of the ONNX operators, which contains all needed operators, and version of the file format.
OPSET, IR_VERSION = 17, 8
_END = INT64_LIMIT


def write_onnx(config: Config, weights: Weights, path: str | Path) -> None:
    """Write the ONNX graph of a transformer to a file, completely or not at all."""
    write_file(path, onnx_bytes(config, weights))


def onnx_bytes(config: Config, weights: Weights) -> bytes:
    """Return the ONNX graph of a transformer as the content of a file."""
    try:
        content: bytes = onnx_model(config, weights).SerializeToString(deterministic=True)
    except ValueError as error:  # protobuf's limit of 2 GiB
        raise CompileError(
            f"expected a transformer of at most 2 GiB, the limit of an ONNX file, got a "
            f"larger one ({error}); try a smaller length or vocabulary"
        ) from None
    return content


def onnx_model(config: Config, weights: Weights) -> Any:
    """Return the ONNX graph of a transformer as a checked ``ModelProto``."""
    # Imported here, because the rest of the package works without ONNX.
    onnx = importlib.import_module("onnx")
    helper = onnx.helper
    build = Graph(onnx, config.dtype, weights)
    stream = _embedded(build, config, weights)
    for number, layer in enumerate(weights.layers):
        prefix = f"blocks.{number}"
        if layer.attention is not None:
            read = _normalised(build, layer.norm1, stream, f"{prefix}.ln1")
            out = _attention(build, layer.attention, read, f"{prefix}.attn", config.causal)
            stream = build.op("Add", stream, out)
        if layer.feed_forward is not None:
            read = _normalised(build, layer.norm2, stream, f"{prefix}.ln2")
            out = _feed_forward(build, layer.feed_forward, read, f"{prefix}.mlp", config.sink)
            stream = build.op("Add", stream, out)
    stream = _normalised(build, weights.norm, stream, "ln_final")
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


def _normalised(build: Graph, norm: NormWeights | None, stream: str, name: str) -> str:
    """Return the name of the normalised stream, or ``stream`` if ``norm`` is None."""
    if norm is None:
        return stream
    centred = build.op("Sub", stream, build.op("ReduceMean", stream, axes=[-1]))
    variance = build.op("ReduceMean", build.op("Mul", centred, centred), axes=[-1])
    scale = build.op("Sqrt", build.op("Add", variance, build.number(norm.epsilon)))
    normalised = build.op("Mul", build.op("Div", centred, scale), f"{name}.w")
    return build.op("Add", normalised, f"{name}.b")


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
    """Insert a row of zeros before the first position of a tensor [batch, position, number]."""
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
    """Return the name of a mask [query, key] of the keys after each query."""
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
