"""Define two operations on sequences that the multi-head lemma uses: identify and shift."""

from __future__ import annotations

from locum.constructions.sizes import Size
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, indices, length, select


def identify(sequence: SOp, start: Size, count: Size) -> SOp:
    """Return the values at positions ``start`` … ``start + count − 1`` unchanged, and 0 elsewhere, with
    one head.

    The paper counts i from 1 and selects k + 1 elements, s[i−1] … s[i+k−1]. The paper's bounds
    exclude the last element (erratum E12).

    >>> from locum import tokens
    >>> identify(tokens, 1, 3)([10, 20, 30, 40, 50])
    [0, 20, 30, 40, 0]
    """
    here = select(indices, indices, "==")
    clip = here & select(indices, start, ">=") & select(indices, start + count, "<")
    return aggregate(clip, sequence)


def shift(sequence: SOp, by: Size, size: Size | None = None) -> SOp:
    """Rotate the sequence to the left: position i receives the value at (i + by) mod size, with one
    head.

    This agrees with the paper's definition and code; the paper's matrix rotates in the other direction
    (erratum E11). Without ``size``, the whole input is rotated, and ``length`` needs a head in an
    earlier layer.

    >>> from locum import tokens
    >>> shift(tokens, 2)([10, 20, 30, 40, 50])
    [30, 40, 50, 10, 20]
    """
    around = (indices + by) % (length if size is None else size)
    return aggregate(select(indices, around, "=="), sequence)
