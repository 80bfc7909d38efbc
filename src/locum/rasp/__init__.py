"""Front ends: whatever a person writes becomes the one graph.

``python`` has s-ops as Python objects; :class:`Session` reads RASP text.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locum.language.rasp.limits import Limits
    from locum.language.rasp.mistakes import RaspError
    from locum.language.rasp.results import Result
    from locum.language.rasp.session import Session

#: Loaded when first asked for: the parser and NumPy have no business in ``import locum``.
_HOMES = {"Limits": "limits", "RaspError": "mistakes", "Result": "results", "Session": "session"}

__all__ = ["Limits", "RaspError", "Result", "Session"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"locum.language has no {name}")
    return getattr(importlib.import_module(f"locum.language.rasp.{_HOMES[name]}"), name)
