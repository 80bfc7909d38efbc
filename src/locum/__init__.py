"""Locum: a universal simulator of attention, and the RASP it is written in.

>>> import locum
>>> locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))("hello")
[1, 1, 2, 2, 1]
"""

import ast
import builtins
import importlib
import pkgutil
from typing import Any

__version__ = "0.2.0"


def _public_names() -> dict[str, str]:
    """Read the public names and their modules from the stub, which lists them for type checkers.

    A package (``from . import torch``) has no module.
    """
    stub = pkgutil.get_data(__name__, "__init__.pyi")
    assert stub is not None
    imports = (line for line in ast.parse(stub).body if isinstance(line, ast.ImportFrom))
    return {alias.name: line.module or "" for line in imports for alias in line.names}


_MODULES = _public_names()
#: ``from locum import *`` must not replace Python's own ``compile`` and ``map``.
__all__ = sorted(name for name, module in _MODULES.items() if module and not hasattr(builtins, name))


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: U needs NumPy, and ``import locum`` does not."""
    if name not in _MODULES:
        errors = importlib.import_module("locum.errors")
        raise errors.missing_name(__name__, name)
    try:
        if not _MODULES[name]:
            return importlib.import_module(f"locum.{name}")
        value = getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"locum.{name} needs torch, which is not installed: try pip install 'locum[torch]'",
            name="torch",
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
