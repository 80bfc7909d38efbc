"""What came of running a model on U: states after every layer, embeddings, errors, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from locum.execution.arrays import Array, is_tensor, like, numpy_of
from locum.html_table import MOST, text_rows
from locum.shortening import shortened
from locum.simulators.models.batch import Batch, Simulated
from locum.simulators.models.direct import DirectForward
from locum.simulators.models.families.description import Output
from locum.simulators.models.families.table import describe
from locum.simulators.models.folders import MINILM, MINILM_PACKAGE
from locum.simulators.models.loading import LoadedModel
from locum.simulators.modules.module import Numbers


class Comparison(NamedTuple):
    """The same by another forward pass."""

    #: Whose it is: that of transformers, or a plain formula of ours.
    source: str
    states: list[list[Numbers]]
    embeddings: Numbers
    seconds: float
    direct: DirectForward
    padded: Sequence[Array]
    seen: Array
    #: [text, head, query, key] of each layer, where the other forward pass gives it.
    attentions: Sequence[Array] | None = None


@dataclass(frozen=True)
class ModelRun:
    """A model on some texts: what U gave, and how far that is from the model itself."""

    model: LoadedModel
    batch: Batch
    simulated: Simulated
    #: Seconds for plans, made once per shape.
    planning: float
    comparison: Comparison | None

    @property
    def embeddings(self) -> Numbers:
        """U's embeddings: one row for each text, pooled and scaled as the folder says."""
        return self.simulated.embeddings

    @property
    def last_hidden_state(self) -> Numbers:
        """The last states, [text, position, feature]; 0 where a text is padded to the longest."""
        padded = np.zeros((len(self.batch.texts), self.batch.n, self.states[-1][0].shape[1]))
        for text, rows in enumerate(self.states[-1]):
            padded[text, : len(rows)] = rows
        return padded

    @property
    def pooler_output(self) -> Numbers | None:
        """What the model's pooler makes of the first state of each text, where it has one."""
        return self._output("pooler_output")

    @property
    def logits(self) -> Numbers | None:
        """The logits of every token, [text, position, word], where the model has them."""
        logits = self._output("logits")
        shape = (len(self.batch.texts), self.batch.n, -1)
        return None if logits is None else logits.reshape(shape)

    def _output(self, name: str) -> Numbers | None:
        output = self._outputs.get(name)
        if output is None:
            return None
        last = self.last_hidden_state
        rows = last[:, 0] if output.first else last.reshape(-1, last.shape[2])
        return numpy_of(output.stage(like(np.ascontiguousarray(rows), self.model.kind)))

    @cached_property
    def _outputs(self) -> Mapping[str, Output]:
        """What the model makes of its last states: read when it is asked for."""
        return describe(self.model.checkpoint.folder)[0].outputs

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
        pairs = zip(self.embeddings, self._compared().embeddings, strict=True)
        return [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs]

    @property
    def similarities(self) -> Numbers:
        """The cosine of each text's embedding to each other's, by U."""
        return _cosines(self.embeddings)

    @property
    def direct_similarities(self) -> Numbers:
        """The same by the model's own forward pass."""
        return _cosines(self._compared().embeddings)

    def attention(self, text: int, layer: int, head: int) -> tuple[Numbers, Numbers | None]:
        """Return the weights [query, key] of a head, by U and by the model itself (if compared)."""
        ours = self.batch.attention(text, layer, head)
        compared, size = self.comparison, self.batch.lengths[text]
        if compared is None:
            return ours, None
        if compared.attentions is not None:
            return ours, numpy_of(compared.attentions[layer][text, head])[:size, :size]
        rows, seen = compared.padded[layer][text : text + 1], compared.seen[text : text + 1]
        theirs = numpy_of(compared.direct.attention(layer, rows, seen)[0, head])
        return ours, theirs[:size, :size]

    @property
    def compared_with(self) -> str | None:
        """What U was compared with: transformers' own forward pass, or a plain formula of ours."""
        return None if self.comparison is None else self.comparison.source

    @property
    def name(self) -> str:
        """What the model is called: the name of its folder, or of its package."""
        folder = self.model.checkpoint.folder
        return MINILM if folder.parent.name == MINILM_PACKAGE else folder.name

    @property
    def dtype(self) -> str:
        """In what kind of number it was run."""
        kind = self.model.kind
        return str(kind.dtype).removeprefix("torch.") + (", torch" if is_tensor(kind) else ", NumPy")

    @property
    def where(self) -> list[tuple[str, str]]:
        """Where it ran, and what."""
        once, attention = {
            "factored": (
                "once, the scale of the scores into W_Q",
                "W_Q, W_K, W_V and W_O as they are (the factored form)",
            ),
            "paper": (
                "once, A = W_Q W_Kᵀ of each head, with scale and biases",
                "A and V of each head, biases by a column of ones (the paper's form)",
            ),
        }[self.model.form]
        sentence = self.model.checkpoint.sentence
        scaling = " and scaling to length 1" if sentence.normalised else ""
        return [
            ("host", f"tokenisation; rows of the table of words; {once}"),
            ("U", "sum of words, positions and types, and its norm"),
            ("U", f"attention by {attention}, padding as a row of tokens"),
            ("U", "residual sums, norms, feed-forward"),
            ("U", f"pooling ({sentence.pooling}){scaling}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for scripts."""
        data: dict[str, Any] = {
            "model": self.name,
            "form": self.model.form,
            "dtype": self.dtype,
            "layers": self.model.count,
            "texts": [
                {"text": text.text, "tokens": text.tokens, "numbers": text.numbers}
                for text in self.batch.texts
            ],
            "padded_to": self.batch.n,
            "simulator": self.batch.U.to_dict(),
            "executor": self.batch.executor or "fast",
            "where": [list(part) for part in self.where],
            "embeddings": self.embeddings.tolist(),
            "similarities": self.similarities.tolist(),
            "seconds": {"planning": self.planning, "simulated": self.simulated.seconds},
        }
        if self.comparison is not None:
            data["compared_with"] = self.compared_with
            data["errors"] = self.errors
            data["cosines"] = self.cosines
            data["direct_similarities"] = self.direct_similarities.tolist()
            data["seconds"]["direct"] = self.comparison.seconds
        return data

    def _repr_html_(self) -> str:
        """Show texts, sizes and errors in a notebook."""
        rows = [
            ("model", f"{self.name}, {self.model.count} layers, {self.dtype}"),
            ("texts", "\n".join(shortened(text.text, 80) for text in self.batch.texts[:MOST])),
            ("last_hidden_state", "×".join(map(str, self.last_hidden_state.shape))),
            ("compared with", self.compared_with or "nothing: compare=True does that"),
        ]
        if self.comparison is not None:
            rows.append(("largest difference", f"{max(self.errors):.1e}"))
        return text_rows("a model on U", rows)

    def _compared(self) -> Comparison:
        if self.comparison is None:
            raise ValueError("this run was not compared with the model: compare=True does that")
        return self.comparison


def _cosines(rows: Numbers) -> Numbers:
    """Return the cosine of each row to each other."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(units @ units.T)
