"""Read forms from the slots of the residual stream, and decode outputs.

If a network has a sink token, its matrices also act on the sink. The sink attends only to itself, so
its value in each slot is known. A form can therefore be made to read 0, or a default, at the sink. For
this purpose, a multiple of the last slot ``is_sink``, which is 1 at the sink and 0 elsewhere, is added
to the form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.execution.types import handed_on, moved_atoms, only_moves
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import short
from locum.networks.compiler.bounds.fitting import nearest
from locum.networks.compiler.network.forms import Form, dyadic
from locum.networks.compiler.network.network import Network, Slots, Value
from locum.networks.compiler.program.sources import require_finite
from locum.networks.compiler.scoring.broadcasting import Known
from locum.networks.compiler.target import EXACT_WHOLE
from locum.networks.transformer import Weights
from locum.networks.transformer.forward import attend, feed, shown_to
from locum.networks.transformer.weights import LayerWeights

Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """The slots of the residual stream, and the values at the sink after the layers so far."""

    slots: Slots
    sink_slot: int | None
    #: The slot that is 1 at every position, or None.
    one_slot: int | None
    #: The residual stream at the sink.
    at_sink: Matrix

    @classmethod
    def of(cls, network: Network, slots: Slots) -> Stream:
        """Return the residual stream of a network before its first layer."""
        at_sink = np.zeros(slots.size + network.sink)
        at_sink[slots.size :] = 1.0
        one_slot = None if network.one is None else slots.of(network.one)[0]
        return cls(slots, slots.size if network.sink else None, one_slot, at_sink)

    @property
    def width(self) -> int:
        """Number of slots (d_model)."""
        return len(self.at_sink)

    def labels(self) -> list[str]:
        """Return a label for the contents of each slot."""
        return [*self.slots.labels(), *(["is_sink"] if self.sink_slot is not None else [])]

    def read(self, form: Form, at_sink: float | None = None) -> tuple[Matrix, float]:
        """Return a form as a column of weights and a bias.

        If ``at_sink`` is given, the column and the bias yield this number at the sink.
        """
        column = np.zeros(self.width)
        for slot, coefficient in self.slots.read(form).items():
            column[slot] = coefficient
        if self.sink_slot is not None and at_sink is not None:
            column[self.sink_slot] += at_sink - (float(self.at_sink @ column) + form.constant)
        return column, form.constant

    def moved(self, value: Value, dtype: str) -> list[tuple[Matrix, float, float]]:
        """Return a moved value as a sum of parts, each a column, a bias and a factor.

        Usually, there is one part. If large values at the sink would round away a small default, every
        slot that is non-zero at the sink is read separately. The difference x − x is then exactly 0.
        """
        if value.share:
            return [(self._at_slot(self.sink_slot), 0.0, 1.0)]
        column, bias = self.read(value.form, at_sink=value.at_sink)
        if self.sink_slot is None:
            return [(column, bias, 1.0)]
        rest, _ = self.read(value.form)
        held = np.flatnonzero(rest * self.at_sink).tolist()
        if _recovered(value.at_sink, bias, rest[held], self.at_sink[held], dtype):
            return [(column, bias, 1.0)]
        parts = []
        for slot in held:
            alone = self._at_slot(slot)
            alone[self.sink_slot] = -self.at_sink[slot]
            parts.append((alone, 0.0, float(rest[slot])))
            rest[slot] = 0.0
        if bias:
            parts.append((-bias * self._at_slot(self.sink_slot), bias, 1.0))
        rest[self.sink_slot] = value.at_sink
        return [*parts, (rest, 0.0, 1.0)] if rest.any() else parts

    def _at_slot(self, slot: int | None) -> Matrix:
        """Return a column that is 1 in one slot, and 0 elsewhere."""
        assert slot is not None
        column = np.zeros(self.width)
        column[slot] = 1.0
        return column

    def after(self, layer: LayerWeights) -> Stream:
        """Return the stream after a layer, which may have changed the values at the sink."""
        if self.sink_slot is None:
            return self
        stream = self.at_sink[None, None]
        if layer.attention is not None:
            stream = stream + attend(layer.attention, stream, "", _ignore)
        if layer.feed_forward is not None and layer.feed_forward.functions is None:
            stream = stream + feed(layer.feed_forward, stream, "", _ignore, sink=False)
        return replace(self, at_sink=stream[0, 0])


def _recovered(expected: float, bias: float, factors: Matrix, held: Matrix, dtype: str) -> bool:
    """Return whether the number read at the sink is certainly exact for any order of summation."""
    products = factors * held
    if dyadic(np.array([expected, bias, *factors, *held, *products]), dtype):
        return True
    if len(held) + bool(bias) > 1 or not (np.abs(factors) == 1).all():
        return False
    number = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        there = number(bias + products.sum())
        return bool(there + (number(expected - bias - products.sum())) == number(expected))


_ignore = shown_to(None)


#: Maximum number of possible outputs that are decoded as categories instead of as a number, if none of
#: them is a string.
MAX_CATEGORIES = 1024


def categories(root: Node, known: Known) -> dict[float, Atom] | None:
    """Return the possible outputs, by the numbers that encode them.

    Return None if the output is decoded as a number. This is the case if the possible outputs cannot be
    listed. It is also the case for many outputs, floats or large integers, unless an output is a
    string. Raise CompileError if the logits of strings could not be distinguished, or if the output is
    always undefined.
    """
    values = known.values.finite(root)
    if values is None:
        return None
    if not values:
        raise CompileError("the s-op is undefined for every input", abbreviate(root))
    strings = any(isinstance(value, str) for value in values)
    many = len(values) > MAX_CATEGORIES or any(isinstance(value, float) for value in values)
    if many and not strings:
        return None
    by_code = {known.codes.number(value, abbreviate(root)): value for value in values}
    # Logits contain squares of codes and must distinguish adjacent codes.
    largest, apart = max(map(abs, by_code), default=0.0), min(1.0, nearest(by_code))
    if largest < apart * math.isqrt(EXACT_WHOLE[known.target.dtype] // 4):
        return by_code
    if strings:
        raise CompileError(
            f"expected outputs that {known.target.dtype} logits can distinguish, got strings and "
            "numbers "
            f"up to {largest:.3g} that differ by {apart:.3g}",
            abbreviate(root),
        )
    return None


def require_held(source: Node, plain: Node, known: Known) -> None:
    """Raise CompileError if a known possible output is an integer that would be rounded.

    Integers that are only moved may be rounded, if their rounded values are different. ``plain`` is the
    rewritten program.
    """
    vocabulary = known.target.vocabulary or ()
    moves = only_moves(source)
    values = moved_atoms(source if moves else plain, vocabulary)
    if not moves:
        for node in handed_on(plain):
            values += known.values.finite(node) or ()
    integers = {value for value in values if isinstance(value, int)}
    number_type = np.dtype(known.target.dtype).type
    held = [float(number_type(require_finite(value, source))) for value in integers]
    rounded = [value for value, number in zip(integers, held, strict=True) if number != value]
    if rounded and not (moves and len({*held}) == len(held)):
        raise CompileError(
            f"expected integers that {known.target.dtype} represents exactly, such as those up to "
            f"2^{EXACT_WHOLE[known.target.dtype].bit_length() - 1}, got {short(rounded[0])}; try "
            "smaller numbers",
            abbreviate(source),
        )


def unembedded(weights: Weights, outputs: Mapping[float, object]) -> Weights:
    """Replace the unembedding of a number by one logit per code.

    The logit of a code v for the number x is 2x·v − v² = x² − (x − v)², so the code nearest to x has
    the largest logit.
    """
    column, constant = weights.W_U[:, 0], float(weights.b_U[0])
    codes = np.array(list(outputs))
    return replace(weights, W_U=2 * column[:, None] * codes, b_U=2 * constant * codes - codes**2)
