"""Whether the parts of a stand-in are what it was made of: they hold numbers and are never called.

So whatever else is done to them (a method or a setting that is set, a hook, a part of another kind)
would change what torch's module computes, and not what the stand-in does: it is refused by name.
Parameters may be others of the same shape; dropouts, ε and train() are read at every call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils.prune import BasePruningMethod

from locum.errors import InputError
from locum.simulators.models.torch_layers import RECORDERS, is_guard

#: What hooks are called by, in any module.
_CALLED = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_REGISTER = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
#: What may change: read at every call, or by nobody here.
_FREE = {
    *_REGISTER,
    *("training", "p", "dropout", "inplace", "eps", "_is_full_backward_hook"),
    *("_parameters", "_buffers", "_non_persistent_buffers_set", "_is_hf_initialized"),
    *("_state_dict_hooks", "_state_dict_pre_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    *("_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called"),
}


class Parts:
    """The parts of a stand-in, as they were when it was made.

    >>> layer = nn.Sequential(nn.Linear(2, 2))
    >>> parts = Parts(layer)
    >>> parts.require_unchanged(layer)
    >>> layer[0].forward = print
    >>> parts.require_unchanged(layer)
    Traceback (most recent call last):
    ...
    locum.errors.InputError: expected 0 as it was when the stand-in was made, got forward=<built-in \
function print>: change the original, and make another by locum.stand_in
    """

    def __init__(self, module: nn.Module) -> None:
        self._own = _Part("the stand-in", module, whole=False)
        self._parts = [_Part(name, part) for name, part in module.named_modules() if _is_held(name)]
        # What torch's compiler reads, and compares again before compiled code is run.
        self._traced = [(part.name, part.kind, part.plain(), part.held()) for part in self._parts]

    def require_unchanged(self, module: nn.Module) -> None:
        """Refuse a module whose parts are not what they were, by the name of what has changed."""
        common: Any = nn.modules.module
        if (
            common._global_forward_hooks
            or common._global_forward_pre_hooks
            or common._global_backward_hooks
            or common._global_backward_pre_hooks
        ):
            _require_no_global_hooks()
        if torch.compiler.is_dynamo_compiling():
            self._trace(module)
            return
        if torch._C._is_tracing():
            raise InputError("stand-ins are not traced by torch.jit: try torch.export or torch.compile")
        if not self._own.is_unchanged():
            self._own.look_again(self._parts)
        for part in self._parts:
            if not part.is_unchanged():
                part.look_again(self._parts)

    def _trace(self, module: nn.Module) -> None:
        for name in self._own.held():
            if getattr(module, name) is None:
                raise InputError(_message("the stand-in", f"{name}=None"))
        for name, kind, settings, held in self._traced:
            part: Any = module.get_submodule(name)
            if type(part) is not kind:
                raise InputError(_other_kind(name, kind, part))
            if part.forward.__func__ is not kind.forward:  # type: ignore[attr-defined]
                raise InputError(_message(name, "forward"))
            for setting, value in settings:
                if getattr(part, setting) != value:
                    raise InputError(_message(name, setting))
            for parameter in held:
                if getattr(part, parameter) is None:
                    raise InputError(_message(name, f"{parameter}=None"))
            if len(part._forward_hooks) or len(part._forward_pre_hooks):
                raise InputError(_message(name, "a hook"))


class _Part:
    """One part, or (not ``whole``) the stand-in itself, whose own settings are looked at when set."""

    def __init__(self, name: str, module: nn.Module, whole: bool = True) -> None:
        self.name, self.module, self.kind, self.whole = name, module, type(module), whole
        self.shapes = _shapes(module)
        self.names = {*dir(self.kind), *self.kind.__annotations__, *module._parameters}
        self._watch()
        self.settings = self._settings()

    def _watch(self) -> None:
        if self.whole:
            for method in _REGISTER:
                if not is_guard(vars(self.module).get(method)):
                    setattr(self.module, method, partial(_no_hook, self.module, method))

    def _settings(self) -> dict[str, Any]:
        own = self.module.__dict__ if self.whole else {"_modules": self.module._modules}
        copied = {name: dict(own[name]) for name in ("_modules", *_CALLED) if name in own}
        return own | copied

    def plain(self) -> tuple[tuple[str, Any], ...]:
        """List settings that are numbers, words or None."""
        plain = (bool, int, float, str, type(None))
        values = {name: value for name, value in self.settings.items() if isinstance(value, plain)}
        values |= {name: None for name, shape in self.shapes.items() if shape is None}
        return tuple((name, value) for name, value in values.items() if name not in _FREE)

    def held(self) -> list[str]:
        """List the names of its parameters."""
        return [name for name, shape in self.shapes.items() if shape is not None]

    def is_unchanged(self) -> bool:
        """Return whether nothing is another: most calls end here, so it is cheap."""
        own: Any = self.module.__dict__ if self.whole else {"_modules": self.module._modules}
        try:
            same = type(self.module) is self.kind and bool(own == self.settings)
        except Exception:  # numbers that do not compare, such as a tensor in the place of a setting
            same = False
        return same and _shapes(self.module) == self.shapes

    def look_again(self, parts: list[_Part]) -> None:
        """Refuse what has changed, take note of what may."""
        before, own = self.settings, self._settings()
        if type(self.module) is not self.kind:
            raise InputError(_other_kind(self.name, self.kind, self.module))
        for name, value in own.pop("_modules").items():
            self._adopt(name, value, parts)
        for name in before.get("_modules", {}):
            if name not in self.module._modules:
                raise InputError(_message(self._path(name), "nothing"))
        for name in _CALLED:
            if hooks := own.pop(name, None):
                raise InputError(
                    f"{self.name} has a hook ({next(iter(hooks.values()))!r}), which is never called, "
                    "since a stand-in computes by U: remove it (torch.nn.utils.prune.remove makes "
                    "pruning permanent)"
                )
        for name, value in own.items():
            if name in _FREE or (name not in before and name not in self.names):
                continue
            if name not in before or not _is_same(value, before[name]):
                raise InputError(_message(self.name, f"{name}={value!r}"))
        self._require_shapes()
        for name in sorted(before.keys() - own.keys() - _FREE - {"_modules", *_CALLED}):
            if name in self.names:
                raise InputError(_message(self.name, f"no {name}"))
        self._watch()
        self.settings = self._settings()

    def _adopt(self, name: str, module: Any, parts: list[_Part]) -> None:
        """Take a part that was put in the place of another, to be compared with that one."""
        path, before = self._path(name), self.settings["_modules"]
        if name not in before:
            raise InputError(_message(self.name, f"a part {name}"))
        if module is before[name]:
            return
        known = next((part for part in parts if part.name == path), None)
        if known is None or type(module) is not known.kind:
            raise InputError(_other_kind(path, type(before[name]), module))
        known.module = module

    def _path(self, name: str) -> str:
        return f"{self.name}.{name}" if self.whole else name

    def _require_shapes(self) -> None:
        now = _shapes(self.module)
        for name, shape in (self.shapes | now).items():
            if name not in now:
                raise InputError(_message(self.name, f"no {name}"))
            if name not in self.shapes or now[name] != self.shapes[name]:
                got = "None" if shape is None else f"shape {tuple(shape)}"
                raise InputError(_message(self.name, f"{name} of {got}"))


def _is_held(name: str) -> bool:
    """Return whether a part holds numbers alone; those that parametrise a weight are called."""
    return bool(name) and "parametrizations" not in name.split(".")


def _shapes(module: nn.Module) -> dict[str, torch.Size | None]:
    return {name: None if p is None else p.shape for name, p in module._parameters.items()}


def _is_same(value: Any, before: Any) -> bool:
    try:
        return value is before or bool(value == before)
    except Exception:  # whatever a foreign __eq__ raises: it is not known to be the same
        return False


def _message(name: str, got: str) -> str:
    return (
        f"expected {name} as it was when the stand-in was made, got {got}: change the original, and "
        "make another by locum.stand_in"
    )


def _other_kind(name: str, kind: type, part: Any) -> str:
    return (
        f"{name} was a {kind.__name__} when the stand-in was made, and is a {type(part).__name__} now: "
        "change the original, and make another by locum.stand_in"
    )


def _require_no_global_hooks() -> None:
    common: Any = nn.modules.module
    for name in _CALLED:
        hooks: dict[int, Callable[..., Any]] = getattr(common, f"_global{name}")
        for hook in hooks.values():
            if getattr(hook, "__module__", "") not in RECORDERS:
                raise InputError(
                    f"torch has a hook for every module ({hook!r}), which the parts of a stand-in "
                    "never call: expected none while it runs, remove it"
                )


def _no_hook(module: nn.Module, method: str, *arguments: Any, **options: Any) -> Any:
    """Refuse a hook that would never be called; pruning is refused when the stand-in is called."""
    if arguments and isinstance(arguments[0], BasePruningMethod):
        return getattr(nn.Module, method)(module, *arguments, **options)
    raise InputError(
        "this part of a stand-in holds parameters and is never called, so a hook on it would do "
        "nothing: locum.record() records what U computes, and the stand-in itself takes hooks"
    )
