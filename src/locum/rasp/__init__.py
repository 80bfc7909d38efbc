"""Front ends: whatever a person writes becomes the one graph.

``python`` has s-ops as Python objects; :class:`Session` reads RASP text.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locum.rasp.text.limits import Limits
    from locum.rasp.text.mistakes import RaspError
    from locum.rasp.text.results import Result
    from locum.rasp.text.session import Session

#: Loaded when first asked for: the parser and NumPy have no business in ``import locum``.
_HOMES = {"Limits": "limits", "RaspError": "mistakes", "Result": "results", "Session": "session"}

__all__ = ["Limits", "RaspError", "Result", "Session"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"locum.rasp has no {name}")
    return getattr(importlib.import_module(f"locum.rasp.text.{_HOMES[name]}"), name)
