"""Recommend changes with which a program compiles, if it does not compile with the given options.

A change consists of other options, or of another form of a mean. For example,
``aggregate(select(tokens, "+", "=="), indices)`` is the position of the only "+". On inputs with
several "+", the value is a mean, and there may be too many fractions for hidden units to distinguish.
This module recommends only changes with which the program was compiled successfully.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

from locum.errors import CompileError
from locum.graph import Atom, Node, build, postorder
from locum.graph.atoms import identity
from locum.graph.labels import Labels
from locum.graph.traversal import with_inputs
from locum.networks.compiler.compile_limits import LimitExceededError, extend_time, time_left
from locum.networks.compiler.program.assumed_inputs import selected_tokens
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target

#: Maximum length of an s-op's text in an error about means. Longer texts are abbreviated.
_LONGEST = 200
#: CPU time in seconds after which no further options are tried.
SECONDS = 4.0
#: Options are tried only while at least this CPU time, in seconds, remains until the limit.
_LEAST = 0.5
#: Share of the time limit by which the limit is extended in order to recommend a length.
_MORE = 0.08
#: Minimum length that is recommended, since programs on one token are trivial.
_SHORTEST = 2
#: Largest error bound for which a tolerance is recommended.
_MAX_TOLERANCE = 0.1


def find_alternative(
    target: Target, compiled: Callable[[Target], object], refused: CompileError
) -> str | None:
    """Return options with which a program compiles, as text, or None if none are found in time.

    ``compiled`` compiles the program for a target and raises CompileError if this fails. ``refused`` is
    the error for the given target.
    """
    start = time.process_time()
    # A program that compiles with tables also compiles without a preference. Tables take the least
    # time.
    first = ("exact",) if target.prefer is None else ()
    for change, prefer in product(_changes(target, refused), (*first, target.prefer)):
        if time.process_time() - start > SECONDS or time_left() < _LEAST:
            return None
        try:
            compiled(replace(target, **{"prefer": prefer} | change))
        except CompileError:
            continue
        return " and ".join(f"{name}={value!r}" for name, value in change.items())
    return None


def find_length(target: Target, compiled: Callable[[Target], object]) -> str:
    """Return a smaller length with which a program compiles in little additional time, as text.

    Return "" if no such length is found.
    """
    found = ""
    with extend_time(_MORE):
        for length in reversed(_lengths(target)):
            with suppress(CompileError):
                # Tables take the least time.
                compiled(replace(target, length=length, prefer=target.prefer or "exact"))
                found = f"length={length}"
    return found


def _lengths(target: Target) -> list[int]:
    """Return the smaller lengths that are tried, in decreasing order."""
    if target.fixed or len(target.ranges) > 1:
        return []
    return [length for n in (2, 4) if (length := target.length // n) >= _SHORTEST]


def _changes(target: Target, refused: CompileError) -> Iterator[Mapping[str, Any]]:
    """Yield changes of the options of a target, in the order in which they are tried."""
    if isinstance(refused, LimitExceededError) and target.prefer == "exact":
        yield {"prefer": "small"}
    asked = _tolerance(refused.bound)
    if asked is not None and asked > (target.tolerance or 0.0):
        yield {"tolerance": asked}
    soft: dict[str, Any] = {} if target.attention == "softmax" else {"attention": "softmax"}
    kinds = [{"feed_forward": kind} for kind in ("glu", "gelu", "relu") if kind != target.feed_forward]
    if soft:
        yield soft
    if target.dtype != "float64":
        yield {"dtype": "float64"}
    yield from kinds
    both = [soft | kind for kind in kinds] if soft else []
    yield from both
    if target.dtype != "float64":
        yield from ({"dtype": "float64"} | change for change in (*kinds, soft, *both) if change)
    yield from ({"length": length} for length in _lengths(target))


def _tolerance(bound: float | None) -> float | None:
    """Add 1 % to an error bound, and round the result up to one significant digit.

    Return None if there is no positive bound, or if the bound is too large to recommend.
    """
    if bound is None or not 0 < bound <= _MAX_TOLERANCE:
        return None
    least = 1.01 * bound
    digit = 10.0 ** math.floor(math.log10(least))
    return float(f"{math.ceil(least / digit) * digit:.1g}")


def explain_means(
    target: Target,
    root: Node,
    names: Mapping[Node, str] | None,
    compiled: Callable[[Target, Node], object],
) -> CompileError | None:
    """Return an error about means over the keys with one token, with changes of the program or options.

    Return None if the program has no such mean, or if none of the changes makes the program compile.
    ``compiled`` raises CompileError if a program does not compile.
    """
    means = _means_of_tokens(target, root)
    if not means:
        return None
    label = Labels(names, _LONGEST)
    tokens = list({identity(token): token for token in means.values()}.values())
    counts = dict.fromkeys(tokens, 1)
    shown = " or ".join(map(repr, tokens))
    advice = []
    if _compiles(compiled, replace(target, inputs=[*(target.inputs or ()), counts]), root):
        added = counts if target.inputs is None else f"[…, {counts}]"
        advice.append(
            f"inputs={added}, if an input has exactly one {' and one '.join(map(repr, tokens))}"
        )
    if _compiles(compiled, target, _with_best(root, means)):
        selector = label(next(iter(means)).inputs[0])
        advice.append(f"best({selector}, indices) instead of {selector}, for the last {shown}")
    if not advice:
        return None
    where = " and ".join(dict.fromkeys(map(label, means)))
    return CompileError(
        f"expected values that hidden units can distinguish, got a mean over several {shown}, in "
        f"{where}; try {'; or try '.join(advice)}"
    )


def _means_of_tokens(target: Target, root: Node) -> dict[Node, Atom]:
    """Return the aggregates that may average numbers over all keys with one token, with this token."""
    selectors, vocabulary = Selectors(target), target.vocabulary or ()
    means: dict[Node, Atom] = {}
    if not vocabulary:
        return means
    for node in postorder(root):
        if node.op != "aggregate" or node.free:
            continue
        tokens = selected_tokens(node.inputs[0], vocabulary)
        if tokens is None or len(tokens) != 1 or selectors.unique(node.inputs[0]):
            continue
        values = selectors.values.finite(node.inputs[1])
        if values is None or sum(not isinstance(value, (str, bool)) for value in values) > 1:
            means[node] = vocabulary[tokens[0]]
    return means


def _with_best(root: Node, means: Collection[Node]) -> Node:
    """Return the program in which each aggregate of ``means`` reads only the last selected key."""
    new: dict[Node, Node] = {}
    for node in postorder(root):
        inputs = [new[i] for i in node.inputs]
        if node in means:
            inputs[0] = build("best", inputs[0], build("indices"))
        new[node] = with_inputs(node, tuple(inputs))
    return new[root]


def _compiles(compiled: Callable[[Target, Node], object], target: Target, root: Node) -> bool:
    try:
        compiled(target, root)
    except CompileError:
        return False
    return True
