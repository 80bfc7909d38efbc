"""Compile U to weights: one transformer for every T of an order, built before any T is given.

With the recipe ``native``, the last head of the network *is* the simulated softmax, also if the other
heads use hard attention. Hard attention alone must compute a softmax from exponentials and a division.
A softmax head needs neither of them. The query at position p is the row of XA that the entry at p
needs. At positions j < n, the key is row j of X and the value is row j of XV. One head then returns
Σ_j softmax(XA·Xᵀ)_pj XV_j. Keys at other positions are excluded by a penalty. The penalty is exactly 0
for rows of X, so it does not reduce precision. The network has three layers. The first layer computes
the products XA and XV, and the second layer moves the rows of these products to the entries. The third
layer computes the softmax and selects the column of each entry.

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

#: Recipes for building U as a network.
RECIPES = (*PROGRAM_RECIPES, "native")
#: Default range of the numbers in T and X if feed-forwards are MLPs.
RANGES = (-1.0, 1.0)
#: Penalty that is subtracted from the scores of excluded keys. The resulting weight is 0 in this type.
PENALTY = {"float64": 2048.0, "float32": 256.0}
#: Penalty that is subtracted from the scores of keys hidden by a causal mask. These scores may be
#: much larger than the other scores. With symbolic feed-forwards, this number is also the penalty for
#: keys outside X, so that neither penalty is lost in rounding. MLPs use at most the number for float32.
HIDDEN = {"float64": 2.0**500, "float32": 2.0**100}


def compile_simulator(
    simulator: LayerSimulator,
    recipe: str | None = None,
    *,
    stable: bool = False,
    **options: Any,
) -> CompiledTransformer:
    """Compile U by a recipe to weights that read the tokens of ``encode``.

    ``decode`` reads the result from the output. If ``stable`` is true, the row maximum is subtracted
    from the scores before the exponential, which needs more heads and layers. Otherwise, exponentials
    of large scores overflow. The recipe ``native`` ignores ``stable``, because a softmax head of the
    network computes the softmax without overflow. ``options`` are options of ``locum.compile``,
    such as ``attention``, ``feed_forward``, ``tolerance`` and ``dtype``. MLPs support numbers between
    −1 and 1, unless ``ranges`` is given. The default ``recipe`` is the simulator's recipe. However,
    networks with MLPs use ``native`` instead of ``fetch`` if one softmax head can compute T.
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
            f"expected a U of at least {built.length} tokens for the recipe {recipe}, got "
            f"{simulator.length}; try UniversalSimulator(…, recipe={recipe!r})"
        )
    same = built.output.places == simulator.output.places
    if not same:
        raise CompileError(
            f"the recipe {recipe} places its result at other positions; try UniversalSimulator(…, "
            f"recipe={recipe!r})"
        )
    return _with_layout(compile_for(target, built.program.node, name), simulator)


def target_for(length: int, options: Mapping[str, Any]) -> Target:
    """Return the compilation target of U, with real-valued tokens.

    If feed-forwards are MLPs, the numbers are within :data:`RANGES` by default.
    """
    target = Target.read(length=length, numeric=True, fixed=True, **options)
    unlimited = target.feed_forward == "exact" or options.get("ranges") is not None
    return target if unlimited else replace(target, ranges=RANGES)


def _with_layout(model: CompiledTransformer, simulator: LayerSimulator) -> CompiledTransformer:
    """Return the model with a report that maps tokens to matrices and contains the positions of T(X).

    In the report, ``layout`` contains [first position, copies, rows, columns] for each block.
    ``answer`` contains the sizes, offset and strides of T(X). Outputs at other positions are
    meaningless.
    """
    blocks = simulator.layout.blocks.values()
    layout = {block.name: [block.offset, block.copies, block.rows, block.columns] for block in blocks}
    report = {**model.config.report, "layout": layout, "answer": simulator.output.places._asdict()}
    return CompiledTransformer(replace(model.config, report=report), model.weights)


def native(
    order: Order, layout: Layout, target: Target, base: float | None = None
) -> tuple[Node, dict[Node, Scores]]:
    """Return a program for T(X) in which one softmax head is the simulated softmax, and the scores of
    its selector.
    """
    require_plain(order)
    penalties = penalties_for(target)
    n, d, d_v = order.n, order.attention.d, order.attention.d_v
    X, A, V = (layout.view(tokens, name) for name in ("X", "A", "V"))
    XA, XV = matmul(X, A, "fetch"), matmul(X, V, "fetch")
    row = where(indices < n * d_v, indices // d_v, 0)  # the row of the entry at this position
    key = where(indices < n, indices, 0)  # the row of X, at the first n positions
    queries = [term(XA.at(row, t).node, exponent_of(base)) for t in range(d)]
    keys = [X.at(key, t).node for t in range(d)]
    scores = softmax_scores(
        queries, keys, row.node, n, penalties, causal=order.attention.mask == "causal"
    )
    return one_softmax_head(scores, [XV.at(key, b) for b in range(d_v)])


def one_softmax_head(scores: Scores, values: Sequence[SOp]) -> tuple[Node, dict[Node, Scores]]:
    """Return the root of a program with one softmax head, and a dictionary from the head's selector to
    ``scores``.

    The head averages each of ``values`` with the same attention weights. The output at position p is
    the average of the value with index p modulo the number of values.
    """
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
    """Return the scores Σ query·key for the keys at the first n positions; other keys receive a
    penalty.

    ``row``, the row of X that a position queries, is needed for a causal mask.
    """
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
    """Return the penalties on the scores of keys outside X, and on the scores of keys hidden by a
    mask.
    """
    hidden = HIDDEN[target.dtype]
    if target.feed_forward == "exact":  # any input is accepted, however large its scores
        return hidden, hidden
    return PENALTY[target.dtype], min(hidden, HIDDEN["float32"])


def exponent_of(base: float | None) -> float:
    """Return the factor by which scores are multiplied to obtain a softmax of base ``base`` from a
    softmax of base e.
    """
    return 1.0 if base is None else math.log(base)


def is_plain(order: Order) -> bool:
    """Return whether one softmax head can compute every T of this order."""
    attention = order.attention
    return (
        attention.kind == "softmax"
        and attention.pooling == "softmax"
        and attention.heads == 1
        and not attention.bias
        and not attention.projection
        and attention.mask in (None, "causal")
        and not order.memory
        and order.batch == 1
        and not order.residual
        and order.feed_forward is None
        and order.norm == "none"
    )


def require_plain(order: Order) -> None:
    """Raise an error for an order that one softmax head cannot compute."""
    if not is_plain(order):
        raise CompileError(
            "the native recipe is for one head of softmax attention, with a causal mask or none: "
            'compile other orders with recipe="fetch"',
            f"U for T of order {order}",
        )
