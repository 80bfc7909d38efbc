"""U as weights: one transformer for every T of an order, built before any T exists.

>>> import numpy as np
>>> from locum.simulators import Attention, UniversalSimulator
>>> U = UniversalSimulator(2, 2, 2)
>>> model = U.compile()
>>> T, X = Attention(A=np.eye(2), V=[[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.5, -1.0]])
>>> bool(np.abs(U.decode(model(U.encode(T, X))) - T(X)).max() < 1e-14)
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from locum.compiler.compiling import compile_for
from locum.compiler.target import target
from locum.errors import CompileError
from locum.simulators.native import native
from locum.transformer import CompiledTransformer

if TYPE_CHECKING:
    from locum.simulators.universal import UniversalSimulator

#: How U can be built as a network.
RECIPES = ("paper", "fetch", "tiled", "width-1", "inverse", "native")


def compile_simulator(
    simulator: UniversalSimulator,
    recipe: str | None = None,
    *,
    stable: bool = False,
    **options: Any,
) -> CompiledTransformer:
    """The weights of U in a recipe; they read what ``encode`` writes, and ``decode`` reads the answer.

    ``stable`` takes the greatest score of each row off before the exponential, which hard attention
    pays for with more heads and layers; without it, scores above 709 are an error, never a wrong
    number. Options as of ``locum.compile``: attention, feed_forward, tolerance, ranges, dtype, ….
    """
    recipe = recipe or simulator.style.recipe
    if recipe not in RECIPES:
        raise CompileError(f"there is no recipe {recipe!r}: choose one of {', '.join(RECIPES)}")
    wanted = target(simulator.length, numeric=True, fixed=True, **options)
    name = f"U for T of order {simulator.order}, recipe {recipe}"
    if recipe == "native":
        root, softmax_scores = native(simulator.order, simulator.layout, wanted.dtype)
        model = compile_for(
            wanted, root, name, reference=simulator.program.node, softmax_scores=softmax_scores
        )
        return _with_layout(model, simulator)
    built = type(simulator).from_order(
        simulator.order,
        recipe,
        stable,
        simulator.style.base,
        divide_last=wanted.feed_forward == "exact",
    )
    if built.length > simulator.length:
        raise CompileError(
            f"the recipe {recipe} needs {built.length} tokens, and this U has {simulator.length}: make "
            f"UniversalSimulator(…, recipe={recipe!r}) and compile that"
        )
    same = built.output.places == simulator.output.places
    if not same:
        raise CompileError(f"the recipe {recipe} puts its result elsewhere: make a U of that recipe")
    return _with_layout(compile_for(wanted, built.program.node, name), simulator)


def _with_layout(model: CompiledTransformer, simulator: UniversalSimulator) -> CompiledTransformer:
    """The model, whose report also says which tokens are which matrix, and where T(X) stands.

    ``layout`` is [first, copies, rows, columns] for each block; ``answer`` are the places of T(X): what
    the network gives elsewhere means nothing.
    """
    blocks = simulator.layout.blocks.values()
    layout = {block.name: [block.offset, block.copies, block.rows, block.columns] for block in blocks}
    report = {**model.config.report, "layout": layout, "answer": simulator.output.places._asdict()}
    return CompiledTransformer(replace(model.config, report=report), model.weights)
