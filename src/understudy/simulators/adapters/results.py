"""What came of running a model on U: states after every layer, embeddings, errors, times, what ran where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.simulators.arrays import Array, is_tensor, numpy_of
from understudy.simulators.module import Numbers

if TYPE_CHECKING:
    from understudy.simulators.adapters.direct import DirectForward
    from understudy.simulators.adapters.model import Batch, EncoderModel


class Simulated(NamedTuple):
    """U's results: ``states[layer][text]`` without padding, one embedding per text, and the time."""

    states: list[list[Numbers]]
    embeddings: Numbers
    seconds: float
    padded: Sequence[Sequence[Array]]


class Comparison(NamedTuple):
    """The same by the model's own forward pass."""

    states: list[list[Numbers]]
    embeddings: Numbers
    seconds: float
    direct: DirectForward
    padded: Sequence[Array]
    seen: Array


@dataclass(frozen=True)
class ModelRun:
    """A model on some texts: what U gave, and how far that is from the model itself."""

    model: EncoderModel
    batch: Batch
    simulated: Simulated
    #: Seconds for plans, made once per shape.
    planning: float
    comparison: Comparison | None

    @property
    def embeddings(self) -> Numbers:
        """U's embeddings: one row of length 1 for each text."""
        return self.simulated.embeddings

    @property
    def states(self) -> list[list[Numbers]]:
        """U's ``states[layer][text]``, the embeddings of tokens being layer 0."""
        return self.simulated.states

    @property
    def errors(self) -> list[float]:
        """The greatest difference to the model's own forward pass, after each layer (0: embeddings)."""
        direct = self._compared()
        return [
            max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
            for ours, theirs in zip(self.states, direct.states, strict=True)
        ]

    @property
    def cosines(self) -> list[float]:
        """The cosine between U's embedding of each text and the model's own."""
        return [float(a @ b) for a, b in zip(self.embeddings, self._compared().embeddings, strict=True)]

    @property
    def similarities(self) -> Numbers:
        """The cosine of each text's embedding to each other's, by U."""
        return np.asarray(self.embeddings @ self.embeddings.T)

    @property
    def direct_similarities(self) -> Numbers:
        """The same by the model's own forward pass."""
        embeddings = self._compared().embeddings
        return np.asarray(embeddings @ embeddings.T)

    def attention(self, text: int, layer: int, head: int) -> tuple[Numbers, Numbers | None]:
        """Weights [query, key] of a head, by U and by the model itself (if compared)."""
        ours = self.batch.attention(text, layer, head, self.simulated.padded)
        compared, size = self.comparison, self.batch.lengths[text]
        if compared is None:
            return ours, None
        rows, seen = compared.padded[layer][text : text + 1], compared.seen[text : text + 1]
        theirs = numpy_of(compared.direct.attention(layer, rows, seen)[0, head])
        return ours, theirs[:size, :size]

    @property
    def dtype(self) -> str:
        """In what kind of number it was run."""
        kind = self.model.kind
        return str(kind.dtype).removeprefix("torch.") + (", torch" if is_tensor(kind) else ", NumPy")

    @property
    def where(self) -> list[tuple[str, str]]:
        """What ran where."""
        form = {
            "factored": "W_Q, W_K, W_V and W_O of T as they are (factored)",
            "paper": "A = W_Q W_Kᵀ per head, biases by a column of ones (the paper's form)",
        }[self.model.form]
        folded = "host, before any text: 1/√(columns of a head) into W_Q"
        return [
            ("tokenisation, rows of the table of words", "host"),
            ("scale of the scores", folded if self.model.form == "factored" else "host, into A"),
            ("sum of words, positions and types; its norm", "U"),
            (f"attention, {form}; padding as a row of tokens", "U"),
            ("residual sums, norms, feed-forward", "U"),
            (f"pooling ({self.model.checkpoint.pooling}) and scaling to length 1", "U"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        U, checkpoint = self.batch.U, self.model.checkpoint
        found: dict[str, Any] = {
            "model": checkpoint.folder.name if checkpoint.folder.name != "model" else "minilm",
            "form": self.model.form,
            "dtype": self.dtype,
            "layers": self.model.count,
            "texts": [
                {"text": text.text, "tokens": text.tokens, "numbers": text.numbers}
                for text in self.batch.texts
            ],
            "padded_to": self.batch.n,
            "simulator": {
                "order": str(U.order),
                "tokens": U.length,
                "layers": U.architecture.layers,
                "heads": U.architecture.heads,
                "program": U.hash,
            },
            "where": dict(self.where),
            "embeddings": self.embeddings.tolist(),
            "similarities": self.similarities.tolist(),
            "seconds": {"planning": self.planning, "simulated": self.simulated.seconds},
        }
        if self.comparison is not None:
            found["errors"] = self.errors
            found["cosines"] = self.cosines
            found["direct_similarities"] = self.direct_similarities.tolist()
            found["seconds"]["direct"] = self.comparison.seconds
        return found

    def _compared(self) -> Comparison:
        if self.comparison is None:
            raise ValueError("this run was not compared with the model: compare=True does that")
        return self.comparison
