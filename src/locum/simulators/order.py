"""The order of a T: the numbers and kinds that U is built from, and nothing of T's values.

The paper's order is (n, d, d_v), with d₁ and d₂ for a feed-forward. Here it has more parts, since T's
have: heads, biases, masks, norms, the kind of attention. Two T's of equal order are served by one U.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from locum.errors import GraphError
from locum.simulators.layout import Block

KINDS = ("softmax", "factored", "linear", "linformer", "performer", "sumformer")
NORMS = ("none", "post", "pre")
#: None: every key is seen. causal: those not after the query. matrix: a 0/1 matrix among the tokens.
#: rows: the first m keys, m being a token (for a smaller T on a larger U). keys: a row of 0 and 1 among
#: the tokens, one for each key (for sequences that are padded to a common length).
MASKS = (None, "causal", "matrix", "rows", "keys")
#: What becomes of the scores: softmax, or the mean over the maxima (GAHAT), or the leftmost (GUHAT).
POOLINGS = ("softmax", "average", "unique")
COMBINATIONS = ("concatenate", "sum")
FEATURE_MAPS = ("identity", "elu+1")
ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu")


@dataclass(frozen=True)
class AttentionOrder:
    """The order of an attention, whatever the number of rows it is applied to."""

    kind: str
    d: int
    d_v: int
    heads: int = 1
    #: How heads come together, and the columns of W_O behind them (0: there is none).
    combine: str = "concatenate"
    projection: int = 0
    output_bias: bool = False
    #: Whether projections have biases: then A and V have one row (A one column) more, for a 1; in the
    #: factored kind they are rows of their own.
    bias: bool = False
    mask: str | None = None
    pooling: str = "softmax"
    #: Columns of the keys' input: d, or those of the memory.
    d_keys: int = 0
    #: Columns of W_Q and W_K; rows of E and F, features of the Performer, columns of the Sumformer's φ;
    #: hidden units of the Sumformer's ψ. 0 where the kind has no such thing.
    width: int = 0
    rank: int = 0
    hidden: int = 0
    #: What linear attention does to queries and keys; identity: nothing, and no denominator either.
    feature_map: str = "identity"
    #: The Sumformer's activation.
    nonlinearity: str = "relu"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            choose(getattr(self, name), choices, name)
        for name in ("d", "d_v", "heads"):
            whole(getattr(self, name), name)
        if self.projection and self.combine == "sum":
            raise GraphError("W_O projects heads that lie side by side: combine must be concatenate")
        if self.kind not in ("softmax", "factored", "linear") and self.mask is not None:
            raise GraphError(f"a {self.kind} attention takes no mask: every row looks at all of X")
        if self.kind != "softmax" and self.pooling != "softmax":
            raise GraphError(f"hard pooling belongs to kind softmax, not to {self.kind}")
        if self.kind != "linear" and self.feature_map != "identity":
            raise GraphError(f"a feature map belongs to kind linear, not to {self.kind}")
        if self.kind == "factored" and self.combine == "sum":
            raise GraphError("factored heads lie side by side: combine must be concatenate")
        if self.kind == "factored" and self.mask == "rows":
            raise GraphError(
                "a factored attention says which keys count by a mask of keys, not of rows"
            )
        if self.kind == "linear" and self.mask not in (None, "causal"):
            raise GraphError("linear attention is masked causally or not at all")

    @property
    def columns(self) -> int:
        """Columns of the result."""
        if self.projection:
            return self.projection
        return self.d_v * (self.heads if self.combine == "concatenate" else 1)

    @property
    def exponential(self) -> bool:
        """Whether its weights are a softmax, whose exponential may have another base than e."""
        return self.kind in ("softmax", "linformer") and self.pooling == "softmax"

    def blocks(self, n: int, m: int, prefix: str = "") -> list[Block]:
        """The matrices that characterise it, for n rows that attend to m rows."""
        shapes = self._factors() if self.kind == "factored" else self._projections(m)
        if self.output_bias:
            shapes.append(Block("b_O", 1, self.columns))
        if self.mask == "matrix":
            shapes.append(Block("mask", n, m))
        if self.mask == "rows":
            shapes.append(Block("rows", 1, 1))
        if self.mask == "keys":
            shapes.append(Block("seen", 1, m))
        return [_renamed(block, prefix) for block in shapes]

    def _factors(self) -> list[Block]:
        """W_Q, W_K, V and W_O whole, as models keep them: a head has its columns (of W_O, its rows)."""
        heads, key = self.heads, self.d_keys or self.d
        shapes = []
        for name, rows, columns in (
            ("Q", self.d, self.width),
            ("K", key, self.width),
            ("V", key, self.d_v),
        ):
            weights = "V" if name == "V" else f"W_{name}"
            shapes.append(Block(weights, rows, heads * columns, split="columns", heads=heads))
            if self.bias:
                shapes.append(Block(f"b_{name}", 1, heads * columns, split="columns", heads=heads))
        if self.projection:
            shapes.append(Block("W_O", heads * self.d_v, self.projection, split="rows", heads=heads))
        return shapes

    def _projections(self, m: int) -> list[Block]:
        """The matrices of each head, one head after another."""
        query, key = self.d + self.bias, (self.d_keys or self.d) + self.bias
        ones = self.bias
        shapes: list[Block]
        match self.kind:
            case "softmax":
                shapes = [Block("A", query, key, self.heads, ones, ones)]
            case "sumformer":
                shapes = [
                    Block("W_phi", query, self.rank, self.heads, ones),
                    Block("W_x", query, self.hidden, self.heads, ones),
                    Block("W_sum", self.rank, self.hidden, self.heads),
                ]
            case _:
                shapes = [
                    Block("W_Q", query, self.width, self.heads, ones),
                    Block("W_K", key, self.width, self.heads, ones),
                ]
        rows = self.hidden if self.kind == "sumformer" else key
        shapes.append(Block("V", rows, self.d_v, self.heads, ones and self.kind != "sumformer"))
        if self.kind == "linformer":
            shapes += [Block("E", self.rank, m, self.heads), Block("F", self.rank, m, self.heads)]
        if self.kind == "performer":
            shapes.append(Block("omega", self.rank, self.width, self.heads))
        if self.projection:
            shapes.append(Block("W_O", self.d_v, self.projection, self.heads))
        return shapes


@dataclass(frozen=True)
class Order:
    """The order of a T on n rows: an attention, or a whole encoder or decoder layer."""

    n: int
    attention: AttentionOrder
    #: Rows of the memory, if there is one: what a cross-attention, or a decoder, attends to.
    memory: int = 0
    #: A decoder's second attention, to the memory. Without it the (only) attention reads the memory.
    cross: AttentionOrder | None = None
    residual: bool = False
    feed_forward: tuple[int, int] | None = None
    feed_forward_bias: bool = False
    feed_forward_residual: bool = False
    activation: str = "relu"
    norm: str = "none"
    #: Whether norms have gains and biases.
    affine: bool = False
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        whole(self.n, "n")
        if self.memory != 0:
            whole(self.memory, "memory, the number of its rows,")
        choose(self.norm, NORMS, "norm")
        choose(self.activation, ACTIVATIONS, "activation")
        d, columns = self.attention.d, self.attention.columns
        if self.attention.mask == "causal" and self.memory and self.cross is None:
            raise GraphError("an attention to a memory is not causal: its rows have no common order")
        if self.attention.d_keys not in (0, d) and (not self.memory or self.cross is not None):
            raise GraphError(
                f"A must be square where X attends to itself, but it is {d}×{self.attention.d_keys}"
            )
        if self.norm != "none" and not self.residual:
            raise GraphError("norms belong to encoders, which have residual sums")
        if self.residual and columns != d:
            raise GraphError(
                f"X + attention(X) needs as many columns on both sides (erratum E19), but X has {d} "
                f"and the attention gives {columns}: let d_v be {d}, or project by W_O to {d} columns"
            )
        if self.residual and self.memory and self.cross is None:
            raise GraphError(
                "a layer that attends to a memory is a decoder layer, with two attentions: "
                "UniversalSimulator.of(DecoderLayer(…), n, memory)"
            )
        if self.feed_forward is not None:
            if not self.residual:
                raise GraphError("a feed-forward belongs to an encoder, which has a residual sum")
            d1, d2 = self.feed_forward
            whole(d1, "d1")
            whole(d2, "d2")
            if self.feed_forward_residual and d2 != d:
                raise GraphError(f"a residual around the feed-forward needs d2 = {d}, but it is {d2}")
        if self.feed_forward_bias and self.feed_forward is None:
            raise GraphError("feed_forward_bias belongs to a feed-forward, and there is none")
        if self.affine and self.norm == "none":
            raise GraphError("affine says that norms have gains and biases, but there are no norms")
        require_real(self.epsilon, "epsilon", positive=True)

    @property
    def columns(self) -> int:
        """Columns of T(X)."""
        return self.attention.columns if self.feed_forward is None else self.feed_forward[1]

    @property
    def normed(self) -> list[int]:
        """The layer norms, each by its columns."""
        if self.norm == "none":
            return []
        found = [self.attention.d] * (1 + (self.cross is not None))
        if self.feed_forward is not None:
            found.append(self.columns if self.norm == "post" else self.attention.d)
        return found

    def blocks(self) -> list[Block]:
        """Everything in the sequence, X first: results and X lie alike, and their sum is free."""
        d, n = self.attention.d, self.n
        reads_memory = self.memory and self.cross is None
        found = [Block("X", n, d)]
        if self.memory:
            width = self.cross.d_keys if self.cross is not None else self.attention.d_keys
            found.append(Block("M", self.memory, width or d))
        found += self.attention.blocks(n, self.memory if reads_memory else n)
        if self.cross is not None:
            found += self.cross.blocks(n, self.memory, "cross ")
        if self.feed_forward is not None:
            d1, d2 = self.feed_forward
            found.append(Block("W1", self.attention.columns, d1))
            if self.feed_forward_bias:
                found.append(Block("b1", 1, d1))
            found.append(Block("W2", d1, d2))
            if self.feed_forward_bias:
                found.append(Block("b2", 1, d2))
        if self.affine:
            for number, columns in enumerate(self.normed, start=1):
                found += [Block(f"{name}{number}", 1, columns) for name in ("gain", "bias")]
        return found

    def __str__(self) -> str:
        attention = self.attention
        paper: list[object] = [self.n, attention.d, attention.d_v, *(self.feed_forward or ())]
        more = [f"{attention.heads} heads"] if attention.heads > 1 else []
        if attention.kind != "softmax":
            more.append(attention.kind)
        return ", ".join([f"({', '.join(map(str, paper))})", *more])

    def differences(self, other: Order) -> list[str]:
        """In what another order differs: ``heads 2 instead of 1``."""
        mine, its = _fields(self), _fields(other)
        return [
            f"{name} {its.get(name)} instead of {mine.get(name)}"
            for name in dict.fromkeys([*mine, *its])
            if mine.get(name) != its.get(name)
        ]


def choose(value: object, choices: Sequence[object], what: str) -> None:
    """Refuse what is not one of the choices, which are words (or None)."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        offered = ", ".join(str(choice) for choice in choices)
        raise GraphError(f"there is no {what} {value!r}: choose one of {offered}")


def whole(value: object, what: str) -> int:
    """``value`` as a positive whole number."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if isinstance(value, bool) or number < 1:
        raise GraphError(f"{what} must be a positive whole number, but got {value!r}")
    return number


def require_real(value: object, what: str, positive: bool = False) -> None:
    """Refuse what is not a finite (and positive) number."""
    wanted = "a positive finite number" if positive else "a finite number"
    try:
        fits = not isinstance(value, (bool, str)) and math.isfinite(value)  # type: ignore[arg-type]
        fits = fits and (not positive or value > 0)  # type: ignore[operator]
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise GraphError(f"{what} must be {wanted}, but got {value!r}")


def _fields(order: Order) -> dict[str, Any]:
    """All fields by readable names, those of the attentions among them."""
    found: dict[str, Any] = {}
    for name, value in asdict(order).items():
        if name == "attention":
            found |= value
        elif name == "cross":
            found |= {f"cross {key}": part for key, part in (value or {}).items()}
        else:
            found[name] = value
    return found


def _renamed(block: Block, prefix: str) -> Block:
    return replace(block, name=prefix + block.name) if prefix else block


_CHOICES: dict[str, Sequence[object]] = {
    "kind": KINDS,
    "combine": COMBINATIONS,
    "mask": MASKS,
    "pooling": POOLINGS,
    "feature_map": FEATURE_MAPS,
    "nonlinearity": ACTIVATIONS,
}
