"""Build a block of transformer layers from named slots, and run the block in a loop.

The residual stream of a block consists of named groups of slots. A head usually copies one group into
another, from the position whose key matches the query. ReLU hidden units compute functions of the slots
of one position.

>>> slots = Slots(x=1, y=1)
>>> units = Units(slots)
>>> units.add(slots.unit("x"), 1.0, {"y": 2.0})  # y += 2·relu(x + 1)
>>> block = LoopedBlock(slots, [layer(slots, units=units)], positions=1)
>>> block.run(np.array([[3.0, 0.0]]), passes=2).tolist()
[[3.0, 16.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.networks.transformer.config import Config
from locum.networks.transformer.forward import forward
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.networks.transformer.weights import (
    SOFTMAX,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)
from locum.settings import require_integer

Floats = NDArray[np.float64]


class Slots:
    """A layout of the residual stream in named groups of slots, such as ``Slots(A=3, flag=1)``."""

    def __init__(self, **sizes: int) -> None:
        self._groups: dict[str, range] = {}
        start = 0
        for name, size in sizes.items():
            self._groups[name] = range(start, start + size)
            start += size
        self.size = start

    def __getitem__(self, name: str) -> range:
        return self._groups[name]

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each slot, such as ``flag`` or ``A[0]``."""
        return tuple(
            name if len(group) == 1 else f"{name}[{i}]"
            for name, group in self._groups.items()
            for i in range(len(group))
        )

    def unit(self, name: str, place: int = 0) -> Floats:
        """Return the unit vector of the slot with index ``place`` in the group ``name``."""
        direction = np.zeros(self.size)
        direction[self[name][place]] = 1.0
        return direction

    def map(self, source: Sequence[int], target: Sequence[int], scale: float = 1.0) -> Floats:
        """Return the matrix [slot, slot] that copies the slots ``source`` to ``target``, times
        ``scale``.
        """
        matrix = np.zeros((self.size, self.size))
        matrix[list(source), list(target)] = scale
        return matrix


class Units:
    """A builder that collects the ReLU hidden units of one feed-forward."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self._inputs: list[Floats] = []
        self._biases: list[float] = []
        self._outputs: list[Floats] = []
        #: Constant vector that the feed-forward adds at every position.
        self.constant = np.zeros(slots.size)

    def add(self, weight: Floats, bias: float, outputs: Mapping[int | str, float]) -> None:
        """Add a hidden unit h = relu(weight·x + bias), which adds outputs[slot] · h to each slot of
        ``outputs``.

        A slot is given by its index, or by the name of its group if it is the first slot.
        """
        self._inputs.append(weight)
        self._biases.append(bias)
        row = np.zeros(self.slots.size)
        for slot, factor in outputs.items():
            row[self.slots[slot][0] if isinstance(slot, str) else slot] += factor
        self._outputs.append(row)

    def linear(self, weight: Floats, bias: float, slot: int, factor: float = 1.0) -> None:
        """Add two hidden units that together add factor · (weight·x + bias) to a slot.

        The units compute relu(z) and relu(−z), whose difference is z.
        """
        self.add(weight, bias, {slot: factor})
        self.add(-weight, -bias, {slot: -factor})

    def gated(
        self, weight: Floats, gate: Floats, offset: float, slot: int, bound: float, factor: float = 1.0
    ) -> None:
        """Add hidden units that add factor · weight·x to a slot if gate·x + offset is 1.

        If gate·x + offset is 0, the slot does not change. ``bound`` must exceed |weight·x|, so that
        both pre-activations are then negative.
        """
        shift = bound * (offset - 1)
        self.add(weight + bound * gate, shift, {slot: factor})
        self.add(-weight + bound * gate, shift, {slot: -factor})

    def clear(self, group: Sequence[int]) -> None:
        """Add hidden units that set the slots of ``group`` to 0."""
        for slot in group:
            self.linear(np.eye(self.slots.size)[slot], 0.0, slot, -1.0)

    def move(
        self, source: Sequence[int], target: Sequence[int], gate: Floats, offset: float, bound: float
    ) -> None:
        """Add hidden units that copy the slots ``source`` to ``target`` if gate·x + offset is 1.

        If gate·x + offset is 0, the target does not change. ``bound`` must exceed the absolute
        differences between source and target.
        """
        for here, there in zip(source, target, strict=True):
            difference = np.zeros(self.slots.size)
            difference[here], difference[there] = 1.0, -1.0
            self.gated(difference, gate, offset, there, bound)

    def round_codes(self, group: Sequence[int]) -> None:
        """Add hidden units that round each slot of ``group`` to ±1.

        The new value is relu(2x + 1) − relu(2x − 1) − 1. This value is the sign of x if |x| ≥ 1/2, and
        2x otherwise.
        """
        eye = np.eye(self.slots.size)
        for slot in group:
            self.add(2 * eye[slot], 1.0, {slot: 1.0})
            self.add(2 * eye[slot], -1.0, {slot: -1.0})
            self.constant[slot] -= 1.0
            self.linear(eye[slot], 0.0, slot, -1.0)

    def add_one_more(
        self, terms: Mapping[str, float], target: Sequence[int], gate: int, bound: float
    ) -> None:
        """Add hidden units that compute 1 plus one or two numbers in binary code.

        The keys of ``terms`` are the groups of slots that contain the numbers. A number with the sign
        −1 is replaced by its bitwise complement. The result for a and −b is therefore a − b, because −b
        is 1 plus the complement of b.

        The result is written to the slots ``target``, which must be 0, at positions where the slot
        ``gate`` is 1. Let s be 1 plus the lowest i + 1 bits of each number. Bit i of the result is
        [s ≥ 2ⁱ] − [s ≥ 2ⁱ⁺¹] + [s ≥ 3·2ⁱ]. Each step function is a ramp of width 1/2, so that small
        errors of the bits have no effect.
        """
        opened = np.eye(self.slots.size)[gate]
        for i, slot in enumerate(target):
            weight, bias = bound * opened, 1.0 - bound
            for name, sign in terms.items():
                for place in range(i + 1):
                    weight[self.slots[name][place]] += sign * 2**place / 2
                    bias += 2**place / 2
            for threshold, factor in ((2**i, 1.0), (2 ** (i + 1), -1.0), (3 * 2**i, 1.0)):
                self.add(weight, bias - threshold + 0.75, {slot: 4 * factor})
                self.add(weight, bias - threshold + 0.25, {slot: -4 * factor})
            self.add(opened, 0.0, {slot: -1.0})

    def weights(self) -> FeedForwardWeights:
        """Return the collected hidden units as the weights of a feed-forward."""
        count = len(self._inputs)
        empty = np.zeros((0, self.slots.size))
        return FeedForwardWeights(
            "relu",
            W_in=np.array(self._inputs).T if count else empty.T,
            b_in=np.array(self._biases),
            W_out=np.array(self._outputs) if count else empty,
            b_out=self.constant,
        )


@dataclass(frozen=True)
class Head:
    """A softmax head, given by matrices that map the residual stream to queries, to keys, and to the
    output.
    """

    query: Floats
    key: Floats
    value: Floats


def layer(slots: Slots, heads: Sequence[Head] = (), units: Units | None = None) -> LayerWeights:
    """Return the weights of a layer with these heads, followed by these hidden units."""
    attention = None
    if heads:
        width = max(max(head.query.shape[1], head.key.shape[1]) for head in heads)
        carried = [sorted(set(np.nonzero(head.value)[0].tolist())) for head in heads]
        width = max(width, *(len(read) for read in carried))

        def padded(matrix: Floats) -> Floats:
            return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))

        zero = np.zeros((len(heads), width))
        eye = np.eye(slots.size)
        attention = AttentionWeights(
            W_Q=np.array([padded(head.query) for head in heads]),
            b_Q=zero,
            W_K=np.array([padded(head.key) for head in heads]),
            b_K=zero,
            W_V=np.array([padded(eye[:, read]) for read in carried]),
            b_V=zero,
            W_O=np.array(
                [padded(head.value[read].T).T for head, read in zip(heads, carried, strict=True)]
            ),
            b_O=np.zeros(slots.size),
            kinds=(SOFTMAX,) * len(heads),
        )
    return LayerWeights(attention, None if units is None else units.weights())


def real_matrix(matrix: Any, name: str, shape: tuple[int, int]) -> Floats:
    """Return ``matrix`` as floats; raise ``InputError`` unless it is a matrix of finite real numbers of
    this shape.

    ``name`` is the name of the matrix in the message.

    >>> real_matrix([[1, 2]], "A", (1, 2)).tolist()
    [[1.0, 2.0]]
    """
    try:
        array = np.asarray(matrix)
    except ValueError:
        raise InputError(f"expected {name} to be a matrix, got rows of different lengths") from None
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        raise InputError(
            f"expected {name} to be a matrix of real numbers, got {array.dtype} {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InputError(f"expected finite entries in {name}, got NaN or an infinity")
    if array.shape != shape:
        expected, actual = (" × ".join(map(str, sizes)) for sizes in (shape, array.shape))
        raise InputError(f"expected {name} of {expected}, got {actual}")
    return array.astype(np.float64)


def code(number: int, bits: int) -> Floats:
    """Return the binary code of ``number`` as ±1, least significant bit first.

    >>> code(5, 4).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    return np.array([1.0 if number >> bit & 1 else -1.0 for bit in range(bits)])


def decode(bits: Floats) -> int:
    """Return the number whose binary code has the signs of ``bits``.

    >>> decode(code(5, 4) + 0.1)
    5
    """
    return sum(1 << place for place, bit in enumerate(bits.tolist()) if bit > 0)


def bits_for(count: int) -> int:
    """Return the number of bits, at least 1, that distinguish ``count`` numbers."""
    return max(1, (count - 1).bit_length())


def sharpness(positions: int, error: float) -> float:
    """Return a factor λ for attention scores that bounds the total weight of wrong positions by
    ``error``.

    For a wrong key, the inner product of the ±1 codes is at least 2 smaller than for the correct key.
    Each wrong key therefore has a weight of at most e^(−2λ).
    """
    return float(np.log(positions / error) / 2)


class LoopedBlock:
    """A block of layers over named slots that is applied repeatedly to its own output."""

    def __init__(
        self, slots: Slots, layers: Sequence[LayerWeights], positions: int, name: str = ""
    ) -> None:
        self.slots = slots
        self.positions = positions
        size = slots.size
        self.weights = Weights(
            W_E=np.zeros((1, size)),
            W_pos=np.zeros((positions, size)),
            layers=tuple(layers),
            W_U=np.zeros((size, 1)),
            b_U=np.zeros(1),
        )
        heads = tuple(
            tuple(f"head {i}" for i in range(each.attention.heads)) if each.attention else ()
            for each in layers
        )
        self.config = Config(
            vocabulary=None, lengths=(positions, positions), sink=False, outputs=None,
            attention="softmax", feed_forward="relu", dtype="float64",
            slots=slots.labels, heads=heads, name=name,
        )  # fmt: skip

    @property
    def architecture(self) -> TransformerArchitecture:
        """Sizes of the block.

        The embeddings are zero, because the state is given directly as a residual stream.
        """
        return TransformerArchitecture.of(self.config, self.weights)

    def run(self, state: Any, passes: int = 1) -> Floats:
        """Return the residual stream [position, slot] after ``passes`` passes through the block."""
        stream = np.asarray(state, dtype=np.float64)
        if stream.shape != (self.positions, self.slots.size):
            raise InputError(
                f"expected a state of {self.positions} positions and {self.slots.size} slots, got "
                f"{' × '.join(map(str, stream.shape))}"
            )
        for _ in range(require_integer(passes, "passes", 0)):
            stream = forward(self.weights, stream[None], sink=False)[0]
        return stream
