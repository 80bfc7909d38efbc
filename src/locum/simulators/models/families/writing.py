"""Rows of a decoder one after another: each new token by one row through U, with a cache.

Keys and values of all tokens so far are rows among the tokens of U, so a new token costs one row.
Several texts are one run: each has a cache and positions of its own, and T's matrices are there once.
The sizes of caches and prompts are rounded up to powers of two, so that few programs are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, like, numpy_of
from locum.simulators.matrices import contiguous
from locum.simulators.models.families.caching import CachedLayer, cached_layer
from locum.simulators.models.families.description import Description
from locum.simulators.models.families.inputs import Inputs
from locum.simulators.models.families.rotary import tables
from locum.simulators.models.families.running import Memory, Model
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.layer import Layer
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
    """A decoder with the keys and values of all rows so far, of one text or of several."""

    def __init__(
        self,
        model: Model,
        executor: str | None = None,
        attentions: bool = False,
        memory: Memory | None = None,
        texts: int = 1,
    ) -> None:
        """Take ``memory``: what an encoder gives of the texts, if the decoder has one."""
        description, stack = model.description, model.description.stack
        require_writer(description)
        self.model, self.stack, self.executor = model, stack, executor
        self.unembed = description.outputs["logits"].stage
        self.keep, self.memory = attentions, memory
        #: Of each layer, the keys and values of the memory: they are computed once.
        self.known = [] if memory is None else [self._of_memory(T, memory) for T in stack.layers]
        #: Of each text, the weights [layer, head, key] of the last row of each run.
        self.attentions: list[list[Numbers]] = [[] for _ in range(texts)]
        self.ids: list[list[int]] = [[] for _ in range(texts)]
        self.size = 0
        self.caches: list[tuple[Array, Array]] = []
        self.simulator: CachedLayer | None = None

    def feed(self, rows: Sequence[Sequence[int]]) -> Array:
        """Put tokens behind those of each text; gives a row of logits behind the last of each.

        Of a text that gets none, the last row is computed again, and nothing else happens to it.
        """
        before, counts = [len(ids) for ids in self.ids], [len(row) for row in rows]
        self.ids = [[*ids, *row] for ids, row in zip(self.ids, rows, strict=True)]
        self._grow(_rounded(max(map(len, self.ids))))
        n = 1 if max(counts) == 1 else _rounded(max(counts))
        # Rows behind the last are padding: they are like the last one, and no key.
        each = zip(before, self.ids, strict=True)
        positions = np.stack([np.minimum(np.arange(b, b + n), len(ids) - 1) for b, ids in each])
        X, others = self._embedded(positions), self._blocks(positions, before, counts)
        stack, texts = self.stack, len(rows)
        # Where the new rows of all texts stand, and where they belong in the caches.
        new = [text * n + row for text in range(texts) for row in range(counts[text])]
        places = [
            text * self.size + before[text] + row
            for text in range(texts)
            for row in range(counts[text])
        ]
        last = [text * n + max(counts[text], 1) - 1 for text in range(texts)]
        kept_weights: list[Numbers] = []
        for number in range(len(stack.layers)):
            cached, values = self.caches[number]
            mask, masks = self._mask(number, positions)
            ready = self._layer(number, n, mask)
            layer = ready.simulator
            assert isinstance(layer, CachedLayer)
            blocks = others | masks | {"keys": cached, "values": values}
            if self.known:
                blocks |= self.known[number]
            if self.keep:
                weights = ready(X, blocks, executor=self.executor, step=layer.weights)
                kept_weights.append(numpy_of(weights)[last].reshape(texts, stack.heads, self.size))
            out = ready(X, blocks, executor=self.executor)
            first, second = layer.begins
            _put(cached, places, out[:, first:second], new)
            _put(values, places, out[:, second:], new)
            X = out[:, :first]
        if self.keep:
            for text, ids in enumerate(self.ids):
                if counts[text]:
                    weights = np.stack([layer[text, :, : len(ids)] for layer in kept_weights])
                    self.attentions[text].append(weights)
        lasting = X[last[0] : last[0] + 1] if texts == 1 else X[last]
        return self.unembed(
            stack.final(contiguous(lasting), executor=self.executor), executor=self.executor
        )

    def _embedded(self, positions: NDArray[Any]) -> Array:
        """Return the rows of all texts at their positions, before the first layer."""
        ids, places = np.zeros(positions.shape), np.zeros(positions.shape, dtype=np.int64)
        for text, at in enumerate(positions):
            every = np.array([self.ids[text]])
            ids[text] = every[0, at]
            places[text] = self.stack.places(every, np.ones(every.shape))[0, at]
        return self.model.embedded(self.stack, Inputs(ids, at=places), self.executor)

    def _blocks(
        self, positions: NDArray[Any], before: Sequence[int], counts: Sequence[int]
    ) -> dict[str, Any]:
        """Return what the layers read besides: where new rows belong, tables, biases, the memory."""
        texts, n = positions.shape
        places = np.zeros((texts, self.size, n))
        for text, (begin, count) in enumerate(zip(before, counts, strict=True)):
            places[text, range(begin, begin + count), range(count)] = 1
        others: dict[str, Any] = {"places": places.reshape(-1, n)}
        if self.stack.frequencies is not None:
            others |= tables(self.stack.frequencies, positions.reshape(-1))
        if self.stack.relative is not None:
            # Behind an encoder, all texts that go on are at the same position.
            at, keys = positions[int(positions[:, -1].argmax())], np.arange(self.size)
            others["score_bias"] = self.stack.relative(at, keys).reshape(-1, self.size)
        if self.memory is not None and self.memory.mask is not None:
            others["cross attention_mask"] = self.memory.mask
        return others

    def _of_memory(self, T: Layer, memory: Memory) -> dict[str, Array]:
        """Compute the keys and values of the memory in one layer."""
        matrices, computed = T.matrices(), {}
        for name, weights, bias in (("keys", "W_K", "b_K"), ("values", "V", "b_V")):
            own = matrices.get(f"cross {bias}")
            projection = Stage().product(matrices[f"cross {weights}"][0], own and own[0].reshape(-1))
            computed[f"cross {name}"] = projection(memory.states, executor=self.executor)
        return computed

    def _grow(self, size: int) -> None:
        """Make room for so many rows of each text in all caches."""
        if size <= self.size:
            return
        texts = len(self.ids)
        for number, T in enumerate(self.stack.layers):
            order = T.attention.attention_order()
            widths = (order.shared_heads * order.width, order.shared_heads * order.d_v)
            wider = [like(np.zeros((texts * size, width)), self.model.kind) for width in widths]
            if self.size:
                for new, old in zip(wider, self.caches[number], strict=True):
                    of_each = new.reshape(texts, size, -1)
                    of_each[:, : self.size] = old.reshape(texts, self.size, -1)
                self.caches[number] = (wider[0], wider[1])
            else:
                self.caches.append((wider[0], wider[1]))
        self.size = size

    def _mask(self, layer: int, positions: NDArray[Any]) -> tuple[Numbers, dict[str, Numbers]]:
        """Tell which keys each row attends to: those up to its own position, and in its window."""
        keys, window = np.arange(self.size), self.stack.windows[layer] if self.stack.windows else None
        kept = keys <= positions[:, :, None]
        if window is not None:
            kept &= keys > positions[:, :, None] - window
        rows = np.asarray(kept, dtype=np.float64)
        if positions.shape[1] == 1:
            return rows[0, 0], {"attention_mask": rows[:, 0]}
        return rows[0], {"mask": rows.reshape(-1, self.size)}

    def _layer(self, number: int, n: int, mask: Numbers) -> Prepared:
        """Prepare one layer with its U for n new rows and the cache as it is; made once."""
        texts, memory = len(self.ids), self.memory
        cross = None if memory is None or memory.mask is None else memory.mask[0]
        T = self.stack.layers[number].with_masks(mask, cross)
        order = T.order(n, 0 if memory is None else len(memory.states) // texts)
        attention = replace(order.attention, cache=self.size)
        if order.cross is not None:
            order = replace(order, cross=replace(order.cross, known=True))
        ready = self.model.ready(
            number, T, replace(order, attention=attention, batch=texts), cached_layer
        )
        assert isinstance(ready.simulator, CachedLayer)
        self.simulator = ready.simulator
        return ready


def _put(cache: Array, places: Sequence[int], rows: Array, new: Sequence[int]) -> None:
    """Put new rows where they belong; of one text they follow one another."""
    begin, count = places[0], len(places)
    if places[-1] - begin == new[-1] - new[0] == count - 1:
        cache[begin : begin + count] = rows[new[0] : new[0] + count]
    else:
        cache[list(places)] = rows[list(new)]


def _rounded(count: int) -> int:
    """Round up to a power of two."""
    return max(SMALLEST, 1 << (count - 1).bit_length())
