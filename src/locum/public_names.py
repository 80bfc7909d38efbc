"""Import the public names of a package on first use.

The stub file ``__init__.pyi`` of the package lists each name with its module, as
``from MODULE import NAME as NAME``. The stub is the only list of these names, and type checkers read
the same file.
"""

from __future__ import annotations

import builtins
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from typing import Any

_LINE = re.compile(r"^from (\S+) import (\w+) as \2\b", re.MULTILINE)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package, as defined by its stub file.

    ``__all__`` excludes modules and names of Python builtins, such as ``map``.
    """
    stub = pkgutil.get_data(package, "__init__.pyi")
    assert stub is not None
    modules = {name: module for module, name in _LINE.findall(stub.decode())}
    public = [name for name, module in modules.items() if module != "." and not hasattr(builtins, name)]

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if modules[name] == ".":
                return importlib.import_module(f"{package}.{name}")
            value = getattr(importlib.import_module(modules[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            message = (
                f"{package}.{name} needs torch, which is not installed: try pip install 'locum[torch]'"
            )
            raise ModuleNotFoundError(message, name="torch") from None
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load, names, sorted(public)
