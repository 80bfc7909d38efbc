"""The whole language on one page: the closed table of operations.

Whatever the front end, a program is a graph of these and nothing else. Elementwise functions are
*named*, never Python lambdas, so that every executor, number domain and the compiler can give each
its own meaning, and a test can assert that each has one or a stated refusal.

Each row says which sorts an operation takes and gives, which attributes it carries, and what it
means in one line. :func:`build` makes a legal node, or says what is wrong.

>>> build("add", build("indices"), build("constant", value=1))
<add: indices + 1>
>>> OPERATIONS["aggregate"].meaning
'the mean of the values at the selected keys; the default where none is selected'
"""

from __future__ import annotations

import operator
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
    """What a node is: a value per position, a boolean per (query, key), or a head index."""

    SOP = "s-op"
    SELECTOR = "selector"
    FAMILY = "family parameter"


@dataclass(frozen=True)
class Predicate:
    """A comparison of two values, ``a ? b``: in ``select``, the key stands on the left."""

    #: The elementwise operation that compares so.
    operation: str
    #: The predicate that holds where this one does not, of values that have an order (not of NaN).
    negation: str
    #: The predicate that says the same with the operands exchanged.
    converse: str
    #: Compares scalars as Python does, and arrays of one type elementwise.
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
#: Elementwise comparison → the predicate that it is.
PREDICATE_OF = {predicate.operation: symbol for symbol, predicate in COMPARISONS.items()}
#: What ``tokens`` does to each input value before the program sees it.
CASTS = ("asis", "str", "int", "float", "bool")

#: The most heads of one family.
LARGEST_FAMILY = 10**18
#: Says why a value cannot be that attribute, or None where it can.
Check = Callable[[Attribute], str | None]


def _atom(value: Attribute) -> str | None:
    return None if is_atom(value) else "it must be a bool, an int, a float or a string"


def _one_of(choices: tuple[str, ...]) -> Check:
    def check(value: Attribute) -> str | None:
        return None if value in choices else f"it must be one of {', '.join(choices)}"

    return check


def _size(value: Attribute) -> str | None:
    if type(value) is int and 1 <= value <= LARGEST_FAMILY:
        return None
    return f"it must be an integer from 1 to {LARGEST_FAMILY}"


def _name(value: Attribute) -> str | None:
    return None if isinstance(value, str) and value else "a name is a non-empty string"


def _set(value: Attribute) -> str | None:
    if isinstance(value, tuple) and all(is_atom(part) for part in value) and is_canonical(value):
        return None
    return "it must be a tuple of distinct atoms in canonical order (atoms.canonical_set)"


def _table_of_atoms(value: Attribute) -> str | None:
    problem = "it must be one or more (atom, atom) pairs in canonical order (atoms.canonical_table)"
    if not isinstance(value, tuple) or not value:
        return problem
    for pair in value:
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(map(is_atom, pair)):
            return problem
    return None if is_canonical([pair[0] for pair in value]) else problem  # type: ignore[index]


@dataclass(frozen=True)
class Operation:
    """A row of the table."""

    name: str
    #: Part of the table: leaf, arithmetic, function, comparison, logic, selector, attention, family.
    group: str
    takes: tuple[Sort, ...]
    gives: Sort
    meaning: str
    attributes: Mapping[str, Check] = field(default_factory=dict)
    #: How RASP text writes it, where that is an operator.
    symbol: str | None = None
    #: What RASP text calls it, where that is a function of another name.
    function: str | None = None
    #: Whether it leads out of the rationals: exact arithmetic refuses it; Python's ``math`` and flint's
    #: balls have it under its own name.
    transcendental: bool = False
    #: Whether it rounds to the floating-point type of its own name.
    rounds: bool = False

    @property
    def called(self) -> str:
        """The name of the function that RASP text has for it."""
        return self.function or self.name

    @property
    def elementwise(self) -> bool:
        """Whether it acts on each position by itself: a feed-forward sublayer's work."""
        return self.group in ("arithmetic", "function", "comparison", "logic")


_S, _B, _F = Sort.SOP, Sort.SELECTOR, Sort.FAMILY


def _table() -> dict[str, Operation]:
    rows = [
        # Leaves.
        Operation("tokens", "leaf", (), _S, "the input, each value cast", {"cast": _one_of(CASTS)}),
        Operation("indices", "leaf", (), _S, "the positions 0, 1, 2, …"),
        Operation("length", "leaf", (), _S, "the length of the input, at every position"),
        Operation("constant", "leaf", (), _S, "the same atom at every position", {"value": _atom}),
        # Elementwise arithmetic.
        Operation("add", "arithmetic", (_S, _S), _S, "a + b (joins strings)", symbol="+"),
        Operation("subtract", "arithmetic", (_S, _S), _S, "a − b", symbol="-"),
        Operation("multiply", "arithmetic", (_S, _S), _S, "a · b", symbol="*"),
        Operation("divide", "arithmetic", (_S, _S), _S, "a / b, never whole division", symbol="/"),
        Operation("modulo", "arithmetic", (_S, _S), _S, "a − b·⌊a / b⌋", symbol="%"),
        Operation("floor_divide", "arithmetic", (_S, _S), _S, "⌊a / b⌋", symbol="//"),
        Operation("power", "arithmetic", (_S, _S), _S, "a to the power of b", symbol="^"),
        Operation("negate", "arithmetic", (_S,), _S, "−a", symbol="-"),
        # Elementwise functions.
        Operation("absolute", "function", (_S,), _S, "|a|", function="abs"),
        Operation("minimum", "function", (_S, _S), _S, "a if a < b else b", function="min"),
        Operation("maximum", "function", (_S, _S), _S, "a if a > b else b", function="max"),
        Operation("exp", "function", (_S,), _S, "e to the power of a", transcendental=True),
        Operation("log", "function", (_S,), _S, "the natural logarithm of a", transcendental=True),
        Operation("sqrt", "function", (_S,), _S, "the square root of a"),
        Operation(
            "erf", "function", (_S,), _S, "the error function of a (for GELU)", transcendental=True
        ),
        Operation("tanh", "function", (_S,), _S, "the hyperbolic tangent of a", transcendental=True),
        Operation("sin", "function", (_S,), _S, "the sine of a (in radians)", transcendental=True),
        Operation("cos", "function", (_S,), _S, "the cosine of a (in radians)", transcendental=True),
        Operation("floor", "function", (_S,), _S, "the greatest integer not above a"),
        Operation("round", "function", (_S,), _S, "the nearest integer, halves to even"),
        # Rounding to a floating-point type.
        Operation("float64", "function", (_S,), _S, "a as a float64", rounds=True),
        Operation("float32", "function", (_S,), _S, "a rounded to the nearest float32", rounds=True),
        Operation("float16", "function", (_S,), _S, "a as float32, then float16", rounds=True),
        Operation("bfloat16", "function", (_S,), _S, "a as float32, then bfloat16", rounds=True),
        # Elementwise comparison and logic: truth as Python sees it, answers are bools.
        Operation("equal", "comparison", (_S, _S), _S, "a equals b", symbol="=="),
        Operation("not_equal", "comparison", (_S, _S), _S, "a differs from b", symbol="!="),
        Operation("less", "comparison", (_S, _S), _S, "a is below b", symbol="<"),
        Operation("less_equal", "comparison", (_S, _S), _S, "a is not above b", symbol="<="),
        Operation("greater", "comparison", (_S, _S), _S, "a is above b", symbol=">"),
        Operation("greater_equal", "comparison", (_S, _S), _S, "a is not below b", symbol=">="),
        Operation("and", "logic", (_S, _S), _S, "both a and b hold", symbol="and"),
        Operation("or", "logic", (_S, _S), _S, "a or b holds, or both", symbol="or"),
        Operation("not", "logic", (_S,), _S, "a does not hold", symbol="not"),
        Operation("if_else", "logic", (_S, _S, _S), _S, "b where a holds, else c; both are computed"),
        Operation("indicator", "logic", (_S,), _S, "1 where a holds, else 0"),
        Operation("member", "logic", (_S,), _S, "a is one of these", {"values": _set}),
        Operation("lookup", "logic", (_S,), _S, "what the table has for a", {"table": _table_of_atoms}),
        # Selectors: always [query, key]; rows attend.
        Operation(
            "select", "selector", (_S, _S), _B, "key[k] ? query[q]", {"predicate": _one_of(PREDICATES)}
        ),
        Operation("selector_and", "selector", (_B, _B), _B, "selected by both", symbol="and"),
        Operation("selector_or", "selector", (_B, _B), _B, "selected by either", symbol="or"),
        Operation("selector_not", "selector", (_B,), _B, "not selected", symbol="not"),
        Operation(
            "best", "selector", (_B, _S), _B, "of the selected keys, those whose score is greatest"
        ),
        # Attention.
        Operation(
            "aggregate",
            "attention",
            (_B, _S),
            _S,
            "the mean of the values at the selected keys; the default where none is selected",
            {"default": _atom},
        ),
        Operation("selector_width", "attention", (_B,), _S, "how many keys are selected"),
        # Families of heads.
        Operation(
            "family", "family", (), _F, "a head index 0 … size−1", {"name": _name, "size": _size}
        ),
        Operation(
            "sum_over", "family", (_S, _F), _S, "the sum of the body over all values of its families"
        ),
    ]
    return {row.name: row for row in rows}


#: The closed table. Nothing outside it is a program.
OPERATIONS: Mapping[str, Operation] = MappingProxyType(_table())
#: Functions that lead out of the rationals.
TRANSCENDENTAL = tuple(name for name, row in OPERATIONS.items() if row.transcendental)
#: Functions that round to a floating-point type, by the name of the type.
ROUNDINGS = tuple(name for name, row in OPERATIONS.items() if row.rounds)


def sort_of(node: Node) -> Sort:
    """Return whether a node is an s-op, a selector or a family parameter."""
    return OPERATIONS[node.op].gives


def problem_with(op: str, inputs: tuple[Node, ...], attributes: Mapping[str, Attribute]) -> str | None:
    """Say why such a node would be illegal, or return None: the table read as a rule."""
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
        return f"{op} carries the attributes {sorted(row.attributes)}, not {sorted(attributes)[:8]}"
    for name, check in row.attributes.items():
        reason = check(attributes[name])
        if reason is not None:
            return f"{op} does not know the {name} {short(attributes[name])}: {reason}"
    return None


def build(op: str, /, *inputs: Node, **attributes: Attribute) -> Node:
    """Make a legal node, or say why there is none in a :class:`GraphError`."""
    problem = problem_with(op, inputs, attributes)
    if problem is not None:
        raise GraphError(problem)
    return Node(op, inputs, attributes)


def constant(value: Atom) -> Node:
    """Return the s-op that is ``value`` at every position."""
    return build("constant", value=value)


def _article(sort: Sort) -> str:
    return f"a{'n' if sort is Sort.SOP else ''} {sort.value}"
