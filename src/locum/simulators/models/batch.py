"""Texts run through a model by U, in groups of about one length.

All layers of a model have one order, so one U (and one plan) serves them all. A text shorter than its
group's length is padded, and which keys count is a row among the tokens. Lengths and sizes of groups
are rounded to a few, so that plans are made once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array, is_tensor, like, numpy_of
from locum.simulators.models.embedding_and_pooling import Pooling
from locum.simulators.models.families.stage import NORM, Operation, StageSimulator
from locum.simulators.models.loading import LoadedModel
from locum.simulators.models.tokenising import Text
from locum.simulators.modules.module import Numbers
from locum.simulators.order import Order
from locum.simulators.prepared import Prepared
from locum.simulators.universal import UniversalSimulator

#: Called with the name of each layer that is done.
Finished = Callable[[str], None]


class Simulated(NamedTuple):
    """U's results: ``states[layer][text]`` without padding, one embedding per text, and the time."""

    states: list[list[Numbers]]
    embeddings: Numbers
    seconds: float


class Group:
    """Texts of about one length, padded to a common one: one run of U for each layer."""

    def __init__(
        self, model: LoadedModel, texts: Sequence[Text], n: int, executor: str | None, whole: bool
    ) -> None:
        """Take ``whole``: whether a mask is left out where no text is padded."""
        self.model, self.texts, self.n, self.executor = model, texts, n, executor
        checkpoint, d, batch = model.checkpoint, model.checkpoint.d, len(texts)
        numbers, seen = padded(texts, n)
        self.numbers, self.is_padded = numbers, bool((seen == 0).any()) or not whole
        T = model.layers[0] if self.is_padded else model.layers[0].with_masks(None)
        self.U = simulator_of(replace(T.order(n), batch=batch))
        tables = model.embeddings
        addends = {"positions": _repeated(tables["positions"][:n], batch)}
        if "types" in tables:
            addends["types"] = _repeated(tables["types"][:1], batch * n)
        norm = {"norm gain": tables["gain"], "norm bias": tables["bias"]}
        norm["norm epsilon"] = np.full((1, 1), checkpoint.epsilon)
        sums = [Operation("add", name) for name in addends]
        embedding = StageSimulator(batch * n, d, (*sums, NORM))
        matrices = {name: [matrix] for name, matrix in (addends | norm).items()}
        self.embed = Prepared(embedding, matrices, model.kind)
        self.layers = [layer.on(self.U) for layer in prepared_layers(model)]
        sentence = checkpoint.sentence
        self.pool = Prepared(Pooling(n, d, sentence.pooling, sentence.normalised), {}, model.kind)
        self.seen = like(seen, model.kind)
        self.masks = {"attention_mask": self.seen} if self.is_padded else {}
        #: The rows of all texts before and after each layer, one text below the other.
        self.states: list[Array] = []

    def embedded(self) -> Array:
        """Compute the rows before the first layer: the lookup by the host, the rest by U."""
        words = self.model.embeddings["words"][self.numbers.reshape(-1)]
        return self.embed(words, executor=self.executor)

    def layer(self, number: int, X: Array) -> Array:
        """Compute the rows behind a layer."""
        return self.layers[number](X, self.masks, executor=self.executor, block=number)

    def pooled(self, X: Array) -> list[Array]:
        """Pool to one row for each text."""
        each = zip(X.reshape(len(self.texts), self.n, -1), self.seen, strict=True)
        return [self.pool(x, {"attention_mask": row[None]}, executor=self.executor) for x, row in each]

    def weights(self, layer: int) -> Array:
        """Compute the weights of the keys in a layer, [text, head, query, key], by U's own steps."""
        value, _ = self.U.step_of_all("softmax")
        weights = self.layers[layer](self.states[layer], self.masks, executor=self.executor, step=value)
        return weights.reshape(len(self.texts), -1, self.n, self.n)


class Batch:
    """Texts in groups of about one length, so that little is padded and few plans are made."""

    def __init__(self, model: LoadedModel, texts: Sequence[Text], executor: str | None) -> None:
        self.model, self.texts, self.executor = model, list(texts), executor
        self.lengths = [len(text.numbers) for text in texts]
        self.n = max(self.lengths)
        #: All texts padded to the longest, as other implementations run them.
        self.numbers, self.seen = padded(texts, self.n)
        #: Of each text, its group and its place in it.
        self.places: dict[int, tuple[Group, int]] = {}
        self.groups: list[Group] = []
        fast = executor in (None, "fast", "auto")
        for n, members in self._grouped(fast):
            group = Group(model, [self.texts[text] for text in members], n, executor, fast)
            self.groups.append(group)
            self.places |= {text: (group, place) for place, text in enumerate(members)}
        #: The U of the longest texts.
        self.U = max(self.groups, key=lambda group: (group.n, len(group.texts))).U

    def _grouped(self, fast: bool) -> list[tuple[int, list[int]]]:
        """List the texts that are run together, each time so many, and the length they are padded to.

        Other executors run the program as it is, one text at a time.
        """
        if not fast:
            return [(self.n, [text]) for text in range(len(self.texts))]
        by_length: dict[int, list[int]] = {}
        for text, length in enumerate(self.lengths):
            n = min(rounded(length), self.model.checkpoint.positions)
            by_length.setdefault(n, []).append(text)
        groups = []
        for n, members in sorted(by_length.items()):
            while members:
                size = pieces(len(members))
                groups.append((n, members[:size]))
                members = members[size:]
        return groups

    def prepare(self) -> None:
        """Make the plans: run the first layer, and both ends, once."""
        for group in self.groups:
            group.pooled(group.layers[0](group.embedded(), group.masks, executor=self.executor))

    def simulate(self, finished: Finished) -> Simulated:
        """Run everything on U: layer after layer, each on all texts."""
        began = time.perf_counter()
        for group in self.groups:
            group.states = [group.embedded()]
        finished("embeddings")
        for number in range(len(self.groups[0].layers)):
            for group in self.groups:
                group.states.append(group.layer(number, group.states[-1]))
            finished(f"layer {number + 1}")
        pooled = {group: group.pooled(group.states[-1]) for group in self.groups}
        seconds = time.perf_counter() - began
        order = [self.places[text] for text in range(len(self.texts))]
        embeddings = np.concatenate([numpy_of(pooled[group][place]) for group, place in order])
        states = [
            [
                numpy_of(group.states[layer][place * group.n : place * group.n + length])
                for (group, place), length in zip(order, self.lengths, strict=True)
            ]
            for layer in range(len(self.groups[0].states))
        ]
        return Simulated(states, embeddings, seconds)

    def attention(self, text: int, layer: int, head: int) -> Array:
        """Compute the weights of one head of one layer on one text, out of U's own steps."""
        group, place = self.places[text]
        size = self.lengths[text]
        return numpy_of(self._weights(group, layer)[place, head, :size, :size])

    def _weights(self, group: Group, layer: int) -> Array:
        if self._kept is None or self._kept[:2] != (group, layer):
            self._kept = (group, layer, group.weights(layer))
        return self._kept[2]

    #: The weights that were asked for last: pages ask for one head after another.
    _kept: tuple[Group, int, Array] | None = None


#: Texts in one run, at most.
LARGEST = 32


def pieces(count: int) -> int:
    """Return how many of so many texts are run at once: 1, 2, 3, 4, 8, 16 or 32.

    >>> [pieces(count) for count in (3, 7, 100)]
    [3, 4, 32]
    """
    return count if count <= 4 else min(2 ** (count.bit_length() - 1), LARGEST)


def rounded(length: int) -> int:
    """Return the length that a text is padded to: 8, 12, 16, 24, 32, 48, 64, 96, …

    >>> [rounded(length) for length in (7, 9, 13, 33, 100, 500)]
    [8, 12, 16, 48, 128, 512]
    """
    if length <= 8:
        return 8
    size = 1 << (length - 1).bit_length()
    return size if length > size * 3 // 4 else size * 3 // 4


def padded(texts: Sequence[Text], n: int) -> tuple[NDArray[np.int64], Numbers]:
    """Return the ids of texts and, 1 or 0, which of them count: one row for each text."""
    numbers, seen = np.zeros((len(texts), n), dtype=np.int64), np.zeros((len(texts), n))
    for place, text in enumerate(texts):
        numbers[place, : len(text.numbers)] = text.numbers
        seen[place, : len(text.numbers)] = 1
    return numbers, seen


def prepared_layers(model: LoadedModel) -> list[Prepared]:
    """Return the matrices of every layer as they are run, converted once for a model."""
    if "prepared_layers" not in model.__dict__:
        layers = [T.with_masks(None) for T in model.layers]
        U = simulator_of(layers[0].order(1))
        model.__dict__["prepared_layers"] = [Prepared(U, T.matrices(), model.kind) for T in layers]
    prepared: list[Prepared] = model.__dict__["prepared_layers"]
    return prepared


@lru_cache(maxsize=256)
def simulator_of(order: Order) -> UniversalSimulator:
    """Return the U of an order, built once."""
    return UniversalSimulator(order)


def _repeated(rows: Array, times: int) -> Array:
    return rows.repeat(times, 1) if is_tensor(rows) else np.tile(rows, (times, 1))
