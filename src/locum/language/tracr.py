"""Take programs over from Tracr: its Python objects become s-ops of ours.

Tracr itself is not needed: its objects are known by the names of their classes. Functions (lambdas of
``Map`` and ``SequenceMap``) are called on our s-ops and kept if that gives the same values; else they
become lookup tables over all values that their arguments take. Predicates that are not comparisons
become classes of keys and queries. Tracr's ``None`` is a number below all others beside numbers, and
the string "None" beside strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from locum.errors import ExecutionError, GraphError
from locum.graph import Atom, is_atom
from locum.language.handles import Selector, SOp
from locum.language.python import (
    aggregate,
    constant,
    full,
    indicator,
    indices,
    length,
    lookup,
    member,
    select,
    selector_width,
    tokens,
)

#: Rows of a table that stands for a function.
MAX_ROWS = 2**15
_MODULE = "tracr.rasp.rasp"


def from_tracr(program: Any, *, vocabulary: Iterable[Atom], length: int) -> SOp:
    """Return the s-op that computes what a Tracr program (an ``SOp`` of ``tracr.rasp.rasp``) computes.

    ``vocabulary`` and ``length`` (the longest input) say over which values its functions are tabulated.

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
    """Whether an object is of a class of Tracr's, or of one derived from it."""
    return any(kind.__name__ == name and kind.__module__ == _MODULE for kind in type(item).__mro__)


class _Values:
    """The values that a Tracr s-op takes, as Python has them there and as atoms here."""

    def __init__(self, values: Iterable[Any]) -> None:
        plain = (value.item() if hasattr(value, "item") else value for value in values)
        self.all = list({(type(v), v): v for v in plain}.values())
        kinds = {type(v) for v in self.all if v is not None}
        numbers = [v for v in self.all if isinstance(v, (bool, int, float))]
        self._numeric = kinds <= {bool, int, float}
        self._strings = kinds <= {str}
        self._none = int(min([0, *(v // 1 for v in numbers if abs(v) < 2**53)])) - 1

    def atom(self, value: Any) -> Atom:
        """The atom that stands for a value."""
        value = value.item() if hasattr(value, "item") else value
        if value is None:
            return self._none if self._numeric else "None"
        if is_atom(value) and (self._numeric or self._strings):
            return value
        return repr(value)

    @property
    def as_they_are(self) -> bool:
        """Whether every value is its own atom."""
        return None not in self.all and (self._numeric or self._strings)


class _Imported:
    """An s-op here, and the values that it takes, if they are finitely many."""

    def __init__(self, sop: SOp, values: _Values | None) -> None:
        self.sop = sop
        self.values = values


class _Importer:
    def __init__(self, vocabulary: Sequence[Atom], longest: int) -> None:
        self.vocabulary = vocabulary
        self.longest = longest
        #: Held with what they stand for, so that no other object has their place in memory.
        self._known: dict[int, tuple[Any, Any]] = {}

    def sop(self, item: Any) -> _Imported:
        """Take over an s-op, each once; without recursion over long chains of maps."""
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
        found: _Imported = self._known[id(item)][1]
        return found

    def _of(self, item: Any) -> Any:
        return self._known[id(item)][1]

    def _take(self, item: Any) -> Any:
        if _is(item, "Selector"):
            return self._selector(item)
        if _is(item, "TokensType"):
            return _Imported(tokens, _Values(self.vocabulary))
        if _is(item, "IndicesType"):
            return _Imported(indices, _Values(range(self.longest)))
        if _is(item, "LengthType"):
            return _Imported(length, _Values(range(1, self.longest + 1)))
        if _is(item, "Full"):
            values = _Values([item.fill])
            return _Imported(constant(values.atom(item.fill)), values)
        if _is(item, "SelectorWidth"):
            return _Imported(selector_width(self._of(item.selector)), _Values(range(self.longest + 1)))
        if _is(item, "Aggregate"):
            return self._aggregate(item)
        if _is(item, "SequenceMap"):
            return self._function(item.f, [self._of(item.fst), self._of(item.snd)])
        if _is(item, "Map"):
            return self._function(item.f, [self._of(item.inner)])
        raise GraphError(f"from_tracr: {type(item).__name__} is not a construct that can be taken over")

    def _aggregate(self, item: Any) -> _Imported:
        value: _Imported = self._of(item.sop)
        selector = self._of(item.selector)
        mean = "numerical" in str(getattr(item, "annotations", {}).get("encoding", "")).lower()
        if value.values is None or mean:
            booleans = value.values is not None and {type(v) for v in value.values.all} == {bool}
            moved = indicator(value.sop) if booleans else value.sop
            return _Imported(
                aggregate(selector, moved, 0 if item.default is None else item.default), None
            )
        together = _Values([*value.values.all, item.default])
        moved = value.sop
        if any(together.atom(v) != value.values.atom(v) for v in value.values.all):
            moved = lookup(moved, {value.values.atom(v): together.atom(v) for v in value.values.all})
        return _Imported(aggregate(selector, moved, together.atom(item.default)), together)

    def _function(self, function: Callable[..., Any], arguments: list[_Imported]) -> _Imported:
        sets = [argument.values for argument in arguments]
        known = [values for values in sets if values is not None]
        if len(known) < len(sets):
            traced = _traced(function, arguments)
            if traced is None:
                raise GraphError(
                    "from_tracr: a function of means (or of what is computed from them) has to be made "
                    "of operators, so that it can be called on s-ops"
                )
            return _Imported(traced, None)
        rows = list(product(*(values.all for values in known)))
        if len(rows) > MAX_ROWS:
            raise GraphError(
                f"from_tracr: a function of {len(rows):,} combinations; at most {MAX_ROWS:,}"
            )
        results = [(row, _called(function, row)) for row in rows]
        defined = [(row, result[0]) for row, result in results if result is not None]
        if not defined:
            raise GraphError("from_tracr: a function that has no value for any of its arguments")
        values = _Values(result for _, result in defined)
        traced = _traced(function, arguments) if all(v.as_they_are for v in known) else None
        if traced is not None and values.as_they_are and _agree(function, known, defined):
            return _Imported(traced, values)
        return _Imported(_table(arguments, known, defined, values), values)

    def _selector(self, item: Any) -> Selector:
        if _is(item, "SelectorAnd"):
            return self._of(item.fst) & self._of(item.snd)  # type: ignore[no-any-return]
        if _is(item, "SelectorOr"):
            return self._of(item.fst) | self._of(item.snd)  # type: ignore[no-any-return]
        if _is(item, "SelectorNot"):
            return ~self._of(item.inner)  # type: ignore[no-any-return]
        if not _is(item, "Select"):
            raise GraphError(
                f"from_tracr: {type(item).__name__} is not a selector that can be taken over"
            )
        keys, queries = self._of(item.keys), self._of(item.queries)
        name = getattr(item.predicate, "name", None)
        if name in ("TRUE", "FALSE"):
            return full if name == "TRUE" else ~full
        # Nothing compares with None there.
        sets = [part.values for part in (keys, queries) if part.values is not None]
        if name is not None and all(None not in values.all for values in sets):
            return select(keys.sop, queries.sop, str(item.predicate.value))
        if keys.values is None or queries.values is None:
            raise GraphError("from_tracr: a predicate on means has to be a comparison")
        return _by_classes(item.predicate, keys, queries)


def _parts(item: Any) -> list[Any]:
    """What a construct of Tracr is made of."""
    names = ("inner", "fst", "snd", "sop", "selector", "keys", "queries")
    found = [getattr(item, name) for name in names if hasattr(item, name)]
    return [part for part in found if _is(part, "SOp") or _is(part, "Selector")]


def _called(function: Callable[..., Any], row: Sequence[Any]) -> tuple[Any] | None:
    """The value of a function in a tuple; of None it is None; no tuple where it fails."""
    if any(value is None for value in row):
        return (None,)
    try:
        return (function(*row),)
    except Exception:  # a lambda may raise anything where it is not defined
        return None


def _traced(function: Callable[..., Any], arguments: Sequence[_Imported]) -> SOp | None:
    """The function called on s-ops, if it is made of operators that they have."""
    try:
        found = function(*(argument.sop for argument in arguments))
    except Exception:  # a lambda may do anything with what it is called on
        return None
    return found if isinstance(found, SOp) else None


def _agree(
    function: Callable[..., Any], sets: Sequence[_Values], defined: Sequence[tuple[Any, Any]]
) -> bool:
    """Whether the function of s-ops has the values of the function, wherever it has one."""
    rows = [row for row, _ in defined]
    columns = [lookup(tokens, dict(enumerate(row[i] for row in rows))) for i in range(len(sets))]
    try:
        found = function(*columns)(list(range(len(rows))))
    except (ExecutionError, GraphError, TypeError, ValueError):
        return False
    plain = [r.item() if hasattr(r, "item") else r for _, r in defined]
    return all(type(a) is type(b) and a == b for a, b in zip(found, plain, strict=True))


def _table(
    arguments: Sequence[_Imported],
    sets: Sequence[_Values],
    defined: Sequence[tuple[Any, Any]],
    values: _Values,
) -> SOp:
    """A lookup table; of two arguments, by the number of their combination."""
    if len(arguments) == 1:
        table = {sets[0].atom(row[0]): values.atom(result) for row, result in defined}
        return lookup(arguments[0].sop, table)
    places = [{(type(v), v): i for i, v in enumerate(each.all)} for each in sets]
    codes = [
        lookup(argument.sop, {each.atom(v): i for i, v in enumerate(each.all)})
        for argument, each in zip(arguments, sets, strict=True)
    ]
    size = len(sets[1].all)
    table = {
        places[0][type(row[0]), row[0]] * size + places[1][type(row[1]), row[1]]: values.atom(result)
        for row, result in defined
    }
    return lookup(codes[0] * size + codes[1], table)


def _by_classes(predicate: Callable[..., Any], keys: _Imported, queries: _Imported) -> Selector:
    """A predicate of two finite sets, by the queries that select the same keys."""
    assert keys.values is not None
    assert queries.values is not None
    rows: dict[tuple[Atom, ...], list[Atom]] = {}
    for query in queries.values.all:
        row = tuple(keys.values.atom(k) for k in keys.values.all if _holds(predicate, k, query))
        rows.setdefault(row, []).append(queries.values.atom(query))
    some = [row for row in rows if row]
    if not some:
        return ~full
    if sum(map(len, some)) == len({key for row in some for key in row}):  # equal or disjoint
        of_key = {key: number for number, row in enumerate(some) for key in row}
        all_keys = {keys.values.atom(k): of_key.get(keys.values.atom(k), -1) for k in keys.values.all}
        of_query = {q: some.index(row) if row else -2 for row, members in rows.items() for q in members}
        return select(lookup(keys.sop, all_keys), lookup(queries.sop, of_query), "==")
    found: Selector | None = None
    for row in some:
        here = select(member(keys.sop, row), True, "==") & select(
            True, member(queries.sop, rows[row]), "=="
        )
        found = here if found is None else found | here
    assert found is not None
    return found


def _holds(predicate: Callable[..., Any], key: Any, query: Any) -> bool:
    found = _called(predicate, (key, query))
    return found is not None and bool(found[0])
