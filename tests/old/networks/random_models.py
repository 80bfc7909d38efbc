"""Random transformers of every kind, valid by construction, and inputs for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locum.execution.elementwise import MEANINGS
from locum.graph import OPERATIONS, build, dumps, stable_hash
from locum.networks.transformer import (
    AttentionWeights,
    CompiledTransformer,
    Config,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.networks.transformer.functions import Functions, Instruction

#: Operations that have a value for all numbers that are not large.
TOTAL = tuple(
    name
    for name, meaning in MEANINGS.items()
    if not (meaning.undefined or meaning.overflows or name == "member") or name in ("floor", "round")
)


def _sources(chance: np.random.Generator, known: int, count: int) -> tuple[int, ...]:
    return tuple(int(place) for place in chance.integers(known, size=count))


def random_functions(chance: np.random.Generator, arguments: int, outputs: int) -> Functions:
    """A straight-line program on numbers, tables and constants among its instructions."""
    instructions: list[Instruction] = []
    for place in range(int(chance.integers(4, 9))):
        known = arguments + place
        op = str(chance.choice([*TOTAL, "constant", "member", "table"]))
        match op:
            case "constant":
                row = Instruction(op, (), {"value": float(chance.normal())}, "a constant")
            case "member":
                row = Instruction(op, _sources(chance, known, 1), {"values": (0, 1, -1.5)})
            case "table":
                keys = tuple(tuple(np.sort(chance.normal(size=2 + i)).tolist()) for i in range(2))
                values = tuple(chance.normal(size=6).tolist())
                row = Instruction(
                    op, _sources(chance, known, 2), {"keys": keys, "values": values}, "a table"
                )
            case _:
                row = Instruction(op, _sources(chance, known, len(OPERATIONS[op].takes)))
        instructions.append(row)
    last = arguments + len(instructions)
    return Functions(
        arguments, tuple(instructions), tuple(chance.integers(last, size=outputs).tolist())
    )


def random_model(
    seed: int,
    *,
    heads: Sequence[str] = ("hard", "softmax"),
    feeds: Sequence[str | None] = ("exact", "glu", "gelu", "relu", None),
    layers: int | None = None,
    numeric: bool | None = None,
    sink: bool | None = None,
    dtype: str | None = None,
    scale: float = 0.5,
) -> CompiledTransformer:
    """A transformer of random sizes; what is not asked for is drawn, absent halves included."""
    chance = np.random.default_rng(seed)

    def coin() -> bool:
        return bool(chance.integers(2))

    numeric = coin() if numeric is None else numeric
    sink = coin() if sink is None else sink
    dtype = str(chance.choice(["float32", "float64"])) if dtype is None else dtype
    d = int(chance.integers(3, 9))
    longest = int(chance.integers(2, 7))

    def normal(*shape: int) -> Any:
        result = chance.normal(size=shape, scale=scale)
        # Rounded so that hard heads have ties.
        return (np.round(result * 2) / 2).astype(dtype) if coin() else result.astype(dtype)

    def attention() -> AttentionWeights | None:
        count, width = int(chance.integers(0, 4)), int(chance.integers(1, 5))
        if not count:
            return None
        weights = {f"W_{name}": normal(count, d, width) for name in "QKV"}
        biases = {f"b_{name}": normal(count, width) for name in "QKV"}
        kinds = tuple(str(kind) for kind in chance.choice(list(heads), size=count))
        return AttentionWeights(
            **weights, **biases, W_O=normal(count, width, d), b_O=normal(d), kinds=kinds
        )

    def feed() -> FeedForwardWeights | None:
        kind = feeds[int(chance.integers(len(feeds)))]
        if kind is None:
            return None
        d_mlp = int(chance.integers(1, 7))
        d_in = int(chance.integers(1, 5)) if kind == "exact" else d_mlp
        return FeedForwardWeights(
            kind,
            normal(d, d_in),
            normal(d_in),
            normal(d_mlp, d),
            normal(d),
            normal(d, d_mlp) if kind == "glu" else None,
            random_functions(chance, d_in, d_mlp) if kind == "exact" else None,
        )

    depth = int(chance.integers(0, 4)) if layers is None else layers
    blocks = tuple(LayerWeights(attention(), feed()) for _ in range(depth))
    vocabulary = None if numeric else ("a", "b", "ü", "d")[: int(chance.integers(1, 5))]
    outputs = None if coin() else (True, 2, 0.5, "no")[: int(chance.integers(1, 5))]
    program = build("tanh", build("indices"))  # its answers are floats, as these are
    config = Config(
        vocabulary=vocabulary,
        lengths=(1, longest),
        sink=sink,
        outputs=outputs,
        attention="softmax" if "softmax" in heads else "hard",
        feed_forward=next((kind for kind in feeds if kind is not None), "exact"),
        dtype=dtype,
        slots=tuple(f"slot {number}" for number in range(d)),
        heads=tuple(
            tuple(f"head {i}" for i in range(block.attention.heads if block.attention else 0))
            for block in blocks
        ),
        program=dumps(program),
        program_hash=stable_hash(program),
        name=f"random {seed}",
        ranges=((-1e9, float("inf")),) if vocabulary is None and seed % 2 else None,
        report={"bound": 1e-3, "worst": float("inf"), "layers": [{"heads": 2}], "note": "drawn"},
    )
    weights = Weights(
        normal(1 if vocabulary is None else len(vocabulary), d),
        normal(longest + sink, d),
        blocks,
        normal(d, 1 if outputs is None else len(outputs)),
        normal(1 if outputs is None else len(outputs)),
    )
    return CompiledTransformer(config, weights)


def random_inputs(model: CompiledTransformer, seed: int, batch: int = 3) -> list[list[Any]]:
    """A batch of inputs of one length that the model takes."""
    chance = np.random.default_rng(seed)
    size = int(chance.integers(model.config.lengths[0], model.config.lengths[1] + 1))
    if model.config.vocabulary is None:
        result: list[list[Any]] = np.round(chance.normal(size=(batch, size)), 2).tolist()
        return result
    return [
        [model.config.vocabulary[i] for i in chance.integers(len(model.config.vocabulary), size=size)]
        for _ in range(batch)
    ]


def logits(model: CompiledTransformer, inputs: list[list[Any]]) -> Any:
    """What the NumPy forward pass gives before answers are read off, [batch, position, d_vocab_out]."""
    from locum.networks.transformer.forward import forward, unembed

    stream = forward(model.weights, model.embed(inputs), sink=model.config.sink)
    return unembed(model.weights, stream[:, model.config.sink :])
