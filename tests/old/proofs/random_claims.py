"""Random programs about indeterminates: with open widths, booleans, lookups and means of all kinds.

Every program is a chain: each operation uses the result of the one before, so that what is known of an
open value (bounds of a width, say) meets operations of which it does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from locum.graph import OPERATIONS, Node, Sort, build, sort_of
from locum.graph.atoms import canonical_set, canonical_table

TOKENS, INDICES = build("tokens", cast="asis"), build("indices")


def constant(value: Any) -> Node:
    return build("constant", value=value)


def select(keys: Node, queries: Node, predicate: str) -> Node:
    return build("select", keys, queries, predicate=predicate)


FIRST_TWO, POSITIVE = select(INDICES, constant(2), "<"), select(TOKENS, constant(0), ">")
#: 2 or 3; 0 to 3; 1 or 2.
WIDTHS = (
    build("selector_width", build("selector_or", FIRST_TWO, POSITIVE)),
    build("selector_width", POSITIVE),
    build("selector_width", build("selector_and", FIRST_TWO, select(TOKENS, TOKENS, "<="))),
)
BELOW = build("subtract", TOKENS, constant(1))
#: What is open from the start, or a sum of squares.
BEGINNINGS = (
    *WIDTHS,
    *WIDTHS,
    POSITIVE,
    build("greater", TOKENS, constant(0)),
    build("lookup", WIDTHS[0], table=canonical_table({2: 5, 3: 7})),
    build("lookup", WIDTHS[1], table=canonical_table({0: 1, 2: True, 3: 7})),
    build("aggregate", POSITIVE, WIDTHS[0], default=0),
    build("aggregate", build("best", FIRST_TWO, TOKENS), TOKENS, default=0),
    build("absolute", TOKENS),
    build("multiply", BELOW, BELOW),
    build("add", build("multiply", BELOW, BELOW), build("multiply", TOKENS, TOKENS)),
)
LEAVES = (TOKENS, INDICES, build("length"), select(INDICES, INDICES, "=="), FIRST_TWO)
#: An operation named several times comes more often.
OPERATIONS_DRAWN = (
    *("equal", "not_equal") * 6,
    *("and", "or") * 5,
    *("add", "not", "indicator", "if_else", "negate", "lookup", "member", "aggregate") * 2,
    *("less", "greater_equal", "subtract", "multiply", "minimum", "maximum", "absolute", "divide"),
    *("modulo", "floor_divide", "power", "floor", "select", "selector_or", "selector_not", "best"),
    *("selector_width", "sqrt"),
)

atoms = st.one_of(st.integers(-1, 3), st.integers(0, 3), st.booleans(), st.just(0.5))
#: Values of the three tokens.
points = st.lists(
    st.sampled_from([Fraction(n) for n in (-2, -1, 0, 1, 2)] + [Fraction(1, 2), Fraction(-3, 2)]),
    min_size=3,
    max_size=3,
)
integer_points = st.lists(st.integers(-4, 4).map(Fraction), min_size=3, max_size=3)


def _table(drawn: Mapping[Any, Any]) -> Any:
    return canonical_table(drawn)


_ATTRIBUTES: dict[str, st.SearchStrategy[Any]] = {
    "predicate": st.sampled_from(["==", "<", ">=", "!="]),
    "default": atoms,
    "values": st.lists(atoms, max_size=3).map(canonical_set),
    "table": st.dictionaries(atoms, atoms, min_size=1, max_size=4).map(_table),
}


@st.composite
def chains(draw: st.DrawFn) -> Node:
    """Draw an s-op that depends on the signs of three tokens."""
    nodes = [*LEAVES, *BEGINNINGS]
    current = draw(st.sampled_from(BEGINNINGS))
    for _ in range(draw(st.integers(1, 5))):
        fitting = [op for op in OPERATIONS_DRAWN if sort_of(current) in OPERATIONS[op].takes]
        op = draw(st.sampled_from(fitting))
        takes = OPERATIONS[op].takes
        place = draw(st.sampled_from([p for p, sort in enumerate(takes) if sort is sort_of(current)]))
        inputs = []
        for p, sort in enumerate(takes):
            if p == place:
                inputs.append(current)
            elif sort is Sort.SOP and draw(st.booleans()):
                inputs.append(constant(draw(atoms)))
            else:
                inputs.append(draw(st.sampled_from([n for n in nodes if sort_of(n) is sort])))
        drawn = {name: draw(_ATTRIBUTES[name]) for name in OPERATIONS[op].attributes}
        current = build(op, *inputs, **drawn)
        nodes.append(current)
    if sort_of(current) is Sort.SELECTOR:
        return build("selector_width", current)
    return current
