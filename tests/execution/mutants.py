"""Deliberately broken rules: a module's source with one thing changed, in force for a while.

The functions of the module keep their identity and get the changed code, so that whoever imported them
runs the mutant, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """One change: in which module, what stands there, what stands there instead."""

    module: str
    there: str
    instead: str


@contextmanager
def in_force(mutant: Mutant) -> Iterator[None]:
    """Run with the mutant instead of the rule."""
    rooms = {"planning": "", "emission": "steps.", "fusion": "steps."}
    module = import_module(
        f"locum.execution.fast.{rooms.get(mutant.module, 'symbolic.')}{mutant.module}"
    )
    source = inspect.getsource(module)
    assert source.count(mutant.there) == 1, f"{mutant.there!r} must occur once in {mutant.module}"
    namespace: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(mutant.there, mutant.instead), module.__name__, "exec"), namespace)
    changed = []
    for name, function in _functions(vars(module), module.__name__).items():
        new = _functions(namespace, module.__name__)[name].__code__
        if new.co_code != function.__code__.co_code or new.co_consts != function.__code__.co_consts:
            changed.append((function, function.__code__))
            function.__code__ = new
    assert changed, "the mutant is the rule itself"
    try:
        yield
    finally:
        for function, code in changed:
            function.__code__ = code


def _functions(namespace: dict[str, Any], module: str) -> dict[str, FunctionType]:
    """The functions and methods that a module defines, by name."""
    result = {}
    for name, value in namespace.items():
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, FunctionType):
            result[name] = value
        elif isinstance(value, type):
            for method, function in vars(value).items():
                plain = getattr(function, "fget", function)
                if isinstance(plain, FunctionType):
                    result[f"{name}.{method}"] = plain
    return result
