"""Define attention layers as modules T: softmax(X A Xᵀ) X V with one or several heads (Theorem 1,
Theorem on H heads).

``Attention(A, V)`` is the paper's T. ``Attention.from_projections`` converts W_Q, W_K and W_V, with a
scale and with biases. Biases are represented exactly: with X̂ = [X, 1], they are an additional row of A
and V, and an additional column of A. ``pooling`` is softmax or hard attention. *Unique* hard attention
(GUHAT) returns the value at the leftmost maximum of the scores. *Average* hard attention (GAHAT)
returns the mean of the values at all maxima.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, below, is_tensor, like, numpy_of
from locum.settings import require_choice, require_number
from locum.simulators.attention_order import COMBINATIONS, POOLINGS, AttentionOrder
from locum.simulators.matrices import matrix, row
from locum.simulators.modules.module import (
    MASK_BLOCKS,
    AttentionModule,
    KeptMask,
    Mask,
    MaskedAttention,
    Numbers,
    attended,
    mask_kind,
    mask_matrices,
    read_mask,
    require_some_key,
    with_ones,
)
from locum.simulators.order import Order


class Attention(MaskedAttention):
    """The attention layer σ(X A Xᵀ) X V with one head, defined by A and V.

    >>> import numpy as np
    >>> T = Attention(A=np.zeros((2, 2)), V=np.eye(2))
    >>> T([[1.0, 2.0], [3.0, 4.0]]).tolist()  # equal scores: the mean of the rows
    [[2.0, 3.0], [2.0, 3.0]]
    """

    def __init__(
        self,
        A: Array,
        V: Array,
        *,
        mask: Mask = None,
        pooling: str = "softmax",
        biased: bool = False,
    ) -> None:
        """Create the attention from A and V.

        With ``biased``, a constant 1 is appended to each row of X. The last row and column of A and the
        last row of V multiply this constant.
        """
        require_choice(pooling, POOLINGS, "pooling", error=GraphError)
        self.A = matrix(A, "A")
        self.V = matrix(V, "V", (self.A.shape[1], None))
        self.mask = self.read_mask(mask)
        self.pooling = pooling
        self.biased = biased
        if biased and min(self.A.shape) < 2:
            raise InputError("a biased A has a row and a column for biases, and at least one other")

    @classmethod
    def from_projections(
        cls,
        W_Q: Array,
        W_K: Array,
        W_V: Array,
        *,
        scale: float = 1.0,
        biases: Sequence[Array] | None = None,
        mask: Mask = None,
        pooling: str = "softmax",
    ) -> Self:
        """Create the attention with A = scale · W_Q W_Kᵀ and V = W_V, as in the paper.

        ``biases`` are b_Q, b_K and b_V. The paper has no scale; PyTorch and most models use 1/√(columns
        of W_Q).
        """
        require_number(scale, "scale", error=GraphError)
        queries = matrix(W_Q, "W_Q")
        keys = matrix(W_K, "W_K", (None, queries.shape[1]))
        values = matrix(W_V, "W_V", (keys.shape[0], None))
        # Tensors remain tensors, so that gradients flow through them.
        model = next((part for part in (queries, keys, values) if is_tensor(part)), queries)
        projections = [like(part, model) for part in (queries, keys, values)]
        if biases is not None:
            count = len(biases) if hasattr(biases, "__len__") else repr(biases)
            if count != 3:
                raise InputError(f"biases: expected b_Q, b_K and b_V, three vectors, got {count}")
            for place, (bias, name) in enumerate(zip(biases, ("b_Q", "b_K", "b_V"), strict=True)):
                weights = projections[place]
                vector = like(row(bias, name, weights.shape[1]), model)
                projections[place] = below(weights, vector)
        q, k, v = projections
        return cls(scale * q @ k.T, v, mask=mask, pooling=pooling, biased=biases is not None)

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        return self.remembered_order

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order for n rows of X and a memory of ``memory`` rows; orders are cached."""
        orders = self.remembered_orders
        if (n, memory) not in orders:
            orders[n, memory] = super().order(n, memory)
        return orders[n, memory]

    @cached_property
    def remembered_orders(self) -> dict[tuple[int, int], Order]:
        """Cached orders by numbers of rows; the cache is cleared when an attribute is set."""
        return {}

    @cached_property
    def remembered_order(self) -> AttentionOrder:
        """Cached order without the number of rows; the cache is cleared when an attribute is set."""
        d, d_keys = (size - self.biased for size in self.A.shape)
        return AttentionOrder(
            "softmax",
            d,
            self.V.shape[1],
            bias=self.biased,
            mask=mask_kind(self.mask),
            pooling=self.pooling,
            d_keys=0 if d == d_keys else d_keys,
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Return A and V, and the mask if it is an array, by the names of their blocks."""
        return {"A": [self.A], "V": [self.V]} | mask_matrices(self.mask)

    @staticmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Check a mask and return it.

        A mask of keys (a vector) must have a visible key, while a row of a mask matrix may be all 0.
        """
        kept = read_mask(mask)
        if mask_kind(kept) == "keys":
            require_some_key(kept)
        return kept

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return XA, Xᵀ, scores, softmax, XV and the output by name, computed with NumPy."""
        queries, keys = self.checked(X, memory)
        if self.biased:
            queries, keys = with_ones(queries), with_ones(keys)
        steps = {"XA": queries @ numpy_of(self.A), "Xᵀ": keys.T}
        steps["scores"] = steps["XA"] @ steps["Xᵀ"]
        shape = (len(queries), len(keys))
        steps["softmax"] = pooled(steps["scores"], attended(self.mask, shape), self.pooling)
        steps["XV"] = keys @ numpy_of(self.V)
        return steps | {"output": steps["softmax"] @ steps["XV"]}


class MultiHeadAttention(AttentionModule):
    """An attention layer with one or several heads, whose results are concatenated or summed.

    If ``W_O`` is given, the concatenation is multiplied by ``W_O``. If ``b_O`` is given, it is added.

    >>> import numpy as np
    >>> from locum import Attention
    >>> mean = Attention(A=np.zeros((2, 2)), V=np.eye(2))
    >>> MultiHeadAttention([mean, mean])([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[2.0, 3.0, 2.0, 3.0], [2.0, 3.0, 2.0, 3.0]]
    """

    def __init__(
        self,
        heads: Sequence[AttentionModule],
        W_O: Array | None = None,
        b_O: Array | None = None,
        *,
        combine: str = "concatenate",
    ) -> None:
        """Create the attention from its heads.

        ``W_O`` requires concatenated heads. With ``combine="sum"``, the V of each head can include a
        part of W_O.
        """
        require_choice(combine, COMBINATIONS, "combine", error=GraphError)
        if not isinstance(heads, Sequence):
            raise InputError(f"expected a list of attentions as heads, got {type(heads).__name__}")
        self.heads = tuple(heads)
        for head in self.heads:
            if not isinstance(head, AttentionModule):
                raise InputError(
                    f"expected attentions, such as Attention(A, V), as heads, got {type(head).__name__}"
                )
        if not self.heads:
            raise InputError("expected one head or more, got an empty list")
        first = self.heads[0].attention_order()
        for number, head in enumerate(self.heads):
            if head.attention_order() != first or isinstance(head, MultiHeadAttention):
                raise InputError(f"expected single heads of one order, got another as head {number}")
        masks = [
            numpy_of(mask)
            for head in self.heads
            for name in MASK_BLOCKS
            for mask in head.matrices().get(name, [])
        ]
        if any(not np.array_equal(mask, masks[0]) for mask in masks):
            raise InputError("all heads must have the same mask")
        self.combine = combine
        total = len(self.heads) * first.d_v
        self.W_O = None if W_O is None else matrix(W_O, "W_O", (total, None))
        if W_O is not None and combine == "sum":
            raise InputError("W_O requires concatenated heads; try combine='concatenate'")
        self.b_O: Array | None = None
        if b_O is not None:
            self.b_O = row(b_O, "b_O", self.attention_order().columns)

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        return replace(
            self.heads[0].attention_order(),
            heads=len(self.heads),
            combine=self.combine,
            projection=0 if self.W_O is None else self.W_O.shape[1],
            output_bias=self.b_O is not None,
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Return the matrices of all heads by the names of their blocks; W_O is split into one part per
        head.
        """
        matrices: dict[str, list[Array]] = {}
        for head in self.heads:
            for name, copies in head.matrices().items():
                matrices.setdefault(name, []).extend(copies)
        for name in MASK_BLOCKS:
            if name in matrices:
                matrices[name] = matrices[name][:1]
        if self.W_O is not None:
            d_v = self.heads[0].attention_order().d_v
            matrices["W_O"] = [self.W_O[h * d_v : (h + 1) * d_v] for h in range(len(self.heads))]
        if self.b_O is not None:
            matrices["b_O"] = [self.b_O]
        return matrices

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The mask that all heads share, and None in place of the mask of a cross-attention."""
        return self.heads[0].masks

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Return a copy of the attention with another mask for all heads."""
        made = copy.copy(self)
        made.heads = tuple(head.with_masks(mask) for head in self.heads)
        return made

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the steps of each head, named by :func:`numbered`, followed by the combined output."""
        by_name: dict[str, Numbers] = {}
        outputs = []
        for number, head in enumerate(self.heads):
            steps = head.steps(X, memory)
            outputs.append(steps["output"])
            by_name |= numbered(steps, number, len(self.heads))
        together = np.hstack(outputs) if self.combine == "concatenate" else sum(outputs)
        if self.W_O is not None:
            together = together @ numpy_of(self.W_O)
        if self.b_O is not None:
            together = together + numpy_of(self.b_O)
        return by_name | {"output": np.asarray(together)}


def numbered(steps: dict[str, Any], head: int, heads: int) -> dict[str, Any]:
    """Append the number of a head to the names of its steps, such as ``scores[1]``; ``output`` becomes
    ``head[1]``.

    If there is only one head, the names are unchanged and the output is omitted.
    """
    if heads == 1:
        return {name: value for name, value in steps.items() if name != "output"}
    return {f"{'head' if name == 'output' else name}[{head}]": value for name, value in steps.items()}


def pooled(scores: Numbers, kept: Any, pooling: str) -> Numbers:
    """Return the attention weights for these scores, by softmax or hard attention.

    ``kept`` is true where a key is visible. A row without visible keys has weights 0.
    """
    best = np.where(kept, scores, -np.inf).max(axis=1, keepdims=True)
    if pooling == "softmax":
        weights = np.where(kept, np.exp(np.where(kept, scores - best, 0)), 0)
    else:
        weights = (kept & (scores == best)).astype(np.float64)
        if pooling == "unique":
            weights = weights * (np.cumsum(weights, axis=1) == 1)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1))
