"""The order of an attention: sizes and kinds, whatever the number of rows it is applied to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from locum.errors import GraphError
from locum.execution.activations import ACTIVATIONS
from locum.settings import Setting, normalise_settings
from locum.simulators.layout import Block

KINDS = ("softmax", "factored", "linear", "linformer", "performer", "sumformer")
#: None: every key is seen. causal: those not after the query. matrix: a 0/1 matrix among the tokens.
#: rows: the first m keys, m being a token (for a smaller T on a larger U). keys: a row of 0 and 1 among
#: the tokens, one for each key (for sequences that are padded to a common length).
MASKS = (None, "causal", "matrix", "rows", "keys")
#: What becomes of the scores: softmax, or the mean over the maxima (GAHAT), or the leftmost (GUHAT).
POOLINGS = ("softmax", "average", "unique")
COMBINATIONS = ("concatenate", "sum")
FEATURE_MAPS = ("identity", "elu+1")


@dataclass(frozen=True)
class AttentionOrder:
    """The order of an attention, whatever the number of rows it is applied to."""

    kind: Annotated[str, Setting("a text", choices=KINDS)]
    d: Annotated[int, Setting("an integer", least=1)]
    d_v: Annotated[int, Setting("an integer", least=1)]
    heads: Annotated[int, Setting("an integer", least=1)] = 1
    #: How heads come together, and the columns of W_O behind them (0: there is none).
    combine: Annotated[str, Setting("a text", choices=COMBINATIONS)] = "concatenate"
    projection: int = 0
    output_bias: bool = False
    #: Whether projections have biases: then A and V have one row (A one column) more, for a 1; in the
    #: factored kind they are rows of their own.
    bias: bool = False
    mask: Annotated[str | None, Setting("a text", choices=MASKS)] = None
    pooling: Annotated[str, Setting("a text", choices=POOLINGS)] = "softmax"
    #: Columns of the keys' input: d, or those of the memory.
    d_keys: int = 0
    #: Columns of W_Q and W_K; rows of E and F, features of the Performer, columns of the Sumformer's φ;
    #: hidden units of the Sumformer's ψ. 0 where the kind has no such thing.
    width: int = 0
    rank: int = 0
    hidden: int = 0
    #: What linear attention does to queries and keys; identity: nothing, and no denominator either.
    feature_map: Annotated[str, Setting("a text", choices=FEATURE_MAPS)] = "identity"
    #: The Sumformer's activation.
    nonlinearity: Annotated[str, Setting("a text", choices=tuple(ACTIVATIONS))] = "relu"
    #: Heads of keys and values, each shared by equally many heads of queries (0: one for each). This
    #: and what follows belong to the factored kind.
    key_heads: int = 0
    #: Whether queries and keys are turned by their positions (rotary embeddings): q∘C + (qR)∘S.
    rotary: bool = False
    #: Whether every head has a matrix that is added to its scores (relative positions).
    score_bias: bool = False

    def __post_init__(self) -> None:
        normalise_settings(self, GraphError)
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
        if self.kind != "factored" and (self.key_heads or self.rotary or self.score_bias):
            raise GraphError(
                "shared keys, rotary positions and biases of scores belong to kind factored"
            )
        if self.heads % self.shared_heads:
            raise GraphError(f"{self.heads} heads cannot share {self.key_heads} key heads equally")
        if self.kind == "linear" and self.mask not in (None, "causal", "rows"):
            raise GraphError("linear attention takes a causal mask or none")

    @property
    def columns(self) -> int:
        """Columns of the result."""
        if self.projection:
            return self.projection
        return self.d_v * (self.heads if self.combine == "concatenate" else 1)

    @property
    def shared_heads(self) -> int:
        """Heads of keys and values."""
        return self.key_heads or self.heads

    @property
    def exponential(self) -> bool:
        """Whether its weights are a softmax, whose exponential may have another base than e."""
        return self.kind in ("softmax", "linformer") and self.pooling == "softmax"

    def blocks(self, n: int, m: int, prefix: str = "", batch: int = 1) -> list[Block]:
        """Return the matrices that characterise it, for n rows that attend to m rows.

        A mask for each X.
        """
        shapes = self._factors() if self.kind == "factored" else self._projections(m)
        if self.output_bias:
            shapes.append(Block("b_O", 1, self.columns))
        if self.rotary:
            shapes.append(Block("rotation", self.width, self.width))
            shapes += [Block(name, n, self.width) for name in ("cosines", "sines")]
        if self.score_bias:
            shapes.append(Block("score_bias", n, m, self.heads))
        if self.mask == "matrix":
            shapes.append(Block("mask", n, m, batch))
        if self.mask == "rows":
            shapes.append(Block("rows", 1, 1))
        if self.mask == "keys":
            shapes.append(Block("attention_mask", 1, m, batch))
        return [_renamed(block, prefix) for block in shapes]

    def _factors(self) -> list[Block]:
        """List W_Q, W_K, V and W_O whole, as models keep them: a head has columns of them."""
        key, shared = self.d_keys or self.d, self.shared_heads
        shapes = []
        for name, rows, columns, heads in (
            ("Q", self.d, self.width, self.heads),
            ("K", key, self.width, shared),
            ("V", key, self.d_v, shared),
        ):
            weights = "V" if name == "V" else f"W_{name}"
            shapes.append(Block(weights, rows, heads * columns, split="columns", heads=heads))
            if self.bias:
                shapes.append(Block(f"b_{name}", 1, heads * columns, split="columns", heads=heads))
        if self.projection:
            heads = self.heads
            shapes.append(Block("W_O", heads * self.d_v, self.projection, split="rows", heads=heads))
        return shapes

    def _projections(self, m: int) -> list[Block]:
        """Return the matrices of each head, one head after another."""
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


def _renamed(block: Block, prefix: str) -> Block:
    return replace(block, name=prefix + block.name) if prefix else block
