"""A program as a transformer: weights, and how to feed and read them.

The weights do all the work; this object only turns tokens into rows of ``W_E`` and the outputs of
``W_U`` back into tokens or numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import ExecutionError, InputError
from understudy.graph import Node, is_atom, loads, postorder
from understudy.graph.atoms import identity
from understudy.transformer.config import Config
from understudy.transformer.forward import Tap, forward
from understudy.transformer.weights import Array, Weights


class CompiledTransformer:
    """A transformer that computes what a RASP program computes."""

    def __init__(self, config: Config, weights: Weights) -> None:
        self.config = config
        self.weights = weights

    def __call__(self, inputs: Any) -> Any:
        """The program's answer: a list for a list (or a string), an array for an array."""
        batch, answer = self._read(inputs)
        return answer(self._run(batch))

    def _run(self, batch: Sequence[Sequence[Any]], tap: Tap | None = None) -> list[list[Any]]:
        stream = self.embed(batch)
        if tap is not None:
            tap("hook_embed", stream)
        final = forward(self.weights, stream, sink=self.config.sink, tap=tap)
        return self.read_off(final)

    def embed(self, batch: Sequence[Sequence[Any]]) -> Array:
        """The residual stream before the first layer, [batch, position, slot]."""
        weights, config = self.weights, self.config
        size = len(batch[0])
        stream = np.repeat(weights.W_pos[None, : size + config.sink], len(batch), axis=0)
        if config.vocabulary is None:
            numbers = np.array([[self._number(token) for token in row] for row in batch])
            stream[:, config.sink :] += numbers.astype(stream.dtype)[..., None] * weights.W_E[0]
        else:
            stream[:, config.sink :] += weights.W_E[[[self._id(token) for token in row] for row in batch]]
        return stream

    def read_off(self, stream: Array) -> list[list[Any]]:
        """The answers, from the stream behind the last layer."""
        logits = stream[:, self.config.sink :] @ self.weights.W_U + self.weights.b_U
        if not np.isfinite(logits).all():
            raise ExecutionError(
                "a number left the range of the floats", "the residual stream", kind="OverflowError"
            )
        if self.config.outputs is None:
            return [[float(number) for number in row] for row in logits[..., 0]]
        return [[self.config.outputs[i] for i in row] for row in logits.argmax(axis=-1).tolist()]

    # What comes in ------------------------------------------------------------------------------

    def _read(self, inputs: Any) -> tuple[list[list[Any]], Any]:
        from understudy.execution.floats import FloatDomain
        from understudy.execution.inputs import read

        found = read(inputs, FloatDomain())
        rows = [list(sequence) for sequence in found.sequences]
        for row in rows:
            self._check_length(len(row))
        return rows, found.answer

    def _check_length(self, size: int) -> None:
        shortest, longest = self.config.lengths
        if not shortest <= size <= longest:
            wanted = (
                f"exactly {longest} tokens"
                if shortest == longest
                else f"{shortest} to {longest} tokens"
            )
            raise InputError(f"this transformer takes {wanted}, but the input has {size}")

    def _number(self, token: Any) -> float:
        if isinstance(token, str) or not is_atom(token):
            raise InputError(f"this transformer takes numbers, but the input has {token!r}")
        number = float(token)
        if not np.isfinite(number) or (isinstance(token, int) and int(number) != token):
            raise InputError(f"the input has {token!r}, which is beyond what a float holds")
        return number

    @cached_property
    def _ids(self) -> dict[Any, int]:
        """The row of W_E for each token.

        1, 1.0 and True are written differently, and a program that reads how tokens are written tells
        them apart; for any other, equal numbers are one token.
        """
        tokens = list(enumerate(self.config.vocabulary or ()))
        exact = {identity(token): i for i, token in tokens}
        if any(node.op == "tokens" and node.attributes["cast"] == "str" for node in self._nodes()):
            return exact
        return {token: i for i, token in reversed(tokens)} | exact

    def _nodes(self) -> Iterator[Node]:
        return postorder(loads(self.config.program)) if self.config.program else iter(())

    def _id(self, token: Any) -> int:
        place = self._ids.get(identity(token))
        if place is None:
            place = self._ids.get(token)
        if place is None:
            vocabulary = self.config.vocabulary or ()
            known = ", ".join(map(repr, vocabulary[:8])) + (", …" if len(vocabulary) > 8 else "")
            raise InputError(f"the input has {token!r}, which is not in the vocabulary: {known}")
        for wrong, why in self.config.undefined:
            if wrong == token:
                raise ExecutionError(why, f"the token {token!r}", kind="undefined")
        return place


def labels(parts: Iterable[str]) -> tuple[str, ...]:
    """Names made distinct by numbering what is repeated."""
    seen: dict[str, int] = {}
    out = []
    for part in parts:
        seen[part] = seen.get(part, 0) + 1
        out.append(part if seen[part] == 1 else f"{part} ({seen[part]})")
    return tuple(out)
