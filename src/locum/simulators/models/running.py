"""``locum.simulate``: a torch module, a T or a checkpoint, and what to run it on; U does the rest.

Layers of torch are run on X of n×d, or on a batch of such (in the module's own order of axes), with
masks and padding; checkpoints on texts. What comes back are results: nothing of the module itself is
called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.inputs import is_tensor
from locum.simulators.arrays import Array, like, matrix, numpy_of
from locum.simulators.models.batch import simulator_of
from locum.simulators.models.embedding_and_pooling import NormedSum
from locum.simulators.models.model import EncoderModel
from locum.simulators.models.torch_layers import (
    encoder_layers,
    from_torch,
    is_encoder_of_layers,
)
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import Mask, Module, Numbers, read_mask
from locum.simulators.modules.module import seen as seen_by
from locum.simulators.prepared import Prepared


def simulate(
    module: Any,
    inputs: Any,
    memory: Any = None,
    *,
    mask: Mask = None,
    seen: Any = None,
    memory_mask: Mask = None,
    memory_seen: Any = None,
    form: str = "factored",
    executor: str | None = None,
    **options: Any,
) -> Any:
    """T on its inputs, computed by U.

    - A folder of the BERT family, or "minilm", on a list of texts: gives a :class:`ModelRun`
    (``options`` are those of ``EncoderModel`` and its ``run``: dtype, backend, layers, compare).
    - nn.MultiheadAttention (to itself, or to ``memory``), nn.TransformerEncoderLayer,
    nn.TransformerEncoder, nn.TransformerDecoderLayer, or a T of ``locum.simulators``, on an array
    of n×d or on a batch of them: gives an array of that shape.

    ``mask`` is "causal" or a matrix, 0 where a key is not seen; ``seen`` is 0 at padded positions, n
    numbers or one row for each of the batch; ``memory_mask`` and ``memory_seen`` are those of the
    memory. ``form``: factored, or the paper's.

    >>> from locum.simulators import Attention
    >>> simulate(Attention([[0.0]], [[1.0]]), [[1.0], [3.0], [8.0]], seen=[1, 1, 0]).tolist()
    [[2.0], [2.0], [2.0]]
    """
    if isinstance(module, (str, Path)):
        wrong = [m for m in (memory, mask, seen, memory_mask, memory_seen) if m is not None]
        if wrong:
            raise InputError("a checkpoint is run on texts, and finds masks itself: give none")
        made, run = _divided(options)
        return EncoderModel(module, form=form, **made).run(inputs, executor=executor, **run)
    if options:
        raise InputError(f"{', '.join(sorted(options))} belongs to checkpoints, not to modules")
    first = bool(getattr(module, "batch_first", True))
    layers = getattr(module, "layers", None)
    if is_encoder_of_layers(module) and layers is not None and len(layers):
        first = bool(layers[0].self_attn.batch_first)
    elif hasattr(module, "self_attn"):
        first = bool(module.self_attn.batch_first)
    batch = _Batch(inputs, memory, first)
    masks = batch.masks("the mask", mask, seen, batch.n, _attends_to_itself(module, memory))
    if memory is None and (memory_mask is not None or memory_seen is not None):
        raise InputError("memory_mask and memory_seen belong to a memory, and there is none")
    other = batch.masks("the mask of the memory", memory_mask, memory_seen, batch.m, False)
    if not _attends_to_itself(module, memory):
        if masks is not None:
            raise InputError("this attention reads the memory alone: give memory_mask or memory_seen")
        masks, other = other, None
    return batch.answer(_run(module, batch, masks, other, form, executor))


class _Batch:
    """Inputs as a list of matrices, and how to give the results back."""

    def __init__(self, inputs: Any, memory: Any, batch_first: bool) -> None:
        self.given = inputs if is_tensor(inputs) else np.asarray(inputs, dtype=float)
        self.batched, self.batch_first = self.given.ndim == 3, batch_first
        self.rows = self._split(self.given, "X")
        self.n = len(self.rows[0])
        self.memories: list[Array | None] = [None] * len(self.rows)
        self.m = 0
        if memory is not None:
            split = self._split(
                memory if is_tensor(memory) else np.asarray(memory, dtype=float), "memory"
            )
            if len(split) != len(self.rows):
                raise InputError(f"there are {len(self.rows)} inputs, but {len(split)} memories")
            self.memories, self.m = list(split), len(split[0])

    def _split(self, array: Array, name: str) -> list[Array]:
        if array.ndim != (3 if self.batched else 2):
            wanted = "three axes, as X has" if self.batched else "two axes, or three for a batch"
            raise InputError(f"{name} must have {wanted}, but its shape is {tuple(array.shape)}")
        if not self.batched:
            return [matrix(array, name)]
        axis = 0 if self.batch_first else 1
        return [matrix(part, name) for part in (array if axis == 0 else array.swapaxes(0, 1))]

    def masks(self, name: str, mask: Mask, keys: Any, m: int, square: bool) -> list[Mask] | None:
        """One mask for each input: words and matrices as they are, vectors where only keys count."""
        if keys is None:
            return None if mask is None else [read_mask(mask)] * len(self.rows)
        rows = np.atleast_2d(numpy_of(keys))
        if rows.shape not in ((1, m), (len(self.rows), m)):
            raise InputError(
                f"padding of {name} is {m} numbers, or {len(self.rows)} rows of them, but its shape is "
                f"{rows.shape}"
            )
        rows = np.tile(rows, (len(self.rows) // len(rows), 1))
        if mask is None:
            return list(rows)
        kept = seen_by(read_mask(mask), (self.n, m))
        return [_with_padding(name, kept, row != 0, square) for row in rows]

    def answer(self, found: Sequence[Array]) -> Array:
        """The results in the shape of the inputs."""
        if not self.batched:
            return found[0]
        if is_tensor(self.given):
            import torch

            return torch.stack(list(found), 0 if self.batch_first else 1)
        return np.stack(found, 0 if self.batch_first else 1)


def _with_padding(name: str, kept: Any, keys: Any, square: bool) -> Numbers:
    """A matrix of what is seen, padding left out. A padded query that sees nothing sees itself."""
    both = kept & keys
    empty = ~both.any(axis=1)
    if square:
        both[np.flatnonzero(empty & ~keys), np.flatnonzero(empty & ~keys)] = True
        empty = empty & keys
    if empty.any():
        raise InputError(f"{name} and the padding leave no key to query {int(np.argmax(empty))}")
    return np.asarray(both, dtype=np.float64)


def _attends_to_itself(module: Any, memory: Any) -> bool:
    """Whether ``mask`` is among the rows of X: so in layers, and in attentions without a memory."""
    is_layer = isinstance(module, Layer) or hasattr(module, "self_attn") or is_encoder_of_layers(module)
    return memory is None or is_layer


def _run(
    module: Any,
    batch: _Batch,
    masks: list[Mask] | None,
    others: list[Mask] | None,
    form: str,
    executor: str | None,
) -> list[Array]:
    """Every input through every layer."""
    mask, other = (None if given is None else given[0] for given in (masks, others))
    norm = None
    if is_encoder_of_layers(module):
        layers, norm = encoder_layers(module, mask=mask, form=form)
    elif isinstance(module, Module):
        layers = [_remasked(module, mask, other)]
    else:
        layers = [from_torch(module, mask=mask, memory_mask=other, form=form)]
    values = batch.rows
    for T in layers:
        U = simulator_of(T.order(batch.n, batch.m))
        ready = Prepared(U, T.matrices(), values[0])
        results = []
        for place, (X, memory) in enumerate(zip(values, batch.memories, strict=True)):
            U.check(T, X, memory)
            blocks = _blocks("", masks, place) | _blocks("cross ", others, place)
            if memory is not None:
                blocks["M"] = memory
            replaced: Mapping[str, Array] = {name: like(block, X) for name, block in blocks.items()}
            results.append(ready(X, replaced, executor=executor))
        values = results
    return values if norm is None else _normed(values, *norm, executor=executor)


def _blocks(prefix: str, masks: list[Mask] | None, place: int) -> dict[str, Array]:
    """The mask of one input by the name of its block."""
    mask = None if masks is None else masks[place]
    if mask is None or isinstance(mask, str):
        return {}
    return {f"{prefix}seen": mask[None]} if mask.ndim == 1 else {f"{prefix}mask": mask}


def _remasked(T: Module, mask: Mask, other: Mask) -> Module:
    """A T with other masks than its own, if any are given."""
    if mask is None and other is None:
        return T
    return T.with_masks(mask, other)


def _normed(
    values: Sequence[Array], gain: Any, bias: Any, epsilon: float, *, executor: str | None
) -> list[Array]:
    """The last norm of an encoder of several layers."""
    n, d = values[0].shape
    U = NormedSum(n, d, epsilon=epsilon)
    rows = {"gain": [np.reshape(gain, (1, -1))], "bias": [np.reshape(bias, (1, -1))]}
    ready = Prepared(U, rows, values[0])
    return [ready(X, executor=executor) for X in values]


def _divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a model, and options of its run."""
    made = {name: options[name] for name in ("dtype", "backend", "layers") if name in options}
    run = {name: options[name] for name in ("compare", "finished") if name in options}
    wrong = sorted(set(options) - set(made) - set(run))
    if wrong:
        raise InputError(f"simulate has no option {', '.join(wrong)}")
    return made, run
