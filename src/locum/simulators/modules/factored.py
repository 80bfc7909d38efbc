"""Define attention with the weights of trained models: W_Q, W_K, W_V and W_O of all heads, with biases.

The heads are computed side by side, and their concatenation is multiplied by W_O, plus b_O:

    head h = σ((X W_Q + b_Q)ₕ (X W_K + b_K)ₕᵀ)(X W_V + b_V)ₕ

Biases, W_O and b_O are optional. Without rotary embeddings and score biases, the result equals
:class:`MultiHeadAttention` of ``Attention.from_projections``, in which each head has A = W_Q W_Kᵀ (the
paper's parametrisation). In this module, A remains a product of two factors, which are usually smaller.
With 12 heads on 384 columns and without biases, each A contains 384² numbers, and its factors contain
2·384·32 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_integer
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.matrices import contiguous, matrix, row
from locum.simulators.modules.attention import numbered, pooled
from locum.simulators.modules.module import (
    KeptMask,
    Mask,
    MaskedAttention,
    Numbers,
    attended,
    mask_kind,
    mask_matrices,
    read_mask,
    require_some_key,
)


class Rotary(NamedTuple):
    """Rotary position embeddings, which map x to x ∘ cosines + (x rotation) ∘ sines.

    ``rotation`` is a width×width matrix, and the tables ``cosines`` and ``sines`` have a row for each
    position.
    """

    rotation: Array
    cosines: Array
    sines: Array

    def checked(self, width: int) -> Rotary:
        """Check that the matrices have ``width`` columns, and return the embeddings."""
        rotation = matrix(self.rotation, "the rotation", (width, width))
        tables = (matrix(table, "a rotary table", (None, width)) for table in self[1:])
        return Rotary(rotation, *tables)

    def turned(self, rows: Numbers) -> Numbers:
        """Apply the embeddings to the rows of the queries or keys of one head."""
        rotation, cosines, sines = (numpy_of(part) for part in self)
        return np.asarray(rows * cosines + (rows @ rotation) * sines)


class FactoredAttention(MaskedAttention):
    """Attention with one or several heads, each of which uses columns of W_Q, W_K and W_V and rows of
    W_O.

    >>> import numpy as np
    >>> from locum import UniversalSimulator
    >>> T = FactoredAttention(*(np.eye(4) for _ in range(4)), heads=2)
    >>> X = np.arange(12.0).reshape(3, 4) / 10
    >>> bool(np.abs(UniversalSimulator.of(T, 3)(T, X) - T(X)).max() < 1e-13)
    True
    """

    def __init__(
        self,
        W_Q: Array,
        W_K: Array,
        W_V: Array,
        W_O: Array | None = None,
        heads: int = 1,
        *,
        b_Q: Array | None = None,
        b_K: Array | None = None,
        b_V: Array | None = None,
        b_O: Array | None = None,
        scale: float = 1.0,
        mask: Mask = None,
        key_heads: int | None = None,
        rotary: Rotary | None = None,
        score_bias: Sequence[Array] | None = None,
    ) -> None:
        """Create the attention; ``scale`` multiplies the scores and is included in W_Q and b_Q.

        W_Q is a d×(heads·width) matrix. ``key_heads`` is the number of key–value heads if query heads
        share them (grouped-query attention). ``rotary`` contains the rotary position embeddings of
        queries and keys. ``score_bias`` contains, for each head, a matrix that is added to the scores
        (relative position bias).
        """
        if not math.isfinite(scale):
            raise InputError(f"scale: expected a finite number, got {scale!r}")
        self.number = require_integer(heads, "heads", error=GraphError)
        shared = heads if key_heads is None else key_heads
        self.shared = require_integer(shared, "key_heads", error=GraphError)
        if heads % self.shared:
            raise InputError(
                f"expected a number of heads divisible by {self.shared} key heads, got {heads}"
            )
        each = heads // self.shared
        queries = matrix(W_Q, "W_Q")
        if queries.shape[1] % heads:
            raise InputError(
                f"W_Q: expected a number of columns divisible by {heads} heads, got {queries.shape[1]}"
            )
        self.W_K = contiguous(matrix(W_K, "W_K", (None, queries.shape[1] // each)))
        self.V = contiguous(matrix(W_V, "W_V", (self.W_K.shape[0], None)))
        if self.V.shape[1] % self.shared:
            raise InputError(
                f"W_V: expected a number of columns divisible by {self.shared} heads, got "
                f"{self.V.shape[1]}"
            )
        self.W_Q = contiguous(queries if scale == 1 else scale * queries)
        rows = each * self.V.shape[1]
        self.W_O = None if W_O is None else contiguous(matrix(W_O, "W_O", (rows, None)))
        self.rotary = None if rotary is None else rotary.checked(queries.shape[1] // heads)
        self.score_bias = None if score_bias is None else [matrix(b, "score_bias") for b in score_bias]
        if self.score_bias is not None and len(self.score_bias) != heads:
            raise InputError(
                f"expected a score_bias for each of {heads} heads, got {len(self.score_bias)}"
            )
        biases = (b_Q, b_K, b_V)
        self.biases: tuple[Array, Array, Array] | None = None
        if any(bias is not None for bias in biases):
            sizes = zip(("b_Q", "b_K", "b_V"), biases, (self.W_Q, self.W_K, self.V), strict=True)
            first, second, third = (
                row(np.zeros(weights.shape[1]) if bias is None else bias, name, weights.shape[1])
                for name, bias, weights in sizes
            )
            self.biases = (scale * first, second, third)
        self.b_O = None if b_O is None else row(b_O, "b_O", self._columns)
        self.mask = self.read_mask(mask)

    @property
    def _columns(self) -> int:
        if self.W_O is not None:
            return int(self.W_O.shape[1])
        return int(self.V.shape[1]) * (self.number // self.shared)

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        (d, queries), (d_keys, values) = self.W_Q.shape, self.V.shape
        return AttentionOrder(
            "factored",
            d,
            values // self.shared,
            self.number,
            projection=0 if self.W_O is None else self.W_O.shape[1],
            output_bias=self.b_O is not None,
            bias=self.biases is not None,
            mask=mask_kind(self.mask),
            d_keys=0 if d == d_keys else d_keys,
            width=queries // self.number,
            key_heads=0 if self.shared == self.number else self.shared,
            rotary=self.rotary is not None,
            score_bias=self.score_bias is not None,
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Return projections, biases, rotary tables, score biases and the mask by the names of their
        blocks.
        """
        matrices = {"W_Q": [self.W_Q], "W_K": [self.W_K], "V": [self.V]}
        if self.biases is not None:
            matrices |= {f"b_{name}": [bias] for name, bias in zip("QKV", self.biases, strict=True)}
        if self.W_O is not None:
            matrices["W_O"] = [self.W_O]
        if self.b_O is not None:
            matrices["b_O"] = [self.b_O]
        if self.rotary is not None:
            matrices |= {name: [table] for name, table in self.rotary._asdict().items()}
        if self.score_bias is not None:
            matrices["score_bias"] = self.score_bias
        return matrices | mask_matrices(self.mask)

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the steps of each head, named by :func:`numbered`, followed by the combined output."""
        queries, keys = self.checked(X, memory)
        biases = [np.zeros(1)] * 3 if self.biases is None else [numpy_of(b) for b in self.biases]
        Q, K, V = (
            np.split(rows @ numpy_of(weights) + bias, count, axis=1)
            for rows, weights, bias, count in zip(
                (queries, keys, keys),
                (self.W_Q, self.W_K, self.V),
                biases,
                (self.number, self.shared, self.shared),
                strict=True,
            )
        )
        if self.rotary is not None:
            Q, K = ([self.rotary.turned(rows) for rows in part] for part in (Q, K))
        kept = attended(self.mask, (len(queries), len(K[0])))
        by_name: dict[str, Numbers] = {}
        outputs = []
        for h in range(self.number):
            group = h * self.shared // self.number
            steps = {"queries": Q[h], "keys": K[group], "scores": Q[h] @ K[group].T}
            if self.score_bias is not None:
                steps["scores"] = steps["scores"] + numpy_of(self.score_bias[h])
            steps["softmax"] = pooled(steps["scores"], kept, "softmax")
            steps |= {"XV": V[group], "output": steps["softmax"] @ V[group]}
            outputs.append(steps["output"])
            by_name |= numbered(steps, h, self.number)
        together = np.hstack(outputs)
        if self.W_O is not None:
            together = together @ numpy_of(self.W_O)
        if self.b_O is not None:
            together = together + numpy_of(self.b_O)
        return by_name | {"output": np.asarray(together)}

    @staticmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Check a mask, each row of which must have a visible key, and return it."""
        kept = read_mask(mask)
        require_some_key(kept)
        return kept
