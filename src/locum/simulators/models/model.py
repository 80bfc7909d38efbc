"""A whole trained encoder on U: embeddings, every layer and the pooling are programs, one per shape.

The host tokenises and looks rows up in the table of words; all else of T is computed by U.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import like, numpy_of
from locum.simulators.models.batch import Batch, Finished
from locum.simulators.models.direct import DirectForward
from locum.simulators.models.loading import LoadedModel
from locum.simulators.models.reference import FORMULA, TRANSFORMERS, reference
from locum.simulators.models.results import Comparison, ModelRun
from locum.simulators.models.tokenising import Text, tokenised


class EncoderModel(LoadedModel):
    """A checkpoint, ready to be run on texts by U."""

    def texts(self, texts: Sequence[str | Sequence[int]]) -> list[Text]:
        """Check texts, or lists of token ids, and tokenise the former."""
        if not isinstance(texts, (list, tuple)) or not texts:
            kind = type(texts).__name__ if not isinstance(texts, (list, tuple)) else "an empty one"
            raise InputError(f"expected a list of texts, or of lists of token ids, got {kind}")
        words = [text for text in texts if isinstance(text, str)]
        checkpoint = self.checkpoint
        made = iter(
            tokenised(checkpoint.folder, words, checkpoint.positions, checkpoint.sentence)
            if words
            else []
        )
        return [self._known(next(made) if isinstance(text, str) else _ids(text)) for text in texts]

    def _known(self, text: Text) -> Text:
        """Refuse more tokens than the model has positions, and ids that its table lacks."""
        positions, known = self.checkpoint.positions, len(self.embeddings["words"])
        if not 1 <= len(text.numbers) <= positions:
            raise InputError(
                f"text: expected 1 to {positions} tokens in this model, got {len(text.numbers)}"
            )
        unknown = [number for number in text.numbers if not 0 <= number < known]
        if unknown:
            raise InputError(f"expected tokens from 0 to {known - 1}, got {unknown[0]}")
        return text

    def run(
        self,
        texts: Sequence[str | Sequence[int]],
        *,
        executor: str | None = None,
        compare: bool = True,
        finished: Finished = lambda name: None,
    ) -> ModelRun:
        """Run all layers on all texts by U; ``compare`` them with transformers' own forward pass.

        Where transformers is not installed, or does not load the folder, the comparison is with a plain
        formula of ours; ``run.compared_with`` says which it was.
        """
        batch = Batch(self, self.texts(texts), executor)
        started = time.perf_counter()
        batch.prepare()
        planning = time.perf_counter() - started
        comparison = _compared(batch) if compare else None
        simulated = batch.simulate(finished)
        return ModelRun(self, batch, simulated, planning, comparison)


def _compared(batch: Batch) -> Comparison:
    """Run the same padded batch by transformers, or else by a plain formula of ours; timed."""
    model, seen = batch.model, like(batch.seen, batch.model.kind)
    direct = DirectForward(model.checkpoint, model.kind, model.count)
    dtype = str(model.kind.dtype).removeprefix("torch.")
    theirs = reference(model.checkpoint.folder, dtype, batch.numbers, batch.seen, model.count)
    if theirs is not None:
        states = [like(state, model.kind) for state in theirs.states]
        attentions, seconds = theirs.attentions, theirs.seconds
    else:
        attentions = None
        direct.layer(0, direct.embed(batch.numbers), seen)  # the first run is slower
        began = time.perf_counter()
        states = [direct.embed(batch.numbers)]
        for number in range(model.count):
            states.append(direct.layer(number, states[-1], seen))
        seconds = time.perf_counter() - began
    trimmed = [
        [numpy_of(X)[:length] for X, length in zip(layer, batch.lengths, strict=True)]
        for layer in states
    ]
    embeddings = numpy_of(direct.pooled(states[-1], seen))
    source = FORMULA if theirs is None else TRANSFORMERS
    return Comparison(source, trimmed, embeddings, seconds, direct, states, seen, attentions)


def _ids(text: object) -> Text:
    """Read a list of token ids: integers, and nothing that only rounds to them."""
    if not isinstance(text, (list, tuple)):
        raise InputError(f"expected a text or a list of token ids, got {type(text).__name__}")
    for number in text:
        if type(number) is not int and not isinstance(number, np.integer):
            raise InputError(f"expected token ids as integers, got {number!r}")
    numbers = [int(number) for number in text]
    return Text("", [str(number) for number in numbers], numbers)
