"""Normalise rows of matrices as in encoders and decoders: layer norm and RMSNorm.

>>> from locum import tokens
>>> layer_norm(Matrix(tokens, 1, 2), epsilon=0.0).run([1, 3]).tolist()
[[-1.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Sequence

from locum.constructions.matrix import Matrix, coordinates
from locum.constructions.sizes import require_same
from locum.constructions.sums import row_means
from locum.rasp.python import sqrt, where


def layer_norm(
    m: Matrix, gain: Matrix | None = None, bias: Matrix | None = None, epsilon: float | Matrix = 1e-5
) -> Matrix:
    """Return (x − mean) / √(variance + ε) · gain + bias for each row x of ``m``.

    ``gain`` and ``bias`` are 1×c matrices. ``epsilon`` is a number or a 1×1 matrix. One head computes
    the mean, and a head in the next layer computes the variance. Other heads read the matrices
    ``gain``, ``bias`` and ``epsilon``, unless they are constant.
    """
    m = m.compact()
    deviation = m.map(where(m.inside, m.sop - row_means(m).sop, 0))
    return _scaled(m, deviation, [gain, bias], epsilon)


def rms_norm(m: Matrix, gain: Matrix | None = None, epsilon: float | Matrix = 1e-5) -> Matrix:
    """Return x / √(mean of x² + ε) · gain for each row x of ``m``.

    ``gain`` is a 1×c matrix, and ``epsilon`` is a number or a 1×1 matrix.

    >>> from locum import tokens
    >>> rms_norm(Matrix(tokens, 1, 2), epsilon=0.0).run([3, 3]).tolist()
    [[1.0, 1.0]]
    """
    m = m.compact()
    return _scaled(m, m.map(m.inside_or(0)), [gain, None], epsilon)


def _scaled(m: Matrix, x: Matrix, affine: Sequence[Matrix | None], epsilon: float | Matrix) -> Matrix:
    """Divide the rows of ``x`` by √(mean square + ε), and apply gain and bias."""
    others = []
    if isinstance(epsilon, Matrix):
        problem = f"epsilon: expected a number or a 1×1 matrix, got {epsilon.shape_label}"
        for size in epsilon.shape:
            require_same(size, 1, problem)
        others.append(epsilon)
    small = epsilon.at(0, 0) if isinstance(epsilon, Matrix) else epsilon
    mean_square = row_means(x.map(x.sop * x.sop)).sop
    result = x.sop / where(m.inside, sqrt(mean_square + small), 1)
    _, j = coordinates(m.columns)
    for part, multiplies in zip(affine, (True, False), strict=True):
        if part is not None:
            require_same(part.rows, 1, f"gain and bias: expected 1×c, got {part.shape_label}")
            problem = f"a {part.shape_label} gain or bias does not fit a {m.shape_label} matrix"
            require_same(part.columns, m.columns, problem)
            result = result * part.at(0, j) if multiplies else result + part.at(0, j)
            others.append(part)
    return m.derive(where(m.inside, result, 0), m.rows, m.columns, *others)
