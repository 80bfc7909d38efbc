"""Convert Tracr programs to s-ops.

Tracr is not imported: its objects are recognised by the names of their classes. Functions (the lambdas
of ``Map`` and ``SequenceMap``) are called on s-ops. If the possible values of all arguments are known,
the resulting s-op is used only if it computes the same values. All other functions become lookup tables
over the values of their arguments. Predicates that are not comparisons are converted to selectors of
classes of keys and classes of queries.

Tracr's ``None`` becomes a smaller negative integer if all other values are numbers or booleans, and
otherwise a string such as "None". If an aggregate averages None, running the converted program raises
an error. This is also the case if a numerical aggregate without a default selects no key.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from locum.errors import ExecutionError, GraphError
from locum.graph import OPERATIONS, Atom, is_atom
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import (
    aggregate,
    constant,
    full,
    indicator,
    indices,
    length,
    lookup,
    select,
    selector_width,
    tokens,
    where,
)
from locum.rasp.tabulated import MAX_ROWS, Domain, call_on_all, called, selector, table

_MODULE = "tracr.rasp.rasp"
_NAME = "from_tracr"
#: Means on which a function that is called on s-ops is compared with the function.
_SAMPLES = (0, 1, 2, 0.0, 0.25, 1 / 3, 0.5, 1.0, 2.0, 2.75, -1.5)
#: The value that marks a position without an error.
_FINE = "a value"


def from_tracr(program: Any, *, vocabulary: Iterable[Atom], length: int) -> SOp:
    """Convert a Tracr program (an ``SOp`` of ``tracr.rasp.rasp``) to an s-op that computes the same
    values.

    An atom represents None. If the results of a function mix strings with other types or are not atoms,
    their Python text represents them. ``vocabulary`` and ``length`` (the maximum input length)
    determine the values over which the functions of the program are tabulated.

    >>> from_tracr("a text", vocabulary="ab", length=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    locum.errors.GraphError: from_tracr: expected an SOp of tracr.rasp.rasp, got str; ...
    """
    if not _is(program, "SOp"):
        raise GraphError(
            f"from_tracr: expected an SOp of {_MODULE}, got {type(program).__name__}; "
            "try the s-op that rasp.… returned"
        )
    return _Importer(list(vocabulary), length).sop(program).sop


def _is(item: Any, name: str) -> bool:
    """Return whether an object is an instance of the Tracr class ``name`` or of one of its
    subclasses.
    """
    return any(kind.__name__ == name and kind.__module__ == _MODULE for kind in type(item).__mro__)


@dataclass(frozen=True, eq=False)
class _Imported:
    """An s-op converted from Tracr, and its possible values if they are known and finitely many."""

    sop: SOp
    values: Domain | None
    #: A function that lists the values of means, and of results computed from them, if there are few.
    listing: Callable[[], Domain | None] = lambda: None

    @cached_property
    def listed(self) -> Domain | None:
        """The possible values of the s-op, including values of means, or None if they are not
        listed.
        """
        return self.listing() if self.values is None else self.values


class _Importer:
    def __init__(self, vocabulary: Sequence[Atom], longest: int) -> None:
        self.vocabulary = vocabulary
        self.longest = longest
        #: Converted objects by ``id``, with their originals, so that no new object reuses an ``id``.
        self._known: dict[int, tuple[Any, Any]] = {}

    def sop(self, item: Any) -> _Imported:
        """Convert a Tracr s-op and everything that it depends on, each object once and without
        recursion.
        """
        stack = [item]
        while stack:
            top = stack[-1]
            below = [part for part in _parts(top) if id(part) not in self._known]
            if below:
                stack += below
                continue
            stack.pop()
            if id(top) not in self._known:
                self._known[id(top)] = (top, self._take(top))
        imported: _Imported = self._known[id(item)][1]
        return imported

    def _of(self, item: Any) -> Any:
        return self._known[id(item)][1]

    def _take(self, item: Any) -> Any:
        if _is(item, "Selector"):
            return self._selector(item)
        if _is(item, "TokensType"):
            return _Imported(tokens, Domain(self.vocabulary, own=True, name=_NAME))
        if _is(item, "IndicesType"):
            return _Imported(indices, Domain(range(self.longest)))
        if _is(item, "LengthType"):
            return _Imported(length, Domain(range(1, self.longest + 1)))
        if _is(item, "Full"):
            values = Domain([item.fill], name=_NAME)
            return _Imported(constant(values.atom(item.fill)), values)
        if _is(item, "SelectorWidth"):
            return _Imported(selector_width(self._of(item.selector)), Domain(range(self.longest + 1)))
        if _is(item, "Aggregate"):
            return self._aggregate(item)
        if _is(item, "SequenceMap"):
            return self._function(_two_arguments(item), [self._of(item.fst), self._of(item.snd)])
        if _is(item, "Map"):
            return self._function(item.f, [self._of(item.inner)])
        raise GraphError(f"from_tracr: expected a construct of {_MODULE}, got {type(item).__name__}")

    def _aggregate(self, item: Any) -> _Imported:
        value: _Imported = self._of(item.sop)
        selector = self._of(item.selector)
        kinds = {type(v) for v in value.values.all} if value.values is not None else set[type]()
        nones = type(None) in kinds
        mean = "numerical" in str(getattr(item, "annotations", {}).get("encoding", "")).lower()
        if value.values is None or mean:
            booleans = bool(kinds) and kinds <= {bool, type(None)}
            moved = indicator(value.sop) if booleans else value.sop
            sop = aggregate(selector, moved, 0 if item.default is None else item.default)
            if nones and value.values is not None:
                sop = _unless(_share_of_none(selector, value) > 0, _AVERAGED, sop)
            if item.default is None:
                sop = _unless(selector_width(selector) == 0, _EMPTY, sop)
            default = [] if item.default is None else [item.default]
            return _Imported(sop, None, lambda: _means(value.listed, self.longest, default))
        together = Domain([*value.values.all, item.default], name=_NAME)
        moved = value.sop
        if any(together.atom(v) != value.values.atom(v) for v in value.values.all):
            moved = lookup(moved, {value.values.atom(v): together.atom(v) for v in value.values.all})
        sop = aggregate(selector, moved, together.atom(item.default))
        # A mean of texts is already an error.
        if nones and not isinstance(together.atom(None), str) and not _selects_one(item.selector):
            several = selector_width(selector) > 1
            sop = _unless(several & (_share_of_none(selector, value) > 0), _AVERAGED, sop)
            if bool in kinds:  # booleans, not the numbers into which a sum converts them
                sop = lookup(sop, {together.atom(v): together.atom(v) for v in together.all})
        return _Imported(sop, together)

    def _function(self, function: Callable[..., Any], arguments: list[_Imported]) -> _Imported:
        sets = [argument.values for argument in arguments]
        known = [values for values in sets if values is not None]
        if len(known) < len(sets):
            plain = all(values.as_they_are for values in known)
            traced = _traced(function, arguments) if plain else None
            if traced is not None and _agrees_on_samples(function, arguments):
                for argument in arguments:
                    if traced is argument.sop:  # the function returns one of its arguments
                        return argument
                values = Domain([False, True]) if _is_boolean(traced) else None
                return _Imported(traced, values, lambda: _results(function, arguments))
            listed = [argument.listed for argument in arguments]
            known = [values for values in listed if values is not None]
            if len(known) < len(sets) or math.prod(len(each.all) for each in known) > MAX_ROWS:
                raise GraphError(
                    "from_tracr: expected a function of means that consists of operators, or means of "
                    "integers with few possible values, got another function; try from_tracr(mean, …) "
                    "and locum.where(…) on the result, or a smaller length or vocabulary"
                )
        defined = call_on_all(function, known, _NAME, strict=True)
        if len(known) > sum(values is not None for values in sets):
            defined = _of_one_type(defined)  # the mean of one integer is an integer, of several a float
        values = Domain((result for _, result in defined), name=_NAME)
        traced = _traced(function, arguments) if all(v.as_they_are for v in known) else None
        if traced is not None and values.as_they_are and _agree(function, known, defined):
            return _Imported(traced, values)
        nodes = [argument.sop.node for argument in arguments]
        return _Imported(SOp(table(nodes, known, defined, values)), values)

    def _selector(self, item: Any) -> Selector:
        if _is(item, "SelectorAnd"):
            return self._of(item.fst) & self._of(item.snd)  # type: ignore[no-any-return]
        if _is(item, "SelectorOr"):
            return self._of(item.fst) | self._of(item.snd)  # type: ignore[no-any-return]
        if _is(item, "SelectorNot"):
            return ~self._of(item.inner)  # type: ignore[no-any-return]
        if not _is(item, "Select"):
            raise GraphError(f"from_tracr: expected a selector of {_MODULE}, got {type(item).__name__}")
        keys, queries = self._of(item.keys), self._of(item.queries)
        name = getattr(item.predicate, "name", None)
        # A comparison with None has no value, and values encoded as text would be compared as text.
        sets = [part.values for part in (keys, queries) if part.values is not None]
        plain = all(values.as_they_are for values in sets)
        if name == "FALSE" or (name == "TRUE" and plain):
            return full if name == "TRUE" else ~full
        if name is not None and plain:
            return select(keys.sop, queries.sop, str(item.predicate.value))
        of_keys, of_queries = keys.listed, queries.listed
        if of_keys is None or of_queries is None:
            raise GraphError(
                "from_tracr: expected a comparison as a predicate on means, or means with few possible "
                "values, got another predicate; try a smaller length or vocabulary"
            )
        nodes = keys.sop.node, queries.sop.node
        chosen = Selector(selector(_holding(item.predicate), *nodes, of_keys, of_queries))
        unclear = _unclear(item.predicate)
        if not any(unclear(k, q) for k in of_keys.all for q in of_queries.all):
            return chosen
        # Some of these pairs may never occur on an input; a pair that occurs is an error.
        met = selector_width(Selector(selector(unclear, *nodes, of_keys, of_queries)))
        said = where(met > 0, _NO_TRUTH, _FINE)
        return chosen & select(constant(True), lookup(said, {_FINE: True}), "==")


def _holding(predicate: Callable[..., Any]) -> Callable[[Any, Any], bool]:
    """Return a function that evaluates a predicate on a key and a query.

    The function returns False if the predicate raises or if an argument is None, as in Tracr's compiled
    networks.
    """

    def holds(key: Any, query: Any) -> bool:
        try:
            return None not in (key, query) and bool(predicate(key, query))
        except Exception:  # a lambda may raise any error outside its domain
            return False

    return holds


def _two_arguments(item: Any) -> Callable[..., Any]:
    """Return the function of a SequenceMap; a linear map with the factors 1 and −1 becomes a
    subtraction.
    """
    function: Callable[..., Any] = item.f
    if _is(item, "LinearSequenceMap") and (item.fst_fac, item.snd_fac) == (1, -1):
        return operator.sub
    return function


def _unclear(predicate: Callable[..., Any]) -> Callable[[Any, Any], bool]:
    """Return a function that finds the pairs on which Tracr's evaluation and its networks differ.

    The function returns True if the predicate is true although the key or the query is None. The
    function also returns True if the predicate raises an error and neither of them is None.
    """

    def unclear(key: Any, query: Any) -> bool:
        none = key is None or query is None
        try:
            return bool(predicate(key, query)) and none
        except Exception:  # for None this is no selection, as in Tracr's networks
            return not none

    return unclear


#: Error messages for pairs without a truth value, and for means without a value.
_NO_TRUTH = "a pair without a truth value"
_AVERAGED, _EMPTY = "a mean of None", "a mean of nothing"


def _unless(condition: SOp, problem: str, sop: SOp) -> SOp:
    """Return ``sop`` with an error at positions where the condition holds.

    The check adds nothing to a compiled network.
    """
    said = where(condition, problem, _FINE)
    return sop + lookup(said, {_FINE: 0})


def _share_of_none(selector: Selector, value: _Imported) -> SOp:
    """Return an s-op that computes the fraction of None among the selected values."""
    assert value.values is not None
    return aggregate(selector, indicator(value.sop == value.values.atom(None)))


def _selects_one(selector: Any) -> bool:
    """Return whether a Tracr selector compares the indices of the keys with ``==``.

    Such a selector selects at most one key. For a SelectorAnd, one such operand is sufficient.
    """
    if _is(selector, "SelectorAnd"):
        return _selects_one(selector.fst) or _selects_one(selector.snd)
    equal = _is(selector, "Select") and getattr(selector.predicate, "name", None) == "EQ"
    return equal and _is(selector.keys, "IndicesType")


def _parts(item: Any) -> list[Any]:
    """Return the s-ops and selectors that a Tracr object contains as operands."""
    names = ("inner", "fst", "snd", "sop", "selector", "keys", "queries")
    parts = [getattr(item, name) for name in names if hasattr(item, name)]
    return [part for part in parts if _is(part, "SOp") or _is(part, "Selector")]


def _traced(function: Callable[..., Any], arguments: Sequence[_Imported]) -> SOp | None:
    """Call a function on s-ops, and return its result if it is an s-op, or else None."""
    try:
        traced = function(*(argument.sop for argument in arguments))
    except Exception:  # functions may raise any error on these arguments
        return None
    return traced if isinstance(traced, SOp) else None


def _is_boolean(sop: SOp) -> bool:
    """Return whether an s-op is a comparison, ``and``, ``or``, ``not`` or a test of membership in a
    set.
    """
    op = sop.node.op
    return OPERATIONS[op].group == "comparison" or op in ("and", "or", "not", "member")


def _of_one_type(rows: list[tuple[tuple[Any, ...], Any]]) -> list[tuple[tuple[Any, ...], Any]]:
    """Convert all integer results to floats if any result is a float."""
    if not any(isinstance(result, float) for _, result in rows):
        return rows
    return [(row, float(result) if type(result) is int else result) for row, result in rows]


def _results(function: Callable[..., Any], arguments: Sequence[_Imported]) -> Domain | None:
    """Return the results of a function on all values of its arguments.

    Return None if these values are unknown or if there are too many combinations of values.
    """
    listed = [argument.listed for argument in arguments]
    known = [values for values in listed if values is not None]
    if len(known) < len(listed) or math.prod(len(each.all) for each in known) > MAX_ROWS:
        return None
    return Domain((r for _, r in call_on_all(function, known, _NAME, strict=True)), name=_NAME)


def _means(values: Domain | None, count: int, default: Sequence[Any]) -> Domain | None:
    """Return the values in ``default`` and all means of up to ``count`` integers from ``values``.

    None in ``values`` is ignored. Return None if the values are unknown or not integers, or if there
    are too many means.
    """
    numbers = [value for value in values.all if value is not None] if values is not None else []
    if not numbers or not all(isinstance(value, int) for value in numbers):
        return None
    integers = set(map(int, numbers))
    sums, means = integers, set[float]()
    for several in range(2, count + 1):
        sums = {total + value for total in sums for value in integers}
        means |= {total / several for total in sums}
        if len(means) > MAX_ROWS:
            return None
    return Domain([*default, *sorted(integers), *sorted(means)], name=_NAME)


def _agrees_on_samples(function: Callable[..., Any], arguments: Sequence[_Imported]) -> bool:
    """Return whether a function that is called on s-ops computes what it computes on sample values.

    The results differ if the function inspects its arguments, for example with ``isinstance`` or
    ``str``. Samples for which one of the results is undefined are ignored.
    """
    sets = [_SAMPLES if each.values is None else each.values.all[: len(_SAMPLES)] for each in arguments]
    for row in product(*sets):
        result = called(function, row, strict=True)
        if result is None or not is_atom(result[0]):
            continue
        try:
            answer = function(*(lookup(tokens, {0: value}) for value in row))([0])[0]
        except Exception:  # functions may raise any error on these arguments
            continue
        if not _is_close(answer, result[0]):
            return False
    return True


def _is_close(one: Atom, other: Atom) -> bool:
    """Return whether two texts are equal, or two numbers up to rounding errors."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)


def _agree(
    function: Callable[..., Any], sets: Sequence[Domain], defined: Sequence[tuple[Any, Any]]
) -> bool:
    """Return whether a function that is called on s-ops computes the results in ``defined``."""
    rows = [row for row, _ in defined]
    columns = [lookup(tokens, dict(enumerate(row[i] for row in rows))) for i in range(len(sets))]
    try:
        answers = function(*columns)(list(range(len(rows))))
    except (ExecutionError, GraphError, TypeError, ValueError):
        return False
    plain = [r.item() if hasattr(r, "item") else r for _, r in defined]
    return all(type(a) is type(b) and a == b for a, b in zip(answers, plain, strict=True))
