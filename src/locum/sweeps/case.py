"""Cases: what is to be computed, under a name that depends on nothing but what it is.

The key of a case is the SHA-256 of its kind, its settings and the versions that define what they mean:
that of Locum and that of the kind. So a result is found again whatever the spec, the order, the shard
or the machine it came from.

>>> case = Case("trial", {"seed": 3})
>>> case.key == Case("trial", {"ends": "done", "seed": 3}).key != Case("trial", {"seed": 4}).key
True
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from locum import __version__
from locum.errors import InputError
from locum.sweeps.kinds import complete, kind_named

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
