"""A whole trained encoder on U: embeddings, every layer and the pooling are programs, one per shape.

The host tokenises and looks rows up in the table of words; all else of T is computed by U.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from locum.errors import InputError
from locum.execution.arrays import like, numpy_of
from locum.simulators.models.batch import Batch, Finished
from locum.simulators.models.direct import DirectForward
from locum.simulators.models.loading import LoadedModel
from locum.simulators.models.results import Comparison, ModelRun
from locum.simulators.models.tokenising import Text, tokenised


class EncoderModel(LoadedModel):
    """A checkpoint, ready to be run on texts by U."""

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
