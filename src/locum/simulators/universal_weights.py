"""U as weights: one transformer for every T of an order, built before any T exists.

The recipe ``native`` is for hosts with softmax heads, whose last head *is* the simulated softmax. Hard
attention has to build a softmax out of exponentials and a division; a softmax head computes it: if
position p holds the row of XA that its entry needs as its query, and position j < n the rows j of X and
of XV as its key and value, then one head gives Σ_j softmax(XA·Xᵀ)_pj XV_j, with no exponential and no
division in any feed-forward. Keys that are not rows of X are kept out by a penalty, which is exactly 0
for those that are, so that it costs no precision. Three layers: the products XA and XV; the rows to
where they are needed; the softmax, and the choice of each entry's column.

>>> import numpy as np
>>> from locum.simulators import Attention, UniversalSimulator
>>> U = UniversalSimulator(2, 2, 2)
>>> model = U.compile()  # relu units, for numbers between −1 and 1
>>> T, X = Attention(A=np.eye(2), V=[[0.1, 0.2], [0.3, 0.4]]), np.array([[1.0, 0.0], [0.5, -1.0]])
>>> bool(np.abs(U.decode(model(U.encode(T, X))) - T(X)).max() <= model.error_bound <= 1e-3)
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from locum.constructions import matmul
from locum.errors import CompileError
from locum.graph import Node, build
from locum.graph.operations import constant
from locum.networks.compiler.compiling import compile_for
from locum.networks.compiler.scoring.scores import Linear, Scores, term
from locum.networks.compiler.target import Target
from locum.networks.transformer import CompiledTransformer
from locum.rasp.handles import SOp
from locum.rasp.python import indicator, indices, tokens, where
from locum.settings import require_choice
from locum.simulators.formula.head import RECIPES as PROGRAM_RECIPES
from locum.simulators.formula.head import Style
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.order import Order
from locum.simulators.token_layout import Layout

#: How U can be built as a network.
RECIPES = (*PROGRAM_RECIPES, "native")
#: Between which numbers T and X lie, where hidden units are made for them and nobody says.
RANGES = (-1.0, 1.0)
#: Taken off the scores of keys that do not count: e to the power of it is 0, in each type of number.
PENALTY = {"float64": 2048.0, "float32": 256.0}
#: Taken off the scores of keys that a causal mask hides: unlike those, they may lead by any amount.
#: Where inputs have no ranges it is subtracted from all others, too, lest it is lost in rounding.
HIDDEN = {"float64": 2.0**500, "float32": 2.0**100}


def compile_simulator(
    simulator: LayerSimulator,
    recipe: str | None = None,
    *,
    stable: bool = False,
    **options: Any,
) -> CompiledTransformer:
    """Compile U in a recipe: weights read what ``encode`` writes, ``decode`` reads the answer.

    ``stable`` takes the greatest score of each row off before the exponential, which hard attention
    pays for with more heads and layers; without it, scores above 709 are an error, never a wrong
    number. Options as of ``locum.compile``: attention, feed_forward, tolerance, ranges, dtype, ….
    Hidden units serve numbers between −1 and 1, unless ``ranges`` says otherwise. Without a ``recipe``
    they are native, where one softmax head can be; else the simulator's own.
    """
    target = target_for(simulator.length, options)
    if recipe is None:
        recipe = simulator.style.recipe
        if target.feed_forward != "exact" and recipe == "fetch" and is_plain(simulator.order):
            recipe = "native"
    require_choice(recipe, RECIPES, "recipe", CompileError)
    name = f"U for T of order {simulator.order}, recipe {recipe}"
    if recipe == "native":
        root, scores = native(simulator.order, simulator.layout, target, simulator.style.base)
        model = compile_for(target, root, name, reference=simulator.program.node, softmax_scores=scores)
        return _with_layout(model, simulator)
    divide_last = target.feed_forward == "exact"
    style = Style(recipe, stable, simulator.style.base, divide_last)
    built = LayerSimulator(simulator.order, style)
    if built.length > simulator.length:
        raise CompileError(
            f"the recipe {recipe} needs {built.length} tokens, and this U has {simulator.length}: make "
            f"UniversalSimulator(…, recipe={recipe!r}) and compile that"
        )
    same = built.output.places == simulator.output.places
    if not same:
        raise CompileError(f"the recipe {recipe} puts its result elsewhere: make a U of that recipe")
    return _with_layout(compile_for(target, built.program.node, name), simulator)


def target_for(length: int, options: Mapping[str, Any]) -> Target:
    """Return the target of a U: real numbers, for hidden units within :data:`RANGES`."""
    target = Target.read(length=length, numeric=True, fixed=True, **options)
    unlimited = target.feed_forward == "exact" or options.get("ranges") is not None
    return target if unlimited else replace(target, ranges=RANGES)


def _with_layout(model: CompiledTransformer, simulator: LayerSimulator) -> CompiledTransformer:
    """Return the model, whose report also says which tokens are which matrix, and where T(X) stands.

    ``layout`` is [first, copies, rows, columns] for each block; ``answer`` are the places of T(X): what
    the network gives elsewhere means nothing.
    """
    blocks = simulator.layout.blocks.values()
    layout = {block.name: [block.offset, block.copies, block.rows, block.columns] for block in blocks}
    report = {**model.config.report, "layout": layout, "answer": simulator.output.places._asdict()}
    return CompiledTransformer(replace(model.config, report=report), model.weights)


def native(
    order: Order, layout: Layout, target: Target, base: float | None = None
) -> tuple[Node, dict[Node, Scores]]:
    """Return the program of T(X), with one selector for the softmax head, and that head's scores."""
    require_plain(order)
    penalties = penalties_for(target)
    n, d, d_v = order.n, order.attention.d, order.attention.d_v
    X, A, V = (layout.view(tokens, name) for name in ("X", "A", "V"))
    XA, XV = matmul(X, A, "fetch"), matmul(X, V, "fetch")
    row = where(indices < n * d_v, indices // d_v, 0)  # of the entry at this position
    key = where(indices < n, indices, 0)  # of X, at the first n positions
    queries = [term(XA.at(row, t).node, exponent_of(base)) for t in range(d)]
    keys = [X.at(key, t).node for t in range(d)]
    scores = softmax_scores(
        queries, keys, row.node, n, penalties, causal=order.attention.mask == "causal"
    )
    return one_softmax_head(scores, [XV.at(key, b) for b in range(d_v)])


def one_softmax_head(scores: Scores, values: Sequence[SOp]) -> tuple[Node, dict[Node, Scores]]:
    """Return a program in which one softmax head with these scores attends to columns of values."""
    everywhere = build("select", constant("softmax"), constant("softmax"), predicate="==")
    entry = None
    for column, value in enumerate(values):
        attended = SOp(build("aggregate", everywhere, value.node, default=0))
        here = where(indices % len(values) == column, attended, 0)
        entry = here if entry is None else entry + here
    assert entry is not None
    return entry.node, {everywhere: scores}


def softmax_scores(
    queries: list[Linear],
    keys: list[Node],
    row: Node,
    n: int,
    penalties: tuple[float, float],
    *,
    causal: bool,
) -> Scores:
    """Return Σ query·key over n keys at the first positions; ``row`` is the query's, for a mask."""
    pairs = [(query, term(key)) for query, key in zip(queries, keys, strict=True)]
    outside = indicator(indices >= n).node
    penalty, hidden = penalties
    pairs.append((Linear(constant=-penalty), term(outside)))
    if causal:
        for a in range(n - 1):
            mine = build("indicator", build("equal", row, constant(a)))
            pairs.append((term(mine, -hidden), term(indicator((indices > a) & (indices < n)).node)))
    return Scores(tuple(pairs), kind="softmax", how=("the simulated softmax itself",))


def penalties_for(target: Target) -> tuple[float, float]:
    """Return what is subtracted from the scores of keys outside of X, and of keys that a mask hides."""
    hidden = HIDDEN[target.dtype]
    if target.feed_forward == "exact":  # any input is taken, however large its scores
        return hidden, hidden
    return PENALTY[target.dtype], min(hidden, HIDDEN["float32"])


def exponent_of(base: float | None) -> float:
    """Return the factor of the scores with which a softmax of base e is one of this base."""
    return 1.0 if base is None else math.log(base)


def is_plain(order: Order) -> bool:
    """Say whether one softmax head computes it."""
    attention = order.attention
    return (
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


def require_plain(order: Order) -> None:
    """Refuse what one softmax head does not compute."""
    if not is_plain(order):
        raise CompileError(
            "the native recipe is for one head of softmax attention, with a causal mask or none: "
            'compile other orders with recipe="fetch"',
            f"U for T of order {order}",
        )
