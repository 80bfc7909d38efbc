"""Path patching: run a network with some edges as they are on another input.

A path goes from a component that writes into the residual stream to a component that reads it. Each
reader reads a stream of its own: the stream of the run, plus the difference of what the changed paths
carry. No other component reads the change. This holds in any basis, and with layer norms.

Both inputs of a pair have one length. What differs between them is what an intervention carries over.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError, InputError
from locum.graph import Atom
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import CircuitEdge, CircuitNode
from locum.networks.transformer.forward import Tap, forward
from locum.networks.transformer.interventions import Place
from locum.networks.transformer.weights import Array

#: Real-valued answers are equal up to this share of the largest.
_EQUAL = 1e-4
#: The hook of the unembedding, as a reader.
UNEMBED = "unembed"


@dataclass(frozen=True)
class Path:
    """What a component writes into one slot (None: into all), as another component reads it."""

    source: Place
    target: Place
    slot: int | None = None

    @classmethod
    def read(cls, source: str, target: str) -> Path:
        """Read a path between components by their names.

        >>> Path.read("blocks.0.attn.head.1", "blocks.0.mlp").target
        Place(hook='blocks.0.mlp.hook_pre', head=None, last=None)
        """
        return cls(_place(source, "z", "post"), _place(target, "", "pre"))

    @property
    def columns(self) -> slice:
        """The axes of the stream that it passes through."""
        return slice(None) if self.slot is None else slice(self.slot, self.slot + 1)


def _place(name: str, head: str, units: str) -> Place:
    """Return where a component writes or reads; ``head`` is the hook of a head as a whole."""
    block, *rest = name.split(".head.")
    if rest:
        number, _, letter = rest[0].partition(".")
        return Place(f"{block}.hook_{letter or head}", int(number))
    if block.endswith(".mlp"):
        return Place(f"{block}.hook_{units}")
    return Place(UNEMBED if block == "output" else f"hook_{block}")


class Network(Protocol):
    """What path patching needs of a network; tensors and hooks have TransformerLens's names."""

    tensors: dict[str, Any]
    sink: int
    #: Whether an answer is the index of the largest logit, not a number.
    is_categorical: bool

    def embeddings(self, rows: Any, /) -> tuple[Any, Any]:
        """Return what tokens, and what positions, add to the stream."""

    def forward(self, stream: Any, tap: Tap, first: int = 0) -> Any:
        """Return the stream after the last layer, from layer ``first`` on."""

    def norm(self, hook: str, stream: Any) -> Any:
        """Return what is read of a stream at a hook."""

    def read_off(self, stream: Any) -> Any:
        """Return the logits at every position."""

    def answers(self, logits: Any) -> Any:
        """Return the answer at every position."""


class CompiledNetwork:
    """A compiled transformer, for path patching."""

    def __init__(self, model: CompiledTransformer) -> None:
        self.model = model
        self.tensors: dict[str, Any] = dict(model.weights.named())
        self.sink = int(model.config.sink)
        self.embeddings = model.embeddings
        self.is_categorical = model.config.outputs is not None

    def forward(self, stream: Array, tap: Tap, first: int = 0) -> Array:
        """Return the stream after the last layer, from layer ``first`` on."""
        config = self.model.config
        return forward(
            self.model.weights, stream, sink=config.sink, causal=config.causal, tap=tap, first=first
        )

    def norm(self, hook: str, stream: Array) -> Array:
        """Return the stream: a compiled network has no layer norms."""
        return stream

    def read_off(self, stream: Array) -> Any:
        """Return the logits at every position."""
        return stream[:, self.sink :] @ self.tensors["unembed.W_U"] + self.tensors["unembed.b_U"]

    def answers(self, logits: Array) -> NDArray[Any]:
        """Return the answer at every position."""
        return logits.argmax(axis=-1) if self.is_categorical else logits[..., 0]

    @cached_property
    def _nodes(self) -> dict[str, CircuitNode]:
        return {node.id: node for node in self.model.circuit.nodes}

    def path(self, edge: CircuitEdge) -> Path:
        """Return the path of an edge of the circuit."""
        source, target = self._nodes[edge.source], self._nodes[edge.target]
        hook, last = target.hook, target.places or None
        if target.kind == "units":
            assert target.layer is not None
            feed = self.model.weights.layers[target.layer].feed_forward
            assert feed is not None
            hook = f"blocks.{target.layer}.mlp.hook_pre"
            if feed.functions is not None:  # functions of a layer share their arguments
                outputs = feed.functions.outputs
                last = tuple(i for i in range(feed.functions.arguments) if i not in outputs)
        written = Place(source.hook, source.head, source.places or None)
        return Path(written, Place(hook, target.head, last), edge.slot)


class PathPatching:
    """A network on pairs of inputs of one length."""

    def __init__(self, network: Network, pairs: Pairs) -> None:
        self.network, self.size = network, len(pairs.clean)
        #: What every layer reads on the clean inputs, and the unembedding at last.
        self.streams: list[Array] = []
        self.clean = self._run(pairs.clean, self.streams)
        others: list[Array] = []
        self.other = self._run(pairs.other, others)
        self.answers = network.answers(network.read_off(self.streams[-1]))
        self.other_answers = network.answers(network.read_off(others[-1]))
        # Positions are the same in both inputs: their embeddings are interchanged between positions.
        orders = np.array(pairs.positions) + network.sink
        places = self.other["hook_pos_embed"] = self.other["hook_pos_embed"].copy()
        places[:, network.sink :] = np.take_along_axis(places, orders[..., None], axis=1)
        self._elsewhere = self._run_elsewhere(pairs.elsewhere)
        self._values: dict[tuple[Place, int | None], Array] = {}

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
        """Return the activations on inputs of other lengths, one for each pair."""
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
        """Return what a component writes into the slot of a path, [batch, position, slot]."""
        place = path.source
        block, _, name = place.hook.rpartition(".hook_")
        if not block:
            return cache[place.hook][..., path.columns]
        weights = self.network.tensors[f"{block}.W_{'O' if name == 'z' else 'out'}"]
        weights = weights if place.head is None else weights[place.head]
        last = slice(None) if place.last is None else list(place.last)
        return cache[place.hook][place.index()] @ weights[last, path.columns]

    def _read(self, place: Place, stream: Array) -> Any:
        """Return what a component computes of a stream."""
        block, _, name = place.hook.rpartition(".hook_")
        name = "in" if name == "pre" else name if place.head is None else name.upper()
        columns = slice(None) if place.last is None else list(place.last)
        weights = self.network.tensors[f"{block}.W_{name}"]
        bias = self.network.tensors.get(f"{block}.b_{name}", np.zeros(weights.shape[-1]))  # no b_gate
        if place.head is not None:
            weights, bias = weights[place.head], bias[place.head]
        return self.network.norm(place.hook, stream) @ weights[:, columns] + bias[columns]

    def _value(self, path: Path) -> Array:
        """Return what a changed path carries.

        What a component writes alike on the clean and the other inputs comes from another length.
        """
        key = (path.source, path.slot)
        if key not in self._values:
            value, clean = self._write(path, self.other), self._write(path, self.clean)
            if self._elsewhere and np.allclose(value, clean, rtol=0, atol=1e-9):
                value = self._write(path, self._elsewhere)
            self._values[key] = value
        return self._values[key]

    def patch(self, paths: Iterable[Path]) -> Any:
        """Return the answers with these paths as on the other inputs; None if there is no answer."""
        readers: dict[str, dict[Place, list[Path]]] = {}
        first = len(self.streams) - 1
        for path in paths:
            target = path.target
            if target.hook != UNEMBED:
                first = min(first, int(target.hook.split(".")[1]))
            places = [target]
            if target.hook.replace("hook_pre", "W_gate") in self.network.tensors:
                places.append(replace(target, hook=target.hook.replace("hook_pre", "hook_gate")))
            for place in places:
                readers.setdefault(place.hook, {}).setdefault(place, []).append(path)
        now, stream = dict(self.clean), self.streams[first]

        def change(changed: Sequence[Path]) -> Array:
            own = stream.copy()
            for path in changed:
                own[..., path.columns] += self._value(path) - self._write(path, now)
            return own

        def tap(name: str, value: Array) -> Array | None:
            nonlocal stream
            if name.endswith((".hook_resid_pre", ".hook_resid_mid")):
                stream = value
            elif name.endswith((".hook_z", ".hook_post")):
                now[name] = value
            if name not in readers:
                return None
            other = value.copy()
            for place, changed in readers[name].items():
                other[place.index()] = self._read(place, change(changed))
            return other

        with np.errstate(all="ignore"):
            try:
                stream = self.network.forward(stream, tap, first)
            except ExecutionError:
                return None
            read = change(readers.get(UNEMBED, {}).get(Place(UNEMBED), ()))
            return self.network.answers(self.network.read_off(read))

    def equal(self, one: Any, other: Any = None) -> NDArray[np.bool_]:
        """Return for each pair whether two answers, by default the clean one, agree everywhere."""
        other = self.answers if other is None else other
        if one is None:
            return np.zeros(self.size, bool)
        if self.network.is_categorical:
            return np.asarray((one == other).all(axis=1))
        scale = _EQUAL * max(1.0, float(np.abs(self.answers).max(initial=0.0)))
        return np.asarray((np.abs(one - other) <= scale).all(axis=1))


@dataclass(frozen=True)
class Pairs:
    """Inputs of one length, each with another one of that length."""

    clean: list[list[Atom]]
    other: list[list[Atom]]
    #: The order in which the positions of the other input are embedded.
    positions: list[list[int]]
    #: An input of another length for each pair, for what depends on the length alone.
    elsewhere: list[list[Atom]] | None = None
    #: Whether all inputs of that length are among them.
    complete: bool = False


def pairs_of(model: CompiledTransformer, most: int, seed: int = 0) -> Iterator[Pairs]:
    """Yield about ``most`` pairs: each input with a random other one, and with one token changed.

    Where there are at most ``most`` inputs, all of them are taken, of every length; else a sample.
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
    """Yield more pairs of the same inputs: each with every other one, or 2·``most`` of a length."""
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
    """List ``count`` orders of positions, one for each pair: shifts, backwards, and random ones.

    One order may leave where it is just what a part of the network looks for.

    >>> orders_of(3, 4)[:3]
    [[1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    draw = random.Random(seed)
    straight = list(range(positions))
    orders = [straight[shift:] + straight[:shift] for shift in range(1, positions)] + [straight[::-1]]
    orders += [draw.sample(straight, positions) for _ in straight]
    return [orders[place % len(orders)] for place in range(count)]


def _tokens(model: CompiledTransformer) -> list[Atom]:
    """List the tokens on which the program has a value."""
    vocabulary = model.config.vocabulary
    if vocabulary is None:
        raise InputError("expected a network with a vocabulary, got one of real-valued tokens")
    undefined = [token for token, _ in model.config.undefined]
    return [token for token in vocabulary if token not in undefined]


def _inputs(
    model: CompiledTransformer, most: int, draw: random.Random
) -> Iterator[tuple[list[list[Atom]], bool]]:
    """Yield the inputs of each length, and whether they are all there are."""
    tokens = _tokens(model)
    shortest, longest = model.config.lengths
    lengths = range(shortest, longest + 1)
    complete = sum(len(tokens) ** length for length in lengths) <= most
    # A sample is of a few lengths, so that it has many pairs of each.
    chosen = lengths if complete else sorted({longest, max(shortest, longest - 1), max(shortest, 2)})
    for length in chosen:
        if complete:
            yield [list(row) for row in product(tokens, repeat=length)], True
        else:
            share = max(1, most // len(chosen))
            yield [[draw.choice(tokens) for _ in range(length)] for _ in range(share)], False
