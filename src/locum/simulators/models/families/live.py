"""Live models of the transformers library, read only if they compute exactly what their config says.

The same class is built again from the config, without numbers, and the two are compared: types of all
parts, attributes, shapes. So a subclass, a replaced or quantised part, an adapter, a changed epsilon or
a hook is refused by its name, whatever it computes.
"""

from __future__ import annotations

import copy
import functools
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from locum.errors import InputError
from locum.simulators.matrices import require_readable
from locum.simulators.models.families.fields import is_neutral
from locum.simulators.models.families.source import Source
from locum.simulators.models.torch_layers import require_untouched

#: Attributes in which two instances may differ without computing anything else.
_FREE = {
    *("training", "config", "gradient_checkpointing", "name_or_path"),
    *("_attn_implementation", "attn_implementation"),
}
#: Fields that readers pass over or read of the tensors, and that a part may compute by.
_SIZES = ("vocab_size", "chunk_size_feed_forward", "pad_token_id")
_PLAIN = (bool, int, float, str, tuple, type(None))


def is_live(model: Any) -> bool:
    """Tell whether an object is a model of the transformers library, or a subclass of one."""
    base = getattr(sys.modules.get("transformers"), "PreTrainedModel", None)
    return base is not None and isinstance(model, base)


def live_source(model: Any, form: str = "factored") -> Source:
    """Read a live model: its config and its tensors, if it is as the library made it."""
    kind = type(model)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind or not (
        kind.__module__.startswith("transformers.models.")
    ):
        raise InputError(
            f"expected a class of the transformers library itself, got {name}, which may compute "
            "something else"
        )
    tensors = {
        key: tensor.detach()
        for named in (model.named_parameters, model.named_buffers)
        for key, tensor in named(remove_duplicate=False)
    }
    for key, tensor in tensors.items():
        require_readable(tensor, key)
    saved = _require_as_built(model, kind.__name__, tensors)
    _require_no_dropout(model, kind.__name__)
    for key, buffer in model.named_buffers():
        if key not in saved:
            _require_made_of_config(buffer, key)
    prefix = f"{kind.base_model_prefix}."
    tensors = {key.removeprefix(prefix): tensor for key, tensor in tensors.items()}
    settings = getattr(model, "generation_config", None)
    misplaced: dict[str, Any] = getattr(model.config, "_get_generation_parameters", dict)()
    return Source(
        kind.__name__,
        model.config.to_dict(),
        tensors,
        kind.__name__,
        form=form,
        generation=None if settings is None else settings.to_dict(),
        misplaced=misplaced,
    )


def _require_no_dropout(model: Any, name: str) -> None:
    """Refuse a model in training mode whose config has a dropout: it computes something random."""
    if not any(part.training for part in model.modules()):
        return
    for key, value in model.config.to_dict().items():
        is_other = key.startswith(
            ("classif", "summary", "qa_", "seq_classif")
        )  # of heads not simulated
        if "drop" in key and not is_other and isinstance(value, float) and value > 0:
            raise InputError(
                f"{name} is in training mode, and {key} is {value}: expected model.eval(), which is "
                "what is simulated"
            )


def _require_as_built(model: Any, name: str, tensors: Mapping[str, Any]) -> set[str]:
    """Refuse a model any part of which is not what its class makes of its config.

    Gives the names of the tensors that are saved with such a model.
    """
    import torch

    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = type(model)(copy.deepcopy(model.config))
    own, expected = (dict(m.named_modules(remove_duplicate=False)) for m in (model, fresh))
    for path in {**expected, **own}:
        what = f"{name}.{path}" if path else name
        if (
            path.split(".")[0] in ("pooler", "pooler_activation")
            and getattr(model, "pooler", model) is None
        ):
            continue  # it may be left out
        if path not in own or path not in expected:
            problem = "is missing" if path not in own else "is not a part of such a model"
            raise InputError(f"{what} {problem}: expected the model as its config makes it")
        part, pattern = own[path], expected[path]
        if type(part) is not type(pattern):
            raise InputError(
                f"expected {what} to be {_full_name(pattern)}, as the config says, got "
                f"{_full_name(part)}, which may compute something else"
            )
        require_untouched(part, what)
        forward = type(part).forward
        if getattr(forward, "__module__", "").split(".")[0] not in ("torch", "transformers"):
            raise InputError(f"the forward of {_full_name(part)} was replaced by {forward!r}")
        _require_same_attributes(part, pattern, what)
        _require_same_config(part, pattern, model.config, what)
    shapes = {
        key: tensor.shape
        for named in (fresh.named_parameters, fresh.named_buffers)
        for key, tensor in named(remove_duplicate=False)
    }
    for key, tensor in tensors.items():
        if shapes.get(key) != tensor.shape:
            raise InputError(
                f"{name}.{key} is {tuple(tensor.shape)}, but its config makes it "
                f"{tuple(shapes.get(key, ()))}"
            )
    return set(fresh.state_dict())


def _require_same_attributes(part: Any, pattern: Any, what: str) -> None:
    for key in {**vars(pattern), **vars(part)}:
        if key in _FREE or key.startswith("_"):
            continue
        mine, its = vars(part).get(key), vars(pattern).get(key)
        if isinstance(mine, _PLAIN) and isinstance(its, _PLAIN):
            if mine != its:
                raise InputError(
                    f"{what}.{key} is {mine!r}, but the config makes it {its!r}: expected the model "
                    "as its config makes it"
                )
        elif type(mine) is not type(its):
            raise InputError(
                f"{what}.{key} is a {type(mine).__name__}, but the config makes it a "
                f"{type(its).__name__}"
            )
        elif callable(mine) and _function(mine) != _function(its):
            raise InputError(
                f"{what}.{key} is {mine!r}, but the config makes it {its!r}, and the two may compute "
                "different things"
            )


def _function(value: Any) -> Any:
    """Return what two callables are compared by: methods and partials are objects of each instance."""
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    return getattr(value, "__func__", value)


def _require_same_config(part: Any, pattern: Any, config: Any, what: str) -> None:
    """Refuse a part with a config of its own, and attention by a function that nobody here knows."""
    own = vars(part).get("config")
    if own is None:
        return
    if own is not config:
        mine, its = own.to_dict(), pattern.config.to_dict()
        other = [
            key
            for key in {**its, **mine}
            if mine.get(key) != its.get(key) and (key in _SIZES or not is_neutral(key))
        ]
        if other:
            raise InputError(
                f"{what} has a config of its own, in which {other[0]} is {mine.get(other[0])!r:.60}: "
                "expected the model as its config makes it"
            )
    name = getattr(own, "_attn_implementation", None)
    if name in (None, "eager"):
        return
    registry: Any = sys.modules["transformers"]
    function: Any = registry.AttentionInterface().get(name)
    where = str(getattr(function, "__module__", ""))
    if function is not None and where.split(".")[0] not in ("transformers", "locum"):
        raise InputError(
            f"{what} computes its attention by attn_implementation={name!r}, a function of {where}, "
            'which may compute something else: try model.set_attn_implementation("sdpa")'
        )


def _require_made_of_config(buffer: Any, name: str) -> None:
    """Refuse a table that is not saved with a model, and is not what its class makes of the config."""
    kind = name.rpartition(".")[2]
    if kind == "position_ids":
        made = bool((buffer.flatten() == buffer.new_tensor(range(buffer.numel()))).all())
    elif kind == "token_type_ids":
        made = not buffer.any()
    else:
        made = kind in ("inv_freq", "original_inv_freq")  # the reader compares these
    if not made:
        raise InputError(f"{name} is not what the config makes it: expected the model as it was built")


def _full_name(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"
