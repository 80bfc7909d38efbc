"""Run a model and observe or change its activations: logits, residual streams, attention patterns.

:func:`observe` supports three kinds of models:

- transformers models, except encoder–decoder models;
- models with TransformerLens's hook names, such as TransformerLens models and Locum's exports;
- other modules, whose attention patterns the backend records while they run on U.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.exc import TorchDynamoException

from locum.errors import InputError, LocumError
from locum.torch.simulation import measure_difference, simulate
from locum.torch.step_recorder import record

#: Maximum relative difference between the logits with eager attention and with the model's own
#: implementation, by dtype; 0.1 for other dtypes.
_SAME = {torch.float64: 1e-6, torch.float32: 1e-3}

Array = np.ndarray[Any, Any]
#: A function that maps a residual stream [input, position, axis] to a changed residual stream.
Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Observation:
    """The logits, residual streams and attention patterns of a model on inputs of one length."""

    #: The logits, [input, position, class], or [input, class] if the model classifies whole inputs.
    logits: Array
    #: The residual stream before the first layer and after each layer, [input, position, axis]. The
    #: tuple is empty if the streams were not found.
    streams: tuple[Array, ...]
    #: The observed attention patterns by layer and head, [input, query, key].
    patterns: dict[tuple[int, int], Array]


class ObservedModel:
    """Base class of models that can be observed; ``notes`` lists the reasons why parts cannot be
    observed.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """Name of the model's class."""
        return type(self.model).__name__

    def logits(self, ids: Tensor) -> Array:
        """Return the logits for token ids [input, position]."""
        with torch.no_grad(), _evaluation(self.model):
            return _array(_logits(self.model(ids.to(_device(self.model)))))

    def observe(self, ids: Tensor) -> Observation:
        """Return the logits, residual streams and attention patterns for token ids [input,
        position].
        """
        raise NotImplementedError

    def changed(self, ids: Tensor, layer: int, change: Change) -> Array:
        """Return the logits when ``change`` is applied to the residual stream after ``layer``
        layers.
        """
        raise NotImplementedError

    def note(self, text: str) -> None:
        """Append a text to ``notes``, unless ``notes`` already contains the text."""
        if text not in self.notes:
            self.notes.append(text)


def observe(model: Any) -> ObservedModel:
    """Return a wrapper with which a model can be observed."""
    if hasattr(model, "run_with_cache") and hasattr(model, "run_with_hooks"):
        return _HookedModel(model)
    if not isinstance(model, nn.Module):
        raise InputError(
            "expected a model of transformers or a torch.nn.Module, got "
            f"{type(model).__name__}; try the model that from_pretrained returns"
        )
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        raise InputError(
            f"expected an encoder or a decoder, got {type(model).__name__}, which has both; "
            "try model.get_encoder() with a head"
        )
    return _LayeredModel(model)


class _LayeredModel(ObservedModel):
    """A model whose layers are found in a module list, such as a transformers model.

    Without such a list, the model has no residual streams.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.layers = _layers_of(model)
        if not self.layers:
            self.note("no list of layers was found: interventions are left out")

    def observe(self, ids: Tensor) -> Observation:
        """Return the logits, residual streams and attention patterns for token ids [input,
        position].
        """
        own = self.logits(ids)
        return Observation(own, self._streams(ids), self._patterns(ids, own))

    def _streams(self, ids: Tensor) -> tuple[Array, ...]:
        if not self.layers:
            return ()
        streams: dict[int, Tensor] = {}
        handles = [self.layers[0].register_forward_pre_hook(_reader(streams), with_kwargs=True)]
        for number, layer in enumerate(self.layers, start=1):
            handles.append(layer.register_forward_hook(_writer(streams, number)))
        try:
            with torch.no_grad(), _evaluation(self.model):
                self.model(ids.to(_device(self.model)))
        finally:
            for handle in handles:
                handle.remove()
        if len(streams) <= len(self.layers):
            self.note("layers that do not pass a stream on: interventions are left out")
            self.layers = []
            return ()
        return tuple(_array(streams[place]) for place in sorted(streams))

    def _patterns(self, ids: Tensor, own: Array) -> dict[tuple[int, int], Array]:
        if not hasattr(self.model, "set_attn_implementation"):
            return self._recorded(ids)
        try:
            with torch.no_grad(), _evaluation(self.model), _eager(self.model):
                output = self.model(ids.to(_device(self.model)), output_attentions=True)
        except (ValueError, TypeError, NotImplementedError) as error:
            problem = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.note(f"attention patterns are left out: {problem}")
            return {}
        found = getattr(output, "attentions", None) or ()
        if not found or any(pattern is None for pattern in found):
            self.note("attention patterns are left out: the model returns none with eager attention")
            return {}
        away = measure_difference(torch.from_numpy(own), torch.from_numpy(_array(_logits(output))))
        if not away <= _SAME.get(next(self.model.parameters()).dtype, 0.1):
            self.note(f"attention patterns are left out: eager attention differs by {away:.2g}")
            return {}
        return self._maps(found, ids.shape[1])

    def _recorded(self, ids: Tensor) -> dict[tuple[int, int], Array]:
        """Return the attention patterns that the backend records while the model runs on U."""
        try:
            with torch.no_grad(), _evaluation(self.model), record("*") as recorded:
                simulate(self.model, ids.to(_device(self.model)))
        except (LocumError, TorchDynamoException) as error:
            problem = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.note(f"attention patterns are left out: {problem}")
            return {}
        found = recorded.patterns
        inner = {
            path: pattern
            for path, pattern in found.items()
            if not any(other.startswith(f"{path}.") or (not path and other) for other in found)
        }
        return self._maps(list(inner.values()), ids.shape[1])

    def _maps(self, found: Sequence[Tensor], size: int) -> dict[tuple[int, int], Array]:
        """Return the attention patterns with the shape [input, head, query, key], by layer and head."""
        maps = {
            (layer, head): _array(pattern[:, head])
            for layer, pattern in enumerate(found)
            if pattern.ndim == 4 and tuple(pattern.shape[-2:]) == (size, size)
            for head in range(pattern.shape[1])
        }
        if found and not maps:
            self.note("attention patterns are left out: they are not [input, head, query, key]")
        return maps

    def changed(self, ids: Tensor, layer: int, change: Change) -> Array:
        if layer == 0:

            def before(_: Any, arguments: Any, keywords: Any) -> Any:
                if arguments:
                    return (change(arguments[0]), *arguments[1:]), keywords
                return arguments, keywords | {"hidden_states": change(keywords["hidden_states"])}

            handle = self.layers[0].register_forward_pre_hook(before, with_kwargs=True)
        else:

            def after(_: Any, __: Any, output: Any) -> Any:
                if isinstance(output, Tensor):
                    return change(output)
                return type(output)((change(output[0]), *output[1:]))

            handle = self.layers[layer - 1].register_forward_hook(after)
        try:
            with torch.no_grad(), _evaluation(self.model):
                return _array(_logits(self.model(ids.to(_device(self.model)))))
        finally:
            handle.remove()


class _HookedModel(ObservedModel):
    """A model whose activations have the hook names of TransformerLens."""

    def _hook(self, layer: int) -> str:
        return "blocks.0.hook_resid_pre" if layer == 0 else f"blocks.{layer - 1}.hook_resid_post"

    def observe(self, ids: Tensor) -> Observation:
        with torch.no_grad(), _evaluation(self.model):
            logits, cache = self.model.run_with_cache(ids.to(_device(self.model)))
        streams: list[Array] = []
        while self._hook(len(streams)) in cache:
            streams.append(_array(cache[self._hook(len(streams))]))
        extra = streams[0].shape[1] - ids.shape[1] if streams else 0
        patterns = {
            (layer, head): _array(cache[name][:, head])[:, extra:, extra:]
            for layer in range(len(streams))
            if (name := f"blocks.{layer}.attn.hook_pattern") in cache
            for head in range(cache[name].shape[1])
        }
        return Observation(_array(logits), tuple(stream[:, extra:] for stream in streams), patterns)

    def changed(self, ids: Tensor, layer: int, change: Change) -> Array:
        def hook(value: Tensor, hook: Any) -> Tensor:
            extra = value.shape[1] - ids.shape[1]
            return torch.cat([value[:, :extra], change(value[:, extra:])], dim=1)

        with torch.no_grad(), _evaluation(self.model):
            hooks = [(self._hook(layer), hook)]
            return _array(self.model.run_with_hooks(ids.to(_device(self.model)), fwd_hooks=hooks))


def _layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a model: the first module list of the configured length.

    Without a configured number of layers, return the longest module list. The result is empty if no
    such list exists.
    """
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part)]
    config = getattr(model, "config", None)
    count = getattr(config, "num_hidden_layers", None)
    if count is not None:
        fitting = [part for part in lists if len(part) == count]
        return list(fitting[0]) if fitting else []
    return max(map(list, lists), key=len) if lists else []


def _reader(streams: dict[int, Tensor]) -> Any:
    def hook(_: Any, arguments: Any, keywords: Any) -> None:
        value = arguments[0] if arguments else keywords.get("hidden_states")
        if isinstance(value, Tensor) and value.ndim == 3:
            streams[0] = value.detach().clone()

    return hook


def _writer(streams: dict[int, Tensor], number: int) -> Any:
    def hook(_: Any, __: Any, output: Any) -> None:
        value = output[0] if isinstance(output, (tuple, list)) and output else output
        if isinstance(value, Tensor) and value.ndim == 3:
            streams[number] = value.detach().clone()

    return hook


@contextmanager
def _evaluation(model: Any) -> Iterator[None]:
    """Set the evaluation mode in a ``with`` block, and restore the mode of each module afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Use eager attention in a ``with`` block, since only eager attention returns attention
    patterns.
    """
    own = model.config._attn_implementation
    if own != "eager":
        model.set_attn_implementation("eager")
    try:
        yield
    finally:
        if own != "eager":
            model.set_attn_implementation(own)


def _device(model: Any) -> torch.device:
    return next((part.device for part in model.parameters()), torch.device("cpu"))


def _logits(output: Any) -> Tensor:
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if found is None and isinstance(output, (tuple, list)) and isinstance(output[0], Tensor):
        found = output[0]
    if not isinstance(found, Tensor) or found.ndim not in (2, 3):
        raise InputError(
            "expected a model that returns logits [input, position, class] or [input, class], got "
            f"{type(output).__name__}; try a model with a head, such as AutoModelForCausalLM"
        )
    return found


def _array(value: Tensor) -> Array:
    array: Array = value.detach().double().cpu().numpy()
    return array
