"""Random programs and inputs, drawn from the table of operations itself.

A new operation or attribute is drawn as soon as it is in the table; an attribute nobody told us how
to draw fails loudly. Programs are graphs with sharing, not trees, and may use families.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from locum.graph import CASTS, PREDICATES, Atom, Node, Sort, build
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.random_programs import INNER_OPERATIONS, grow

T = TypeVar("T")

small_ints = st.integers(-3, 5)
floats = st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, 1e300, float("inf"), 0.1])
strings = st.sampled_from(["", "a", "b", "ab", "1", "-2.5", "é"])
atoms: st.SearchStrategy[Atom] = st.one_of(small_ints, small_ints, floats, st.booleans(), strings)

inputs: st.SearchStrategy[Any] = st.one_of(
    st.text("abc12", min_size=1, max_size=5),
    st.lists(small_ints, min_size=1, max_size=5),
    st.lists(st.one_of(small_ints, floats), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=3),
)

#: Longer sequences, with many equal values: windows, groups and blocks of some size.
longer_inputs: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(st.sampled_from(["a", "b", "c", "ab", "abcd"]), min_size=4, max_size=14),
    st.lists(small_ints, min_size=4, max_size=14),
    st.lists(st.sampled_from([0.5, -1.5, 2.0, 0.25, float("inf")]), min_size=4, max_size=14),
    st.lists(st.one_of(small_ints, st.sampled_from([0.5, -1.5])), min_size=4, max_size=14),
)


def _useful_parts() -> tuple[Node, ...]:
    """What real selectors are made of: shifted, cut and folded positions, groups, windows."""
    at, token, n = build("indices"), build("tokens", cast="asis"), build("length")

    def number(op: str, value: int) -> Node:
        return build(op, at, build("constant", value=value))

    def select(keys: Node, queries: Node, predicate: str) -> Node:
        return build("select", keys, queries, predicate=predicate)

    earlier = number("subtract", 2)
    last = build("subtract", build("subtract", n, build("constant", value=1)), at)
    block = number("floor_divide", 3)
    return (
        *(last, earlier, block, number("modulo", 3), number("multiply", 2)),
        build("equal", token, build("constant", value=2)),
        build("negate", at),
        select(token, token, "=="),
        select(token, token, "<"),
        select(at, last, "=="),
        select(block, block, "=="),
        build("selector_and", select(at, earlier, ">"), select(at, at, "<=")),
        select(number("modulo", 3), build("constant", value=1), "=="),
        select(build("constant", value=1), number("modulo", 3), "<="),
        build("selector_not", select(token, build("constant", value=2), "==")),
    )


USEFUL_PARTS = _useful_parts()
#: Mostly attention: the operations drawn where selectors are the subject.
ATTENTION = (
    *("select", "selector_and", "selector_or", "selector_not", "best") * 4,
    *("aggregate", "selector_width") * 5,
    *("add", "subtract", "modulo", "if_else", "equal", "less", "minimum", "indicator", "multiply"),
)


class _HypothesisDraws:
    """What Hypothesis decides about a program."""

    def __init__(
        self,
        draw: st.DrawFn,
        ops: tuple[str, ...],
        atoms: st.SearchStrategy[Atom],
        casts: tuple[str, ...],
    ) -> None:
        self.draw, self.ops, self.atoms, self.casts = draw, ops, atoms, casts

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def integer(self, low: int, high: int) -> int:
        return self.draw(_integers(low, high))

    def attribute(self, name: str) -> Any:
        return self.draw(_attribute(name, self.atoms, self.casts))

    def has_families(self) -> bool:
        return self.draw(_integers(0, 1)) == 1

    def operations(self) -> Sequence[str]:
        return self.ops

    def sums_now(self) -> bool:
        return self.draw(_integers(0, 3)) == 0


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    """Made once: Hypothesis validates every strategy anew."""
    return st.integers(low, high)


@st.composite
def programs(
    draw: st.DrawFn,
    size: int = 12,
    sorts: tuple[Sort, ...] = (Sort.SOP, Sort.SELECTOR),
    ops: tuple[str, ...] = INNER_OPERATIONS,
    atoms: st.SearchStrategy[Atom] = atoms,
    casts: tuple[str, ...] = CASTS,
    parts: tuple[Node, ...] = (),
) -> Node:
    """A well-formed program: an s-op or a selector with no family left free.

    It may use ``parts`` as well as the leaves; an operation named twice in ``ops`` comes more often.
    """
    return grow(_HypothesisDraws(draw, ops, atoms, casts), size, sorts, parts)


@cache
def _attribute(
    name: str, atoms: st.SearchStrategy[Atom], casts: tuple[str, ...]
) -> st.SearchStrategy[Any]:
    return {
        "cast": st.sampled_from(casts),
        "value": atoms,
        "default": atoms,
        "predicate": st.sampled_from(PREDICATES),
        "values": st.lists(atoms, max_size=3).map(canonical_set),
        "table": st.dictionaries(atoms, atoms, min_size=1, max_size=3).map(canonical_table),
    }[name]
