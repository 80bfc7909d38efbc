"""Results: one line of JSON each, which says what it is of and whether it is whole.

A line ends with ``"check"``, the SHA-256 of the bytes before it: what was cut off or changed since is
noticed. Lines do not depend on one another, so files of results are put together by ``cat``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError, LocumError
from locum.files import parse_json
from locum.sweeps.case import canonical, key_of

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
    locum.sweeps.result.RejectedLineError: not a result of a sweep
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
