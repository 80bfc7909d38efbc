"""Run a folder of any family on texts, and hold what U gives against transformers' own forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locum.execution.arrays import numpy_of
from locum.simulators.models.families.running import Model
from locum.simulators.models.reference import Outputs, reference_outputs
from locum.simulators.models.tokenising import Text
from locum.simulators.modules.module import Numbers
from locum.simulators.recording import record

#: The outputs that are compared, by name.
NAMES = ("last_hidden_state", "logits", "pooler_output")


@dataclass(frozen=True)
class ComparedRun:
    """What U gave for some texts, and what the library gives, if it was asked."""

    model: Model
    texts: Sequence[Text]
    #: The outputs by name, and the states before the first layer and after each: [text, position, …].
    outputs: Mapping[str, Numbers]
    states: Sequence[Numbers]
    #: Of each layer [text, head, query, key], if they were recorded.
    attentions: Sequence[Numbers] = ()
    theirs: Outputs | None = field(default=None, repr=False)

    @property
    def compared_with(self) -> str | None:
        """What U was compared with, if it was."""
        return None if self.theirs is None else self.theirs.by

    @property
    def errors(self) -> dict[str, float] | None:
        """The greatest difference of each output, relative to its greatest number, if compared."""
        if self.theirs is None:
            return None
        named = self.theirs.outputs
        return {name: self._error(self.outputs[name], named[name]) for name in self.outputs}

    @property
    def state_errors(self) -> list[float] | None:
        """The same of the states before the first layer and after each."""
        if self.theirs is None:
            return None
        pairs = zip(self.states, self.theirs.states, strict=False)  # of some layers, if not all
        return [self._error(ours, its) for ours, its in pairs]

    def attention(self, text: int, layer: int, head: int) -> tuple[Numbers, Numbers | None]:
        """Return the weights [query, key] of a head, by U and by the library (if compared)."""
        size = len(self.texts[text].numbers)
        ours = self.attentions[layer][text, head, :size, :size]
        if self.theirs is None or not self.theirs.attentions:
            return ours, None
        return ours, self.theirs.attentions[layer][text, head, :size, :size]

    def _error(self, ours: Numbers, theirs: Numbers) -> float:
        """Compare the tokens that count."""
        difference, scale = np.abs(ours - theirs), 1 + np.abs(theirs).max()
        if difference.ndim == 3:
            each = [difference[k, : len(text.numbers)] for k, text in enumerate(self.texts)]
            return float(max(rows.max() for rows in each) / scale)
        return float(difference.max() / scale)


def compared_run(
    model: Model,
    texts: Sequence[str],
    *,
    executor: str | None = None,
    compare: bool = True,
    attentions: bool = False,
    finished: Callable[[str], None] = lambda name: None,
) -> ComparedRun:
    """Run a folder on texts by U and (``compare``) by the library, both on the same token ids."""
    folder = model.source.folder
    assert folder is not None
    tokenised = model.texts(texts)
    inputs = model.tokenised([text.numbers for text in tokenised])
    recorded: AbstractContextManager[dict[str, Any]] = nullcontext({})
    if attentions:
        recorded = record("*attn.hook_pattern")
    with recorded as cache:
        outcome = model.run(inputs, executor=executor, finished=finished)
    layers = len(model.description.stack.layers)
    outputs: dict[str, Any] = {name: getattr(outcome, name) for name in NAMES}
    maps = [f"blocks.{number}.attn.hook_pattern" for number in range(layers)] if attentions else []
    kind = str(model.kind.dtype).removeprefix("torch.")
    theirs = None
    if compare:
        theirs = reference_outputs(folder, kind, inputs, model.source.architecture, attentions)
    if theirs is not None and model.is_cut:  # the library ran all layers
        theirs = theirs._replace(outputs={"last_hidden_state": theirs.states[layers]})
    return ComparedRun(
        model,
        tokenised,
        {name: numpy_of(value) for name, value in outputs.items() if value is not None},
        [numpy_of(state) for state in outcome.hidden_states],
        [numpy_of(cache[name]) for name in maps],
        theirs,
    )
