"""Rescale the weights of a transformer to similar magnitudes without changing its outputs.

Several rescalings do not change the function of a network. A slot of the residual stream can be scaled
up where it is written and down where it is read. The queries and keys of a head, and its values and
output, can be scaled in opposite directions. ReLU units and both factors of gated units can also be
rescaled. Inputs and outputs of symbolic functions and of GELU units do not change.

All factors are powers of two, so rounding does not change. Outputs are bitwise equal unless a number
leaves the range of floats. In networks on real numbers, a value that depends on tokens is scaled down
only if it remains an integer multiple of its inputs.

The method first minimises the sum of squares of the logarithms of all non-zero weights. This step is
from Curtis and Reid, "On the automatic scaling of matrices for Gaussian elimination" (1972). The method
then reduces the range of these logarithms, one group of factors at a time. The result is the visited
solution with the smallest ratio of largest to smallest weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.networks.transformer.config import Config
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.weights import Array, AttentionWeights, FeedForwardWeights, Weights

Marks = NDArray[np.bool_]

#: Instructions whose result is one of finitely many fixed numbers for every argument.
_OF_A_LIST = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
    | {"table", "constant"}
)


def real_slots(weights: Weights) -> Iterator[Marks]:
    """Yield masks [slot] of the slots of the residual stream that may depend on tokens.

    Dependences that :func:`_results` does not count are ignored. The masks of a layer are the mask
    before the attention and the mask before the feed-forward. The last mask is the mask after all
    layers. A network of n layers has 2n + 1 masks.
    """
    real: Marks = (weights.W_E != 0).any(axis=0)
    for layer in weights.layers:
        yield real
        if (heads := layer.attention) is not None:
            real = real | ((heads.W_O != 0) & real_values(heads, real)[:, :, None]).any(axis=(0, 1))
        yield real
        if (feed := layer.feed_forward) is not None:
            real = real | ((feed.W_out != 0) & real_units(feed, real)[:, None]).any(axis=0)
    yield real


def read(matrix: Array, real: Marks) -> Marks:
    """Return a mask of the columns of ``matrix`` [.., slot, number] that read a slot marked in
    ``real``.
    """
    reached: Marks = ((matrix != 0) & real[:, None]).any(axis=-2)
    return reached


def halvings(matrix: Array, real: Marks) -> NDArray[np.float64]:
    """Count how often each column of ``matrix`` can be halved while its weights on marked slots remain
    integers.

    ``matrix`` has the axes [.., slot, number]. An integer multiple of a float loses no bits near 0, but
    a fraction of it may. A column that reads no slot marked in ``real`` can be halved without limit.

    >>> halvings(np.array([[4.0, 3.0, 0.5], [8.0, 0.0, 2.0]]), np.array([True, True])).tolist()
    [2.0, 0.0, 0.0]
    >>> halvings(np.array([[4.0], [0.1]]), np.array([True, False])).tolist()
    [2.0]
    """
    fractions, exponents = np.frexp(matrix.astype(np.float64))
    whole = np.abs(np.ldexp(fractions, 53)).astype(np.int64)
    lowest = exponents - 53 + np.log2(np.maximum(whole & -whole, 1))
    counted = np.where((matrix != 0) & real[:, None], np.maximum(lowest, 0.0), np.inf)
    reached: NDArray[np.float64] = counted.min(axis=-2)
    return reached


def real_values(heads: AttentionWeights, real: Marks) -> Marks:
    """Return a mask [head, number] of the head values that may depend on tokens.

    A value depends on tokens if its content or the attention pattern of its head does.
    """
    scores = read(heads.W_Q, real) | read(heads.W_K, real)
    return read(heads.W_V, real) | scores.any(axis=-1, keepdims=True)


def real_units(feed: FeedForwardWeights, real: Marks) -> Marks:
    """Return a mask of the hidden units, or of the outputs of symbolic functions, that may depend on
    tokens.
    """
    met = read(feed.W_in, real)
    if feed.W_gate is not None:
        met = met | read(feed.W_gate, real)
    return met if feed.functions is None else _results(feed.functions, met)


def _results(functions: Functions, arguments: Marks) -> Marks:
    """Return a mask of the outputs of ``functions`` that may depend on marked arguments.

    Dependences through comparisons, ``and``, ``or``, ``not`` or tables do not count, because such an
    operation has finitely many results.

    >>> from locum.networks.transformer.functions import Instruction
    >>> steps = (Instruction("add", (0, 1)), Instruction("less", (0, 1)), Instruction("add", (1, 1)))
    >>> _results(Functions(2, steps, (2, 3, 4)), np.array([True, False])).tolist()
    [True, False, False]
    """
    marks = arguments.tolist()
    for instruction in functions.instructions:
        reached = any(marks[place] for place in instruction.inputs)
        marks.append(reached and instruction.op not in _OF_A_LIST)
    return np.array([marks[place] for place in functions.outputs], np.bool_)


Whole: TypeAlias = NDArray[np.int64]
#: Factors that rescale the entries of a tensor. Each pair consists of an array of factor indices, which
#: is broadcast to the tensor, and a sign: 1 to multiply, −1 to divide.
Gains: TypeAlias = "tuple[tuple[Whole, int], ...]"

#: Maximum number of conjugate-gradient steps, and number of sweeps that reduce the range of weights.
_STEPS, _SWEEPS = 200, 20


@dataclass(frozen=True)
class Spread:
    """The largest and the smallest absolute value of the non-zero weights of a network."""

    largest: float
    smallest: float

    @classmethod
    def of(cls, weights: Weights) -> Spread:
        """Return the largest and the smallest absolute value of the non-zero weights.

        Both numbers are 1 if all weights are 0.
        """
        sizes = np.concatenate([np.abs(tensor[tensor != 0]).ravel() for _, tensor in weights.named()])
        if not sizes.size:
            return cls(1.0, 1.0)
        return cls(float(sizes.max()), float(sizes.min()))

    @property
    def ratio(self) -> float:
        """Ratio of the largest to the smallest weight.

        >>> Spread(8.0, 0.5).ratio
        16.0
        """
        return self.largest / self.smallest


def balance(config: Config, weights: Weights) -> tuple[Config, Weights]:
    """Return an equivalent configuration and weights of similar magnitudes.

    In the new configuration, ``report["balanced"]`` contains the largest and smallest weight before and
    after balancing. This entry also contains, for each slot, the exponent e such that the stored value
    is 2ᵉ times the labelled value. For real-valued tokens, ``ranges`` excludes tokens so large that
    activations could overflow.
    """
    weights.require_no_norms("balanced")
    limit = int(np.finfo(config.dtype).maxexp) // 4
    ranges = _limited(config, 2.0**limit)
    system = _System.of(weights)
    exponents = system.solve(*_bounds(weights, system.factors, limit, config.vocabulary is None))
    balanced = _applied(weights, exponents)
    while not _recovered(weights, exponents, balanced):  # a weight left the range of floats
        exponents = np.trunc(exponents / 2).astype(np.int64)
        balanced = _applied(weights, exponents)
    slots = exponents[: weights.W_E.shape[1]] + slot_exponents(config, weights.W_E.shape[1])
    said = {
        "before": vars(Spread.of(weights)),
        "after": vars(Spread.of(balanced)),
        "slots": slots.tolist(),
    }
    return replace(config, ranges=ranges, report={**config.report, "balanced": said}), balanced


def _limited(config: Config, largest: float) -> tuple[tuple[float, float], ...] | None:
    """Return the ranges of real-valued tokens, limited to absolute values of at most ``largest``.

    The result is None for a network with a vocabulary. ``InputError`` is raised for an empty range.
    """
    if config.vocabulary is not None:
        return None
    ranges = config.ranges or ((-np.inf, np.inf),)
    limited = tuple((max(low, -largest), min(high, largest)) for low, high in ranges)
    for (low, high), (least, most) in zip(ranges, limited, strict=True):
        if least > most:
            raise InputError(
                f"balanced(): expected tokens up to {largest:.3g} in {config.dtype}, got a network for "
                f"numbers from {low:.3g} to {high:.3g}"
            )
    return limited


def slot_exponents(config: Config, width: int) -> Whole:
    """Return, for each slot, the exponent e such that the stored value is 2ᵉ times the labelled value.

    All exponents are 0 if the network is not balanced, or if its report is invalid.
    """
    said = config.report.get("balanced")
    listed = said.get("slots") if isinstance(said, dict) else None
    # A report may come from a file, so it is not trusted.
    if not isinstance(listed, list) or len(listed) != width:
        return np.zeros(width, np.int64)
    if not all(type(exponent) is int and abs(exponent) <= 1024 for exponent in listed):
        return np.zeros(width, np.int64)
    return np.array(listed, np.int64)


def _bounds(
    weights: Weights, factors: int, limit: int, growing: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest and the largest permitted exponent of each factor.

    With ``growing``, no value that depends on tokens may become smaller, unless it remains an integer
    multiple of the values that it is computed from. This exception applies to queries, keys, ReLU units
    and each factor of a gated unit. Products and head values are excluded, since attention patterns
    multiply head values.
    """
    low, high = np.full(factors, -float(limit)), np.full(factors, float(limit))
    if not growing:
        return low, high
    slots = list(real_slots(weights))
    low[: len(slots[-1])][slots[-1]] = 0
    for number, (score, value, units) in enumerate(_factors(weights)):
        layer, (real, later) = weights.layers[number], slots[2 * number : 2 * number + 2]
        if (heads := layer.attention) is not None:
            low[score] = np.maximum(low[score], -halvings(heads.W_Q, real))
            high[score] = np.minimum(high[score], halvings(heads.W_K, real))
            low[value[real_values(heads, real)]] = 0
        if (feed := layer.feed_forward) is not None:
            if units:
                low[units[0]] = np.maximum(low[units[0]], -halvings(feed.W_in, later))
            if feed.W_gate is not None:
                high[units[0]] = np.minimum(high[units[0]], halvings(feed.W_gate, later))
                low[units[1][real_units(feed, later)]] = 0
    return low, high


def _factors(weights: Weights) -> Iterator[tuple[Whole, Whole, tuple[Whole, ...]]]:
    """Yield the factor indices of each layer: for scores, for values and for hidden units.

    The first indices belong to the slots of the residual stream. The indices of the layers follow in
    order.
    """
    count = weights.W_E.shape[1]

    def more(shape: tuple[int, ...]) -> Whole:
        nonlocal count
        first, count = count, count + int(np.prod(shape))
        return np.arange(first, count).reshape(shape)

    for layer in weights.layers:
        heads, feed = layer.attention, layer.feed_forward
        score = more((0,) if heads is None else heads.b_Q.shape)
        value = more((0,) if heads is None else heads.b_V.shape)
        # GELU units and arguments of symbolic functions have no factor. Gated units have two: the first
        # scales the two factors of the product in opposite directions, the second scales the product.
        halves = {"relu": 1, "glu": 2}.get(feed.kind, 0) if feed is not None else 0
        hidden = (0,) if feed is None else feed.W_out.shape[:1]
        yield score, value, tuple(more(hidden) for _ in range(halves))


def _tensors(weights: Weights) -> Iterator[tuple[Array, Gains]]:
    """Yield each tensor with the factors that rescale it, in the order of :meth:`Weights.named`."""
    slots = np.arange(weights.W_E.shape[1])
    yield weights.W_E, ((slots, 1),)
    yield weights.W_pos, ((slots, 1),)
    for layer, (score, value, units) in zip(weights.layers, _factors(weights), strict=True):
        if (heads := layer.attention) is not None:
            reads = (slots[:, None], -1)
            yield heads.W_Q, (reads, (score[:, None], 1))
            yield heads.b_Q, ((score, 1),)
            yield heads.W_K, (reads, (score[:, None], -1))
            yield heads.b_K, ((score, -1),)
            yield heads.W_V, (reads, (value[:, None], 1))
            yield heads.b_V, ((value, 1),)
            yield heads.W_O, ((slots, 1), (value[:, :, None], -1))
            yield heads.b_O, ((slots, 1),)
        if (feed := layer.feed_forward) is not None:
            into: Gains = tuple((unit, 1) for unit in units[:1])
            yield feed.W_in, ((slots[:, None], -1), *into)
            yield feed.b_in, into
            yield feed.W_out, ((slots, 1), *((unit[:, None], -1) for unit in units[-1:]))
            yield feed.b_out, ((slots, 1),)
            if feed.W_gate is not None:
                yield feed.W_gate, ((slots[:, None], -1), (units[0], -1), (units[1], 1))
    yield weights.W_U, ((slots[:, None], -1),)
    yield weights.b_U, ()


def _applied(weights: Weights, exponents: Whole) -> Weights:
    """Return weights with every tensor multiplied by 2 to the power of its ``exponents``."""
    gains_of_all = (gains for _, gains in _tensors(weights))

    def scaled(tensor: Array) -> Array:
        gains = next(gains_of_all)
        power = sum((sign * exponents[factor] for factor, sign in gains), np.zeros((), np.int64))
        with np.errstate(all="ignore"):
            return np.ldexp(tensor, power.astype(np.int32)).astype(tensor.dtype)

    return weights.map(scaled)


def _recovered(weights: Weights, exponents: Whole, balanced: Weights) -> bool:
    """Return whether undoing the factors restores all weights, so that no weight overflowed or
    underflowed.
    """
    back = _applied(balanced, -exponents)
    return all(
        np.array_equal(a, b) for (_, a), (_, b) in zip(weights.named(), back.named(), strict=True)
    )


@dataclass(frozen=True)
class _System:
    """The logarithms of all non-zero weights, and the sparse matrix that maps exponents of factors to
    changes of these logarithms.
    """

    logarithms: NDArray[np.float64]
    #: Entries of the sparse matrix, sorted by factor: row (the weight), column (the factor), and sign
    #: (1 or −1).
    rows: Whole
    columns: Whole
    signs: NDArray[np.float64]
    factors: int
    slots: int

    @classmethod
    def of(cls, weights: Weights) -> _System:
        logarithms: list[NDArray[np.float64]] = []
        entries: list[tuple[Whole, Whole, NDArray[np.float64]]] = []
        count = 0
        for tensor, gains in _tensors(weights):
            places = np.nonzero(tensor)
            rows = np.arange(count, count + len(places[0]))
            count += len(rows)
            logarithms.append(np.log2(np.abs(tensor[places]).astype(np.float64)))
            for factor, sign in gains:
                columns = np.broadcast_to(factor, tensor.shape)[places]
                entries.append((rows, columns, np.full(len(rows), float(sign))))
        rows, columns, signs = (np.concatenate(part) for part in zip(*entries, strict=True))
        order = np.argsort(columns, kind="stable")
        layers = [[score, value, *units] for score, value, units in _factors(weights)]
        factors = weights.W_E.shape[1] + sum(part.size for layer in layers for part in layer)
        return cls(
            np.concatenate(logarithms),
            rows[order],
            columns[order],
            signs[order],
            factors,
            weights.W_E.shape[1],
        )

    def sizes(self, exponents: NDArray[Any]) -> NDArray[np.float64]:
        """Return the logarithms of all non-zero weights after rescaling by these exponents."""
        return self.logarithms + self._gains(exponents)

    def _gains(self, exponents: NDArray[Any]) -> NDArray[np.float64]:
        gained = self.signs * exponents[self.columns]
        return np.bincount(self.rows, gained, len(self.logarithms)).astype(np.float64)

    def solve(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Whole:
        """Return integer exponents between ``low`` and ``high`` that make the ratio of the largest to
        the smallest weight small.
        """
        if not self.rows.size:
            return np.zeros(self.factors, np.int64)

        def inside(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.clip(exponents, low, high)

        start = inside(self._least_squares())
        best, least = np.zeros(self.factors), float(np.ptp(self.logarithms))
        for exponents in self._lowered(start, inside):
            whole = np.rint(exponents)
            ratio = float(np.ptp(self.sizes(whole)))
            # Of two equally good solutions, keep the first, which is nearer to the least-squares
            # solution.
            if ratio < least - 1e-9:
                best, least = whole, ratio
        return best.astype(np.int64)

    def _least_squares(self) -> NDArray[np.float64]:
        """Return exponents that approximately minimise the sum of squared logarithms, by conjugate
        gradients.
        """
        solution = np.zeros(self.factors)
        residual = -self._gathered(self.logarithms)
        direction, square = residual, float(residual @ residual)
        enough = 1e-12 * square
        for _ in range(_STEPS):
            if square <= enough:
                break
            moved = self._gains(direction)
            step = square / float(moved @ moved)
            solution = solution + step * direction
            residual = residual - step * self._gathered(moved)
            after = float(residual @ residual)
            direction, square = residual + after / square * direction, after
        return solution

    def _gathered(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        gathered = np.bincount(self.columns, self.signs * sizes[self.rows], self.factors)
        return gathered.astype(np.float64)

    def _lowered(
        self,
        exponents: NDArray[np.float64],
        inside: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> Iterator[NDArray[np.float64]]:
        """Yield ``exponents``, then the exponents after each sweep.

        Sweeps reduce the range of the logarithms of all weights. Each sweep adjusts the factors to the
        largest and the smallest of the weights that they scale.
        """
        yield exponents
        starts = np.flatnonzero(np.diff(self.columns, prepend=-1))
        met = self.columns[starts]
        for sweep in range(_SWEEPS):
            for part in (met < self.slots, met >= self.slots):
                sizes = self.signs * self.sizes(exponents)[self.rows]
                high, low = (end.reduceat(sizes, starts) for end in (np.maximum, np.minimum))
                # Both factors of a gated unit scale the same weights, so full steps of both would
                # overshoot.
                step = (high + low)[part] * (-0.25 if sweep % 2 else -0.5)
                exponents = exponents.copy()
                exponents[met[part]] += step
                exponents = inside(exponents)
            yield exponents
