"""The versions that a result depends on: of Locum, of its source code, of Python and of packages."""

from __future__ import annotations

import hashlib
import importlib
import platform
from functools import cache
from pathlib import Path
from typing import Any

import locum
from locum.sweeps.kinds import Kind


@cache
def code_hash() -> str:
    """Return twelve digits of the SHA-256 of all of Locum's source code."""
    digest = hashlib.sha256()
    root = Path(locum.__file__).parent
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def versions_of(kind: Kind) -> dict[str, Any]:
    """List the versions that a result of this kind depends on."""
    packages = {name: str(importlib.import_module(name).__version__) for name in kind.uses}
    return {
        "locum": locum.__version__,
        "revision": kind.revision,
        "code": code_hash(),
        "python": platform.python_version(),
        **packages,
    }
