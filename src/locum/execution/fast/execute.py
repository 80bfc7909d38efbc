"""Running programs fast: plans are made once per program, shape, kind of number and device, and kept.

>>> from locum.graph import build
>>> program = build("add", build("tokens", cast="asis"), build("indices"))
>>> plan(program, 3)(np.array([10.0, 20.0, 30.0]))
array([10., 21., 32.])
"""

from __future__ import annotations

import math
import operator
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from locum.errors import ExecutionError, GraphError, InputError
from locum.execution import dense
from locum.execution.domains import Domain
from locum.execution.fast import structured
from locum.execution.fast.plan import Plan
from locum.execution.fast.planning import blueprint
from locum.execution.fast.steps.backends import NumPyBackend, backend_for
from locum.execution.fast.steps.kinds import kinds_of
from locum.execution.fast.steps.step import Shape, Steps
from locum.execution.fast.structured import Unstructured
from locum.execution.fast.symbolic.signals import NotNumeric, Stuck
from locum.execution.inputs import is_tensor, joined
from locum.graph import Node, Sort, abbreviate, sort_of
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.wellformed import require_program
from locum.locks import Lock

#: How many plans are kept; the one used longest ago goes first.
_KEPT = 256
_plans: OrderedDict[Hashable, Plan] = OrderedDict()
#: Reasons for which a program was left to dense execution, and a warning said so.
_told: WeakKeyDictionary[Node, set[str]] = WeakKeyDictionary()
_lock = Lock()

#: Longer sequences are not handed to dense execution: it would take minutes, and all memory.
_DENSE = 4_096


class FallbackWarning(UserWarning):
    """A program was run by dense execution, since it could not be run fast."""


class _Unfit(Exception):  # noqa: N818 - decides which executor runs the program
    """Why a program cannot be run fast on this input."""


class _TooLarge(_Unfit):
    """Whole numbers for which floating point is too small."""


def plan(
    program: Node,
    length: int,
    *,
    positions: range | None = None,
    segments: Sequence[int | Shape] | None = None,
    like: Any = None,
    names: Mapping[Node, str] | None = None,
    strict: bool = False,
) -> Plan:
    """The plan of a program for ``length`` tokens, made or remembered.

    ``positions`` are those wanted of the result (all, unless said; a stretch without gaps). The tokens
    may come in several arrays, of these sizes or shapes (``segments``), which are not copied together.
    What is missing at the end are blanks (0). ``like`` is an array of the kind that will come in (its
    library, dtype and device). With ``strict``, running it never compares all pairs of positions, but
    raises.
    """
    require_program(program)
    if sort_of(program) is not Sort.SOP:
        raise GraphError("a plan is made for an s-op, not for a selector")
    try:
        length = operator.index(length)  # NumPy's whole numbers are welcome
    except TypeError:
        length = 0
    if length < 1:
        raise InputError("a plan is made for a positive whole number of tokens")
    wanted = range(length) if positions is None else positions
    shapes = _shapes((length,) if segments is None else segments)
    if not isinstance(wanted, range):
        raise InputError(f"positions are a range, such as range(0, 12), not {wanted!r}")
    if not 0 <= wanted.start < wanted.stop <= length or wanted.step != 1:
        raise InputError(f"positions {wanted} are not a stretch of 0 to {length - 1}")
    if sum(map(math.prod, shapes)) > length:
        raise InputError(f"tokens in parts of shapes {shapes} do not fit a sequence of {length}")
    backend = backend_for(like)
    key = (program, length, wanted, shapes, backend.key, strict)
    with _lock:
        if key in _plans:
            _plans.move_to_end(key)
            return _plans[key].named(names) if names else _plans[key]
    steps = Steps(NumPyBackend().function)
    try:
        made = blueprint(program, length, wanted, shapes, steps, partial(_static, strict=strict))
    except (Stuck, Unstructured, NotNumeric, OverflowError) as reason:
        problem = f"no plan can be made: {str(reason) or 'the program has strings'}"
        raise ExecutionError(problem, abbreviate(program, names), kind="no plan") from None
    found = Plan(made, steps, backend, {}, strict)
    with _lock:  # planned outside of it: two threads may both plan, but never see half a plan
        _plans[key] = found
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
    return found.named(names) if names else found


def forget_plans() -> None:
    """Make every plan anew from now on, and free what the old ones hold."""
    with _lock:
        _plans.clear()
        _told.clear()


def _shapes(segments: Any) -> tuple[Shape, ...]:
    """Sizes or shapes as shapes."""
    try:
        given = [part if isinstance(part, (tuple, list)) else (part,) for part in segments]
        shapes = tuple(tuple(operator.index(size) for size in part) for part in given)
        if all(size >= 0 for shape in shapes for size in shape):
            return shapes
    except TypeError:
        pass
    raise InputError(f"segments are sizes or shapes of arrays, such as [12, (4, 4)], not {segments!r}")


def _static(node: Node, length: int, strict: bool) -> Any:
    """An s-op that depends on no token, at all positions."""
    return structured.evaluate(node, np.zeros(length), allow_masks=not strict)


def evaluate(
    root: Node,
    tokens: Any,
    domain: Domain,
    names: dense.Names | None = None,
    *,
    positions: range | None = None,
    strict: bool = False,
) -> Any:
    """The value of a program on one sequence: an array of the tokens' kind (or a pattern).

    Where it cannot be run fast, dense execution runs it, and a :class:`FallbackWarning` says so once;
    with ``strict`` that is an error instead.
    """
    wanted = range(len(tokens)) if positions is None else positions
    try:
        if domain.name != "float":
            raise _Unfit(f"plans compute in floating point, not in the {domain.name} domain")
        if sort_of(root) is not Sort.SOP:
            raise _Unfit("a selector's value is the whole pattern")
        array = _numbers(tokens)
        if array is None:
            return _structured(root, tokens, wanted, strict)
        kind = _kind(tokens)
        try:
            value = _planned(root, [array], len(tokens), wanted, strict, whole=kind == "int")
        except _TooLarge:
            return _structured(root, tokens, wanted, strict)
        return _as_kind(value, kinds_of(root, kind)[root])
    except _Unfit as reason:
        return _fall_back(root, str(reason), tokens, wanted, domain, names, strict)


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
    """The value at ``positions``, on tokens in several arrays and blanks behind."""
    try:
        whole = not any(_is_floating(part) for part in parts)
        if whole and not all(map(_is_exact, parts)):
            raise _Unfit("whole numbers beyond 2⁵³")
        given = [_floating(part) for part in parts]
        return _planned(root, given, length, positions, strict, whole)
    except _Unfit as reason:
        tokens = joined(parts, length)
        return _fall_back(root, str(reason), tokens, positions, domain, names, strict)


def _planned(
    root: Node, parts: Sequence[Any], length: int, positions: range, strict: bool, whole: bool
) -> Any:
    """The value by a plan; ``whole`` says that all tokens are whole numbers."""
    if sort_of(root) is not Sort.SOP:
        raise _Unfit("a selector's value is the whole pattern")
    shapes = [tuple(part.shape) for part in parts]
    try:
        made = plan(root, length, positions=positions, segments=shapes, like=parts[0], strict=strict)
        if whole and made.whole_bound(max(_largest(part) for part in parts)) > LARGEST_EXACT:
            raise _TooLarge("whole numbers that may exceed 2⁵³")
        value = made(*parts)
    except ExecutionError as error:
        raise _Unfit(error.problem) from None
    if not is_tensor(value) and not _is_finite(value) and all(map(_is_finite, parts)):
        raise _Unfit("the result is not finite")
    return value


def _structured(root: Node, tokens: Any, positions: range, strict: bool) -> Any:
    """Programs on strings, truth values and large whole numbers: the structured tier alone."""
    try:
        given = tokens if hasattr(tokens, "dtype") else structured.tokens_array(list(tokens))
        found = structured.evaluate(root, given, allow_masks=not strict)
    except Unstructured as reason:
        raise _Unfit(str(reason)) from None
    part = found[positions.start : positions.stop]
    return part.copy() if isinstance(part, np.ndarray) else part.clone()


def _numbers(tokens: Any) -> Any:
    """The tokens as an array of floating-point numbers; None if they are not all such numbers."""
    if hasattr(tokens, "dtype"):
        if is_tensor(tokens) or tokens.dtype.kind in "fiu":
            return _floating(tokens) if _is_floating(tokens) or _is_exact(tokens) else None
        return None
    types = set(map(type, tokens))
    if not types <= {bool, int, float} or types == {bool}:  # truth values have no mean
        return None
    try:
        array = np.array(tokens, dtype=np.float64)
    except OverflowError:
        return None
    return array if int not in types or _is_exact(array) else None


def _is_floating(array: Any) -> bool:
    return bool(array.dtype.is_floating_point if is_tensor(array) else array.dtype.kind == "f")


def _floating(array: Any) -> Any:
    """An array or tensor of numbers, in floating point."""
    if _is_floating(array):
        return array
    return array.double() if is_tensor(array) else array.astype(np.float64)


def _is_finite(array: Any) -> bool:
    return bool(np.isfinite(array).all())


def _is_exact(array: Any) -> bool:
    """Whether floating point holds all of these whole numbers."""
    return _largest(array) <= LARGEST_EXACT


def _largest(array: Any) -> float:
    """The greatest absolute value (of int64's least number, too)."""
    if not math.prod(array.shape):
        return 0.0
    least, greatest = (int(array.min()), int(array.max())) if _holds_whole(array) else (0, math.inf)
    return float(max(-least, greatest))


def _holds_whole(array: Any) -> bool:
    if is_tensor(array):
        return bool(array.isfinite().all())
    return array.dtype.kind in "biu" or bool(np.isfinite(array.astype(np.float64)).all())


def _kind(tokens: Any) -> str:
    if is_tensor(tokens):
        return "float" if tokens.dtype.is_floating_point else "int"
    if isinstance(tokens, np.ndarray):
        return {"b": "bool", "i": "int", "u": "int"}.get(tokens.dtype.kind, "float")
    kinds = {kind.__name__ for kind in set(map(type, tokens))}
    return kinds.pop() if len(kinds) == 1 else "float"


def _as_kind(value: Any, kind: str) -> Any:
    if kind == "bool":
        return value != 0
    if kind != "int" or not _is_exact(value):
        return value
    return value.round().long() if is_tensor(value) else np.rint(value).astype(np.int64)


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
    with _lock:
        reasons = _told.setdefault(root, set())
        news = reason not in reasons
        reasons.add(reason)
    if news:
        warnings.warn(f"run by dense execution: {reason}", FallbackWarning, stacklevel=5)
    return value[positions.start : positions.stop] if isinstance(value, list) else value
