"""``locum.simulate``: a torch module, a T or a checkpoint, and what to run it on; U does the rest.

Layers of torch are run on X of n×d, or on a batch of such (in the module's own order of axes), with
masks and padding; checkpoints on texts. What comes back are results: nothing of the module itself is
called.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, is_readable, is_tensor, numpy_of
from locum.simulators.checking import choose
from locum.simulators.matrices import real_numbers, stacked_rows
from locum.simulators.models.batch import simulator_of
from locum.simulators.models.checkpoint import is_of_bert
from locum.simulators.models.families.live import is_live
from locum.simulators.models.families.running import Model
from locum.simulators.models.families.stage import NORM, stage_simulator
from locum.simulators.models.forms import FORMS
from locum.simulators.models.model import EncoderModel
from locum.simulators.models.torch_layers import (
    Layers,
    torch_layers,
)
from locum.simulators.modules.masks import (
    KeptMask,
    Mask,
    attended,
    joined,
    mask_kind,
    mask_matrices,
    read_mask,
    require_binary,
    require_some_key,
)
from locum.simulators.modules.module import AttentionModule, Module, Numbers
from locum.simulators.prepared import Prepared


def simulate(
    module: Any,
    inputs: Any,
    memory: Any = None,
    *,
    mask: Mask = None,
    attention_mask: Any = None,
    memory_mask: Mask = None,
    memory_attention_mask: Any = None,
    form: str = "factored",
    executor: str | None = None,
    **options: Any,
) -> Any:
    """Run T on its inputs by U.

    - A folder, or a live model of the transformers library, on texts, token ids, pixels, or a dict
      of them: gives ``last_hidden_state`` (and ``logits``, ``pooler_output`` where the model has them).
    - A folder of the BERT family, or "minilm", on a list of texts: gives a :class:`ModelRun`
      (``options`` are those of ``EncoderModel`` and its ``run``: dtype, backend, layers, compare).
    - nn.MultiheadAttention (to itself, or to ``memory``), nn.TransformerEncoderLayer,
      nn.TransformerEncoder, nn.TransformerDecoderLayer, or a T of ``locum.simulators``, on an array
      of n×d or on a batch of them: gives an array of that shape.

    Masks are 1 (True) where a query attends to a key. ``attention_mask`` is 0 at padded positions: n
    numbers, or one row for each of the batch. ``mask`` is "causal" or a matrix [query, key].
    ``memory_mask`` and ``memory_attention_mask`` are those of the memory. All of them join with each
    other and with T's own. ``form``: factored, or the paper's.

    >>> from locum.simulators import Attention
    >>> simulate(Attention([[0.0]], [[1.0]]), [[1.0], [3.0], [8.0]], attention_mask=[1, 1, 0]).tolist()
    [[2.0], [2.0], [2.0]]
    """
    is_folder = isinstance(module, (str, Path))
    others = (memory, mask, memory_mask, memory_attention_mask)
    if is_live(module) or (is_folder and (isinstance(inputs, Mapping) or not is_of_bert(module))):
        if any(option is not None for option in others):
            raise InputError("a whole model takes an attention_mask, and makes its other masks itself")
        return Model(module, form=form, **options).run(inputs, attention_mask, executor=executor)
    if isinstance(module, (str, Path)):
        if any(option is not None for option in (attention_mask, *others)):
            raise InputError("a checkpoint is run on texts, and makes its masks itself: give none")
        made, run = _divided(options)
        return EncoderModel(module, form=form, **made).run(inputs, executor=executor, **run)
    if options:
        raise InputError(f"{', '.join(sorted(options))} belongs to checkpoints, not to modules")
    choose(form, FORMS, "form")
    without = all(option is None for option in (attention_mask, *others))
    plain = form == "factored" and executor is None and without
    if plain and is_tensor(inputs) and inputs.is_cuda and not isinstance(module, Module):
        result = _replayed(module, inputs)
        if result is not None:
            return result
    fast, of_torch = executor in (None, "fast", "auto"), not isinstance(module, Module)
    layers = Layers([module])
    if of_torch:
        live: Callable[[Any], Module] | None = None
        if fast and form == "factored" and is_tensor(inputs):
            from locum.simulators.models.live_layers import live_layer

            live = live_layer
        layers = torch_layers(module, form=form, live=live)
    if memory is None and (memory_mask is not None or memory_attention_mask is not None):
        raise InputError("memory_mask and memory_attention_mask belong to a memory, and there is none")
    batch = _Batch(inputs, memory, layers.batch_first)
    of_inputs = _GivenMasks("the ", mask, batch.key_masks(attention_mask, batch.n))
    memory_keys = batch.key_masks(memory_attention_mask, batch.m)
    of_memory = _GivenMasks("the memory's ", memory_mask, memory_keys)
    if memory is not None and isinstance(layers.modules[0], AttentionModule):
        if of_inputs.some:
            raise InputError(
                "this attention reads the memory alone: give memory_mask or memory_attention_mask"
            )
        of_inputs, of_memory = of_memory, of_inputs
    if fast:
        rows = _run(layers, batch, of_inputs, of_memory, executor)
        if of_torch and is_tensor(rows) and is_readable(rows) and not rows.isfinite().all():
            torch_layers(module)  # reads its numbers, and refuses those that are none
        return batch.answer(rows)
    # Other executors run the program as it is: one input at a time, since their work grows faster.
    each = [
        _run(layers, batch.item(k), of_inputs.item(k), of_memory.item(k), executor)
        for k in range(batch.items)
    ]
    return batch.answer(stacked_rows(each))


def _replayed(module: Any, X: Array) -> Array | None:
    """Return what simulate gives for a torch module on a GPU, by a recording of an earlier call."""
    import torch

    from locum.simulators.cuda_graphs import replayed

    if not isinstance(module, torch.nn.Module):
        return None
    result = replayed(module, X, lambda X: simulate(module, X, executor="auto"), differentiable=False)
    if result is None:
        return None
    # A finite sum has finite terms only; what is not finite is refused where it is read.
    wide = X.dtype if X.dtype.itemsize > 2 else torch.float32
    total = X.sum(dtype=wide) + result.sum(dtype=wide)
    return result if math.isfinite(total.item()) else None


class _GivenMasks(NamedTuple):
    """The masks of one attention that came with the inputs: one for all, and the keys of each."""

    name: str
    mask: Mask
    keys: list[Numbers] | None

    @property
    def some(self) -> bool:
        return self.mask is not None or self.keys is not None

    def item(self, k: int) -> _GivenMasks:
        """Return those of one input."""
        return self._replace(keys=None if self.keys is None else [self.keys[k]])

    def joined_with(self, own: KeptMask, shape: tuple[int, int], items: int) -> list[KeptMask]:
        """Join T's own mask with those given, for each item of the batch."""
        masks = [own, read_mask(self.mask, f"{self.name}mask")]
        if self.keys is None:
            return [_needed(joined(masks, shape))] * items
        if all((keys != 0).all() for keys in self.keys):  # nothing is padded
            return [_needed(joined(masks, shape))] * items
        if not any(mask is not None for mask in masks):
            return list(self.keys)
        return [self._padded(masks, keys, shape) for keys in self.keys]

    def _padded(self, masks: Sequence[KeptMask], keys: Numbers, shape: tuple[int, int]) -> KeptMask:
        """Join with padding. A padded query that would attend to nothing attends to itself."""
        both = joined([*masks, keys], shape)
        if mask_kind(both) == "keys":
            require_some_key(both, f"{self.name}mask with padding")
            return both
        kept = attended(both, shape).copy()
        empty = ~kept.any(axis=1)
        if shape[0] == shape[1]:
            padding = empty & (keys == 0)
            kept[padding, padding] = True
            empty = empty & ~padding
        if empty.any():
            query = int(np.argmax(empty))
            raise InputError(f"{self.name}mask and padding leave no key to query {query}")
        return np.asarray(kept, dtype=np.float64)


def _needed(mask: KeptMask) -> KeptMask:
    """Leave a mask out that hides nothing: it would cost time."""
    return None if mask_kind(mask) in ("keys", "matrix") and numpy_of(mask).all() else mask


class _Batch:
    """Inputs as the rows of all of them, one below the other, and how to give the results back."""

    def __init__(self, inputs: Any, memory: Any, batch_first: bool) -> None:
        X = real_numbers(inputs, "X", copy=False)
        self.batched, self.batch_first = X.ndim == 3, batch_first
        self.X, self.items = self._joined(X, "X")
        self.n = len(self.X) // self.items
        self.memory: Array | None = None
        self.m = 0
        if memory is not None:
            self.memory, items = self._joined(
                real_numbers(memory, "the memory", copy=False), "the memory"
            )
            if items != self.items:
                raise InputError(f"expected a memory for each of {self.items} inputs, got {items}")
            self.m = len(self.memory) // items

    def item(self, k: int) -> _Batch:
        """Return one of the inputs, as a batch of its own."""
        one = copy.copy(self)
        one.X, one.items = self.X[k * self.n : (k + 1) * self.n], 1
        if self.memory is not None:
            one.memory = self.memory[k * self.m : (k + 1) * self.m]
        return one

    def _joined(self, array: Array, name: str) -> tuple[Array, int]:
        """Return the rows of all inputs, and how many inputs there are."""
        if array.ndim != (3 if self.batched else 2):
            axes = "three axes, as X has" if self.batched else "two axes, or three for a batch"
            raise InputError(f"{name}: expected {axes}, got the shape {tuple(array.shape)}")
        if 0 in array.shape:
            raise InputError(f"{name}: expected one entry or more, got the shape {tuple(array.shape)}")
        if not self.batched:
            return array, 1
        items = array if self.batch_first else array.swapaxes(0, 1)
        return items.reshape(-1, array.shape[2]), len(items)

    def key_masks(self, keys: Any, m: int) -> list[Numbers] | None:
        """Check padding, every row of it: one row for each input, 1 at keys that count."""
        if keys is None:
            return None
        name = "the attention mask"
        rows = numpy_of(real_numbers(keys, name, copy=False))
        if rows.shape not in ((m,), (1, m), (self.items, m)):
            raise InputError(
                f"{name}: expected {m} numbers, or {self.items} rows of them, got {rows.shape}"
            )
        require_binary(rows, name)
        require_some_key(np.atleast_2d(rows), name)
        return list(np.broadcast_to(rows, (self.items, m)).copy())

    def answer(self, rows: Array) -> Array:
        """Give the rows of all results in the shape of the inputs."""
        if not self.batched:
            return rows
        results = rows.reshape(self.items, self.n, -1)
        return results if self.batch_first else results.swapaxes(0, 1)


def _run(
    layers: Layers,
    batch: _Batch,
    of_inputs: _GivenMasks,
    of_memory: _GivenMasks,
    executor: str | None,
) -> Array:
    """Run all inputs through every layer, in one run each; give the rows of all results."""
    items, X, memory = batch.items, batch.X, batch.memory
    for number, T in enumerate(layers.modules):
        own, own_of_memory = T.masks
        reads_memory = batch.m and isinstance(T, AttentionModule)
        shape = (batch.n, batch.m if reads_memory else batch.n)
        masks = of_inputs.joined_with(own, shape, items)
        memory_masks = of_memory.joined_with(own_of_memory, (batch.n, batch.m), items)
        T = T.with_masks(masks[0], memory_masks[0])
        U = simulator_of(replace(T.order(batch.n, batch.m), batch=items))
        blocks = {name: [mask] for name, mask in _of_all(masks).items()}
        blocks |= {f"cross {name}": [mask] for name, mask in _of_all(memory_masks).items()}
        if memory is not None:
            blocks["M"] = [memory]
        ready = Prepared(U, T.matrices() | blocks, X)
        X = ready(X, executor=executor, block=number)
    if layers.norm is None:
        return X
    rows = {f"norm {name}": [part] for name, part in layers.norm._asdict().items()}
    norm = stage_simulator(int(X.shape[0]), int(X.shape[1]), (NORM,))
    return Prepared(norm, rows, X)(X, executor=executor)


def _of_all(masks: Sequence[KeptMask]) -> dict[str, Array]:
    """Return the masks of all inputs by the name of their block, one below the other."""
    each = [mask_matrices(mask) for mask in masks]
    return {name: stacked_rows([own[name][0] for own in each]) for name in each[0]}


def _divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide options into those of a model and those of its run."""
    made = {name: options[name] for name in ("dtype", "backend", "layers") if name in options}
    run = {name: options[name] for name in ("compare", "finished") if name in options}
    unknown = sorted(set(options) - set(made) - set(run))
    if unknown:
        raise InputError(f"expected options such as dtype, layers or compare, got {', '.join(unknown)}")
    return made, run
