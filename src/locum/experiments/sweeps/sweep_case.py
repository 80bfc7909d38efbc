"""Represent cases of a sweep and their results, identified by settings and versions.

The key of a case is the SHA-256 hash of its kind, its settings, the version of Locum and the revision
of the kind. The result of a case can therefore be found independently of the specification, the order,
the shard and the machine.

>>> case = Case("trial", {"seed": 3})
>>> case.key == Case("trial", {"ends": "done", "seed": 3}).key != Case("trial", {"seed": 4}).key
True
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import platform
import random
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import locum
from locum import __version__
from locum.errors import InputError
from locum.experiments.sweeps.sweep_kinds import Kind, complete, kind_named
from locum.files import parse_json

#: Maximum size of the settings of a case in bytes.
MOST_SETTINGS = 2**20


def canonical(value: Any) -> str:
    """Return JSON-compatible data as JSON text that does not depend on the order of keys.

    >>> canonical({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key_of(kind: str, settings: Mapping[str, Any], locum: Any, revision: Any) -> str:
    """Return the key of a case for given versions of Locum and of the kind."""
    what = {"kind": kind, "settings": settings, "locum": locum, "revision": revision}
    return hashlib.sha256(canonical(what).encode()).hexdigest()


class Case:
    """A case of a sweep: its kind and its settings, checked and with default values filled in.

    Equal cases have equal keys.
    """

    def __init__(self, kind: str, settings: Mapping[str, Any]) -> None:
        completed = complete(kind, settings)
        try:
            text = canonical(completed)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"settings of kind {kind}: expected plain JSON ({error})") from None
        if len(text) > MOST_SETTINGS:
            raise InputError(
                f"settings of kind {kind}: expected at most {MOST_SETTINGS:,} bytes, got {len(text):,}"
            )
        self.kind = kind
        self.settings: dict[str, Any] = json.loads(text)

    @cached_property
    def key(self) -> str:
        """Unique name of the case, with 64 hexadecimal digits."""
        return key_of(self.kind, self.settings, __version__, kind_named(self.kind).revision)

    @property
    def title(self) -> str:
        """Short description of the case: its kind and settings, at most 80 characters."""
        values = (f"{name}={value}" for name, value in self.settings.items())
        return f"{self.kind} {' '.join(values)}"[:80]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Case({self.kind!r}, {self.settings!r})"


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return ``cases`` without duplicates, in the order of first occurrence."""
    return list(dict.fromkeys(cases))


def part(cases: Iterable[Case], shard: tuple[int, int]) -> list[Case]:
    """Return the cases of shard ``(k, n)``, where k is 1 to n: every n-th case in the order of the
    keys.

    The n shards are disjoint, contain all cases, and differ in size by at most one case.

    >>> cases = [Case("trial", {"seed": seed}) for seed in range(10)]
    >>> [len(part(cases, (k, 3))) for k in (1, 2, 3)]
    [4, 3, 3]
    """
    k, n = shard
    if not 1 <= k <= n:
        raise InputError(f"shard: expected k/n with 1 ≤ k ≤ n, such as 1/4, got {k}/{n}")
    cases = distinct(cases)
    mine = {case.key for case in sorted(cases, key=lambda case: case.key)[k - 1 :: n]}
    return [case for case in cases if case.key in mine]


def trial(seed: int, seconds: float, ends: str) -> dict[str, Any]:
    """Wait, then return a result with a random number, or end in the way that ``ends`` specifies.

    >>> trial(1, 0.0, "done") == trial(1, 0.0, "done")
    True
    """
    time.sleep(seconds)
    number = random.Random(seed).getrandbits(32)
    if ends == "error":
        raise ValueError(f"the case {seed} is set to fail")
    if ends == "killed":
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    if ends == "too long":
        time.sleep(86_400)
    if ends == "talking":
        sys.stdout.write("words that are no result\n")
        sys.stdout.flush()
    value = float("nan") if ends == "not JSON" else number
    return {"number": value, "holds": ends != "failed", "hashes": {"number": f"{number:08x}"}}


@cache
def code_hash() -> str:
    """Return the first twelve hexadecimal digits of the SHA-256 hash of all source files of Locum.

    Source files are Python files, RASP programs and grammars.
    """
    digest = hashlib.sha256()
    root = Path(locum.__file__).parent
    sources = [path for path in root.rglob("*") if path.suffix in (".py", ".rasp", ".lark")]
    for path in sorted(sources, key=lambda path: path.relative_to(root).as_posix()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def versions_of(kind: Kind) -> dict[str, Any]:
    """Return the versions on which a result of this kind depends."""
    packages = {name: str(importlib.import_module(name).__version__) for name in kind.uses}
    return {
        "locum": locum.__version__,
        "revision": kind.revision,
        "code": code_hash(),
        "python": platform.python_version(),
        **packages,
    }


#: Possible outcomes of a case: it is done, its claim does not hold, it ended with an error, or it
#: reached the time limit.
OUTCOMES = ("done", "failed", "error", "time limit")
#: Maximum length of a line in bytes.
MOST_LINE = 2**26

_NAMES = ("key", "kind", "settings", "outcome", "result", "hashes", "seconds", "timings", "versions")
_TYPES = (str, str, dict, str, dict, dict, int | float, dict, dict)
#: The first bytes of every line of results, which the digits of the key follow.
_BEGINNING = b'{"key":"'


@dataclass(frozen=True)
class Result:
    """The result of a case, with its computation time and software versions."""

    key: str
    kind: str
    settings: Mapping[str, Any]
    outcome: str
    #: Dictionary returned by the kind's function, without ``hashes`` and ``timings``. For the outcomes
    #: "error" and "time limit", the reason of the error or the time limit.
    result: Mapping[str, Any]
    seconds: float
    #: Versions of Locum and of the kind ("revision") and, if known, of the source code ("code"), of
    #: Python and of packages.
    versions: Mapping[str, Any]
    #: Hashes of the programs, weights or data of the case.
    hashes: Mapping[str, str] = field(default_factory=dict)
    #: Seconds taken by parts of the computation, with names defined by the kind.
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def content(self) -> tuple[str, str, str]:
        """Everything that must be equal in two runs of one case: all fields except times and
        versions.
        """
        return self.key, self.outcome, canonical([self.result, self.hashes])

    def line(self) -> bytes:
        """Return the result as a line for the file of results."""
        values = {name: getattr(self, name) for name in _NAMES}
        return json.dumps(values, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_line(line: bytes) -> Result:
    """Return the result in a line.

    ``InputError`` is raised for a line in another format, or whose key does not match its settings.

    >>> read_line(b'{"key": 1}')
    Traceback (most recent call last):
    locum.errors.InputError: not a result of a sweep
    """
    try:
        values = parse_json(line.decode())
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(f"not a result of a sweep ({error})") from None
    if not isinstance(values, dict) or tuple(values) != _NAMES:
        raise InputError("not a result of a sweep")
    result = Result(**values)
    is_typed = all(isinstance(value, kind) for value, kind in zip(values.values(), _TYPES, strict=True))
    if not is_typed or result.outcome not in OUTCOMES:
        raise InputError("not a result of a sweep of this version")
    locum, revision = (result.versions.get(name) for name in ("locum", "revision"))
    if result.key != key_of(result.kind, result.settings, locum, revision):
        raise InputError("changed after it was written: its key does not match its settings")
    return result


def could_begin(line: bytes) -> bool:
    """Return whether ``line`` could be the beginning of a line of results.

    >>> could_begin(b'{"key":"09af'), could_begin(b'{"key":"mine"}'), could_begin(b"notes")
    (True, False, False)
    """
    size = len(_BEGINNING)
    is_key = all(digit in b"0123456789abcdef" for digit in line[size : size + 64])
    return _BEGINNING.startswith(line[:size]) and is_key


def problem_of(value: Any, place: str = "result") -> str | None:
    """Return a message with the place of a value that JSON does not support, or None if there is none.

    >>> problem_of({"loss": [1.0, float("nan")]})
    'result.loss[1] is nan, which JSON does not have'
    """
    waiting = [(value, place)]
    while waiting:
        part, where = waiting.pop()
        if part is None or isinstance(part, (str, bool, int)):
            continue
        if isinstance(part, float):
            if not math.isfinite(part):
                return f"{where} is {float(part)}, which JSON does not have"
        elif isinstance(part, (list, tuple)):
            waiting += [(below, f"{where}[{index}]") for index, below in enumerate(part)]
        elif isinstance(part, dict) and all(isinstance(name, str) for name in part):
            waiting += [(below, f"{where}.{name}") for name, below in part.items()]
        else:
            return f"{where} is a {type(part).__name__}, which is not plain JSON"
    return None
