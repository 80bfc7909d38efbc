"""Define all operations of programs in one closed table.

Every front end builds programs from these operations only. Elementwise functions are *names*, never
Python functions, so that executors, number domains and the compiler can interpret them. Tests check
that each domain and the compiler implement or reject every elementwise function.

A row of the table contains the sorts of the inputs and of the output, the attributes and a one-line
meaning. :func:`build` returns a valid node or raises :class:`GraphError`.

>>> build("add", build("indices"), build("constant", value=1))
<add: indices + 1>
>>> OPERATIONS["aggregate"].meaning
'the mean of the values at the selected keys, or `default` if no key is selected'
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from locum.errors import GraphError
from locum.graph.atoms import (
    Atom,
    Attribute,
    is_atom,
    is_canonical,
    short,
)
from locum.graph.node import Node


class Sort(Enum):
    """The sort of a node: an s-op, a selector or a family parameter.

    An s-op has a value per position, a selector has a boolean per query and key, and a family parameter
    is a head index.
    """

    SOP = "s-op"
    SELECTOR = "selector"
    FAMILY = "family parameter"


@dataclass(frozen=True)
class Predicate:
    """A comparison of two values a and b, such as a < b; in ``select``, a is the key."""

    #: The elementwise operation with the same meaning.
    operation: str
    #: The predicate with the opposite truth value (for NaN, only if the predicate is ``==`` or ``!=``).
    negation: str
    #: The equivalent predicate with exchanged operands.
    converse: str
    #: Function that compares scalars with Python's semantics, and arrays of one type elementwise.
    holds: Callable[[Any, Any], Any]


#: The comparisons of ``select``.
COMPARISONS: Mapping[str, Predicate] = MappingProxyType(
    {
        "==": Predicate("equal", "!=", "==", operator.eq),
        "!=": Predicate("not_equal", "==", "!=", operator.ne),
        "<": Predicate("less", ">=", ">", operator.lt),
        "<=": Predicate("less_equal", ">", ">=", operator.le),
        ">": Predicate("greater", "<=", "<", operator.gt),
        ">=": Predicate("greater_equal", "<", "<=", operator.ge),
    }
)
PREDICATES = tuple(COMPARISONS)
#: Predicate of each elementwise comparison.
PREDICATE_OF = {predicate.operation: symbol for symbol, predicate in COMPARISONS.items()}
#: The conversions that ``tokens`` can apply to each input value.
CASTS = ("asis", "str", "int", "float", "bool")

#: Maximum number of heads of one family.
LARGEST_FAMILY = 10**18
#: A function that returns the reason why a value is not valid for an attribute, or None if it is valid.
Check = Callable[[Attribute], str | None]


def _atom(value: Attribute) -> str | None:
    return None if is_atom(value) else "expected a bool, an int, a float or a string"


def _one_of(choices: tuple[str, ...]) -> Check:
    def check(value: Attribute) -> str | None:
        return None if value in choices else f"expected one of {', '.join(choices)}"

    return check


def _size(value: Attribute) -> str | None:
    if type(value) is int and 1 <= value <= LARGEST_FAMILY:
        return None
    return f"expected an integer from 1 to {LARGEST_FAMILY}"


#: The names of bound families (``families.canonical``).
_BOUND = re.compile(r"#[0-9]{1,9}\.[0-9]{1,9}")


def _name(value: Attribute) -> str | None:
    if not isinstance(value, str) or not value:
        return "expected a non-empty string"
    if value.startswith("#") and not _BOUND.fullmatch(value):
        return "expected two integers after #, as in #1.0"
    return None


def _set(value: Attribute) -> str | None:
    if isinstance(value, tuple) and all(is_atom(part) for part in value) and is_canonical(value):
        return None
    return "expected a tuple of distinct atoms in canonical order (atoms.canonical_set)"


def _table_of_atoms(value: Attribute) -> str | None:
    problem = "expected one or more (atom, atom) pairs in canonical order (atoms.canonical_table)"
    if not isinstance(value, tuple) or not value:
        return problem
    for pair in value:
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(map(is_atom, pair)):
            return problem
    return None if is_canonical([pair[0] for pair in value]) else problem  # type: ignore[index]


@dataclass(frozen=True)
class Operation:
    """A row of the table of operations."""

    name: str
    #: Group of operations: leaf, arithmetic, function, comparison, logic, selector, attention, family.
    group: str
    takes: tuple[Sort, ...]
    gives: Sort
    meaning: str
    attributes: Mapping[str, Check] = field(default_factory=dict)
    #: The operator symbol in RASP text, or None if there is none.
    symbol: str | None = None
    #: The name of the function in RASP text, if it differs from ``name``.
    function: str | None = None
    #: Whether the function is transcendental. Exact arithmetic rejects such functions. Python's
    #: ``math`` and FLINT's ball arithmetic define these functions under the same names.
    transcendental: bool = False
    #: Whether the operation rounds to the floating-point type that it is named after.
    rounds: bool = False

    @property
    def called(self) -> str:
        """The name of the function in RASP text."""
        return self.function or self.name

    @property
    def elementwise(self) -> bool:
        """Whether the operation acts on each position separately, as a feed-forward sublayer does."""
        return self.group in ("arithmetic", "function", "comparison", "logic")


_S, _B, _F = Sort.SOP, Sort.SELECTOR, Sort.FAMILY


def _table() -> dict[str, Operation]:
    rows = [
        # Leaves.
        Operation(
            "tokens",
            "leaf",
            (),
            _S,
            "the input tokens, converted as `cast` specifies",
            {"cast": _one_of(CASTS)},
        ),
        Operation("indices", "leaf", (), _S, "the position: 0, 1, 2, …"),
        Operation("length", "leaf", (), _S, "the length of the input, at every position"),
        Operation("constant", "leaf", (), _S, "`value` at every position", {"value": _atom}),
        # Elementwise arithmetic.
        Operation("add", "arithmetic", (_S, _S), _S, "a + b; strings are concatenated", symbol="+"),
        Operation("subtract", "arithmetic", (_S, _S), _S, "a − b", symbol="-"),
        Operation(
            "multiply",
            "arithmetic",
            (_S, _S),
            _S,
            "a · b; a string times n is repeated n times",
            symbol="*",
        ),
        Operation("divide", "arithmetic", (_S, _S), _S, "a / b, as true division", symbol="/"),
        Operation("modulo", "arithmetic", (_S, _S), _S, "a − b·⌊a / b⌋", symbol="%"),
        Operation("floor_divide", "arithmetic", (_S, _S), _S, "⌊a / b⌋", symbol="//"),
        Operation("power", "arithmetic", (_S, _S), _S, "a to the power of b", symbol="^"),
        Operation("negate", "arithmetic", (_S,), _S, "−a", symbol="-"),
        # Elementwise functions.
        Operation("absolute", "function", (_S,), _S, "|a|", function="abs"),
        Operation("minimum", "function", (_S, _S), _S, "a if a < b, otherwise b", function="min"),
        Operation("maximum", "function", (_S, _S), _S, "a if a > b, otherwise b", function="max"),
        Operation("exp", "function", (_S,), _S, "e to the power of a", transcendental=True),
        Operation("log", "function", (_S,), _S, "the natural logarithm of a", transcendental=True),
        Operation("sqrt", "function", (_S,), _S, "the square root of a"),
        Operation(
            "erf", "function", (_S,), _S, "the error function of a, used by GELU", transcendental=True
        ),
        Operation("tanh", "function", (_S,), _S, "the hyperbolic tangent of a", transcendental=True),
        Operation("sin", "function", (_S,), _S, "the sine of a, in radians", transcendental=True),
        Operation("cos", "function", (_S,), _S, "the cosine of a, in radians", transcendental=True),
        Operation("floor", "function", (_S,), _S, "a rounded down to an integer"),
        Operation("round", "function", (_S,), _S, "a rounded to the nearest integer, ties to even"),
        # Rounding to a floating-point type.
        Operation("float64", "function", (_S,), _S, "a converted to float64", rounds=True),
        Operation("float32", "function", (_S,), _S, "a rounded to float32", rounds=True),
        Operation(
            "float16", "function", (_S,), _S, "a rounded to float32, then to float16", rounds=True
        ),
        Operation(
            "bfloat16", "function", (_S,), _S, "a rounded to float32, then to bfloat16", rounds=True
        ),
        # Elementwise comparison and logic: truth values follow Python.
        Operation("equal", "comparison", (_S, _S), _S, "whether a equals b", symbol="=="),
        Operation("not_equal", "comparison", (_S, _S), _S, "whether a differs from b", symbol="!="),
        Operation("less", "comparison", (_S, _S), _S, "whether a is less than b", symbol="<"),
        Operation(
            "less_equal",
            "comparison",
            (_S, _S),
            _S,
            "whether a is less than or equal to b",
            symbol="<=",
        ),
        Operation("greater", "comparison", (_S, _S), _S, "whether a is greater than b", symbol=">"),
        Operation(
            "greater_equal",
            "comparison",
            (_S, _S),
            _S,
            "whether a is greater than or equal to b",
            symbol=">=",
        ),
        Operation("and", "logic", (_S, _S), _S, "whether both a and b are true", symbol="and"),
        Operation("or", "logic", (_S, _S), _S, "whether a or b is true", symbol="or"),
        Operation("not", "logic", (_S,), _S, "whether a is false", symbol="not"),
        Operation("if_else", "logic", (_S, _S, _S), _S, "b where a is true, otherwise c"),
        Operation("indicator", "logic", (_S,), _S, "1 where a is true, otherwise 0"),
        Operation("member", "logic", (_S,), _S, "whether a is one of `values`", {"values": _set}),
        Operation(
            "lookup",
            "logic",
            (_S,),
            _S,
            "the value that `table` assigns to a",
            {"table": _table_of_atoms},
        ),
        # Selectors are always indexed [query, key]; each row contains the keys of one query.
        Operation(
            "select",
            "selector",
            (_S, _S),
            _B,
            "the keys k for which `keys[k] ? queries[q]` is true, where ? is `predicate`",
            {"predicate": _one_of(PREDICATES)},
        ),
        Operation(
            "selector_and",
            "selector",
            (_B, _B),
            _B,
            "the keys that both selectors select",
            symbol="and",
        ),
        Operation(
            "selector_or",
            "selector",
            (_B, _B),
            _B,
            "the keys that at least one selector selects",
            symbol="or",
        ),
        Operation(
            "selector_not",
            "selector",
            (_B,),
            _B,
            "the keys that the selector does not select",
            symbol="not",
        ),
        Operation("best", "selector", (_B, _S), _B, "the selected keys with the largest score"),
        # Attention.
        Operation(
            "aggregate",
            "attention",
            (_B, _S),
            _S,
            "the mean of the values at the selected keys, or `default` if no key is selected",
            {"default": _atom},
        ),
        Operation("selector_width", "attention", (_B,), _S, "the number of selected keys"),
        # Families of heads.
        Operation(
            "family",
            "family",
            (),
            _F,
            "a head index from 0 to `size` − 1",
            {"name": _name, "size": _size},
        ),
        Operation(
            "sum_over",
            "family",
            (_S, _F),
            _S,
            "the sum of the s-op over all values of the family parameters",
        ),
    ]
    return {row.name: row for row in rows}


#: The closed table of operations.
OPERATIONS: Mapping[str, Operation] = MappingProxyType(_table())
#: The names of the transcendental functions.
TRANSCENDENTAL = tuple(name for name, row in OPERATIONS.items() if row.transcendental)
#: The functions that round to a floating-point type; each function has the name of its type.
ROUNDINGS = tuple(name for name, row in OPERATIONS.items() if row.rounds)


def sort_of(node: Node) -> Sort:
    """Return whether a node is an s-op, a selector or a family parameter."""
    return OPERATIONS[node.op].gives


def problem_with(op: str, inputs: tuple[Node, ...], attributes: Mapping[str, Attribute]) -> str | None:
    """Return the reason why a node with these arguments violates the table of operations, or None if
    the node is valid.
    """
    row = OPERATIONS.get(op)
    if row is None:
        return f"there is no operation {op!r}: the table in graph/operations.py is closed"
    takes = row.takes
    if op == "sum_over" and len(inputs) > 2:
        takes += (_F,) * (len(inputs) - 2)
    if len(inputs) != len(takes):
        return f"{op}: expected {len(takes)} input(s), got {len(inputs)}"
    for place, node in enumerate(inputs):
        sort, needed = OPERATIONS[node.op].gives, takes[place]
        if sort is not needed and not (needed is _S and sort is _F):
            here = f"{op}: expected {_article(needed)} as input {place + 1}"
            return f"{here}, got {_article(sort)}: {node!r}"
    if not attributes and not row.attributes:
        return None
    if attributes.keys() != row.attributes.keys():
        return f"{op}: expected the attributes {sorted(row.attributes)}, got {sorted(attributes)[:8]}"
    for name, check in row.attributes.items():
        reason = check(attributes[name])
        if reason is not None:
            return f"{op}: {name}: {reason}, got {short(attributes[name])}"
    return None


def build(op: str, /, *inputs: Node, **attributes: Attribute) -> Node:
    """Return the node with this operation, inputs and attributes, or raise :class:`GraphError` if the
    node is invalid.
    """
    problem = problem_with(op, inputs, attributes)
    if problem is not None:
        raise GraphError(problem)
    return Node(op, inputs, attributes)


def constant(value: Atom) -> Node:
    """Return an s-op that has the given ``value`` at every position."""
    return build("constant", value=value)


def _article(sort: Sort) -> str:
    return f"a{'n' if sort is Sort.SOP else ''} {sort.value}"
