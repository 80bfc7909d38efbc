"""How the next token is chosen from its logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.checking import positive_integer, require_real


class Choice:
    """How the next token is chosen from logits: the greatest, or drawn."""

    def __init__(
        self,
        sample: bool,
        temperature: float,
        top_k: int | None,
        top_p: float | None,
        seed: int,
        text: int = 0,
    ) -> None:
        """Take ``text``: which of several texts it is for, each of which has draws of its own."""
        if not isinstance(sample, bool):
            raise InputError(f"do_sample: expected True or False, got {sample!r}")
        if type(seed) is not int or seed < 0:
            raise InputError(f"seed: expected an integer, 0 or more, got {seed!r}")
        if not sample and (temperature != 1.0 or top_k is not None or top_p is not None):
            raise InputError("temperature, top_k and top_p belong to sampling: expected do_sample=True")
        require_real(temperature, "temperature", positive=True)
        if top_k is not None:
            positive_integer(top_k, "top_k")
        if top_p is not None:
            require_real(top_p, "top_p", positive=True)
            if top_p > 1:
                raise InputError(f"top_p: expected a probability, from 0 to 1, got {top_p!r}")
        self.sample, self.temperature, self.top_k, self.top_p = sample, temperature, top_k, top_p
        self.chance = np.random.default_rng([seed, text] if text else seed)

    def __call__(self, logits: Array, banned: Sequence[int] = ()) -> int:
        """Choose a token that is not banned; of several greatest logits, the first.

        The library compares in float32.
        """
        single = numpy_of(logits).astype(np.float32)
        single[[one for one in banned if 0 <= one < len(single)]] = -np.inf
        if not self.sample:
            return int(single.argmax())
        scores = single.astype(np.float64) / self.temperature
        order = np.argsort(-scores, kind="stable")
        kept = np.exp(scores[order] - scores[order[0]])
        if self.top_k is not None:
            kept[self.top_k :] = 0
        kept /= kept.sum()
        if self.top_p is not None:  # the fewest tokens that have this probability together
            kept[np.concatenate([[False], np.cumsum(kept)[:-1] >= self.top_p])] = 0
            kept /= kept.sum()
        return int(order[self.chance.choice(len(order), p=kept)])
