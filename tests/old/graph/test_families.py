"""Families: bound indices have no names, sums do not capture, bad sizes are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import locum
from locum import graph
from locum.execution import run
from locum.graph import Node, Sort, build, problems, substitute
from locum.graph.families import closed, opened
from tests.cases import matmul
from tests.old.graph.strategies import inputs, programs


def test_names_of_bound_families_do_not_matter() -> None:
    def program(first: str | None, second: str | None) -> locum.SOp:
        l, m = locum.family(3, first), locum.family(4, second)
        return locum.sum_over(l, locum.sum_over(m, l * locum.indices + m))

    assert program("l", "m") is program("m", "l") is program(None, None) is program("x", None)


def test_order_of_nesting_matters() -> None:
    l, m = locum.family(3, "l"), locum.family(3, "m")
    assert locum.sum_over(l, locum.sum_over(m, l - m)) is not locum.sum_over(
        m, locum.sum_over(l, l - m)
    )
    assert locum.sum_over(l, locum.sum_over(m, l - m)) is locum.sum_over(m, locum.sum_over(l, m - l))


def test_swapping_names_inside_one_sum() -> None:
    l, m = locum.family(2, "l"), locum.family(3, "m")
    assert locum.sum_over(l, m, 10 * l + m)("a") == [36]
    assert locum.sum_over(m, l, 10 * l + m)("a") == [36]


def test_the_same_family_in_two_sums() -> None:
    l = locum.family(3, "l")
    inner = locum.sum_over(l, l + locum.indices)
    assert locum.sum_over(l, l * inner)("ab") == [9, 18]


def test_a_sum_of_sums_built_twice_is_one_object() -> None:
    assert matmul(4, 4, 4) is matmul(4, 4, 4)


@given(programs())
def test_opening_and_closing_gives_the_same_object(program: Node) -> None:
    assert closed(opened(program)) is program


@given(programs(sorts=(Sort.SOP,)), programs(sorts=(Sort.SOP,), size=5), inputs)
def test_substitution_is_composition(outer: Node, inner: Node, sequence: Any) -> None:
    """Replacing ``tokens`` by a program is running on that program's output."""
    tokens = build("tokens", cast="asis")
    composed = substitute(outer, {tokens: inner})
    assert problems(composed) == []
    try:
        middle = run(inner, sequence)
        if not any(n.op == "tokens" and n.attributes["cast"] != "asis" for n in _below(outer)):
            assert repr(run(composed, sequence)) == repr(run(outer, middle))
    except locum.LocumError:
        pass


def _below(root: Node) -> list[Node]:
    from locum.graph import postorder

    return list(postorder(root))


#: Without surrogates, and not by a codec: Hypothesis would try every character with that first.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@given(st.one_of(st.floats(), st.integers(max_value=0), st.booleans(), st.none(), texts))
def test_sizes_that_are_not_a_number_of_heads(size: Any) -> None:
    with pytest.raises(locum.GraphError, match="expected a size from 1 to"):
        locum.family(size)


def test_unbound_families_are_named_in_the_error() -> None:
    l = locum.family(4, "row")
    with pytest.raises(locum.GraphError, match=r"row \(size 4\) is bound by no sum"):
        (l + 1)("abc")


def test_sum_over_needs_families_and_a_body() -> None:
    l = locum.family(2)
    for arguments, words in [
        ((l,), "a family and a body"),
        ((locum.indices, locum.tokens), "expected families"),
        ((l, l, locum.tokens), "the same family twice"),
        ((l, locum.full), "expected an s-op, got the selector"),
    ]:
        with pytest.raises(locum.GraphError, match=words):
            locum.sum_over(*arguments)  # type: ignore[arg-type]
    with pytest.raises(locum.GraphError, match="identifier"):
        locum.family(2, "two words")


def test_a_part_of_a_sum_cannot_be_bound_again() -> None:
    l, m = locum.family(2), locum.family(3)
    inside = locum.SOp(locum.sum_over(l, locum.indices + l).node.inputs[0])
    with pytest.raises(locum.GraphError, match="the index of another sum"):
        locum.sum_over(m, inside * m)


def test_unnamed_families_of_other_processes_stay_apart() -> None:
    import subprocess
    import sys

    code = "import locum, locum.graph; print(locum.graph.dumps((locum.family(3) * locum.indices).node))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = locum.family(3) * locum.indices
    assert graph.loads(done.stdout) is not ours.node
    assert graph.loads(graph.dumps(ours.node)) is ours.node
