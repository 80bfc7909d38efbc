"""Run a network on pairs of inputs, with the signals of some edges replaced by their signals on another
input.

Both inputs of a pair have the same length. ``networks/transformer/path_patching.py`` defines how the
signal of an edge is replaced.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError, InputError
from locum.graph import Atom
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import CircuitEdge
from locum.networks.transformer.forward import Tap, forward, shown_to, unembed
from locum.networks.transformer.path_patching import UNEMBED, Path, PathTap, Place, written
from locum.networks.transformer.weights import Array

#: Largest difference between equal real-valued answers, relative to the largest absolute answer or 1.
_EQUAL = 1e-4
#: Two signals count as equal if their difference is at most this fraction of the difference from the
#: signal on an input of another length.
_ALIKE = 0.05


class CompiledNetwork:
    """The parts of a forward pass of a compiled transformer, on batches of inputs of one length."""

    def __init__(self, model: CompiledTransformer) -> None:
        self.model = model
        self.tensors: dict[str, Any] = dict(model.weights.named())
        self.sink = int(model.config.sink)
        self.embeddings = model.embeddings
        #: Whether an answer is the index of the largest logit; otherwise, it is a number.
        self.is_categorical = model.config.outputs is not None

    def forward(self, stream: Array, tap: Tap | None = None, first: int = 0) -> Array:
        """Run the layers from index ``first``, and return the input of the unembedding.

        ``tap`` can replace activations, including the returned residual stream.
        """
        config = self.model.config
        after = forward(
            self.model.weights, stream, sink=config.sink, causal=config.causal, tap=tap, first=first
        )
        return shown_to(tap)(UNEMBED, after)

    def stream(self, rows: Sequence[Sequence[Atom]], tap: Tap | None = None) -> Array:
        """Run all layers on a batch of inputs, and return the input of the unembedding."""
        words, places = self.embeddings(rows)
        return self.forward(words + places, tap)

    def read_off(self, stream: Array) -> Any:
        """Return the logits at every position, without the sink, for the final residual stream."""
        return unembed(self.model.weights, stream[:, self.sink :])

    def answers(self, logits: Array) -> NDArray[Any]:
        """Return the answer at every position: the index of the largest logit, or the number."""
        return logits.argmax(axis=-1) if self.is_categorical else logits[..., 0]

    def run(self, rows: Sequence[Sequence[Atom]]) -> NDArray[Any]:
        """Return the answers to a batch of inputs."""
        return self.answers(self.read_off(self.stream(rows)))

    def path(self, edge: CircuitEdge) -> Path:
        """Return the path of an edge of the circuit."""
        return self.model.path(edge)


class PathPatching:
    """A network with its activations on pairs of inputs of one length, for path patching."""

    def __init__(self, network: CompiledNetwork, pairs: Pairs) -> None:
        self.network, self.size = network, len(pairs.clean)
        #: Residual stream before every layer and before the unembedding, on the clean inputs.
        self.streams: list[Array] = []
        self.clean = self._run(pairs.clean, self.streams)
        others: list[Array] = []
        self.other = self._run(pairs.other, others)
        self.answers = network.answers(network.read_off(self.streams[-1]))
        self.other_answers = network.answers(network.read_off(others[-1]))
        # Both inputs have the same positions, so position embeddings are permuted between positions
        # instead.
        orders = np.array(pairs.positions) + network.sink
        places = self.other["hook_pos_embed"] = self.other["hook_pos_embed"].copy()
        places[:, network.sink :] = np.take_along_axis(places, orders[..., None], axis=1)
        self._elsewhere = self._run_elsewhere(pairs.elsewhere)
        #: Signal of each replaced path, and whether it is from an input of another length.
        self._values: dict[tuple[Place, int | None], tuple[Array, bool]] = {}

    def _run(self, rows: Sequence[Any], streams: list[Array]) -> dict[str, Array]:
        words, places = self.network.embeddings(rows)
        cache = {"hook_embed": words, "hook_pos_embed": places}

        def keep(name: str, value: Array) -> None:
            if name.endswith((".hook_z", ".hook_post")):
                cache[name] = value
            elif name.endswith(".hook_resid_pre"):
                streams.append(value)

        streams.append(self.network.forward(words + places, keep))
        return cache

    def _run_elsewhere(self, rows: Sequence[Any] | None) -> dict[str, Array]:
        """Return the activations on inputs of other lengths, one input for each pair.

        The result is empty if ``rows`` is None.
        """
        if rows is None:
            return {}
        sink, size = self.network.sink, self.streams[-1].shape[1]
        activations = {name: value.copy() for name, value in self.clean.items()}
        for length in {len(row) for row in rows}:
            chosen = [number for number, row in enumerate(rows) if len(row) == length]
            at = np.minimum(np.arange(sink, size), length + sink - 1)
            for name, value in self._run([rows[number] for number in chosen], []).items():
                activations[name][chosen, sink:] = value[:, at]
        return activations

    def _write(self, path: Path, cache: Mapping[str, Array]) -> Any:
        return written(path, cache, self.network.tensors)

    def _value(self, path: Path) -> tuple[Array, bool]:
        """Return the replacement signal of a path, and whether it is from an input of another length.

        Inputs of other lengths, if given, are used if the source writes nearly the same signals on both
        inputs of the pairs.
        """
        key = (path.source, path.slot)
        if key not in self._values:
            value, clean = self._write(path, self.other), self._write(path, self.clean)
            alike = False
            if self._elsewhere:
                elsewhere = self._write(path, self._elsewhere)
                # In a network with softmax heads and layer norms, equal signals differ slightly.
                alike = bool(np.abs(value - clean).max() <= _ALIKE * np.abs(elsewhere - clean).max())
                value = elsewhere if alike else value
            self._values[key] = (value, alike)
        return self._values[key]

    def difference(self, path: Path) -> Array:
        """Return the replacement signal of a path minus the clean signal."""
        difference: Array = self._value(path)[0] - self._write(path, self.clean)
        return difference

    def takes_length(self, path: Path) -> bool:
        """Return whether the replacement signal of a path is from an input of another length."""
        return self._value(path)[1]

    def patch(self, paths: Iterable[Path]) -> Any:
        """Return the answers after the signals of ``paths`` are replaced.

        The result is None if the network is undefined for these signals.
        """
        paths = list(paths)
        times = [path.target.time // 2 for path in paths if path.target.hook != UNEMBED]
        first = int(min(times, default=len(self.streams) - 1))
        stream = self.streams[first]
        tap = PathTap(
            paths,
            self.network.tensors,
            lambda path, now: self._value(path)[0],
            cache=self.clean,
            stream=stream,
        )
        with np.errstate(all="ignore"):
            try:
                after = self.network.forward(stream, tap, first)
            except ExecutionError:
                return None
            return self.network.answers(self.network.read_off(after))

    def equal(self, one: Any, other: Any = None) -> NDArray[np.bool_]:
        """Return for each pair whether two answers agree at all positions.

        ``other`` is by default the clean answer. If ``one`` is None, the result is False for all pairs.
        """
        other = self.answers if other is None else other
        if one is None:
            return np.zeros(self.size, bool)
        if self.network.is_categorical:
            return np.asarray((one == other).all(axis=1))
        scale = _EQUAL * max(1.0, float(np.abs(self.answers).max(initial=0.0)))
        return np.asarray((np.abs(one - other) <= scale).all(axis=1))


@dataclass(frozen=True)
class Pairs:
    """Pairs of inputs of one length: a clean input and another input."""

    clean: list[list[Atom]]
    other: list[list[Atom]]
    #: For each pair, the permutation of the position embeddings of the other input.
    positions: list[list[int]]
    #: For each pair, an input of another length, for signals that depend only on the length.
    elsewhere: list[list[Atom]] | None = None
    #: Whether the pairs are drawn from all inputs of this length, and not from a sample.
    complete: bool = False


def pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield pairs of inputs, one length at a time.

    Each input is paired with a random input, and with a copy of itself in which one token is replaced
    by a random token. If the model accepts at most ``most`` inputs in total, all of them are used, and
    otherwise a random sample of about ``most`` inputs.
    """
    draw = random.Random(seed)
    for inputs, complete in _inputs(model, most, draw):
        clean, other = [], []
        for row in inputs:
            changed = list(row)
            changed[draw.randrange(len(row))] = draw.choice(_tokens(model))
            for partner in (draw.choice(inputs), changed):
                clean.append(row)
                other.append(partner)
        orders = orders_of(len(clean[0]), len(clean), seed)
        yield Pairs(clean, other, orders, complete=complete)


def more_pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield further pairs, one length at a time: all pairs of the inputs of this length.

    If the model accepts more than ``most`` inputs, the inputs are a new random sample. If a length has
    more than 2·``most`` pairs, 2·``most`` random pairs are used instead.
    """
    draw = random.Random(f"more {seed}")
    for inputs, complete in _inputs(model, most, draw):
        if len(inputs) ** 2 <= 2 * most:
            both = [(clean, other) for clean in inputs for other in inputs]
        else:
            both = [(draw.choice(inputs), draw.choice(inputs)) for _ in range(2 * most)]
        cleans, others = [clean for clean, _ in both], [other for _, other in both]
        orders = orders_of(len(cleans[0]), len(cleans), seed + 1)
        yield Pairs(cleans, others, orders, complete=complete)


def orders_of(positions: int, count: int, seed: int = 0) -> list[list[int]]:
    """Return ``count`` permutations of positions, one for each pair: shifts, the reversal and others.

    A single permutation might not change the position that a part of the network reads.

    >>> orders_of(3, 4)[:3]
    [[1, 2, 0], [2, 0, 1], [2, 1, 0]]
    >>> len({tuple(order) for order in orders_of(3, 5)})
    5
    """
    draw = random.Random(seed)
    straight = list(range(positions))
    orders = [straight[shift:] + straight[:shift] for shift in range(1, positions)] + [straight[::-1]]
    if positions == 3:  # random permutations might omit one of the five
        return [[*orders, [0, 2, 1], [1, 0, 2]][place % 5] for place in range(count)]
    orders += [draw.sample(straight, positions) for _ in straight]
    return [orders[place % len(orders)] for place in range(count)]


def _tokens(model: CompiledTransformer) -> list[Atom]:
    """Return the tokens of the vocabulary for which the program is defined."""
    vocabulary = model.config.vocabulary
    if vocabulary is None:
        raise InputError("expected a network with a vocabulary, got one of real-valued tokens")
    undefined = [token for token, _ in model.config.undefined]
    return [token for token in vocabulary if token not in undefined]


def _inputs(
    model: CompiledTransformer, most: int, draw: random.Random
) -> Iterator[tuple[list[list[Atom]], bool]]:
    """Yield the inputs of each length, and whether they are all inputs of this length.

    If there are more than ``most`` inputs in total, yield random inputs of at most three lengths.
    """
    tokens = _tokens(model)
    shortest, longest = model.config.lengths
    lengths = range(shortest, longest + 1)
    complete = sum(len(tokens) ** length for length in lengths) <= most
    # A sample contains few lengths, and hence many pairs of each length.
    chosen = (
        lengths
        if complete
        else sorted({longest, max(shortest, longest - 1), min(longest, max(shortest, 2))})
    )
    for length in chosen:
        if complete:
            yield [list(row) for row in product(tokens, repeat=length)], True
        else:
            share = max(1, most // len(chosen))
            yield [[draw.choice(tokens) for _ in range(length)] for _ in range(share)], False
