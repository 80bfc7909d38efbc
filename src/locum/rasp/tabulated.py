"""Tabulate Python functions and predicates over finitely many values.

A graph contains names of functions, not Python code. A function is therefore called once on every
combination of its arguments' values, and the graph contains the results as a lookup table. For a
predicate, the graph contains the classes of queries that select the same keys. If all other values are
integers, floats or booleans, ``None`` is encoded as a smaller negative integer. Otherwise ``None`` is
encoded as a string, usually "None".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from locum.errors import GraphError
from locum.graph import Atom, Node, build, is_atom
from locum.graph.atoms import canonical_table
from locum.graph.operations import constant
from locum.rasp.handles import Operand, SOp, sop_node

#: Maximum number of rows of a function's table.
MAX_ROWS = 2**15


def map(  # noqa: A001  (the name users know it by: locum.map)
    function: Callable[..., Any], *sops: Operand, over: Iterable[Any] | None = None
) -> SOp:
    """Apply a Python function at every position, as a table over the values listed in ``over``.

    With one s-op, ``over`` lists its values; with several, ``over`` contains one list of values for
    each s-op. A program contains no vocabulary, so ``over`` is required.
    ``locum.networks.compiler.values_of`` lists the possible values of many s-ops. Running the program
    on a value that is not listed, or for which the function fails, is an error. Results other than None
    are replaced by their Python text unless they are all strings, or all integers, floats or
    booleans.

    >>> from locum import indices, tokens
    >>> map(str.upper, tokens, over="abc")("cab")
    ['C', 'A', 'B']
    >>> map(lambda t, i: t * i, tokens, indices, over=("ab", range(3)))("bab")
    ['', 'a', 'bb']
    >>> map(lambda t: None if t > 1 else t, tokens, over=[0, 1, 2])([0, 1, 2])
    [0, 1, -1]
    """
    if not callable(function):
        raise GraphError(f"map: expected a function, got {function!r}; try locum.map(f, x, over=…)")
    if not sops:
        raise GraphError("map: expected one s-op or more, got none; try locum.map(f, tokens, over=…)")
    nodes = [sop_node(sop, "map") for sop in sops]
    sets = domains(over, len(nodes), "map")
    results = call_on_all(function, sets, "map")
    return SOp(table(nodes, sets, results, Domain(result for _, result in results)))


class Domain:
    """The values of an s-op, as Python values and as the atoms that represent them.

    With ``own``, the values are atoms, and each of them except None represents itself. The same is true
    without ``own`` if all values except None are strings, or if all are integers, floats or booleans.
    Otherwise, the Python text of each value except None represents the value.
    """

    def __init__(self, values: Iterable[Any], *, own: bool = False, name: str = "map") -> None:
        plain = [_plain(value, name) for value in values]
        self.all = list({(type(v), v): v for v in plain}.values())
        kinds = {type(v) for v in self.all if v is not None}
        self._numeric = kinds <= {bool, int, float}
        self._own = own or self._numeric or kinds <= {str}
        self._none: Atom = "None"
        if None in self.all:
            self._none = self._below(name) if self._numeric else self._beside()

    def _below(self, name: str) -> int:
        """Return a negative integer that is smaller than all values, as the encoding of None."""
        least = min((v for v in self.all if v is not None), default=0)
        if not least > -(2**53):
            raise GraphError(
                f"{name}: expected numbers above -2^53 together with None, which is encoded below "
                f"all of them, got {least!r}"
            )
        return int(min(0, least // 1)) - 1

    def _beside(self) -> str:
        """Return a string that differs from all values, as the encoding of None."""
        texts = {value if self._own else repr(value) for value in self.all if value is not None}
        text = "None"
        while text in texts:
            text = f"<{text}>"
        return text

    def atom(self, value: Any) -> Atom:
        """Return the atom that represents ``value`` in the graph."""
        value = value.item() if hasattr(value, "item") else value
        if value is None:
            return self._none
        return value if self._own and is_atom(value) else repr(value)

    @property
    def as_they_are(self) -> bool:
        """Whether every value is represented by itself."""
        return None not in self.all and self._own


def _plain(value: Any, name: str) -> Any:
    """Convert a NumPy scalar to a Python value, and check that ``value`` is hashable and equal to
    itself.
    """
    try:
        plain = value.item() if hasattr(value, "item") else value
        hash(plain)
    except (TypeError, ValueError):
        raise GraphError(
            f"{name}: expected numbers, strings, booleans or None as values, got {value!r:.80}"
        ) from None
    if plain != plain:  # NaN
        raise GraphError(f"{name}: expected values that are equal to themselves, got {value!r:.80}")
    return plain


def domains(over: Iterable[Any] | None, count: int, name: str) -> list[Domain]:
    """Return the values of ``count`` s-ops as one Domain each.

    ``over`` is one list of values if ``count`` is 1, and otherwise contains a list for each s-op.
    """
    if not isinstance(over, Iterable):
        lists = "values" if count == 1 else f"{count} lists of values, one for each s-op"
        raise GraphError(
            f"{name}: expected over=… with {lists}, since a program holds no vocabulary, got {over!r}; "
            'try "abc", or locum.networks.compiler.values_of(x, vocabulary=…, length=…)'
        )
    listed = [over] if count == 1 else list(over)
    if len(listed) != count or not all(isinstance(each, Iterable) for each in listed):
        raise GraphError(
            f"{name}: expected over=… with {count} lists of values, one for each s-op, got {over!r}; "
            "locum.networks.compiler.values_of lists the values of an s-op"
        )
    read = []
    for each in listed:
        values = list(each)
        if not values:
            raise GraphError(f"{name}: expected one value or more in over=…, got none")
        for value in values:
            if value is not None and not is_atom(value):
                raise GraphError(
                    f"{name}: expected numbers, strings or booleans in over=…, got {value!r}"
                )
        read.append(Domain(values, own=True, name=name))
    return read


def call_on_all(
    function: Callable[..., Any], sets: Sequence[Domain], name: str, *, strict: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Call a function on every combination of values, and return the combinations with their results.

    Combinations for which the function raises an error are omitted. With ``strict``, the result is None
    if an argument is None.
    """
    size = math.prod(len(each.all) for each in sets)
    if size > MAX_ROWS:
        raise GraphError(f"{name}: expected at most {MAX_ROWS:,} combinations of values, got {size:,}")
    rows = []
    for row in product(*(each.all for each in sets)):
        result = called(function, row, strict=strict)
        if result is not None:
            rows.append((row, result[0]))
    if not rows:
        raise GraphError(f"{name}: expected a function with a value for some arguments, got none")
    return rows


def called(function: Callable[..., Any], row: Sequence[Any], *, strict: bool) -> tuple[Any] | None:
    """Return the result of a function in a 1-tuple, or None if the function raises.

    With ``strict``, return ``(None,)`` if an argument is None.
    """
    if strict and any(value is None for value in row):
        return (None,)
    try:
        return (function(*row),)
    except Exception:  # a lambda may raise any error outside its domain
        return None


def table(
    nodes: Sequence[Node],
    sets: Sequence[Domain],
    results: Sequence[tuple[tuple[Any, ...], Any]],
    values: Domain,
) -> Node:
    """Return a node that looks up the results of a function in a table.

    With several arguments, the key of the table is the index of the combination of their values.
    """
    if len(nodes) == 1:
        pairs = ((sets[0].atom(row[0]), values.atom(result)) for row, result in results)
        return _lookup(nodes[0], _rows(pairs, "map"))
    # 1, 1.0 and True are equal and therefore one key of a table.
    places = [{each.atom(v): i for i, v in enumerate(each.all)} for each in sets]
    code: Node | None = None
    for node, each, place in zip(nodes, sets, places, strict=True):
        digit = _lookup(node, place)
        if code is None:
            code = digit
        else:
            code = build("add", build("multiply", code, constant(len(each.all))), digit)
    assert code is not None

    def number(row: Sequence[Any]) -> int:
        code_of_row = 0
        for value, place, each in zip(row, places, sets, strict=True):
            code_of_row = code_of_row * len(each.all) + place[each.atom(value)]
        return code_of_row

    return _lookup(code, _rows(((number(row), values.atom(r)) for row, r in results), "map"))


def _lookup(node: Node, rows: Mapping[Any, Atom]) -> Node:
    return build("lookup", node, table=canonical_table(rows))


def _rows(pairs: Iterable[tuple[Atom, Atom]], name: str) -> dict[Atom, Atom]:
    """Collect the rows of a table; equal keys (1, 1.0 and True) must have the same result."""
    results: dict[Atom, Atom] = {}
    for key, value in pairs:
        before = results.setdefault(key, value)
        if type(before) is not type(value) or before != value:
            raise GraphError(
                f"{name}: expected one result for values that are equal, got {before!r} and {value!r} "
                f"for {key!r}; try over=… with one of them"
            )
    return results


def selector(
    holds: Callable[[Any, Any], bool], keys: Node, queries: Node, of_keys: Domain, of_queries: Domain
) -> Node:
    """Return the selector of a predicate, built from the classes of queries that select the same keys.

    ``holds`` must return a boolean for every listed key and query. Running the program on other values
    is an error.
    """
    rows: dict[tuple[Atom, ...], list[Atom]] = {}
    selected: dict[Atom, tuple[Atom, ...]] = {}
    for query in of_queries.all:
        # 1, 1.0 and True are equal and therefore one key, so the predicate must return one result.
        kept = _rows(((of_keys.atom(k), holds(k, query)) for k in of_keys.all), "select")
        row = tuple(key for key, is_selected in kept.items() if is_selected)
        one = of_queries.atom(query)
        if selected.setdefault(one, row) != row:
            raise GraphError(
                "select: expected one result for queries that are equal, got keys "
                f"{list(selected[one])!r:.80} and {list(row)!r:.80} for {query!r}; try over=… with one "
                "of them"
            )
        if one not in rows.setdefault(row, []):
            rows[row].append(one)
    some = [row for row in rows if row]
    if sum(len(row) for row in some) == len(
        {key for row in some for key in row}
    ):  # all classes are equal or disjoint
        number = {key: place for place, row in enumerate(some) for key in row}
        classes = {of_keys.atom(k): number.get(of_keys.atom(k), -1) for k in of_keys.all}
        classes_of_queries = {
            q: some.index(row) if row else -2 for row, members in rows.items() for q in members
        }
        return build(
            "select", _lookup(keys, classes), _lookup(queries, classes_of_queries), predicate="=="
        )

    def among(node: Node, listed: Domain, atoms: Sequence[Atom]) -> Node:
        return _lookup(node, {listed.atom(v): listed.atom(v) in atoms for v in listed.all})

    union: Node | None = None
    for row in some:
        key, query = among(keys, of_keys, row), among(queries, of_queries, rows[row])
        here = build(
            "selector_and",
            build("select", key, constant(True), predicate="=="),
            build("select", constant(True), query, predicate="=="),
        )
        union = here if union is None else build("selector_or", union, here)
    assert union is not None
    return union


def holding(predicate: Callable[..., Any]) -> Callable[[Any, Any], bool]:
    """Return a function that evaluates a predicate on a key and a query as a boolean.

    The function returns False if the key or the query is None. If the predicate raises an exception,
    the function raises GraphError.
    """

    def holds(key: Any, query: Any) -> bool:
        if key is None or query is None:
            return False
        try:
            return bool(predicate(key, query))
        except Exception as error:  # a lambda may raise any error outside its domain
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise GraphError(
                "select: expected a function with a value for every key and query in over=…, got "
                f"{said:.200} for key {key!r:.80} and query {query!r:.80}; try a function that gives "
                "False there, or over=… without them"
            ) from error

    return holds
