"""U on a softmax host: the last head *is* the simulated softmax.

Hard attention has to build a softmax out of exponentials and a division. A host with softmax heads
has one already: if position p holds the row of XA that its entry needs as its query, and position j <
n the rows j of X and of XV as its key and value, then one head computes Σ_j softmax(XA·Xᵀ)_pj XV_j,
with no exponential and no division in any feed-forward. Keys that are no rows of X are kept out by a
penalty: 0 exactly for those that are, so that it costs no precision.

Three layers: the products XA and XV; the rows to where they are needed; the softmax, and the choice of
each entry's column.
"""

from __future__ import annotations

from locum.compiler.scoring.linear import Linear, term
from locum.compiler.scoring.scores import Scores
from locum.constructions import matmul
from locum.errors import CompileError
from locum.graph import Node, build
from locum.graph.operations import constant
from locum.language.handles import SOp
from locum.language.python import indicator, indices, tokens, where
from locum.simulators.layout import Layout
from locum.simulators.order import Order

#: Taken off the scores of keys that do not count: e to the power of it is 0, in each type of number.
PENALTY = {"float64": 2048.0, "float32": 256.0}


def native(order: Order, layout: Layout, dtype: str) -> tuple[Node, dict[Node, Scores]]:
    """The program of T(X), with one selector for the softmax head, and that head's scores."""
    _require_plain(order)
    n, d, d_v = order.n, order.attention.d, order.attention.d_v
    X, A, V = (layout.view(tokens, name) for name in ("X", "A", "V"))
    XA, XV = matmul(X, A, "fetch"), matmul(X, V, "fetch")
    row = where(indices < n * d_v, indices // d_v, 0)  # of the entry at this position
    key = where(indices < n, indices, 0)  # of X, at the first n positions
    queries = [XA.at(row, t).node for t in range(d)]
    keys = [X.at(key, t).node for t in range(d)]
    scores = _scores(
        queries, keys, row.node, n, PENALTY[dtype], causal=order.attention.mask == "causal"
    )
    everywhere = build("select", constant("softmax"), constant("softmax"), predicate="==")
    column = indices % d_v
    entry: SOp | None = None
    for b in range(d_v):
        attended = SOp(build("aggregate", everywhere, XV.at(key, b).node, default=0))
        here = where(column == b, attended, 0)
        entry = here if entry is None else entry + here
    assert entry is not None
    return entry.node, {everywhere: scores}


def _scores(
    queries: list[Node], keys: list[Node], row: Node, n: int, penalty: float, *, causal: bool
) -> Scores:
    pairs = [(term(query), term(key)) for query, key in zip(queries, keys, strict=True)]
    outside = indicator(indices >= n).node
    pairs.append((Linear(constant=-penalty), term(outside)))
    if causal:
        for a in range(n - 1):
            mine = build("indicator", build("equal", row, constant(a)))
            pairs.append((term(mine, -penalty), term(indicator((indices > a) & (indices < n)).node)))
    return Scores(tuple(pairs), kind="softmax", how=("the simulated softmax itself",))


def _require_plain(order: Order) -> None:
    attention = order.attention
    plain = (
        attention.kind == "softmax"
        and attention.pooling == "softmax"
        and attention.heads == 1
        and not attention.bias
        and not attention.projection
        and attention.mask in (None, "causal")
        and not order.memory
        and not order.residual
        and order.feed_forward is None
        and order.norm == "none"
    )
    if not plain:
        raise CompileError(
            "the native recipe is for one head of softmax attention, with a causal mask or none: "
            'compile other orders with recipe="fetch"',
            f"U for T of order {order}",
        )
