"""Texts padded to one length, run through a model by the U's of that length.

All layers of a model have one order, so one U (and one plan) serves them all; a text shorter than the
longest is padded, and which keys count is a row among the tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from locum.constructions import Matrix
from locum.execution.arrays import Array, is_tensor, like, numpy_of
from locum.simulators.models.embedding_and_pooling import NormedSum, Pooling
from locum.simulators.models.loading import LoadedModel
from locum.simulators.models.tokenising import Text
from locum.simulators.modules.encoder import Encoder
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
    padded: Sequence[Sequence[Array]]


class Batch:
    """Texts padded to one length, and the U's of that length."""

    def __init__(self, model: LoadedModel, texts: Sequence[Text], executor: str | None) -> None:
        self.model, self.texts, self.executor = model, list(texts), executor
        self.lengths = [len(text.numbers) for text in texts]
        self.n = max(self.lengths)
        checkpoint, d = model.checkpoint, model.checkpoint.d
        order = model.layers[0].order(self.n)
        addends = ("positions", "types") if "types" in model.embeddings else ("positions",)
        self.U = simulator_of(order)
        self.embedding = NormedSum(self.n, d, addends)
        self.pooling = Pooling(self.n, d, checkpoint.sentence.pooling, checkpoint.sentence.normalised)
        self.numbers = np.zeros((len(self.texts), self.n), dtype=np.int64)
        self.seen = np.zeros((len(self.texts), self.n))
        for place, text in enumerate(texts):
            self.numbers[place, : len(text.numbers)] = text.numbers
            self.seen[place, : len(text.numbers)] = 1
        self.masks = [like(row[None], model.kind) for row in self.seen]
        tables = model.embeddings
        first = {name: tables[name] for name in ("gain", "bias")}
        first["epsilon"] = np.full((1, 1), checkpoint.epsilon)
        first["positions"] = tables["positions"][: self.n]
        if "types" in tables:
            first["types"] = _repeated(tables["types"][:1], self.n)
        self.embed = Prepared(self.embedding, {k: [v] for k, v in first.items()}, model.kind)
        self.layers = [Prepared(self.U, self._matrices(T), model.kind) for T in model.layers]
        self.pool = Prepared(self.pooling, {}, model.kind)

    def _matrices(self, T: Encoder) -> dict[str, Any]:
        found = T.matrices()
        del found["attention_mask"]  # it comes with each text
        return found

    def prepare(self) -> None:
        """Make the plans: run the first layer, and both ends, once."""
        X = self.embed(self.words(0), executor=self.executor)
        Y = self.layers[0](X, {"attention_mask": self.masks[0]}, executor=self.executor)
        self.pool(Y, {"attention_mask": self.masks[0]}, executor=self.executor)

    @cached_property
    def steps(self) -> dict[str, Matrix]:
        """The intermediate results of a layer, by name."""
        return dict(self.U.each_step())

    def words(self, text: int) -> Array:
        """The rows of the table of words for one text: the look-up."""
        return self.model.embeddings["words"][self.numbers[text]]

    def simulate(self, finished: Finished) -> Simulated:
        """Everything by U: layer after layer, each on all texts."""
        run, began = self.executor, time.perf_counter()
        states = [[self.embed(self.words(text), executor=run) for text in range(len(self.texts))]]
        finished("embeddings")
        for number, layer in enumerate(self.layers, start=1):
            states.append(
                [
                    layer(X, {"attention_mask": mask}, executor=run, block=number - 1)
                    for X, mask in zip(states[-1], self.masks, strict=True)
                ]
            )
            finished(f"layer {number}")
        pooled = [
            self.pool(X, {"attention_mask": mask}, executor=run)
            for X, mask in zip(states[-1], self.masks, strict=True)
        ]
        seconds = time.perf_counter() - began
        embeddings = np.concatenate([numpy_of(row) for row in pooled])
        trimmed = [
            [numpy_of(X)[:length] for X, length in zip(layer, self.lengths, strict=True)]
            for layer in states
        ]
        return Simulated(trimmed, embeddings, seconds, states)

    def attention(self, text: int, layer: int, head: int, states: Sequence[Sequence[Array]]) -> Array:
        """The weights of one head of one layer on one text, out of U's own steps."""
        name = "softmax" if self.model.checkpoint.heads == 1 else f"softmax[{head}]"
        others, step = {"attention_mask": self.masks[text]}, self.steps[name]
        found = self.layers[layer](states[layer][text], others, executor=self.executor, step=step)
        size = self.lengths[text]
        return numpy_of(found)[:size, :size]


@lru_cache(maxsize=64)
def simulator_of(order: Order) -> UniversalSimulator:
    """The U of an order, built once."""
    return UniversalSimulator(order)


def _repeated(row: Array, n: int) -> Array:
    return row.expand(n, -1).contiguous() if is_tensor(row) else np.repeat(row, n, axis=0)
