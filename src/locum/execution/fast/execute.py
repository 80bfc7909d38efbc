"""Run programs fast: by plans, by the structured tier, or, where neither can, by dense execution.

Numbers are run by a plan (``cache.py``). Programs with strings, strings and booleans as tokens, and
integers that floating point would round are run by the structured tier, on the tokens as they were
given. Both give dense execution's values. For lists its types, too: where those depend on the position,
a second program finds them (``types.py``).

>>> from locum import aggregate, indices, length, select, tokens
>>> aggregate(select(indices, length - 1 - indices, "=="), tokens)([1, 2.5, 3], executor="fast")
[3, 2.5, 1]
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from locum.errors import ExecutionError
from locum.execution import dense, types
from locum.execution.domains import Domain
from locum.execution.fast import cache, structured
from locum.execution.fast.description import Description, described
from locum.execution.fast.plan import Plan
from locum.execution.fast.structured import Unstructured
from locum.execution.fast.tokens import Tokens, floating, is_finite, is_floating, largest
from locum.execution.inputs import is_tensor, joined
from locum.graph import Node, Sort, abbreviate, postorder, sort_of
from locum.graph.atoms import LARGEST_EXACT
from locum.locks import Lock

#: Longer sequences are not handed to dense execution: it would take minutes, and all memory. U on
#: longer ones warns if there is no plan.
_DENSE = 4_096

#: Why each program was left to dense execution: said once.
_warned: WeakKeyDictionary[Node, set[str]] = WeakKeyDictionary()
_lock = Lock()


#: Plans that only move integers, of one program, that are found at once.
_MOST_MOVES = 8


class FallbackWarning(UserWarning):
    """A program, or a part of U, is run more slowly than by a plan; the warning says why."""


class _Unfit(Exception):  # noqa: N818 - decides which executor runs the program
    """Why a program cannot be run fast on this input."""


class _Unplanned(_Unfit):
    """Why no plan can run a program on this input; the structured tier may."""


class _NoPlan(_Unplanned):
    """Why there is no plan, whatever the numbers are."""


def forget_plans() -> None:
    """Drop every plan, and the memory that plans hold; say again why programs fall back."""
    cache.forget_plans()
    with _lock:
        _warned.clear()


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
    """Return the value of a program on one sequence: a list or an array of one value per position.

    ``kinds`` are the types of the tokens of a list, if they are known. If the program cannot be run
    fast, dense execution runs it, and there is a :class:`FallbackWarning`; with ``strict``, an error.
    """
    asked = range(len(tokens)) if positions is None else positions
    try:
        if domain.name != "float":
            raise _Unfit(f"plans compute in floating point, not in the {domain.name} domain")
        if sort_of(root) is not Sort.SOP:
            raise _Unfit("a selector's value is the whole pattern")
        return _exact(root, Tokens.read(tokens, kinds), asked, strict)
    except _Unfit as reason:
        return _fall_back(root, str(reason), tokens, asked, domain, names, strict)


def with_types(root: Node, values: list[Any], tokens: Sequence[Any], positions: range) -> list[Any]:
    """Return values that another executor computed on a list, in the types of dense execution."""
    floats, bools = types_at(root, tokens, positions)
    try:
        typed = _typed(np.array(values), floats, bools, Tokens.read(tokens))
    except _Unfit as reason:
        raise _untyped(root, reason) from None
    return typed if isinstance(typed, list) else list(typed.tolist())


def types_at(
    root: Node, tokens: Sequence[Any], positions: range, *, plan: bool = True
) -> tuple[Any, Any]:
    """Return where dense execution gives floats, and where bools: True, False or an array, > 0 there.

    Without ``plan`` none is made where the structured tier can do it, which is sooner for a few inputs.

    >>> from locum import aggregate, indices, select, tokens
    >>> means = aggregate(select(indices, indices, "<="), tokens)
    >>> floats, bools = types_at(means.node, [5, 6, 7], range(3))
    >>> (floats > 0).tolist(), bools
    ([False, True, True], False)
    """
    sequence = Tokens.read(tokens)
    known = described(root, sequence.types)
    try:
        measured = _measured(known, sequence, positions, plan)
    except _Unfit as reason:
        raise _untyped(root, reason) from None
    floats, bools = (m if isinstance(m, bool) else measured.pop(0) for m in (known.floats, known.bools))
    return floats, bools


def _measured(known: Description, tokens: Tokens, positions: range, plan: bool) -> list[Any]:
    if known.measures and not plan:
        with contextlib.suppress(_Unfit):
            return _structured(known.measures, tokens, positions, False)
    return _run(known.measures, known, tokens, positions, False)


def _untyped(root: Node, reason: _Unfit) -> ExecutionError:
    problem = f"the types of its values cannot be found: {reason}"
    return ExecutionError(problem, abbreviate(root), kind="refused")


def _exact(root: Node, tokens: Tokens, positions: range, strict: bool) -> Any:
    """Return the value of an s-op, of the types that dense execution gives."""
    known = described(root, tokens.types)
    moved = known.moves.get((len(tokens), positions))
    plan = None if moved is None else moved()
    if plan is not None and tokens.whole is not None:
        return plan.move(tokens.whole)
    floats, bools = known.floats, known.bools
    if tokens.is_array and tokens.types == {float}:
        # Arrays of floats stay such unless the program alone says otherwise.
        floats, bools = floats is not False, bools is True
    elif known.static:
        floats, bools = (_settled(m, known, len(tokens), positions) for m in (floats, bools))
    if floats is bools is False and known.unplanned is None and tokens.whole is not None:
        with contextlib.suppress(_Unplanned):
            plan = _plan(root, len(tokens), positions, strict)
            if plan.only_moves:
                if len(known.moves) >= _MOST_MOVES:
                    known.moves.clear()
                known.moves[len(tokens), positions] = ref(plan)
                return plan.move(tokens.whole)
    roots = [root, *(m for m in (floats, bools) if isinstance(m, Node))]

    def typed(values: list[Any]) -> Any:
        value, *measured = values
        where = [measured.pop(0) if isinstance(m, Node) else m for m in (floats, bools)]
        return _typed(value, where[0], where[1], tokens)

    if known.unplanned is None and _is_structured(roots, tokens, positions, strict):
        with contextlib.suppress(_Unfit):
            return typed(_structured(roots, tokens, positions, strict))
    try:
        return typed(_run(roots, known, tokens, positions, strict))
    except _Unplanned:
        return typed(_structured(roots, tokens, positions, strict))


def _settled(measure: Node | bool, known: Description, length: int, positions: range) -> Node | bool:
    """Return whether a measure is positive everywhere or nowhere, if the length decides that."""
    if isinstance(measure, Node) and measure in known.static:
        with contextlib.suppress(_Unplanned):
            sign = _plan(measure, length, positions, strict=False).known_sign
            return measure if sign is None else sign
    return measure


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
    """Return the value at ``positions``, on tokens in several arrays and blanks behind them."""
    try:
        if sort_of(root) is not Sort.SOP:
            raise _Unfit("a selector's value is the whole pattern")
        kinds = frozenset(kind for part in parts for kind in Tokens.read(part).types)
        known = described(root, kinds)
        try:
            if known.unplanned is not None:
                raise _Unplanned(known.unplanned)
            if kinds != {float} and max(map(largest, parts)) > LARGEST_EXACT:
                raise _Unplanned("integers beyond 2⁵³")
            if known.has_arithmetic and not is_tensor(parts[0]) and not all(map(is_finite, parts)):
                raise _Unplanned("infinities or NaN")
            return _planned(root, [floating(part) for part in parts], length, positions, strict, kinds)
        except _Unplanned as reason:
            if length > _DENSE and known.unplanned is None and isinstance(reason, _NoPlan):
                _warn(root, f"{abbreviate(root)} is run by the structured tier: {reason}")
            (value,) = _structured([root], Tokens.read(joined(parts, length)), positions, strict)
            return value if largest(value) > LARGEST_EXACT else floating(value)
    except _Unfit as reason:
        tokens = joined(parts, length)
        return _fall_back(root, str(reason), tokens, positions, domain, names, strict)


def plan_for(root: Node, parts: Sequence[Any], length: int, positions: range) -> Plan | None:
    """Return the plan that alone runs an s-op on arrays of floats such as these, if there is one.

    Where it raises an :class:`ExecutionError`, or gives a NumPy array that is not finite,
    :func:`evaluate_parts` says what becomes of that.
    """
    if described(root, frozenset([float])).unplanned is not None:
        return None
    try:
        plan = _plan(root, length, positions, strict=False, parts=parts)
    except _Unplanned:
        return None
    if length > _DENSE and plan.has_structured:
        for node, reason in plan.opaque.items():
            _warn(root, f"{abbreviate(node)} is run by the structured tier: {reason}")
    return plan if plan.greatest_integer(frozenset([float]), 0.0) <= LARGEST_EXACT else None


def _run(
    roots: list[Node], description: Description, tokens: Tokens, positions: range, strict: bool
) -> list[Any]:
    """Return the values of an s-op and of its measures: by plans, else by the structured tier."""
    values: list[Any] = []
    exact = is_tensor(tokens.values) or not description.has_arithmetic or tokens.is_finite
    if description.unplanned is None and exact:
        for root in roots:
            readable = tokens.for_plan(root)
            if readable is None:
                break
            program, array, kinds = readable
            try:
                values.append(_planned(program, [array], len(tokens), positions, strict, kinds))
            except _Unplanned:
                break
    left = roots[len(values) :]
    return values + (_structured(left, tokens, positions, strict) if left else [])


def _plan(
    root: Node, length: int, positions: range, strict: bool, parts: Sequence[Any] | None = None
) -> Plan:
    """Return the plan for arrays such as these parts; for one NumPy array of floats without them."""
    segments = None if parts is None else [tuple(part.shape) for part in parts]
    like = None if parts is None else parts[0]
    try:
        return cache.plan(
            root, length, positions=positions, segments=segments, like=like, strict=strict
        )
    except ExecutionError as error:
        raise _NoPlan(error.problem) from None


def _is_structured(roots: list[Node], tokens: Tokens, positions: range, strict: bool) -> bool:
    """Return whether the structured tier alone runs a program: one without families that needs it.

    It keeps integers as they are, and the measures share what the program computes. Tensors of floats
    have no measures, and are run by plans.
    """
    if roots[0].height or (len(roots) == 1 and is_tensor(tokens.values)):
        return False
    try:
        return _plan(roots[0], len(tokens), positions, strict).has_structured
    except _Unplanned:
        return False


def _planned(
    root: Node,
    parts: Sequence[Any],
    length: int,
    positions: range,
    strict: bool,
    kinds: types.Types,
) -> Any:
    """Return the value by a plan, on tokens of these types that come in parts."""
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


def _structured(roots: list[Node], tokens: Tokens, positions: range, strict: bool) -> list[Any]:
    """Return the values by the structured tier alone, on the tokens as they were given."""
    try:
        array, known = tokens.series(postorder(*roots))
        values = structured.evaluate_all(roots, array, known=known, allow_masks=not strict)
    except Unstructured as reason:
        raise _Unfit(str(reason)) from None
    parts = [value[positions.start : positions.stop] for value in values]
    return [part.clone() if is_tensor(part) else _own(part, tokens) for part in parts]


def _own(array: Any, tokens: Tokens) -> Any:
    """Return an array in memory that is not part of the tokens, and can be written to."""
    shared = not array.flags.writeable or (
        tokens.is_array and np.may_share_memory(array, tokens.values)
    )
    return array.copy() if shared else array


def _typed(value: Any, floats: Any, bools: Any, tokens: Tokens) -> Any:
    """Return values of the types that dense execution gives.

    A list of tokens gives a list, or an array if all values are of one type.
    """
    floats, bools = _everywhere(floats), _everywhere(bools)
    if not is_tensor(value) and value.dtype.kind == "U":
        return value
    if is_floating(value) and not (floats is True or bools is True) and not is_tensor(value):
        integers = value
        if not floats is bools is False:
            integers = value[~((np.asarray(floats) > 0) | (np.asarray(bools) > 0))]
        # Comparisons with NaN do not hold, nor do they say that it is rounded.
        is_rounded = (np.rint(integers) != integers) & (integers == integers)
        if is_rounded.any() or (np.abs(integers) >= LARGEST_EXACT).any():
            raise _Unplanned("integers that floating point rounds")
    if not tokens.is_array and not (isinstance(floats, bool) and isinstance(bools, bool)):
        return types.python_values(value, floats, bools)
    if not isinstance(floats, bool):
        floats = bool((floats > 0).any())
    if not isinstance(bools, bool):
        bools = bool((bools > 0).all())
    if bools:
        return value != 0
    if floats:
        return value if is_tensor(value) else floating(value)
    if is_tensor(value):  # beyond 2⁵³, and at infinities and NaN, int64 has no such integer
        if not is_floating(value):
            return value.long()
        return value.round().long() if largest(value) <= LARGEST_EXACT else value
    return value if value.dtype.kind == "i" else np.rint(value).astype(np.int64)


def _everywhere(measured: Any) -> Any:
    """Return True or False for a measure that is positive at all positions, or at none."""
    if isinstance(measured, bool):
        return measured
    positive = measured > 0
    if not bool(positive.any()):
        return False
    return True if bool(positive.all()) else measured


def _fall_back(
    root: Node,
    reason: str,
    tokens: Any,
    positions: range,
    domain: Domain,
    names: dense.Names | None,
    strict: bool,
) -> Any:
    """Run by dense execution, and say once why; refused if strict. Its errors are the right ones."""
    if strict:
        raise ExecutionError(f"it cannot be run fast: {reason}", abbreviate(root), kind="not fast")
    plain = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
    if len(plain) > _DENSE:
        problem = f"{reason}; and {len(plain):,} tokens are too many to try dense execution instead"
        raise ExecutionError(problem, abbreviate(root), kind="too large")
    value = dense.evaluate(root, plain, domain, names)
    _warn(root, f"run by dense execution: {reason}")
    return value[positions.start : positions.stop] if isinstance(value, list) else value


def _warn(root: Node, message: str) -> None:
    """Warn once that a program is not run by a plan."""
    with _lock:
        messages = _warned.setdefault(root, set())
        is_new = message not in messages
        messages.add(message)
    if is_new:
        warnings.warn(message, FallbackWarning, stacklevel=6)
