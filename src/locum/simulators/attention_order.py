"""The order of an attention: sizes and kinds, whatever the number of rows it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from locum.errors import GraphError
from locum.execution.array_activations import ACTIVATIONS
from locum.settings import Setting, normalise_settings, require_choice
from locum.simulators.token_layout import Block

#: None: every key is seen. causal: those not after the query. matrix: a 0/1 matrix among the tokens.
#: rows: the first m keys, m being a token (for a smaller T on a larger U). keys: a row of 0 and 1 among
#: the tokens, one for each key (for sequences that are padded to a common length).
MASKS = (None, "causal", "matrix", "rows", "keys")
#: What becomes of the scores: softmax, or the mean over the maxima (GAHAT), or the leftmost (GUHAT).
POOLINGS = ("softmax", "average", "unique")
COMBINATIONS = ("concatenate", "sum")
FEATURE_MAPS = ("identity", "elu+1")


@dataclass(frozen=True)
class Kind:
    """A kind of attention: the class of T, and what an order of this kind has."""

    #: The class, which takes the matrices in the order of ``blocks`` and the settings by keyword.
    module: Any
    #: Returns the matrices of all heads, without W_O, from the order and the number of keys.
    blocks: Callable[[AttentionOrder, int], list[Block]]
    #: Returns the default sizes, of width, rank and hidden, from n and d.
    sizes: Callable[[int, int], dict[str, int]] = lambda n, d: {}
    #: Field of the order → keyword of the class.
    settings: Mapping[str, str] = field(default_factory=lambda: {"bias": "biased"})
    #: Other fields that only orders of this kind have.
    fields: tuple[str, ...] = ()
    masks: tuple[str | None, ...] = (None,)
    #: Whether the weights are a softmax, whose exponential may have another base than e.
    exponential: bool = False
    #: Whether all heads are columns of the same matrices.
    whole: bool = False

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices, without biases and W_O."""
        sample = AttentionOrder("softmax", 1, 1, width=1, rank=1, hidden=1)
        return tuple(block.name for block in self.blocks(sample, 1))


#: The kinds of attention by name: ``modules/attention_kinds.py`` enters them, beside their classes.
KINDS: dict[str, Kind] = {}
#: U has nodes for every head. The program of more heads takes gigabytes.
MAX_HEADS = 10_000
#: Fields of an order that some kinds have.
_OF_KINDS = ("pooling", "feature_map", "nonlinearity", "key_heads", "rotary", "score_bias")


@dataclass(frozen=True)
class AttentionOrder:
    """The order of an attention, whatever the number of rows it is applied to."""

    kind: Annotated[str, Setting("a text", choices=KINDS)]
    d: Annotated[int, Setting("an integer", least=1)]
    d_v: Annotated[int, Setting("an integer", least=1)]
    heads: Annotated[int, Setting("an integer", least=1, most=MAX_HEADS)] = 1
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
        kind = KINDS[self.kind]
        if kind.whole and self.combine == "sum":
            raise GraphError(f"{self.kind} heads lie side by side: combine must be concatenate")
        require_choice(self.mask, kind.masks, f"mask of kind {self.kind}", GraphError)
        for name in _OF_KINDS:
            value, default = getattr(self, name), getattr(type(self), name)
            if value != default and name not in (*kind.settings, *kind.fields):
                raise GraphError(f"{name}: expected {default!r} for kind {self.kind}, got {value!r}")
        if self.heads % self.shared_heads:
            raise GraphError(f"{self.heads} heads cannot share {self.key_heads} key heads equally")

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
        return KINDS[self.kind].exponential and self.pooling == "softmax"

    def blocks(self, n: int, m: int, prefix: str = "", batch: int = 1) -> list[Block]:
        """Return the matrices that characterise it, for n rows that attend to m rows.

        A mask for each X.
        """
        kind = KINDS[self.kind]
        shapes = kind.blocks(self, m)
        if self.projection and kind.whole:
            rows, heads = self.heads * self.d_v, self.heads
            shapes.append(Block("W_O", rows, self.projection, split="rows", heads=heads))
        elif self.projection:
            shapes.append(Block("W_O", self.d_v, self.projection, self.heads))
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


def _renamed(block: Block, prefix: str) -> Block:
    return replace(block, name=prefix + block.name) if prefix else block
