"""Attention behind its projections, as a program: softmax(Q Kᵀ + added) V of every head and item.

This is the part of U between W_Q, W_K, W_V and W_O, for models that keep these to themselves.

>>> import numpy as np
>>> U = ProjectedAttention(batch=1, n=1, m=2, heads=1, key_heads=1, width=1, d_v=1)
>>> parts = [np.zeros((1, 1)), np.ones((2, 1)), np.array([[1.0], [3.0]])]
>>> U.run_parts(U.output, parts).tolist()
[[2.0]]
"""

from __future__ import annotations

from functools import lru_cache

from locum.constructions import Matrix, add
from locum.constructions.multihead import stacked
from locum.constructions.sizes import plus, times
from locum.language.handles import SOp
from locum.language.python import family, tokens
from locum.simulators.formula.head import Style
from locum.simulators.formula.layer import NamedStep
from locum.simulators.layout import Block, Layout
from locum.simulators.simulator import Simulator


class ProjectedAttention(Simulator):
    """The blocks are Q (batch × n × all heads), K and V (batch × m × their heads), and what is added.

    Several heads of Q may share one of K and V. ``masks`` is how many matrices are added to the scores
    of one item: none, one, or one for each head. In the result the heads of an item stand one below the
    other.
    """

    def __init__(
        self,
        batch: int,
        n: int,
        m: int,
        heads: int,
        key_heads: int,
        width: int,
        d_v: int,
        masks: int = 0,
    ) -> None:
        group = heads // key_heads
        blocks = [
            Block("Q", n, heads * width, batch),
            Block("K", m, key_heads * width, batch),
            Block("V", m, key_heads * d_v, batch),
        ]
        if masks:
            blocks.append(Block("added", n, m, batch * masks))
        layout = Layout(blocks)
        families = [(family(size), size) for size in (batch, key_heads, group) if size > 1]
        remaining = iter(families)
        b, g, member = (next(remaining)[0] if size > 1 else 0 for size in (batch, key_heads, group))
        h = plus(times(g, group), member)

        def columns(name: str, head: SOp | int, count: int) -> Matrix:
            """View the columns of a head, in the rows of the b-th item."""
            block = layout.block(name)
            offset = plus(block.offset, times(b, block.rows * block.columns))
            size = block.columns // count
            return Matrix(
                tokens,
                block.rows,
                size,
                plus(offset, times(head, size)),
                row_stride=block.columns,
                reads=layout.size,
                needs=layout.size,
            )

        style = Style("fetch", stable=True, base=None)
        queries, keys = columns("Q", h, heads), columns("K", g, key_heads)
        scores = style.matmul(queries, style.transpose(keys))
        if masks:
            added = layout.block("added")
            index = plus(times(b, masks), h) if masks > 1 else b
            place = plus(added.offset, times(index, n * m))
            scores = add(scores, Matrix(tokens, n, m, place, reads=layout.size, needs=layout.size))
        weights = style.softmax(scores, None)
        output = style.matmul(weights, columns("V", g, key_heads))
        in_batch = families[0] if batch > 1 else None
        of_heads = tuple(families[batch > 1 :])
        steps = [
            NamedStep(name, value, of_heads, in_batch)
            for name, value in (("scores", scores), ("softmax", weights), ("head", output))
        ]
        super().__init__(layout, stacked(output, families) if families else output, steps)


@lru_cache(maxsize=256)
def projected_attention(*sizes: int) -> ProjectedAttention:
    """Return the U of these sizes, built once."""
    return ProjectedAttention(*sizes)
