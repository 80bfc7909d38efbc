"""Rows of a decoder one after another: each new token by one row through U, with a cache.

Keys and values of all tokens so far are rows among the tokens of U, so a new token costs one row. The
sizes of caches and prompts are rounded up to powers of two, so that few programs are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, like, numpy_of
from locum.simulators.models.families.caching import CachedLayer, cached_layer
from locum.simulators.models.families.description import Description
from locum.simulators.models.families.inputs import Inputs
from locum.simulators.models.families.rotary import tables
from locum.simulators.models.families.running import Model
from locum.simulators.modules.module import Numbers
from locum.simulators.prepared import Prepared

#: The smallest cache, and the smallest prompt that is run at once.
SMALLEST = 8


def require_writer(description: Description) -> None:
    """Refuse a model that cannot write text: it has no decoder, or nothing that gives logits."""
    if not description.stack.causal or description.stack.words is None:
        raise InputError(f"{description.name}: expected a decoder, which writes text token by token")
    if "logits" not in description.outputs:
        raise InputError(
            f"{description.name}: a model without an unembedding has no logits to write text by; try "
            "its …ForCausalLM, …LMHeadModel or …ForConditionalGeneration"
        )
    if 1 in description.stack.windows:
        # The library's cache drops all but the last window - 1 keys by a slice [-0:], which drops none.
        raise InputError(
            f"{description.name}: expected a sliding_window of 2 or more to write text, got 1, where "
            "the library's text is another with its cache than without; try locum.simulate instead"
        )


class Writer:
    """A decoder with the keys and values of all rows so far."""

    def __init__(
        self,
        model: Model,
        executor: str | None = None,
        attentions: bool = False,
        memory: Array | None = None,
    ) -> None:
        """``memory``: the last states of an encoder, if the decoder has one; rows of one text."""
        description, stack = model.description, model.description.stack
        require_writer(description)
        self.model, self.stack, self.executor = model, stack, executor
        self.unembed = description.outputs["logits"].stage
        self.keep, self.memory = attentions, memory
        #: The weights [layer, head, key] of the last row of each run.
        self.attentions: list[Numbers] = []
        self.ids: list[int] = []
        self.size = 0
        self.caches: list[tuple[Array, Array]] = []
        self.simulator: CachedLayer | None = None

    def feed(self, ids: Sequence[int]) -> Array:
        """Put these tokens behind the others; gives the logits behind the last of them."""
        before, count = len(self.ids), len(ids)
        self.ids = [*self.ids, *ids]
        self._grow(_rounded(len(self.ids)))
        n = 1 if count == 1 else _rounded(count)
        # Rows behind the last are padding: they are like the last one, and no key.
        positions = np.minimum(np.arange(before, before + n), len(self.ids) - 1)
        everything = np.array([self.ids])
        stack = self.stack
        places = stack.places(everything, np.ones(everything.shape))[:, positions]
        X = self.model.embedded(stack, Inputs(everything[:, positions], at=places), self.executor)
        others: dict[str, Any] = {"places": np.zeros((self.size, n))}
        others["places"][range(before, before + count), range(count)] = 1
        if stack.frequencies is not None:
            others |= tables(stack.frequencies, positions)
        if stack.relative is not None:
            keys = np.arange(self.size)
            others["score_bias"] = stack.relative(positions, keys).reshape(-1, self.size)
        if self.memory is not None:
            others["M"] = self.memory
        kept_weights = []
        for number in range(len(stack.layers)):
            cached, values = self.caches[number]
            mask, masks = self._mask(number, positions)
            ready = self._layer(number, n, mask)
            layer = ready.simulator
            assert isinstance(layer, CachedLayer)
            blocks = others | masks | {"keys": cached, "values": values}
            if self.keep:
                weights = ready(X, blocks, executor=self.executor, step=layer.weights)
                rows = numpy_of(weights)[count - 1].reshape(stack.heads, self.size)
                kept_weights.append(rows[:, : len(self.ids)])
            out = ready(X, blocks, executor=self.executor)
            first, second = layer.begins
            cached[before : before + count] = out[:count, first:second]
            values[before : before + count] = out[:count, second:]
            X = out[:, :first]
        if self.keep:
            self.attentions.append(np.stack(kept_weights))
        last = stack.final(_contiguous(X[count - 1 : count]), executor=self.executor)
        return self.unembed(last, executor=self.executor)[0]

    def _grow(self, size: int) -> None:
        """Make room for so many rows in all caches."""
        if size <= self.size:
            return
        for number, T in enumerate(self.stack.layers):
            order = T.attention.attention_order()
            widths = (order.shared_heads * order.width, order.shared_heads * order.d_v)
            wider = [like(np.zeros((size, width)), self.model.kind) for width in widths]
            if self.size:
                for new, old in zip(wider, self.caches[number], strict=True):
                    new[: self.size] = old
                self.caches[number] = (wider[0], wider[1])
            else:
                self.caches.append((wider[0], wider[1]))
        self.size = size

    def _mask(self, layer: int, positions: NDArray[Any]) -> tuple[Numbers, dict[str, Numbers]]:
        """Tell which keys each row attends to: those up to its own position, and in its window."""
        keys, window = np.arange(self.size), self.stack.windows[layer] if self.stack.windows else None
        kept = keys[None, :] <= positions[:, None]
        if window is not None:
            kept &= keys[None, :] > positions[:, None] - window
        rows = np.asarray(kept, dtype=np.float64)
        if len(positions) == 1:
            return rows[0], {"attention_mask": rows}
        return rows, {"mask": rows}

    def _layer(self, number: int, n: int, mask: Numbers) -> Prepared:
        """Prepare one layer with its U for n new rows and the cache as it is; made once."""
        T = self.stack.layers[number].with_masks(mask)
        order = T.order(n, 0 if self.memory is None else len(self.memory))
        order = replace(order, attention=replace(order.attention, cache=self.size))
        ready = self.model.ready(number, T, order, cached_layer)
        assert isinstance(ready.simulator, CachedLayer)
        self.simulator = ready.simulator
        return ready


def _rounded(count: int) -> int:
    """Round up to a power of two."""
    return max(SMALLEST, 1 << (count - 1).bit_length())


def _contiguous(rows: Array) -> Array:
    return rows.contiguous() if hasattr(rows, "contiguous") else np.ascontiguousarray(rows)
