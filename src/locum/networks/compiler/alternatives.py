"""Find options with which a program compiles that does not compile as asked.

An error recommends only what was tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from locum.errors import CompileError
from locum.networks.compiler.target import Target

#: CPU seconds after which no further options are tried.
SECONDS = 4.0
#: Errors of numbers beyond this are not recommended.
_MAX_TOLERANCE = 0.1


def find_alternative(
    target: Target, compiled: Callable[[Target], object], refused: CompileError
) -> str | None:
    """Return options that differ from the target's and work, as text; None if none was found soon."""
    start = time.process_time()
    for change in _changes(target, refused):
        if time.process_time() - start > SECONDS:
            return None
        try:
            compiled(replace(target, **change))
        except CompileError:
            continue
        return " and ".join(f"{name}={value!r}" for name, value in change.items())
    return None


def _changes(target: Target, refused: CompileError) -> Iterator[Mapping[str, Any]]:
    """List changes of a target's options, those first that change least of what was asked for."""
    asked = _tolerance(refused.bound)
    if asked is not None and asked > (target.tolerance or 0.0):
        yield {"tolerance": asked}
    soft: dict[str, Any] = {} if target.attention == "softmax" else {"attention": "softmax"}
    kinds = [{"feed_forward": kind} for kind in ("glu", "gelu", "relu") if kind != target.feed_forward]
    if soft:
        yield soft
    yield kinds[0]
    if target.dtype != "float64":
        yield {"dtype": "float64"}
    yield from kinds[1:]
    both = [soft | kind for kind in kinds] if soft else []
    yield from both
    if target.dtype != "float64":
        yield from ({"dtype": "float64"} | change for change in (*kinds, soft, *both) if change)
    if not target.fixed and len(target.ranges) == 1:
        yield from ({"length": target.length // part} for part in (2, 4) if target.length >= part)


def _tolerance(bound: float | None) -> float | None:
    """Round an error bound up to one digit, if it is an error worth recommending."""
    if bound is None or not 0 < bound <= _MAX_TOLERANCE:
        return None
    digit = 10.0 ** math.floor(math.log10(bound))
    return float(f"{math.ceil(bound * 1.01 / digit) * digit:.1g}")
