"""Define the order of an attention layer: its sizes and kind, independent of the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from locum.errors import GraphError
from locum.execution.array_activations import ACTIVATIONS
from locum.settings import Setting, normalise_settings, require_choice
from locum.simulators.token_layout import Block

#: With "causal", the keys up to the query are visible. "matrix" is a 0/1 matrix among the tokens. With
#: "rows", the first m keys are visible, where m is a token (for a smaller T on a larger U). "keys" is a
#: row of zeros and ones among the tokens, one per key (for sequences padded to a common length).
MASKS = (None, "causal", "matrix", "rows", "keys")
#: How scores become weights: softmax, the mean over the maxima (GAHAT), or the leftmost maximum
#: (GUHAT).
POOLINGS = ("softmax", "average", "unique")
COMBINATIONS = ("concatenate", "sum")
FEATURE_MAPS = ("identity", "elu+1")


@dataclass(frozen=True)
class Kind:
    """A kind of attention: the class of the module T, and the fields that its order uses."""

    #: The class. Its arguments are the matrices in the order of ``blocks`` without biases, and W_O if
    #: the heads are stored together. Settings are keywords.
    module: Any
    #: Function from the order and the number of keys to the blocks of all heads, without W_O.
    blocks: Callable[[AttentionOrder, int], list[Block]]
    #: Function from n and d to the default sizes: width, rank and hidden.
    sizes: Callable[[int, int], dict[str, int]] = lambda n, d: {}
    #: Maps fields of the order to keyword arguments of the class.
    settings: Mapping[str, str] = field(default_factory=lambda: {"bias": "biased"})
    #: Further fields of the order that apply to this kind.
    fields: tuple[str, ...] = ()
    masks: tuple[str | None, ...] = (None,)
    #: Whether the weights are a softmax for which a base other than e is supported.
    exponential: bool = False
    #: Whether all heads are stored in the same matrices, each head as a range of columns.
    whole: bool = False

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices of a module of this kind, without biases and W_O."""
        sample = AttentionOrder("softmax", 1, 1, width=1, rank=1, hidden=1)
        return tuple(block.name for block in self.blocks(sample, 1))


#: The kinds of attention by name; ``modules/attention_kinds.py`` adds them.
KINDS: dict[str, Kind] = {}
#: Maximum number of heads. A program with more heads could need gigabytes of memory.
MAX_HEADS = 10_000
#: Fields of an order that apply only to some kinds.
_OF_KINDS = ("pooling", "feature_map", "nonlinearity", "key_heads", "rotary", "score_bias")


@dataclass(frozen=True)
class AttentionOrder:
    """The order of an attention layer: its sizes and kind, independent of the number of rows."""

    kind: Annotated[str, Setting("a text", choices=KINDS)]
    d: Annotated[int, Setting("an integer", least=1)]
    d_v: Annotated[int, Setting("an integer", least=1)]
    heads: Annotated[int, Setting("an integer", least=1, most=MAX_HEADS)] = 1
    #: How heads are combined, and the number of columns of W_O (0 without W_O).
    combine: Annotated[str, Setting("a text", choices=COMBINATIONS)] = "concatenate"
    projection: int = 0
    output_bias: bool = False
    #: Whether projections have biases. If so, X is extended by a column of ones, and the projections of
    #: X have one more row (A also one more column). In the factored kind, biases are separate vectors.
    bias: bool = False
    mask: Annotated[str | None, Setting("a text", choices=MASKS)] = None
    pooling: Annotated[str, Setting("a text", choices=POOLINGS)] = "softmax"
    #: Number of columns of the input of the keys, or 0 for d columns.
    d_keys: int = 0
    #: Number of columns of W_Q and W_K of one head; 0 if the kind has no such matrices.
    width: int = 0
    #: Number of rows of E and F (Linformer), of features (Performer) or of columns of φ (Sumformer); 0
    #: for other kinds.
    rank: int = 0
    #: Number of hidden units of ψ (Sumformer); 0 for other kinds.
    hidden: int = 0
    #: The feature map of linear attention. With "identity", the weights are not normalised.
    feature_map: Annotated[str, Setting("a text", choices=FEATURE_MAPS)] = "identity"
    #: The activation function of the Sumformer.
    nonlinearity: Annotated[str, Setting("a text", choices=tuple(ACTIVATIONS))] = "relu"
    #: Number of key–value heads, each shared by a group of query heads (0: one for each query head).
    #: This and the following fields belong to the factored kind.
    key_heads: int = 0
    #: Whether queries and keys have rotary position embeddings: q∘C + (qR)∘S.
    rotary: bool = False
    #: Whether each head has a matrix that is added to its scores (relative position bias).
    score_bias: bool = False

    def __post_init__(self) -> None:
        normalise_settings(self, GraphError)
        if self.projection and self.combine == "sum":
            raise GraphError("W_O requires concatenated heads; try combine='concatenate'")
        kind = KINDS[self.kind]
        if kind.whole and self.combine == "sum":
            raise GraphError(f"{self.kind} heads are always concatenated; try combine='concatenate'")
        require_choice(self.mask, kind.masks, f"mask of kind {self.kind}", GraphError)
        for name in _OF_KINDS:
            value, default = getattr(self, name), getattr(type(self), name)
            if value != default and name not in (*kind.settings, *kind.fields):
                raise GraphError(f"{name}: expected {default!r} for kind {self.kind}, got {value!r}")
        if self.heads % self.shared_heads:
            raise GraphError(
                f"expected a number of heads divisible by {self.key_heads} key heads, got {self.heads}"
            )

    @property
    def columns(self) -> int:
        """Number of columns of the result of the attention layer."""
        if self.projection:
            return self.projection
        return self.d_v * (self.heads if self.combine == "concatenate" else 1)

    @property
    def shared_heads(self) -> int:
        """Number of key–value heads, which groups of query heads may share."""
        return self.key_heads or self.heads

    @property
    def exponential(self) -> bool:
        """Whether the attention weights are a softmax for which a base other than e is supported."""
        return KINDS[self.kind].exponential and self.pooling == "softmax"

    def blocks(self, n: int, m: int, prefix: str = "", batch: int = 1) -> list[Block]:
        """Return the blocks of T's matrices, for n rows that attend to m rows.

        In a batch, matrix masks and key masks have a copy for each X. ``prefix`` is prepended to the
        names.
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
