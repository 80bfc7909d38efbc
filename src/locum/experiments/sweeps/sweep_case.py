"""Cases of a sweep and their results, identified by settings and versions.

The key of a case is the SHA-256 of its kind, its settings and the versions that define what they mean:
that of Locum and that of the kind. So a result is found again whatever the spec, the order, the shard
or the machine it came from.

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
import re
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
from locum.errors import InputError, LocumError
from locum.experiments.sweeps.sweep_kinds import Kind, complete, kind_named
from locum.files import parse_json

#: The most bytes of the settings of one case.
MOST_SETTINGS = 2**20


def canonical(value: Any) -> str:
    """Write plain data as the one JSON text that there is for it.

    >>> canonical({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key_of(kind: str, settings: Mapping[str, Any], locum: Any, revision: Any) -> str:
    """Return the key of a case that is defined by these versions of Locum and of its kind."""
    what = {"kind": kind, "settings": settings, "locum": locum, "revision": revision}
    return hashlib.sha256(canonical(what).encode()).hexdigest()


class Case:
    """A kind and its settings, complete and checked; equal cases have equal keys."""

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
        """The name of the case: 64 hexadecimal digits."""
        return key_of(self.kind, self.settings, __version__, kind_named(self.kind).revision)

    @property
    def title(self) -> str:
        """Name the case in a few words."""
        values = (f"{name}={value}" for name, value in self.settings.items())
        return f"{self.kind} {' '.join(values)}"[:80]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Case({self.kind!r}, {self.settings!r})"


def distinct(cases: Iterable[Case]) -> list[Case]:
    """List the cases, each once, in the order in which they come first."""
    return list(dict.fromkeys(cases))


def part(cases: Iterable[Case], shard: tuple[int, int]) -> list[Case]:
    """Choose shard ``(k, n)``, k from 1 to n: every n-th case in the order of the keys.

    The n shards are disjoint, together they are the whole, and their sizes differ by one at most.

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
    """Wait, and end as told: with a number, or in one of the ways in which real cases go wrong.

    >>> trial(1, 0.0, "done") == trial(1, 0.0, "done")
    True
    """
    time.sleep(seconds)
    number = random.Random(seed).getrandbits(32)
    if ends == "error":
        raise ValueError(f"the case {seed} was told to fail")
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


#: What can come of a case: it is done; what it claims did not hold; it broke; it took too long.
OUTCOMES = ("done", "failed", "error", "time limit")
#: The most bytes of a line.
MOST_LINE = 2**26

_NAMES = ("key", "kind", "settings", "outcome", "result", "hashes", "seconds", "timings", "versions")
#: What every line begins with, as a pattern and as an example.
_BEGINNING = re.compile(rb'\{"key":"[0-9a-f]{64}","kind":"')
_EXAMPLE = b'{"key":"' + b"0" * 64 + b'","kind":"'
_TYPES = (str, str, dict, str, dict, dict, int | float, dict, dict)
_LINE = re.compile(rb'(\{.*),"check":"([0-9a-f]{64})"\}\n', re.DOTALL)


class RejectedLineError(LocumError):
    """A line that is not a result, or no longer the one that was written."""


@dataclass(frozen=True)
class Result:
    """What came of a case, how long it took, and which versions computed it."""

    key: str
    kind: str
    settings: Mapping[str, Any]
    outcome: str
    #: What the function of the kind returned; the reason where there was an error.
    result: Mapping[str, Any]
    seconds: float
    #: Of Locum, of the kind ("revision"), of the source code ("code"), of Python and packages.
    versions: Mapping[str, Any]
    #: Of the programs, weights or data that the case is about.
    hashes: Mapping[str, str] = field(default_factory=dict)
    #: Seconds of parts of the work, as the kind names them.
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def content(self) -> tuple[str, str, str]:
        """Give what two runs of one case have in common: all but times and versions."""
        return self.key, self.outcome, canonical([self.result, self.hashes])

    def line(self) -> bytes:
        """Write the result as a line of a file."""
        values = {name: getattr(self, name) for name in _NAMES}
        text = json.dumps(values, separators=(",", ":"), allow_nan=False)
        body = text[:-1].encode()
        return body + b',"check":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def read_line(line: bytes) -> Result:
    """Read a line, which must be exactly what :meth:`Result.line` wrote.

    >>> read_line(b'{"key": 1}')
    Traceback (most recent call last):
    locum.experiments.sweeps.sweep_case.RejectedLineError: not a result of a sweep
    """
    match = _LINE.fullmatch(line)
    if match is None:
        raise RejectedLineError("not a result of a sweep")
    if hashlib.sha256(match[1]).hexdigest().encode() != match[2]:
        raise RejectedLineError("altered since it was written: its check does not fit")
    try:
        values = parse_json((match[1] + b"}").decode())
    except (InputError, UnicodeDecodeError) as error:
        raise RejectedLineError(f"not a result of a sweep ({error})") from None
    if tuple(values) != _NAMES or not all(
        isinstance(value, kind) for value, kind in zip(values.values(), _TYPES, strict=True)
    ):
        raise RejectedLineError("not a result of a sweep that this version knows")
    result = Result(**values)
    if result.outcome not in OUTCOMES:
        raise RejectedLineError("not a result of a sweep that this version knows")
    locum, revision = (result.versions.get(name) for name in ("locum", "revision"))
    if result.key != key_of(result.kind, result.settings, locum, revision):
        raise RejectedLineError("altered: its key is not that of its settings")
    return result


def could_begin(line: bytes) -> bool:
    """Tell whether a line of results that was cut off could look like this.

    >>> could_begin(b'{"key":"09af'), could_begin(b'{"key":"mine"}'), could_begin(b"notes")
    (True, False, False)
    """
    seen = line.rstrip(b"\0")[: len(_EXAMPLE)]  # what never reached the disk is read as zeros
    return _BEGINNING.fullmatch(seen + _EXAMPLE[len(seen) :]) is not None


def problem_of(value: Any, place: str = "result") -> str | None:
    """Say where ``value`` is not plain JSON; None if it is.

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
