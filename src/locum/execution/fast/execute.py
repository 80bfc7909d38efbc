"""Run programs by plans, by the structured tier, or, if neither is possible, by dense execution.

Programs on numbers are usually run by a plan (``plan_cache.py``). The structured tier runs programs on
the original tokens, for example if strings occur, or if floating point may round integers. The values
are the values of dense execution, converted to one type (``types.py``). ``docs/execution.md`` lists
the exceptions, such as rounding of floats.

>>> from locum import aggregate, indices, length, select, tokens
>>> aggregate(select(indices, length - 1 - indices, "=="), tokens)([1, 2.5, 3], executor="fast")
[3.0, 2.5, 1.0]
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from locum.errors import ExecutionError
from locum.execution import dense, types
from locum.execution.arrays import floating, is_finite, is_tensor, largest
from locum.execution.domains import Domain
from locum.execution.fast import plan_cache, structured
from locum.execution.fast.plan import Plan
from locum.execution.fast.structured import Unstructured
from locum.execution.fast.tokens import Tokens
from locum.execution.inputs import joined
from locum.graph import Node, Sort, abbreviate, postorder, sort_of
from locum.graph.atoms import LARGEST_EXACT
from locum.shared_state import Lock

#: Maximum length of sequences that fall back to dense execution, which needs much time and memory. For
#: longer sequences in several arrays, as in U, a warning names what the structured tier runs.
_DENSE = 4_096

#: For each program, its facts by types and number of tokens, and the warnings already emitted. Entries
#: are deleted with the program, and by :func:`forget_plans`.
_known: WeakKeyDictionary[Node, dict[Hashable, Any]] = WeakKeyDictionary()
_lock = Lock()


class FallbackWarning(UserWarning):
    """Warning that a program, or a part of U, is not run by a plan and is therefore slower."""


class _Unfit(Exception):  # noqa: N818 - decides which executor runs the program
    """Raised with the reason why a fast tier cannot run a program on this input."""


class _Unplanned(_Unfit):
    """Raised with the reason why no plan can run a program on this input.

    The structured tier may still be able to run the program.
    """


class _NoPlan(_Unplanned):
    """Raised with the reason why a program cannot have a plan, for any input values."""


def forget_plans() -> None:
    """Drop all cached plans; later fallbacks emit their warnings again."""
    plan_cache.clear_plans()
    with _lock:
        _known.clear()


#: Reason why plans, or the structured tier on tensors, cannot run a program.
_ROUNDED = "integers that floating point may round"


@dataclass(frozen=True)
class _Facts:
    """Facts about a program for given types and numbers of tokens, determined before a run."""

    #: The type of the values of the result.
    result: type
    #: Reason why plans cannot run the program, or None.
    unplanned: str | None
    #: Reason why only dense execution can run the program, or None.
    dense_only: str | None
    #: Whether the program has arithmetic operations, such as sums and quotients. Plans compute them in
    #: a different order, in which 0 · ∞ may be 0.
    has_arithmetic: bool
    #: Reason why the structured tier cannot run the program on a tensor, or None.
    no_tensor: str | None


def _facts(root: Node, tokens: types.Types, length: int) -> _Facts:
    longest = 2 ** length.bit_length()  # similar lengths share their facts, to limit the cache

    def find() -> _Facts:
        possible = types.possible_types(root, tokens)
        strings = "the program has strings" if types.has_strings(root) else None
        large = types.has_large_integers(possible, longest)
        # Only NumPy arrays are checked for rounded integers.
        mixed = int in tokens and types.computed_mixtures(possible, longest)
        return _Facts(
            types.join(possible[root]),
            strings or types.averages_booleans(possible) or (_ROUNDED if large else None),
            types.rounds_integers(possible, longest),
            any(node.op in types.MIXING or node.op in ("divide", "sum_over") for node in possible),
            strings or (_ROUNDED if large or mixed else None),
        )

    facts: _Facts = _remember(root, (tokens, longest), find)
    return facts


def evaluate(
    root: Node,
    tokens: Any,
    domain: Domain,
    names: dense.Names | None = None,
    *,
    positions: range | None = None,
    strict: bool = False,
    kinds: types.Types | None = None,
) -> Any:
    """Return the value of a program on one sequence of tokens, which is a list, an array or a tensor.

    ``kinds`` contains the types of the tokens, if they are known. If neither a plan nor the structured
    tier can run the program, dense execution runs it on at most 4,096 tokens. A
    :class:`FallbackWarning` is then emitted once for each program and reason. With ``strict``, an error
    is raised instead, also if the structured tier would compare all pairs of positions.
    """
    asked = range(len(tokens)) if positions is None else positions
    reason = ""
    if domain.name != "float":
        reason = f"plans compute in floating point, not in the {domain.name} domain"
    elif sort_of(root) is not Sort.SOP:
        reason = "a selector's value is the whole pattern"
    if reason:
        return _fall_back(root, reason, tokens, asked, domain, names, strict)
    read = Tokens.read(tokens, kinds)
    facts = _facts(root, read.types, len(read))
    try:
        value = _whole(_value(root, read, asked, strict, facts), facts.result)
    except _Unfit as error:
        value = _fall_back(root, str(error), tokens, asked, domain, names, strict)
    return types.cast(value, facts.result, root)


def _value(root: Node, tokens: Tokens, positions: range, strict: bool, facts: _Facts) -> Any:
    """Return the value of an s-op, computed by a plan or by the structured tier."""
    if facts.dense_only is not None:
        raise _Unfit(facts.dense_only)
    on_tensor = is_tensor(tokens.values)
    # Tokens are converted to floats only if needed: integers may be moved or sorted unchanged.
    if facts.unplanned is None and (tokens.whole is not None or tokens.numbers is not None):
        with contextlib.suppress(_Unplanned):
            plan = _plan(root, len(tokens), positions, strict, [tokens.numbers] if on_tensor else None)
            if facts.result is int and tokens.whole is not None and plan.only_moves:
                return plan.move(tokens.whole)
            if plan.has_structured and not root.height and not on_tensor:
                with contextlib.suppress(_Unfit):  # only this tier keeps integers exact
                    return _structured(root, tokens, positions, strict)
            is_exact = on_tensor or not facts.has_arithmetic or tokens.is_finite
            if is_exact and tokens.numbers is not None:
                parts = [tokens.numbers]
                value = _planned(root, parts, len(tokens), positions, strict, tokens.types)
                return _whole(value, facts.result)
    if on_tensor and facts.no_tensor is not None:
        raise _Unfit(facts.no_tensor)
    return _structured(root, tokens, positions, strict)


def _whole(value: Any, result: type) -> Any:
    """Return ``value``, or raise an error if its integers may have been rounded to floats."""
    has_floats = not is_tensor(value) and value.dtype.kind == "f"
    if result is int and has_floats and not types.is_whole(value):
        raise _Unplanned("integers that floating point rounds")
    return value


def evaluate_parts(
    root: Node,
    parts: Sequence[Any],
    length: int,
    domain: Domain,
    names: dense.Names | None = None,
    *,
    positions: range,
    strict: bool = False,
) -> Any:
    """Return the value of ``root`` at ``positions``, on tokens in several arrays.

    Blanks follow the tokens. ``length`` is the total number of tokens, including blanks. If making a
    plan for more than 4,096 tokens fails, a :class:`FallbackWarning` is emitted once.
    """
    kinds = frozenset[type]().union(*map(types.types_of, parts))
    facts = _facts(root, kinds, length)
    is_exact = is_tensor(parts[0]) or not facts.has_arithmetic or all(map(is_finite, parts))
    is_small = kinds == {float} or max(map(largest, parts)) <= LARGEST_EXACT
    if sort_of(root) is Sort.SOP and facts.unplanned is None and is_exact and is_small:
        try:
            floats = [floating(part) for part in parts]
            value = _planned(root, floats, length, positions, strict, kinds)
            return types.cast(_whole(value, facts.result), facts.result, root)
        except _NoPlan as reason:
            if length > _DENSE:
                _warn(root, f"{abbreviate(root)} is run by the structured tier: {reason}")
        except _Unfit:
            pass
    tokens = joined(parts, length)
    return evaluate(root, tokens, domain, names, positions=positions, strict=strict)


def plan_for(root: Node, parts: Sequence[Any], length: int, positions: range) -> Plan | None:
    """Return a plan that runs an s-op on arrays of floats such as ``parts``, or None if there is none.

    The result is also None if the plan may compute integers beyond 2⁵³. If the structured tier runs
    s-ops of a plan for more than 4,096 tokens, a :class:`FallbackWarning` is emitted once for each of
    them. If the plan raises :class:`ExecutionError`, or returns a NumPy array that is not finite, call
    :func:`evaluate_parts`.
    """
    if _facts(root, frozenset([float]), length).unplanned is not None:
        return None
    try:
        plan = _plan(root, length, positions, strict=False, parts=parts)
    except _Unplanned:
        return None
    if length > _DENSE and plan.has_structured:
        for node, reason in plan.opaque.items():
            _warn(root, f"{abbreviate(node)} is run by the structured tier: {reason}")
    return plan if plan.greatest_integer(frozenset([float]), 0.0) <= LARGEST_EXACT else None


def _plan(
    root: Node, length: int, positions: range, strict: bool, parts: Sequence[Any] | None = None
) -> Plan:
    """Return the plan for arrays such as ``parts``, by default for one NumPy array of float64."""
    segments = None if parts is None else [tuple(part.shape) for part in parts]
    like = None if parts is None else parts[0]
    try:
        return plan_cache.plan(
            root, length, positions=positions, segments=segments, like=like, strict=strict
        )
    except ExecutionError as error:
        raise _NoPlan(error.problem) from None


def _planned(
    root: Node,
    parts: Sequence[Any],
    length: int,
    positions: range,
    strict: bool,
    kinds: types.Types,
) -> Any:
    """Return the value computed by a plan, on tokens of types ``kinds`` in several arrays."""
    plan = _plan(root, length, positions, strict, parts)
    greatest = max(map(largest, parts)) if kinds != {float} else 0.0
    if plan.greatest_integer(kinds, greatest) >= LARGEST_EXACT:
        raise _Unplanned("integers that may exceed 2⁵³")
    try:
        value = plan.run(parts, kinds)
    except ExecutionError as error:
        raise _Unfit(error.problem) from None
    if not is_tensor(value) and not is_finite(value) and all(map(is_finite, parts)):
        raise _Unfit("the result is not finite")
    return value


def _structured(root: Node, tokens: Tokens, positions: range, strict: bool) -> Any:
    """Return the value computed only by the structured tier, on the original tokens."""
    try:
        array, known = tokens.series(postorder(root))
        value = structured.evaluate(root, array, known=known, allow_masks=not strict)
    except Unstructured as reason:
        raise _Unfit(str(reason)) from None
    part = value[positions.start : positions.stop]
    return part.clone() if is_tensor(part) else _own(part, tokens)


def _own(array: Any, tokens: Tokens) -> Any:
    """Return an array that shares no memory with the tokens and is writable."""
    shared = not array.flags.writeable or (
        tokens.is_array and np.may_share_memory(array, tokens.values)
    )
    return array.copy() if shared else array


def _fall_back(
    root: Node,
    reason: str,
    tokens: Any,
    positions: range,
    domain: Domain,
    names: dense.Names | None,
    strict: bool,
) -> Any:
    """Run a program by dense execution and warn once with the reason, or raise an error if ``strict``.

    For more than 4,096 tokens, an error is also raised. Errors that dense execution raises are passed
    to the user.
    """
    if strict:
        problem = f"the fast executor does not support this program: {reason}"
        raise ExecutionError(problem, abbreviate(root), kind="not fast")
    plain = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
    if len(plain) > _DENSE:
        problem = (
            f"expected at most {_DENSE:,} tokens for a program that the fast executor does not support "
            f"({reason}), got {len(plain):,}"
        )
        raise ExecutionError(problem, abbreviate(root), kind="too large")
    value = dense.evaluate(root, plain, domain, names)
    _warn(root, f"{abbreviate(root)} is run by dense execution: {reason}")
    return value[positions.start : positions.stop] if isinstance(value, list) else value


def _warn(root: Node, message: str) -> None:
    """Warn once for each program and message that a plan does not run the program or a part of it."""
    _remember(root, message, lambda: warnings.warn(message, FallbackWarning, stacklevel=8))


def _remember(root: Node, key: Hashable, make: Callable[[], Any]) -> Any:
    with _lock:
        known = _known.setdefault(root, {})
    if key not in known:
        known[key] = make()
    return known[key]
