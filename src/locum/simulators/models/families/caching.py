"""U for new rows of a decoder: keys and values of the rows before them are tokens.

Its program gives [Y | new keys | new values], so that one run does for a layer; the host puts the new
rows into the cache, which is a part of the next run's tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from locum.constructions import Matrix
from locum.constructions.matrix import coordinates
from locum.constructions.multihead import stacked
from locum.constructions.sizes import number_of
from locum.language.python import indices, sum_over, tokens, where
from locum.simulators.formula.head import Style
from locum.simulators.formula.layer import Formula, NamedStep, views_of
from locum.simulators.layout import Layout
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator


class CachedLayer(Simulator):
    """The program of a layer for new rows, for all T of an order."""

    def __init__(self, order: Order) -> None:
        """Take ``order``: that of a layer whose attention has a cache."""
        self.order = order
        layout = Layout(order.blocks())
        formula = Formula(views_of(layout), Style("fetch", stable=True, base=None))
        Y = formula.layer(order, layout.joined(tokens, "X"), None)
        steps = {step.name: step for step in formula.steps}
        new = [_side_by_side(steps[name]) for name in ("new keys", "new values")]
        #: Where the columns of keys and of values begin, and where they end.
        widths = [number_of(part.columns, "the columns") for part in (Y, new[0])]
        self.begins = [widths[0], sum(widths)]
        #: The weights of all heads side by side, [query, head · key].
        self.weights = _side_by_side(steps["softmax"])
        super().__init__(layout, beside([Y, *new]), formula.steps)


@lru_cache(maxsize=64)
def cached_layer(order: Order) -> CachedLayer:
    """Build the program of an order, once."""
    return CachedLayer(order)


def beside(parts: Sequence[Matrix]) -> Matrix:
    """Put matrices of equally many rows side by side.

    >>> from locum import tokens
    >>> a, b = Matrix(tokens, 2, 1), Matrix(tokens, 2, 2, offset=2)
    >>> beside([a, b]).run([1, 2, 3, 4, 5, 6]).tolist()
    [[1.0, 3.0, 4.0], [2.0, 5.0, 6.0]]
    """
    widths = [number_of(part.columns, "the columns") for part in parts]
    total, rows = sum(widths), parts[0].rows
    i, j = coordinates(total)
    entry, end = None, total
    for part, width in zip(reversed(parts), reversed(widths), strict=True):
        begin = end - width
        mine = (j >= begin) & (j < end)
        own = part.at(where(mine, i, 0), where(mine, j - begin, 0))
        entry = own if entry is None else where(j < end, own, entry)
        end = begin
    assert entry is not None
    inside = indices < rows * total
    return parts[0].derive(where(inside, entry, 0), rows, total, *parts[1:])


def _side_by_side(step: NamedStep) -> Matrix:
    """Put what each head has side by side, in the order of the heads; shared keys are there once."""
    m, count, head = step.value, 1, None
    families = [part for part in step.families if part[0].node in m.sop.node.free]
    for family, size in families:
        head = family if head is None else head * size + family
        count *= size
    if head is not None:
        width = number_of(m.columns, "the columns of a head")
        i, j = coordinates(count * width)
        entry = where(j // width == head, m.at(i, j % width), 0)
        inside = indices < m.rows * (count * width)
        members = [family for family, _ in families]
        m = m.derive(where(inside, sum_over(*members, entry), 0), m.rows, count * width)
    return m if step.batch is None else stacked(m, [step.batch])
