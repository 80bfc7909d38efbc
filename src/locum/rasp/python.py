"""Write RASP programs in Python: s-ops and selectors are Python objects.

``tokens``, ``indices``, ``length`` and constants are s-ops. Operators, functions, ``select`` and
``aggregate`` combine them into new programs without computing values. Call a program to run it on an
input. Objects are interned: writing the same program twice returns the same object.

>>> histogram = selector_width(select(tokens, tokens, "=="))
>>> histogram("hello")
[1, 1, 2, 2, 1]
>>> histogram is selector_width(select(tokens, tokens, "=="))
True
>>> histogram
s-op selector_width(select(tokens, tokens, ==))
  on "hello": [1, 1, 2, 2, 1] (ints)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import locum.graph as graph
from locum.errors import GraphError
from locum.execution.types import possible_types
from locum.graph import Atom, build
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.definitions import everywhere
from locum.graph.node import node_of
from locum.rasp import tabulated
from locum.rasp.handles import (
    Handle,
    Operand,
    Selector,
    SOp,
    apply,
    plain_atom,
    selector_node,
    sop_node,
)
from locum.settings import to_python

# Leaves ---------------------------------------------------------------------------------------

#: The unchanged input, and the input converted to strings, integers, floats or booleans.
tokens: SOp = SOp(build("tokens", cast="asis"))
tokens_str: SOp = SOp(build("tokens", cast="str"))
tokens_int: SOp = SOp(build("tokens", cast="int"))
tokens_float: SOp = SOp(build("tokens", cast="float"))
tokens_bool: SOp = SOp(build("tokens", cast="bool"))
indices: SOp = SOp(build("indices"))
length: SOp = SOp(build("length"))
#: Every query attends to every key.
full: Selector = Selector(everywhere())


def constant(value: Atom) -> SOp:
    """Return an s-op with the same value at every position.

    Operators accept plain atoms, so ``constant`` is rarely needed.

    >>> constant(7)("abc")
    [7, 7, 7]
    """
    return SOp(build("constant", value=plain_atom(value, "constant")))


# Attention --------------------------------------------------------------------------------------


def select(
    keys: Operand,
    queries: Operand,
    predicate: str | Callable[[Any, Any], Any],
    *,
    over: Iterable[Any] | None = None,
) -> Selector:
    """Compare keys with queries: row q, column k of the selector is ``keys[k] predicate queries[q]``.

    ``predicate`` is ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``, or a Python function of a key and a
    query. A function is tabulated over ``over``, which contains a list of key values and a list of
    query values. If the function raises an error for a listed key and query, ``select`` raises
    GraphError. Running the program on a value that is not listed raises ExecutionError.

    >>> select(indices, indices, "<")("ab").tolist()
    [[False, False], [True, False]]
    >>> select(tokens, tokens, lambda k, q: k + q in ("ab", "bb"), over=("ab", "ab"))("ab").tolist()
    [[False, False], [True, True]]
    """
    nodes = sop_node(keys, "select"), sop_node(queries, "select")
    if callable(predicate):
        sets = tabulated.domains(over, 2, "select")
        return Selector(tabulated.selector(tabulated.holding(predicate), *nodes, *sets))
    return Selector(build("select", *nodes, predicate=_text(predicate, "select")))


def aggregate(selector: Selector, values: Operand, default: Atom = 0) -> SOp:
    """Average ``values`` over the keys that each query selects.

    A query that selects no key receives ``default``. The value of a single selected key is returned
    unchanged, whatever its type.

    >>> aggregate(select(indices, indices, "<"), indices)("hello")
    [0, 0, 0.5, 1.0, 1.5]
    """
    selected = selector_node(selector, "aggregate")
    if isinstance(default, SOp):
        raise GraphError(
            "the default of aggregate: expected one atom, the same at every position, got an s-op"
        )
    chosen = plain_atom(default, "the default of aggregate")
    return SOp(build("aggregate", selected, sop_node(values, "aggregate"), default=chosen))


def selector_width(selector: Selector) -> SOp:
    """Count the keys that each query selects.

    >>> selector_width(full)("abc")
    [3, 3, 3]
    """
    return SOp(build("selector_width", selector_node(selector, "selector_width")))


def sum(selector: Selector, values: Operand) -> SOp:  # noqa: A001  (the name users know: locum.sum)
    """Sum ``values`` over the keys that each query selects; a query that selects no key receives 0.

    The sum is computed as the number of selected keys times the mean of their values. If all selected
    values are integers, this product is rounded to an integer, and sums up to 2⁵⁰ are exact.

    >>> sum(full, tokens)([3, 1, 2]), sum(full, tokens)([0.5, 0.25])
    ([6, 6, 6], [0.75, 0.75])
    >>> sum(select(indices, indices, "<="), indicator(tokens == "a"))("abaa")
    [1, 1, 2, 3]
    """
    node = sop_node(values, "sum")
    total = selector_width(selector) * aggregate(selector, values)
    if all(possible_types(node, frozenset([kind]))[node] <= {int} for kind in (bool, int, float, str)):
        return round(total)
    fractions = aggregate(selector, indicator(apply("not_equal", apply("modulo", values, 1), 0)))
    return where(fractions == 0, round(total), total)


def best(selector: Selector, score: Operand) -> Selector:
    """Select, among the selected keys, those with the highest ``score`` (hard attention).

    With the score ``-indices``, only the first of the selected keys remains selected. With the score
    ``indices``, only the last of the selected keys remains selected.

    >>> aggregate(best(full, tokens), indices)([3, 9, 4])
    [1, 1, 1]
    """
    return Selector(build("best", selector_node(selector, "best"), sop_node(score, "best")))


# Families -----------------------------------------------------------------------------------------


def family(size: int, name: str | None = None) -> SOp:
    """Return a head index l ∈ {0, …, size−1}: an s-op that is constant within each head of a family.

    >>> l = family(3)
    >>> sum_over(l, l * indices)("abc")
    [0, 3, 6]
    """
    return SOp(graph.family(to_python(size), name))


def sum_over(*families_and_body: Operand) -> SOp:
    """Sum an s-op over all members of families: ``sum_over(l, m, body)``.

    >>> l = family(3)
    >>> sum_over(l, l * indices)("abc")
    [0, 3, 6]
    """
    if len(families_and_body) < 2:
        raise GraphError(
            "sum_over: expected a family and a body, got fewer arguments; try sum_over(l, body)"
        )
    *families, body = (sop_node(part, "sum_over") for part in families_and_body)
    return SOp(graph.sum_over(families, body))


# Elementwise functions ------------------------------------------------------------------------------


def where(condition: Operand, then: Operand, otherwise: Operand) -> SOp:
    """Choose ``then`` where the condition is true, else ``otherwise``.

    Dense execution evaluates both at every position.

    >>> where(indices > 1, "late", "early")("abc")
    ['early', 'early', 'late']
    """
    return apply("if_else", condition, then, otherwise)


def indicator(condition: Operand) -> SOp:
    """Return 1 where the condition is true, else 0.

    >>> indicator(tokens == "a")("abca")
    [1, 0, 0, 1]
    """
    return apply("indicator", condition)


def member(value: Operand, of: Iterable[Atom]) -> SOp:
    """Return whether the value is in a finite set.

    >>> member(tokens, "aeiou")("hello")
    [False, True, False, False, True]
    """
    if not isinstance(of, Iterable):
        raise GraphError(f'member: expected a set of atoms, got {of!r}; try [1, 2] or "ab"')
    values = canonical_set(plain_atom(atom, "member") for atom in of)
    return SOp(build("member", sop_node(value, "member"), values=values))


def lookup(value: Operand, table: Mapping[Any, Atom], default: Atom | None = None) -> SOp:
    """Look up the value in a finite table.

    If a value is not in the table, the result is ``default``. Without a default, running the program on
    such a value raises ExecutionError.

    >>> lookup(tokens, {"(": 1, ")": -1})("(()")
    [1, 1, -1]
    >>> lookup(tokens, {"(": 1, ")": -1}, default=0)("(a)")
    [1, 0, -1]
    """
    if not isinstance(table, Mapping):
        raise GraphError(f"lookup: expected a table, got {table!r}; try {{'a': 1}}")
    atoms = {plain_atom(key, "lookup"): plain_atom(value, "lookup") for key, value in table.items()}
    if not atoms:
        raise GraphError("lookup: expected a table with one or more entries, got {}; try {'a': 1}")
    if default is None:
        return SOp(build("lookup", sop_node(value, "lookup"), table=canonical_table(atoms)))
    found: Operand = default
    for is_text in (False, True):  # a sequence cannot mix strings with numbers
        part = {key: atom for key, atom in atoms.items() if isinstance(key, str) is is_text}
        if part:
            # Both branches of ``where`` are evaluated, so the lookup needs a key at every position.
            known = member(value, part)
            found = where(known, lookup(where(known, value, next(iter(part))), part), found)
    assert isinstance(found, SOp)  # the table is not empty
    return found


def minimum(a: Operand, b: Operand) -> SOp:
    """Return the smaller of two values.

    >>> minimum(tokens, 2)([1, 2, 3])
    [1, 2, 2]
    """
    return apply("minimum", a, b)


def maximum(a: Operand, b: Operand) -> SOp:
    """Return the larger of two values.

    >>> maximum(tokens, 2)([1, 2, 3])
    [2, 2, 3]
    """
    return apply("maximum", a, b)


def exp(value: Operand) -> SOp:
    """Return e to the power of the value.

    >>> exp(tokens)([0, 1])
    [1.0, 2.718281828459045]
    """
    return apply("exp", value)


def log(value: Operand) -> SOp:
    """Return the natural logarithm of the value.

    >>> log(tokens)([1])
    [0.0]
    """
    return apply("log", value)


def sqrt(value: Operand) -> SOp:
    """Return the square root of the value.

    >>> sqrt(tokens)([4, 9])
    [2.0, 3.0]
    """
    return apply("sqrt", value)


def erf(value: Operand) -> SOp:
    """Return the error function of the value.

    >>> erf(tokens)([0.0])
    [0.0]
    """
    return apply("erf", value)


def tanh(value: Operand) -> SOp:
    """Return the hyperbolic tangent of the value.

    >>> tanh(tokens)([0])
    [0.0]
    """
    return apply("tanh", value)


def float64(value: Operand) -> SOp:
    """Return the value as a float64.

    >>> float64(tokens)([1, 2.5])
    [1.0, 2.5]
    """
    return apply("float64", value)


def float32(value: Operand) -> SOp:
    """Round the value to the nearest float32.

    >>> float32(tokens)([0.1])
    [0.10000000149011612]
    """
    return apply("float32", value)


def float16(value: Operand) -> SOp:
    """Round the value to float32, then to float16.

    >>> float16(tokens)([0.1])
    [0.0999755859375]
    """
    return apply("float16", value)


def bfloat16(value: Operand) -> SOp:
    """Round the value to float32, then to bfloat16.

    >>> bfloat16(tokens)([0.1])
    [0.10009765625]
    """
    return apply("bfloat16", value)


def sin(value: Operand) -> SOp:
    """Return the sine of the value in radians.

    >>> sin(tokens)([0])
    [0.0]
    """
    return apply("sin", value)


def cos(value: Operand) -> SOp:
    """Return the cosine of the value in radians.

    >>> cos(tokens)([0])
    [1.0]
    """
    return apply("cos", value)


def floor(value: Operand) -> SOp:
    """Round the value down to an integer.

    >>> floor(tokens)([1.5, -1.5])
    [1, -2]
    """
    return apply("floor", value)


# Programs as text -----------------------------------------------------------------------------------


def stable_hash(program: Handle) -> str:
    """Return a hash of the program's structure, which is the same on all machines.

    >>> stable_hash(indices + 1)[:12]
    '7e73ed341244'
    """
    return graph.stable_hash(node_of(program))


def to_rasp(program: Handle) -> str:
    """Return a program as RASP text.

    >>> print(to_rasp(aggregate(full, tokens_int, 7) / length))
    aggregate(select(1, 1, ==), tokens_int, 7) / length;
    """
    return graph.to_rasp(node_of(program))


def _text(predicate: object, op: str) -> str:
    if isinstance(predicate, str):
        return predicate
    raise GraphError(f'{op}: expected a predicate as a string, got {predicate!r}; try "=="')
