"""Greedy generation with a causal U of fixed size: a decoder-only language model as one program.

A :class:`LanguageModel` is embeddings, positions, causal layers, a last norm and an unembedding. Its
simulator is one program for N positions: it fetches each token's embedding (one head that looks the
token up among the rows of E), runs the layers as U's in series, and finds the greatest logit at the
last token given (one head of hard attention). Rows behind that token are never looked at, since every
layer is causal; so one program serves every length up to N, without any further mask. The outer loop,
which puts each new token behind the others, is the host's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from locum.constructions import Matrix, add, broadcast_row, layer_norm
from locum.constructions.matrix import coordinates, greatest
from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.language.python import aggregate, indices, select, tokens, where
from locum.simulators.formula.head import Style
from locum.simulators.formula.layer import Formula, NamedStep, views_of
from locum.simulators.layout import Block, Layout, numbered
from locum.simulators.matrices import matrix, row
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.module import Numbers
from locum.simulators.modules.sublayers import normalised, read_affine
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator


class LanguageModel:
    """A decoder-only model: logits for the next token, from the tokens so far.

    >>> import numpy as np
    >>> from locum import Attention, Encoder
    >>> causal = Attention(np.eye(2), np.eye(2), mask="causal")
    >>> model = LanguageModel(np.eye(3, 2), np.zeros((3, 2)), [Encoder(causal)], np.eye(2, 3))
    >>> model.generate([1], 2) == model.generate_directly([1], 2)
    True
    """

    def __init__(
        self,
        embedding: Array,
        positions: Array,
        layers: Sequence[Encoder],
        unembedding: Array,
        bias: Array | None = None,
        *,
        norm: Any = None,
        epsilon: float = 1e-5,
    ) -> None:
        """Take ``embedding`` (vocabulary×d), ``positions`` (N×d), ``unembedding`` (d×vocabulary).

        ``layers`` are encoders whose attention is causal; ``norm`` is the last (gain, bias), or None.
        """
        self.embedding = matrix(embedding, "the embedding")
        vocabulary, d = self.embedding.shape
        self.positions = matrix(positions, "the positions", (None, d))
        self.unembedding = matrix(unembedding, "the unembedding", (d, vocabulary))
        self.bias = row(np.zeros(vocabulary) if bias is None else bias, "the bias", vocabulary)
        self.norm = read_affine(norm, 0, d)
        self.epsilon = epsilon
        self.layers = tuple(layers)
        if not self.layers:
            raise InputError("layers: expected one or more, got an empty list")
        for number, layer in enumerate(self.layers, start=1):
            order = layer.order(self.size)
            if order.attention.mask != "causal":
                raise InputError(f'expected a causal attention in layer {number}; try mask="causal"')
            if (order.attention.d, order.columns) != (d, d):
                sizes = f"{order.attention.d} and {order.columns}"
                raise InputError(f"expected layer {number} to take and give {d} columns, got {sizes}")

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self.embedding.shape[0])

    @property
    def size(self) -> int:
        """N: how many positions there are."""
        return int(self.positions.shape[0])

    def logits(self, ids: Sequence[int]) -> Numbers:
        """Return a row of logits for each token, computed directly on these tokens alone."""
        known = self.checked(ids)
        x = numpy_of(self.embedding)[known] + numpy_of(self.positions)[: len(known)]
        for layer in self.layers:
            x = layer(x)
        if self.norm is not None:
            x = normalised(x, self.norm, self.epsilon)
        return np.asarray(x @ numpy_of(self.unembedding) + numpy_of(self.bias))

    def generate_directly(self, prompt: Sequence[int], length: int) -> list[int]:
        """Continue the prompt greedily to so many tokens, by direct computation."""
        tokens = self.checked(prompt)
        while len(tokens) < self.room(length):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens

    def generate(self, prompt: Sequence[int], length: int, *, executor: str | None = None) -> list[int]:
        """Continue the prompt greedily to so many tokens, by U: one run for each new token."""
        tokens = self.checked(prompt)
        while len(tokens) < self.room(length):
            tokens.append(self.simulator.next_token(self, tokens, executor=executor))
        return tokens

    @cached_property
    def simulator(self) -> GenerationSimulator:
        """The one program, for this model and all others of its order."""
        return GenerationSimulator(
            self.size,
            self.vocabulary,
            [layer.order(self.size) for layer in self.layers],
            normed=self.norm is not None,
        )

    def checked(self, ids: Sequence[int]) -> list[int]:
        """Read tokens as integers of the vocabulary, one at least and N at most."""
        if not 1 <= len(ids) <= self.size:
            raise InputError(f"expected 1 to {self.size} tokens, got {len(ids)}")
        if any(int(token) != token or not 0 <= token < self.vocabulary for token in ids):
            last = self.vocabulary - 1
            raise InputError(f"tokens: expected integers from 0 to {last}, got {ids!r}")
        return [int(token) for token in ids]

    def room(self, length: int) -> int:
        """Return ``length``, if there are so many positions."""
        if length > self.size:
            raise InputError(f"length: expected at most {self.size} positions, got {length}")
        return length

    def matrices(self, ids: Sequence[int]) -> dict[str, list[Array]]:
        """Return tokens and weights, by the names of the layout's blocks."""
        padded = [*ids, *([0] * (self.size - len(ids)))]
        matrices = {
            "ids": [np.array([padded], dtype=np.float64)],
            "count": [np.full((1, 1), float(len(ids)))],
            "E": [self.embedding],
            "P": [self.positions],
            "W_U": [self.unembedding],
            "b_U": [self.bias],
        }
        if self.norm is not None:
            matrices |= {"gain": [self.norm[0]], "bias": [self.norm[1]]}
            matrices["epsilon"] = [np.full((1, 1), self.epsilon)]
        for number, layer in enumerate(self.layers, start=1):
            matrices |= {f"{number}: {name}": part for name, part in layer.matrices().items()}
        return matrices


class GenerationSimulator(Simulator):
    """Tokens and a model in, logits and the next token out; built from sizes alone."""

    def __init__(
        self,
        size: int,
        vocabulary: int,
        orders: Sequence[Order],
        normed: bool,
        recipe: str = "fetch",
    ) -> None:
        """Take ``orders`` of the layers; ``normed``: whether a norm stands before the unembedding."""
        d = orders[0].attention.d
        blocks = [
            Block("ids", 1, size),
            Block("count", 1, 1),
            Block("E", vocabulary, d),
            Block("P", size, d),
        ]
        for number, order in enumerate(orders, start=1):
            blocks += numbered(order.blocks(), number)
        if normed:
            blocks += [Block("gain", 1, d), Block("bias", 1, d), Block("epsilon", 1, 1)]
        blocks += [Block("W_U", d, vocabulary), Block("b_U", 1, vocabulary)]
        layout = Layout(blocks)
        style = Style(recipe, stable=True, base=None)

        def view(name: str) -> Matrix:
            return layout.view(tokens, name)

        x = add(_looked_up(view("ids"), view("E"), size), view("P").compact())
        steps = [NamedStep("embedded", x)]
        for number, order in enumerate(orders, start=1):
            x = Formula(views_of(layout, f"{number}: "), style).layer(order, x, None)
            steps.append(NamedStep(f"layer {number}", x))
        if normed:
            x = layer_norm(x, view("gain"), view("bias"), view("epsilon"))
        logits = add(style.matmul(x, view("W_U")), broadcast_row(view("b_U"), size))
        self.logits = logits
        steps.append(NamedStep("logits", logits))
        super().__init__(layout, _greatest_of_row(logits, view("count")), steps)

    def next_token(
        self, model: LanguageModel, ids: Sequence[int], *, executor: str | None = None
    ) -> int:
        """Return the token of greatest logit after these; of several, the first."""
        parts = self.parts(model.matrices(model.checked(ids)), model.embedding)
        return int(self.run_parts(self.output, parts, executor)[0, 0])

    def run_logits(
        self, model: LanguageModel, ids: Sequence[int], *, executor: str | None = None
    ) -> Numbers:
        """Return a row of logits for each of these tokens."""
        parts = self.parts(model.matrices(model.checked(ids)), model.embedding)
        return numpy_of(self.run_parts(self.logits, parts, executor))[: len(ids)]


def _looked_up(ids: Matrix, embedding: Matrix, size: int) -> Matrix:
    """Look up for row i the row of the embedding that token i names: by two heads."""
    i, j = coordinates(embedding.columns)
    entry = embedding.at(ids.at(0, i), j)
    inside = indices < size * embedding.columns
    return ids.derive(where(inside, entry, 0), size, embedding.columns, embedding)


def _greatest_of_row(logits: Matrix, count: Matrix) -> Matrix:
    """Return the column of the greatest entry in row count − 1 (the leftmost): hard attention."""
    last_row = select(indices // logits.columns, count.at(0, 0) - 1, "==") & select(
        indices, logits.size, "<"
    )
    column = aggregate(greatest(last_row, logits.sop), indices % logits.columns)
    return logits.derive(column, 1, 1, count)
