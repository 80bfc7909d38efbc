"""Define the kinds of attention in the paper's remarks as modules T, and the table of all kinds.

To add a kind, define a class, a row of the table and a function in ``formula/head.py``. The kinds
consist of products, row sums, softmaxes, hard attention and elementwise functions, so U simulates them
in the same way as softmax attention. ``biased`` means that the projections of X have an additional row,
which multiplies a constant 1.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from locum.errors import GraphError, InputError
from locum.execution.array_activations import ACTIVATIONS
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice, require_number
from locum.simulators.attention_order import FEATURE_MAPS, KINDS, MASKS, AttentionOrder, Kind
from locum.simulators.matrices import matrix
from locum.simulators.modules.attention import Attention, pooled
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.module import (
    AttentionModule,
    KeptMask,
    Mask,
    MaskedAttention,
    Numbers,
    attended,
    mask_kind,
    read_mask,
    with_ones,
)
from locum.simulators.token_layout import Block


class _Projected(AttentionModule):
    """Base class of attentions with the projections W_Q, W_K and V."""

    kind: str

    def __init__(self, W_Q: Array, W_K: Array, V: Array, biased: bool) -> None:
        self.W_Q = matrix(W_Q, "W_Q")
        self.W_K = matrix(W_K, "W_K", tuple(self.W_Q.shape))
        self.V = matrix(V, "V", (self.W_Q.shape[0], None))
        self.biased = biased

    @property
    def rank(self) -> int:
        """Number of rows of E and F (Linformer) or of features (Performer); 0 for other kinds."""
        return 0

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        rows, width = self.W_Q.shape
        return AttentionOrder(
            self.kind,
            rows - self.biased,
            self.V.shape[1],
            bias=self.biased,
            width=width,
            rank=self.rank,
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Return W_Q, W_K and V by the names of their blocks."""
        return {"W_Q": [self.W_Q], "W_K": [self.W_K], "V": [self.V]}

    def inputs(self, X: Array, memory: Array | None) -> tuple[Numbers, Numbers]:
        """Return the inputs of the queries and of the keys, with a column of ones if the attention has
        biases.
        """
        queries, keys = self.checked(X, memory)
        return (with_ones(queries), with_ones(keys)) if self.biased else (queries, keys)

    def weighted(
        self, queries: Numbers, keys: Numbers, scores: Numbers, weights: Numbers, y: Numbers
    ) -> dict[str, Numbers]:
        """Return the steps of an attention head, given its attention weights and the input ``y`` of the
        values.
        """
        values = y @ numpy_of(self.V)
        return {
            "queries": queries,
            "keys": keys,
            "scores": scores,
            "weights": weights,
            "XV": values,
            "output": weights @ values,
        }


class LinearAttention(MaskedAttention, _Projected):
    """Linear attention: (X W_Q)(X W_K)ᵀ X V, or φ(X W_Q) φ(X W_K)ᵀ X V with weights that sum to 1.

    The first form is from the paper. The second form (``feature_map="elu+1"``) is by Katharopoulos et
    al.

    >>> import numpy as np
    >>> LinearAttention(np.eye(2), np.eye(2), V=np.eye(2))([[1.0, 0.0], [0.0, 2.0]]).tolist()
    [[1.0, 0.0], [0.0, 8.0]]
    """

    kind = "linear"

    def __init__(
        self,
        W_Q: Array,
        W_K: Array,
        V: Array,
        *,
        feature_map: str = "identity",
        mask: Mask = None,
        biased: bool = False,
    ) -> None:
        super().__init__(W_Q, W_K, V, biased)
        require_choice(feature_map, FEATURE_MAPS, "feature_map", error=GraphError)
        self.feature_map = feature_map
        self.mask = self.read_mask(mask)

    @staticmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Check a mask, which must be causal or None, and return it."""
        kept = read_mask(mask)
        if mask_kind(kept) not in (None, "causal"):
            raise InputError("linear attention: expected a causal mask or no mask, got a matrix")
        return kept

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        mask = None if self.mask is None else str(self.mask)
        return replace(super().attention_order(), mask=mask, feature_map=self.feature_map)

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return queries, keys, scores, weights, values and output by name, computed with NumPy."""
        x, y = self.inputs(X, memory)
        queries, keys = x @ numpy_of(self.W_Q), y @ numpy_of(self.W_K)
        if self.feature_map == "elu+1":
            queries, keys = (np.where(z > 0, z + 1, np.exp(np.minimum(z, 0))) for z in (queries, keys))
        scores = queries @ keys.T
        weights = np.where(attended(self.mask, scores.shape), scores, 0)
        if self.feature_map != "identity":
            weights = weights / weights.sum(axis=1, keepdims=True)
        return self.weighted(queries, keys, scores, weights, y)


class Linformer(_Projected):
    """Linformer: σ((X W_Q)(E X W_K)ᵀ) F X V, where E and F project keys and values from n rows to k
    rows.

    >>> import numpy as np
    >>> T = Linformer(np.eye(2), np.eye(2), V=np.eye(2), E=np.ones((1, 3)), F=np.ones((1, 3)) / 3)
    >>> T([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]]).tolist()  # one projected key: all attend to it
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    kind = "linformer"

    def __init__(
        self, W_Q: Array, W_K: Array, V: Array, E: Array, F: Array, *, biased: bool = False
    ) -> None:
        super().__init__(W_Q, W_K, V, biased)
        self.E = matrix(E, "E")
        self.F = matrix(F, "F", tuple(self.E.shape))

    @property
    def rank(self) -> int:
        """Number of rows of E and F, k."""
        return int(self.E.shape[0])

    def matrices(self) -> dict[str, list[Array]]:
        """Return W_Q, W_K, V, E and F by the names of their blocks."""
        return super().matrices() | {"E": [self.E], "F": [self.F]}

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return queries, projected keys, scores, softmax, projected values and output by name,
        computed with NumPy.
        """
        x, y = self.inputs(X, memory)
        few_keys = numpy_of(matrix(self.E, "E", (None, len(y)))) @ y
        few_values = numpy_of(self.F) @ y
        steps = {"queries": x @ numpy_of(self.W_Q), "keys": few_keys @ numpy_of(self.W_K)}
        steps["scores"] = steps["queries"] @ steps["keys"].T
        steps["softmax"] = pooled(steps["scores"], True, "softmax")
        steps["XV"] = few_values @ numpy_of(self.V)
        return steps | {"output": steps["softmax"] @ steps["XV"]}


class Performer(_Projected):
    """Performer: softmax attention approximated by m positive random features (FAVOR+), one for each
    row of ``omega``.

    The result is φ(X W_Q) φ(X W_K)ᵀ X V, where ``φ(z) = exp(Ωz − |z|²/2)/√m`` and each row of weights
    is divided by its sum. ``scale`` multiplies the approximated scores: W_Q and W_K are each multiplied
    by √scale. The paper has no scale; most models use 1/√(columns of W_Q).

    >>> import numpy as np
    >>> T = Performer(np.eye(2), np.eye(2), V=np.eye(2), omega=np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> T([[1.0, 1.0], [1.0, 1.0]]).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    kind = "performer"

    def __init__(
        self,
        W_Q: Array,
        W_K: Array,
        V: Array,
        omega: Array,
        *,
        scale: float = 1.0,
        biased: bool = False,
    ) -> None:
        require_number(scale, "scale", above=0, error=GraphError)
        super().__init__(W_Q, W_K, V, biased)
        if scale != 1:
            self.W_Q, self.W_K = (math.sqrt(scale) * weights for weights in (self.W_Q, self.W_K))
        self.omega = matrix(omega, "omega", (None, self.W_Q.shape[1]))

    @property
    def rank(self) -> int:
        """Number of random features, m."""
        return int(self.omega.shape[0])

    def matrices(self) -> dict[str, list[Array]]:
        """Return W_Q, W_K, V and Ω by the names of their blocks."""
        return super().matrices() | {"omega": [self.omega]}

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the features of queries and keys, scores, weights, values and output by name, computed
        with NumPy.
        """
        x, y = self.inputs(X, memory)
        queries, keys = (self._features(z) for z in (x @ numpy_of(self.W_Q), y @ numpy_of(self.W_K)))
        scores = queries @ keys.T
        weights = scores / scores.sum(axis=1, keepdims=True)
        return self.weighted(queries, keys, scores, weights, y)

    def _features(self, z: Numbers) -> Numbers:
        omega = numpy_of(self.omega)
        exponent = z @ omega.T - 0.5 * (z * z).sum(axis=1, keepdims=True)
        return np.asarray(np.exp(exponent) / math.sqrt(len(omega)))


def orthogonal_features(features: int, width: int, generator: np.random.Generator) -> Numbers:
    """Sample a matrix Ω for a :class:`Performer`; each row has the length of a Gaussian random vector.

    The rows of each group of ``width`` rows are orthogonal.
    """
    blocks = []
    for _ in range(math.ceil(features / width)):
        q, r = np.linalg.qr(generator.normal(size=(width, width)))
        # The signs make the directions uniform. Without this correction, the estimate is biased.
        blocks.append((q * np.sign(np.diag(r))).T)
    lengths = np.linalg.norm(generator.normal(size=(features, width)), axis=1, keepdims=True)
    return np.asarray(np.vstack(blocks)[:features] * lengths)


class Sumformer(AttentionModule):
    """Sumformer: ψ(xᵢ, Σⱼ φ(xⱼ)), in which rows interact only through one sum.

    The functions are φ(x) = a(x W_phi) and ψ(x, s) = a(x W_x + s W_sum) V, with an activation a.

    >>> import numpy as np
    >>> T = Sumformer(W_phi=np.eye(2), W_x=np.zeros((2, 2)), W_sum=np.eye(2), V=np.eye(2))
    >>> T([[1.0, 0.0], [0.0, 2.0]]).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """

    def __init__(
        self,
        W_phi: Array,
        W_x: Array,
        W_sum: Array,
        V: Array,
        *,
        activation: str = "relu",
        biased: bool = False,
    ) -> None:
        require_choice(activation, tuple(ACTIVATIONS), "activation", error=GraphError)
        self.W_phi = matrix(W_phi, "W_phi")
        self.W_x = matrix(W_x, "W_x", (self.W_phi.shape[0], None))
        self.W_sum = matrix(W_sum, "W_sum", (self.W_phi.shape[1], self.W_x.shape[1]))
        self.V = matrix(V, "V", (self.W_x.shape[1], None))
        self.activation = activation
        self.biased = biased

    def attention_order(self) -> AttentionOrder:
        """Return the order of the attention layer, without the number of rows."""
        return AttentionOrder(
            "sumformer",
            self.W_phi.shape[0] - self.biased,
            self.V.shape[1],
            bias=self.biased,
            rank=self.W_phi.shape[1],
            hidden=self.W_x.shape[1],
            nonlinearity=self.activation,
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Return W_phi, W_x, W_sum and V by the names of their blocks."""
        named = {"W_phi": self.W_phi, "W_x": self.W_x, "W_sum": self.W_sum, "V": self.V}
        return {name: [value] for name, value in named.items()}

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Return the features φ, their sum over the rows, the hidden units of ψ and the output by name,
        computed with NumPy.
        """
        x, y = self.checked(X, memory)
        if self.biased:
            x, y = with_ones(x), with_ones(y)
        activate = ACTIVATIONS[self.activation]
        features = activate(y @ numpy_of(self.W_phi))
        total = features.sum(axis=0, keepdims=True)
        units = activate(x @ numpy_of(self.W_x) + total @ numpy_of(self.W_sum))
        return {"features": features, "sum": total, "units": units, "output": units @ numpy_of(self.V)}


# The table ----------------------------------------------------------------------------------------


def _columns(order: AttentionOrder) -> tuple[int, int]:
    """Return the numbers of rows of the matrices that multiply the inputs of queries and of keys."""
    return order.d + order.bias, (order.d_keys or order.d) + order.bias


def _softmax_blocks(order: AttentionOrder, m: int) -> list[Block]:
    (query, key), ones = _columns(order), order.bias
    return [
        Block("A", query, key, order.heads, ones, ones),
        Block("V", key, order.d_v, order.heads, ones),
    ]


def _factored_blocks(order: AttentionOrder, m: int) -> list[Block]:
    """Return the blocks of W_Q, W_K, V and their biases, each with the columns of all heads side by
    side, as in trained models.
    """
    key, shared, blocks = order.d_keys or order.d, order.shared_heads, []
    for name, rows, columns, heads in (
        ("Q", order.d, order.width, order.heads),
        ("K", key, order.width, shared),
        ("V", key, order.d_v, shared),
    ):
        weights = "V" if name == "V" else f"W_{name}"
        blocks.append(Block(weights, rows, heads * columns, split="columns", heads=heads))
        if order.bias:
            blocks.append(Block(f"b_{name}", 1, heads * columns, split="columns", heads=heads))
    return blocks


def _projected_blocks(order: AttentionOrder, m: int) -> list[Block]:
    (query, key), heads, ones = _columns(order), order.heads, order.bias
    return [
        Block("W_Q", query, order.width, heads, ones),
        Block("W_K", key, order.width, heads, ones),
        Block("V", key, order.d_v, heads, ones),
    ]


def _linformer_blocks(order: AttentionOrder, m: int) -> list[Block]:
    few = [Block(name, order.rank, m, order.heads) for name in ("E", "F")]
    return _projected_blocks(order, m) + few


def _performer_blocks(order: AttentionOrder, m: int) -> list[Block]:
    return [*_projected_blocks(order, m), Block("omega", order.rank, order.width, order.heads)]


def _sumformer_blocks(order: AttentionOrder, m: int) -> list[Block]:
    query, heads = order.d + order.bias, order.heads
    return [
        Block("W_phi", query, order.rank, heads, order.bias),
        Block("W_x", query, order.hidden, heads, order.bias),
        Block("W_sum", order.rank, order.hidden, heads),
        Block("V", order.hidden, order.d_v, heads),
    ]


KINDS |= {
    "softmax": Kind(
        Attention,
        _softmax_blocks,
        settings={"mask": "mask", "pooling": "pooling", "bias": "biased"},
        masks=MASKS,
        exponential=True,
    ),
    "factored": Kind(
        FactoredAttention,
        _factored_blocks,
        lambda n, d: {"width": d},
        settings={"mask": "mask", "heads": "heads"},
        fields=("key_heads", "rotary", "score_bias"),
        masks=(None, "causal", "matrix", "keys"),
        whole=True,
    ),
    "linear": Kind(
        LinearAttention,
        _projected_blocks,
        lambda n, d: {"width": d},
        settings={"mask": "mask", "feature_map": "feature_map", "bias": "biased"},
        masks=(None, "causal", "rows"),
    ),
    "linformer": Kind(
        Linformer,
        _linformer_blocks,
        lambda n, d: {"width": d, "rank": max(1, n // 2)},
        exponential=True,
    ),
    "performer": Kind(Performer, _performer_blocks, lambda n, d: {"width": d, "rank": d}),
    "sumformer": Kind(
        Sumformer,
        _sumformer_blocks,
        lambda n, d: {"rank": d, "hidden": d},
        settings={"nonlinearity": "activation", "bias": "biased"},
    ),
}
