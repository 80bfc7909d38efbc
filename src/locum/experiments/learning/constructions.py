"""Define the networks that are trained, their forward pass, and their inputs.

- ``U`` is the universal simulator, trained on random inputs ⟨T, X⟩ with targets T(X).
- ``fetch`` is one head that reverses a sequence: each position receives the token of the mirrored
  position. Its position keys are of one of three kinds.
- ``matmul`` is a product of two matrices.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from locum.constructions import Matrix, matmul
from locum.errors import InputError
from locum.networks.compiler import compile as compile_program
from locum.networks.transformer import AttentionWeights, CompiledTransformer, LayerWeights, Weights
from locum.rasp.python import aggregate, indices, select, tokens, where
from locum.simulators import Attention, UniversalSimulator

Numbers = NDArray[np.float64]

#: Range for which networks are compiled; they are trained on numbers between −1 and 1.
RANGES = (-4.0, 4.0)


@dataclass(frozen=True)
class Construction:
    """A network with exact weights, and the function that it should compute."""

    model: CompiledTransformer
    #: Positions at which the network computes the answer.
    places: tuple[int, ...]
    #: Function from inputs [batch, position] to answers [batch, place].
    answers: Callable[[Numbers], Numbers]
    #: Function from inputs to inputs of a smaller order, padded with zeros, for which the network is
    #: also correct.
    smaller: Callable[[Numbers], Numbers] | None = None

    @property
    def length(self) -> int:
        """Number of input tokens."""
        return self.model.config.lengths[1]

    def inputs(self, draw: np.random.Generator, count: int, reach: float = 1.0) -> Numbers:
        """Return ``count`` random inputs with numbers between −``reach`` and ``reach``."""
        return draw.uniform(-reach, reach, (count, self.length))


def construction(settings: Mapping[str, Any]) -> Construction:
    """Return the construction that ``settings`` describes, from a cache if possible.

    >>> construction({"task": "fetch", "keys": "bits", "positions": 4, "inverse_temperature": 8}).length
    4
    """
    task = settings["task"]
    if task == "U":
        options = (settings.get("units", "glu"), float(settings.get("tolerance", 1e-3)))
        built = _universal(tuple(settings["order"]), *options)
    elif task == "fetch":
        built = _fetch(
            str(settings.get("keys", "squares")),
            int(settings["positions"]),
            float(settings.get("inverse_temperature", 16)),
        )
    elif task == "matmul":
        built = _matmul(int(settings["size"]), float(settings.get("tolerance", 1e-3)))
    else:
        raise InputError(f"expected the task U, fetch or matmul, got {task!r}")
    if settings.get("soften", 1.0) != 1.0:
        built = dataclasses.replace(built, model=softened(built.model, float(settings["soften"])))
    if settings.get("balanced", False):
        built = dataclasses.replace(built, model=built.model.balanced())
    return built


def softened(model: CompiledTransformer, factor: float) -> CompiledTransformer:
    """Return the network with the inverse temperatures of some heads multiplied by ``factor``.

    These heads approximate hard heads.
    """
    layers = []
    for layer, labels in zip(model.weights.layers, model.config.heads, strict=True):
        heads = layer.attention
        if heads is not None:
            by = np.array([factor if stands_in(label) else 1.0 for label in labels])
            heads = dataclasses.replace(
                heads, W_Q=heads.W_Q * by[:, None, None], b_Q=heads.b_Q * by[:, None]
            )
        layers.append(LayerWeights(heads, layer.feed_forward))
    return CompiledTransformer(model.config, dataclasses.replace(model.weights, layers=tuple(layers)))


def stands_in(label: str) -> bool:
    """Return whether the head with this label approximates a hard head.

    The exception is the softmax of the simulated attention, which has ``"softmax"`` in its label.

    >>> stands_in('select("softmax", "softmax", ==)')
    False
    """
    return '"softmax"' not in label


@functools.lru_cache(maxsize=32)
def _universal(order: tuple[int, int, int], units: str, tolerance: float) -> Construction:
    n, d, d_v = order
    simulator = UniversalSimulator(n, d, d_v)
    model = simulator.compile(
        "native", attention="softmax", feed_forward=units, ranges=RANGES, tolerance=tolerance
    )
    layout = model.config.report["layout"]

    def block(inputs: Numbers, name: str) -> Numbers:
        first, _, rows, columns = layout[name]
        return inputs[:, first : first + rows * columns].reshape(-1, rows, columns)

    def answers(inputs: Numbers) -> Numbers:
        X, A, V = (block(inputs, name) for name in ("X", "A", "V"))
        scores = X @ A @ X.transpose(0, 2, 1)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        outputs = weights / weights.sum(axis=-1, keepdims=True) @ (X @ V)
        return np.asarray(outputs.reshape(len(inputs), -1))

    def smaller(inputs: Numbers) -> Numbers:
        """Return a copy in which all numbers are 0, except one column of X and one entry of A and of V.

        The copy corresponds to an input of order (n, 1, 1).
        """
        kept = np.zeros_like(inputs)
        for name, (rows, columns) in {"X": (n, 1), "A": (1, 1), "V": (1, 1)}.items():
            block(kept, name)[:, :rows, :columns] = block(inputs, name)[:, :rows, :columns]
        return kept

    # The target is the definition of U; it is compared with T(X) on one input.
    one = np.linspace(-1, 1, model.config.lengths[1])[None]
    T, X = Attention(A=block(one, "A")[0], V=block(one, "V")[0]), block(one, "X")[0]
    assert np.allclose(answers(one)[0], np.asarray(T(X)).ravel())
    return Construction(model, tuple(range(n * d_v)), answers, smaller if d > 1 or d_v > 1 else None)


@functools.lru_cache(maxsize=32)
def _matmul(size: int, tolerance: float) -> Construction:
    left, right = (Matrix(tokens, size, size, offset=o) for o in (0, size * size))
    product = matmul(left, right, "fetch")
    row, column = indices // size, indices % size
    inside = where(indices < size * size, row, 0)
    program = product.at(inside, column)
    model = compile_program(
        program,
        length=2 * size * size,
        numeric=True,
        fixed=True,
        attention="softmax",
        feed_forward="glu",
        ranges=RANGES,
        tolerance=tolerance,
    )

    def answers(inputs: Numbers) -> Numbers:
        a, b = (part.reshape(-1, size, size) for part in np.split(inputs, 2, axis=1))
        return np.asarray((a @ b).reshape(len(inputs), -1))

    return Construction(model, tuple(range(size * size)), answers)


def position_keys(kind: str, count: int) -> tuple[Numbers, Numbers]:
    """Return queries and keys [position, number] whose score q·k is largest at equal positions.

    For position j and N positions, the kinds are:

    - ``squares``: query (2j, −1) and key (j, j²), as compiled for an equality;
    - ``one-hot``: N numbers;
    - ``bits``: the ⌈log₂ N⌉ binary digits of j, as ±1 in keys and ±½ in queries.

    The largest score exceeds the other scores by at least 1.

    >>> q, k = position_keys("squares", 3)
    >>> (q @ k.T - (q * k).sum(axis=1)[:, None]).tolist()
    [[0.0, -1.0, -4.0], [-1.0, 0.0, -1.0], [-4.0, -1.0, 0.0]]
    """
    j = np.arange(count, dtype=np.float64)
    if kind == "squares":
        return np.stack([2 * j, -np.ones(count)], axis=1), np.stack([j, j * j], axis=1)
    if kind == "one-hot":
        return np.eye(count), np.eye(count)
    if kind == "bits":
        places = np.arange((count - 1).bit_length())
        digits = np.where(np.arange(count)[:, None] >> places & 1, 1.0, -1.0)
        return digits / 2, digits
    raise InputError(f"expected keys of squares, one-hot or bits, got {kind!r}")


@functools.lru_cache(maxsize=32)
def _fetch(kind: str, count: int, beta: float) -> Construction:
    """Return a construction with one head that reverses a sequence of ``count`` tokens.

    Position i reads the token of position N − 1 − i. The weights differ from the weights of the
    compiled network, because they contain the keys of this kind. The slots are the token, the answer,
    the queries and the keys. The report is empty, and other settings are the same as in the compiled
    network.
    """
    program = aggregate(select(indices, count - 1 - indices, "=="), tokens)
    compiled = compile_program(
        program, length=count, numeric=True, fixed=True, attention="softmax",
        feed_forward="relu", ranges=RANGES, tolerance=1e-3,
    )  # fmt: skip
    queries, keys = position_keys(kind, count)
    size = keys.shape[1]
    width = 2 + 2 * size
    W_pos = np.concatenate([np.zeros((count, 2)), queries[::-1], keys], axis=1)
    W_Q, W_K, W_V = (np.zeros((1, width, size)) for _ in range(3))
    W_Q[0, 2 : 2 + size] = beta * np.eye(size)
    W_K[0, 2 + size :] = np.eye(size)
    W_V[0, 0, 0] = 1
    W_O = np.zeros((1, size, width))
    W_O[0, 0, 1] = 1
    none = np.zeros((1, size))
    head = AttentionWeights(W_Q, none, W_K, none, W_V, none, W_O, np.zeros(width), ("softmax",))
    W_E, W_U = np.eye(width)[:1], np.eye(width)[:, 1:2]
    weights = Weights(W_E, W_pos, (LayerWeights(head, None),), W_U, np.zeros(1))
    slots = (
        "token",
        "fetched",
        *(f"query {i}" for i in range(size)),
        *(f"key {i}" for i in range(size)),
    )
    config = dataclasses.replace(compiled.config, slots=slots, report={})
    model = CompiledTransformer(config, weights)
    return Construction(model, tuple(range(count)), lambda inputs: inputs[:, ::-1].copy())


@dataclass(frozen=True)
class Network:
    """The layout of all tensors in one vector of parameters, and the kinds of the feed-forwards."""

    shapes: dict[str, tuple[int, ...]]
    feeds: tuple[str | None, ...]
    #: For each layer and head, 1 if the head approximates a hard head, whose temperature may be
    #: annealed.
    stand_ins: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, model: CompiledTransformer) -> Network:
        """Return the layout of a model.

        ``InputError`` is raised for a model with a sink, a causal mask, a vocabulary or symbolic
        feed-forwards. The heads must be softmax heads.
        """
        config, layers = model.config, model.weights.layers
        if config.sink or config.causal or config.vocabulary is not None:
            raise InputError("expected a network on numbers, without a sink and without a mask")
        model.weights.require_soft("a network that is trained")
        if "exact" in model.weights.feed_forwards:
            raise InputError("expected hidden units, which can be trained, got exact feed-forwards")
        stand_ins = [tuple(float(stands_in(label)) for label in labels) for labels in config.heads]
        return cls(
            {name: tensor.shape for name, tensor in model.weights.named()},
            tuple(None if (feed := layer.feed_forward) is None else feed.kind for layer in layers),
            tuple(stand_ins),
        )

    def numbers(self, positions: int) -> int:
        """Return the number of elements of the largest attention pattern or hidden layer, for one input
        of ``positions`` tokens.
        """
        heads = [shape[0] for name, shape in self.shapes.items() if name.endswith(".W_Q")]
        units = [shape[1] for name, shape in self.shapes.items() if name.endswith(".W_in")]
        return positions * max([positions * most for most in heads] + units + [1])

    def vector(self, model: CompiledTransformer) -> Tensor:
        """Return all weights of a model as one vector of parameters."""
        parts = [tensor.ravel() for _, tensor in model.weights.named()]
        return torch.tensor(np.concatenate(parts), dtype=torch.float64)

    def tensors(self, vector: Tensor) -> dict[str, Tensor]:
        """Return a mapping from names to the tensors that a vector [.., parameters] contains."""
        tensors, first = {}, 0
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            part = vector[..., first : first + size]
            tensors[name] = part.reshape(*vector.shape[:-1], *shape)
            first += size
        return tensors

    def forward(self, vector: Tensor, inputs: Tensor, warmth: Tensor | float = 1.0) -> Tensor:
        """Return the outputs [batch, position] of the network with the parameters ``vector``.

        The scores of heads that approximate hard heads are multiplied by ``warmth``.
        """
        p = self.tensors(vector)
        stream = inputs[..., None] * p["embed.W_E"][0] + p["pos_embed.W_pos"][: inputs.shape[1]]
        for number, kind in enumerate(self.feeds):
            block = f"blocks.{number}"
            if f"{block}.attn.W_Q" in p:
                stand_in = torch.tensor(
                    self.stand_ins[number], dtype=stream.dtype, device=stream.device
                )
                stream = stream + _attend(p, f"{block}.attn", stream, 1 + stand_in * (warmth - 1))
            if kind is not None:
                stream = stream + _feed(p, f"{block}.mlp", stream, kind)
        return stream @ p["unembed.W_U"][:, 0] + p["unembed.b_U"][0]


def _attend(p: Mapping[str, Tensor], name: str, stream: Tensor, factor: Tensor) -> Tensor:
    heads, width, size = p[f"{name}.W_Q"].shape
    batch, positions, _ = stream.shape

    def read(what: str) -> Tensor:
        matrix = p[f"{name}.W_{what}"].transpose(0, 1).reshape(width, heads * size)
        projected = stream @ matrix + p[f"{name}.b_{what}"].reshape(heads * size)
        return projected.reshape(batch, positions, heads, size).transpose(1, 2)

    q, k, v = read("Q"), read("K"), read("V")
    pattern = torch.softmax((q * factor[:, None, None]) @ k.transpose(-1, -2), dim=-1)
    z = (pattern @ v).transpose(1, 2).reshape(batch, positions, heads * size)
    return z @ p[f"{name}.W_O"].reshape(heads * size, width) + p[f"{name}.b_O"]


def _feed(p: Mapping[str, Tensor], name: str, stream: Tensor, kind: str) -> Tensor:
    before = stream @ p[f"{name}.W_in"] + p[f"{name}.b_in"]
    if kind == "glu":
        after = torch.relu(stream @ p[f"{name}.W_gate"]) * before
    else:
        after = torch.relu(before) if kind == "relu" else torch.nn.functional.gelu(before)
    return after @ p[f"{name}.W_out"] + p[f"{name}.b_out"]
