"""``locum.stand_in``: a module that computes by U in the place of another, or of parts of a model."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from locum.errors import InputError
from locum.simulators.models.torch_layers import is_of


def stand_in(module: Any, where: str | None = None) -> Any:
    """Make an nn.Module that computes by U what ``module`` computes, with a copy of its parameters.

    - nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer and
      nn.TransformerEncoder: all of it is computed by U. The stand-in has the module's signature and the
      names of its state dict; gradients reach its parameters.
    - ``where`` is a pattern of names of parts, such as "layers.*.self_attn" (a star stands for a name
      between dots, or for a piece of one): gives a copy of a larger
      model in which these parts have stand-ins. They may be such modules, or attention modules of the
      transformers library, of which U computes what lies between the projections.

    Refused by name: all other modules, subclasses with methods of their own, modules with hooks, and
    dropout while it is active.

    >>> import torch
    >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = torch.randn(1, 3, 4)
    >>> bool((stand_in(layer)(x, x, x)[0] - layer(x, x, x)[0]).abs().max() < 1e-5)
    True
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise InputError(f"expected an nn.Module, got {type(module).__name__}")
    own: Any = torch._C
    if own._functorch.peek_interpreter_stack() is not None:
        raise InputError("numbers cannot be read inside of torch.func: make the stand-in outside of it")
    if where is None:
        return _replacement(_copied(module), "the module", 0)
    if not isinstance(where, str):
        raise InputError(f"expected a pattern of names, such as 'layers.*.self_attn', got {where!r}")
    model = _copied(module)
    pattern = re.compile(re.escape(where).replace(r"\*", "[^.]+"))
    parts = [(name, part) for name, part in model.named_modules(remove_duplicate=False) if name]
    chosen = [(name, part) for name, part in parts if pattern.fullmatch(name)]
    if not chosen:
        some = ", ".join(name for name, _ in parts[:8])
        raise InputError(f"no part of the model is called {where!r}: the parts are {some}, …")
    made: dict[Any, Any] = {}  # a part may have several names
    blocks = 0
    for name, part in chosen:
        if part not in made:
            made[part] = _replacement(part, name, blocks)
            blocks += len(getattr(made[part], "layers", ())) or 1  # an encoder has a block for each
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, made[part])
    return model


def _copied(module: Any) -> Any:
    """Copy a module, and take back the relu that torch adds to copies of decoder layers."""
    import torch

    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                raise InputError(
                    f"{name or 'the module'} computes its {key} from other tensors by a hook, so that "
                    "it cannot be copied: torch.nn.utils.prune.remove makes pruning permanent, and "
                    "remove_weight_norm a norm of weights"
                )
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise InputError(
                f"{name} has a hook on its gradient, which copies of it have not: remove it, and set "
                "it on the stand-in's"
            )
    copied = copy.deepcopy(module)
    for original, part in zip(module.modules(), copied.modules(), strict=True):
        if "activation" in vars(part) and "activation" not in vars(original):
            del part.__dict__["activation"]
    return copied


def _replacement(module: Any, name: str, number: int) -> Any:
    """Make the stand-in for a module, of its parts."""
    from torch import nn

    from locum.simulators.stand_ins import modules

    kinds: list[tuple[type, Callable[[Any], Any]]] = [
        (nn.MultiheadAttention, modules.StandInAttention),
        (nn.TransformerEncoderLayer, modules.StandInEncoderLayer),
        (nn.TransformerDecoderLayer, modules.StandInDecoderLayer),
        (nn.TransformerEncoder, modules.StandInEncoder),
    ]
    for kind, make in kinds:
        if is_of(module, kind):
            _require_no_backward_hooks(module, name)
            try:
                made = make(module)
            except InputError as error:
                raise InputError(f"{name} has no stand-in: {error}") from None
            for offset, layer in enumerate(getattr(made, "layers", [made])):
                layer.block = number + offset
            return made
    from locum.simulators.stand_ins.interface import attention_of_transformers

    if attention_of_transformers(module):
        return module
    if isinstance(module, tuple(kind for kind, _ in kinds)):
        hint = "it is a subclass with methods of its own, which may compute something else"
    else:
        parts = [part for part, child in module.named_modules() if _has_stand_in(child, kinds)]
        hint = "U knows torch's own transformer layers, and attention modules of transformers"
        if parts:
            place = parts[0] if name == "the module" else f"{name}.{parts[0]}"
            hint += f"; try where={place!r}"
    kind_name = f"{type(module).__module__}.{type(module).__qualname__}"
    raise InputError(f"{name}, a {kind_name}, has no stand-in: {hint}")


def _require_no_backward_hooks(module: Any, name: str) -> None:
    """Refuse hooks on gradients, which would be lost: parts of a stand-in are never called."""
    for place, part in module.named_modules():
        for hook in (*part._backward_hooks.values(), *part._backward_pre_hooks.values()):
            where = f"{name}.{place}" if place else name
            raise InputError(
                f"{where} has a backward hook ({hook!r}), which a stand-in would not call: remove it; "
                "the stand-in itself takes hooks"
            )


def _has_stand_in(module: Any, kinds: list[tuple[type, Callable[[Any], Any]]]) -> bool:
    from locum.simulators.stand_ins.interface import uses_attention_interface

    return any(is_of(module, kind) for kind, _ in kinds) or uses_attention_interface(module)
