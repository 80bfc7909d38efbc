"""A whole trained encoder on U: embeddings, every layer and the pooling are programs, one per shape.

All layers of a model have one order, so one U (and one plan) serves them all; a text shorter than the
longest is padded, and which keys count is a row among the tokens. The host tokenises and looks rows up
in the table of words; all else of T is computed by U.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from locum.constructions import Matrix
from locum.errors import InputError
from locum.execution.inputs import is_tensor
from locum.simulators.arrays import Array, like, numpy_of
from locum.simulators.models.checkpoint import Checkpoint, read_checkpoint
from locum.simulators.models.direct import DirectForward
from locum.simulators.models.embedding_and_pooling import NormedSum, Pooling
from locum.simulators.models.forms import from_arrays
from locum.simulators.models.results import Comparison, ModelRun, Simulated
from locum.simulators.models.tokenising import Text, tokenised
from locum.simulators.modules.encoder import Encoder
from locum.simulators.order import Order
from locum.simulators.prepared import Prepared
from locum.simulators.universal import UniversalSimulator

#: What hears of each layer that is done.
Finished = Callable[[str], None]


class EncoderModel:
    """A checkpoint as T's, in one kind of array, ready to be run by U."""

    def __init__(
        self,
        path: str | Path | Checkpoint,
        *,
        form: str = "factored",
        dtype: str | None = None,
        backend: str | None = None,
        layers: int | None = None,
    ) -> None:
        """``path``: a folder, or "minilm". ``form``: factored or paper, the parametrisation of heads.

        ``backend`` is torch (where that is installed, unless said) or numpy; ``dtype`` float32 or
        float64 (NumPy: float64 only). ``layers``: only so many of the first.
        """
        self.checkpoint = path if isinstance(path, Checkpoint) else read_checkpoint(path)
        self.form = form
        self.kind = kind_of_array(dtype, backend)
        count = self.checkpoint.layers
        self.count = count if layers is None else layers
        if not 1 <= self.count <= count:
            raise InputError(f"the model has {count} layers: {self.count} of them cannot be run")
        self.embeddings = {
            name: like(np.atleast_2d(tensor), self.kind)
            for name, tensor in self.checkpoint.embeddings.items()
        }
        self.layers = [self._layer(number) for number in range(self.count)]

    def _layer(self, number: int) -> Encoder:
        checkpoint = self.checkpoint
        tensors = {name: like(t, self.kind) for name, t in checkpoint.layer(number).items()}
        T = from_arrays(
            tensors,
            checkpoint.heads,
            activation=checkpoint.activation,
            epsilon=checkpoint.epsilon,
            mask=np.ones(1),  # one for each key comes with every run
            form=self.form,
        )
        assert isinstance(T, Encoder)
        return T

    def texts(self, texts: Sequence[str | Sequence[int]]) -> list[Text]:
        """Texts, or lists of numbers of tokens, checked."""
        if isinstance(texts, str) or not texts:
            raise InputError("texts come as a list of one or more")
        words = [text for text in texts if isinstance(text, str)]
        positions = self.checkpoint.positions
        made = iter(tokenised(self.checkpoint.folder, words, positions) if words else [])
        return [next(made) if isinstance(text, str) else self._numbered(text) for text in texts]

    def _numbered(self, given: Sequence[int]) -> Text:
        numbers, known = [int(number) for number in given], len(self.embeddings["words"])
        if not 1 <= len(numbers) <= self.checkpoint.positions:
            raise InputError(
                f"a text has 1 to {self.checkpoint.positions} tokens in this model, but got "
                f"{len(numbers)}"
            )
        wrong = [number for number in numbers if not 0 <= number < known]
        if wrong:
            raise InputError(f"there is no token {wrong[0]}: they are 0 to {known - 1}")
        return Text("", [str(number) for number in numbers], numbers)

    def run(
        self,
        texts: Sequence[str | Sequence[int]],
        *,
        executor: str | None = None,
        compare: bool = True,
        finished: Finished = lambda name: None,
    ) -> ModelRun:
        """All layers on all texts, by U; and, to ``compare``, by the model's own forward pass."""
        batch = Batch(self, self.texts(texts), executor)
        started = time.perf_counter()
        batch.prepare()
        planning = time.perf_counter() - started
        comparison = _compared(batch) if compare else None
        simulated = batch.simulate(finished)
        return ModelRun(self, batch, simulated, planning, comparison)


class Batch:
    """Texts padded to one length, and the U's of that length."""

    def __init__(self, model: EncoderModel, texts: Sequence[Text], executor: str | None) -> None:
        self.model, self.texts, self.executor = model, list(texts), executor
        self.lengths = [len(text.numbers) for text in texts]
        self.n = max(self.lengths)
        checkpoint, d = model.checkpoint, model.checkpoint.d
        order = model.layers[0].order(self.n)
        addends = ("positions", "types") if "types" in model.embeddings else ("positions",)
        self.U = simulator_of(order)
        self.embedding = NormedSum(self.n, d, addends, checkpoint.epsilon)
        self.pooling = Pooling(self.n, d, checkpoint.pooling)
        self.numbers = np.zeros((len(self.texts), self.n), dtype=np.int64)
        self.seen = np.zeros((len(self.texts), self.n))
        for place, text in enumerate(texts):
            self.numbers[place, : len(text.numbers)] = text.numbers
            self.seen[place, : len(text.numbers)] = 1
        self.masks = [like(row[None], model.kind) for row in self.seen]
        tables = model.embeddings
        first = {name: tables[name] for name in ("gain", "bias")}
        first["positions"] = tables["positions"][: self.n]
        if "types" in tables:
            first["types"] = _repeated(tables["types"][:1], self.n)
        self.embed = Prepared(self.embedding, {k: [v] for k, v in first.items()}, model.kind)
        self.layers = [Prepared(self.U, self._matrices(T), model.kind) for T in model.layers]
        self.pool = Prepared(self.pooling, {}, model.kind)

    def _matrices(self, T: Encoder) -> dict[str, Any]:
        found = T.matrices()
        del found["seen"]  # it comes with each text
        return found

    def prepare(self) -> None:
        """Make the plans: run the first layer, and both ends, once."""
        X = self.embed(self.words(0), executor=self.executor)
        Y = self.layers[0](X, {"seen": self.masks[0]}, executor=self.executor)
        self.pool(Y, {"seen": self.masks[0]}, executor=self.executor)

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
                    layer(X, {"seen": mask}, executor=run)
                    for X, mask in zip(states[-1], self.masks, strict=True)
                ]
            )
            finished(f"layer {number}")
        pooled = [
            self.pool(X, {"seen": mask}, executor=run)
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
        others, step = {"seen": self.masks[text]}, self.steps[name]
        found = self.layers[layer](states[layer][text], others, executor=self.executor, step=step)
        size = self.lengths[text]
        return numpy_of(found)[:size, :size]


def _compared(batch: Batch) -> Comparison:
    """The model's own forward pass on the same padded batch, timed after a first run."""
    direct = DirectForward(batch.model.checkpoint, batch.model.kind, batch.model.count)
    seen = like(batch.seen, batch.model.kind)
    direct.layer(0, direct.embed(batch.numbers), seen)
    began = time.perf_counter()
    states = [direct.embed(batch.numbers)]
    for number in range(batch.model.count):
        states.append(direct.layer(number, states[-1], seen))
    embeddings = numpy_of(direct.pooled(states[-1], seen))
    seconds = time.perf_counter() - began
    trimmed = [
        [numpy_of(X)[:length] for X, length in zip(layer, batch.lengths, strict=True)]
        for layer in states
    ]
    return Comparison(trimmed, embeddings, seconds, direct, states, seen)


def kind_of_array(dtype: str | None, backend: str | None) -> Array:
    """An empty array of the kind that a model is to be run in."""
    if backend not in (None, "torch", "numpy"):
        raise InputError(f"there is no backend {backend!r}: choose torch or numpy")
    if dtype not in (None, "float32", "float64"):
        raise InputError(f"there is no dtype {dtype!r}: choose float32 or float64")
    if backend != "numpy":
        try:
            import torch
        except ImportError:
            if backend == "torch":
                raise InputError("torch is not installed: pip install 'locum[torch]'") from None
        else:
            return torch.zeros(0, dtype=getattr(torch, dtype or "float32"))
    if dtype == "float32":
        raise InputError("float32 is run by torch (pip install 'locum[torch]'); NumPy runs float64")
    return np.zeros(0)


@lru_cache(maxsize=64)
def simulator_of(order: Order) -> UniversalSimulator:
    """The U of an order, built once."""
    return UniversalSimulator(order)


def _repeated(row: Array, n: int) -> Array:
    return row.expand(n, -1).contiguous() if is_tensor(row) else np.repeat(row, n, axis=0)
