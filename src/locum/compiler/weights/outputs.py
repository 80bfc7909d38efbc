"""What comes out: one of few things, by the greatest logit, or a number.

A program's last s-op comes in, with the values it may take; out come the codes of these, if they are
few, and the unembedding that finds the nearest of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from locum.compiler.bounds.fitting import nearest
from locum.compiler.program.value_tables import require_finite
from locum.compiler.scoring.known import Known
from locum.compiler.target import EXACT_WHOLE
from locum.errors import CompileError
from locum.execution.types import handed_on, moved_atoms, only_moves
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import short
from locum.transformer import Weights

#: Outputs of more different values than this are read off as a number.
MAX_CATEGORIES = 1024


def categories(root: Node, known: Known) -> dict[float, Atom] | None:
    """Return the possible outputs by their codes, if they are few (and not real numbers)."""
    values = known.values.finite(root)
    if values is None:
        return None
    if not values:
        raise CompileError("it has no value for any input", abbreviate(root))
    strings = any(isinstance(value, str) for value in values)
    many = len(values) > MAX_CATEGORIES or any(isinstance(value, float) for value in values)
    if many and not strings:
        return None
    by_code = {known.codes.number(value, abbreviate(root)): value for value in values}
    # Logits have squares of codes in them, and must tell neighbours apart.
    largest, apart = max(map(abs, by_code), default=0.0), min(1.0, nearest(by_code))
    if largest < apart * math.isqrt(EXACT_WHOLE[known.target.dtype] // 4):
        return by_code
    if strings:
        raise CompileError(
            f"strings come out of it beside numbers as large as {largest:.3g}, {apart:.3g} apart; the "
            f"greatest of its logits could not tell them apart in {known.target.dtype}",
            abbreviate(root),
        )
    return None


def require_held(source: Node, plain: Node, known: Known) -> None:
    """Refuse integers that come out of a program rounded; ``plain`` is what was made of ``source``.

    Those that are only moved are known again by the float that stands for them.
    """
    vocabulary = known.target.vocabulary or ()
    moves = only_moves(source)
    values = moved_atoms(source if moves else plain, vocabulary)
    if not moves:
        for node in handed_on(plain):
            values += known.values.finite(node) or ()
    integers = {value for value in values if isinstance(value, int)}
    held = [require_finite(value, source) for value in integers]
    rounded = [value for value, number in zip(integers, held, strict=True) if number != value]
    if rounded and not (moves and len({*held}) == len(held)):
        raise CompileError(
            f"expected integers that floats hold, as they do up to 2^53, got {short(rounded[0])}; try "
            "smaller numbers, or floats (0.0 + x)",
            abbreviate(source),
        )


def unembedded(weights: Weights, outputs: Mapping[float, object]) -> Weights:
    """Replace a number's weights by a logit for each code, the greatest at the nearest of them.

    2x·v − v² = x² − (x − v)².
    """
    column, constant = weights.W_U[:, 0], float(weights.b_U[0])
    codes = np.array(list(outputs))
    return replace(weights, W_U=2 * column[:, None] * codes, b_U=2 * constant * codes - codes**2)
