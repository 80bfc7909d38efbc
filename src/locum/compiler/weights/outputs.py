"""What comes out: one of few things, by the greatest logit, or a number.

A program's last s-op comes in, with the values it may take; out come the codes of these, if they are
few, and the unembedding that finds the nearest of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from locum.compiler.scoring.known import Known
from locum.compiler.target import EXACT_WHOLE
from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.transformer import Weights

#: Outputs of more different values than this are read off as a number.
MAX_CATEGORIES = 1024


def categories(root: Node, known: Known) -> dict[float, Atom] | None:
    """What may come out, by its code, if it is one of few things (and not real numbers)."""
    found = known.values.finite(root)
    if found is None:
        return None
    strings = any(isinstance(value, str) for value in found)
    many = len(found) > MAX_CATEGORIES or any(isinstance(value, float) for value in found)
    if many and not strings:
        return None
    by_code = {known.codes.number(value, abbreviate(root)): value for value in found}
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


def nearest(codes: Iterable[float]) -> float:
    """How far the nearest two lie apart; infinitely far, if there are not two."""
    apart = np.diff(sorted(codes))
    return float(apart.min(initial=math.inf))


def unembedded(weights: Weights, outputs: Mapping[float, object]) -> Weights:
    """The weights of a number with a logit for each code instead, the greatest at the nearest of them.

    2x·v − v² = x² − (x − v)².
    """
    column, constant = weights.W_U[:, 0], float(weights.b_U[0])
    codes = np.array(list(outputs))
    return replace(weights, W_U=2 * column[:, None] * codes, b_U=2 * constant * codes - codes**2)
