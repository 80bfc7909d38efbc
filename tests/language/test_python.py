"""The Python front end: operators, calls, reprs, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import locum
from locum import indices, tokens
from locum.errors import ExecutionError, GraphError


def test_the_first_lines_of_the_readme() -> None:
    histogram = locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))
    assert histogram("hello") == [1, 1, 2, 2, 1]
    assert locum.rasp.architecture(histogram).layers == 1


def test_reflected_operators() -> None:
    x = tokens
    cases: list[tuple[Any, Any]] = [
        (7 + x, 9),
        (7 - x, 5),
        (7 * x, 14),
        (7 / x, 3.5),
        (7 % x, 1),
        (7 // x, 3),
        (7**x, 49),
        (True & x, True),
        (False | x, True),
        (7 > x, True),
        (2 == x, True),
    ]
    for found, expected in cases:
        assert found([2]) == [expected]


def test_numpy_scalars_are_atoms() -> None:
    program = np.float64(2.0) * tokens + np.int64(1)  # type: ignore[operator]
    assert program is 2.0 * tokens + 1
    assert locum.constant(np.bool_(True)) is locum.constant(True)  # type: ignore[arg-type]


def test_member_and_lookup_do_not_depend_on_order() -> None:
    assert locum.member(tokens, "ab") is locum.member(tokens, "bab")
    assert locum.lookup(tokens, {"a": 1, "b": 2}) is locum.lookup(tokens, {"b": 2, "a": 1})


def test_repr_shows_an_example() -> None:
    assert repr(tokens) == 's-op tokens\n  on "hello": [h, e, l, l, o] (strings)'
    assert repr(locum.tokens_int) == "s-op tokens_int\n  on [3, 1, 4, 1, 5]: [3, 1, 4, 1, 5] (ints)"
    assert repr(indices * 0 + 1.0).endswith("[1.0]*5 (floats)")
    assert "no value on" in repr(1 / indices)
    assert repr(locum.select(indices, 1, "==")).splitlines()[:3] == [
        "selector select(indices, 1, ==)",
        "     h e l l o",
        " h |   1      ",
    ]
    assert "close it with sum_over" in repr(locum.family(3, "l") + 1)


def test_notebooks_get_self_contained_html() -> None:
    html = locum.select(tokens, tokens, "==")._repr_html_()
    assert html.count("<tr>") == 6
    assert html.count(">1</td>") == 7
    assert "<script" not in html
    assert "http" not in html
    sop = (tokens + "<b>")._repr_html_()
    assert "h&lt;b&gt;" in sop
    assert "<b>" not in sop
    assert "no value on" in (1 / indices)._repr_html_()
    assert "close it" in locum.select(locum.family(2, "l"), indices, "==")._repr_html_()


MISTAKES: list[tuple[Any, str]] = [
    (lambda: locum.select(tokens, tokens, "=<"), "select: predicate: expected one of"),
    (lambda: locum.select(tokens, tokens, 3), 'expected a predicate as a string, got 3; try "=="'),  # type: ignore[arg-type]
    (lambda: locum.select(locum.full, tokens, "=="), "select: expected an s-op, got the selector"),  # type: ignore[arg-type]
    (lambda: locum.full + 1, "expected s-ops in arithmetic or an ordering"),
    (lambda: locum.rasp.architecture(3), "expected a program (an s-op or a selector), got 3"),  # type: ignore[arg-type]
    (lambda: locum.rasp.to_rasp(locum.family(2)), "expected a program without free families to print"),
    (lambda: locum.member(tokens, 3), "member: expected a set of atoms"),  # type: ignore[arg-type]
    (lambda: locum.lookup(tokens, 3), "lookup: expected a table"),  # type: ignore[arg-type]
    (lambda: tokens + np.array([1, 2]), "add: expected an s-op or an atom"),
    (lambda: locum.aggregate(locum.full, 1, tokens), "one atom, the same at every position"),  # type: ignore[arg-type]
    (lambda: tokens + locum.full, "add: expected an s-op, got the selector select"),
    (lambda: locum.aggregate(tokens, tokens), "aggregate: expected a selector, got the s-op"),  # type: ignore[arg-type]
    (lambda: locum.full & tokens, "selector_and: expected a selector"),  # type: ignore[operator]
    (lambda: locum.selector_width(3), "expected a selector, got 3; try select(keys, queries"),  # type: ignore[arg-type]
    (lambda: tokens + None, "add: expected an s-op or an atom"),  # type: ignore[operator]
    (lambda: tokens + [1], "got [1]"),  # type: ignore[operator]
    (lambda: locum.constant([1]), "constant: expected an s-op or an atom"),  # type: ignore[arg-type]
    (lambda: locum.aggregate(locum.full, tokens, None), "the default of aggregate: expected"),  # type: ignore[arg-type]
    (lambda: bool(tokens == 1), "has no single truth value"),
    (lambda: 0 < indices < 3, "two comparisons instead of a < b < c"),
    (lambda: tokens and indices, "use & | ~ instead of and or not"),
    (
        lambda: locum.family(float("inf")),  # type: ignore[arg-type]
        "expected a size from 1 to 1000000000000000000, an integer, got inf",
    ),
    (lambda: locum.SOp(locum.full.node), "a handle for s-ops got a node of another kind"),
    (lambda: locum.lookup(tokens, {}), "one or more"),
]


@pytest.mark.parametrize(
    ("mistake", "words"), MISTAKES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_mistakes_are_named(mistake: Any, words: str) -> None:
    with pytest.raises((locum.GraphError, TypeError)) as caught:
        mistake()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_s_ops_are_not_iterable() -> None:
    with pytest.raises(TypeError):
        iter(tokens)


def test_one_position_everywhere() -> None:
    assert locum.tokens[0]("abc") == ["a"] * 3
    assert locum.tokens[np.int64(-1)]("abc") == ["c"] * 3
    assert locum.tokens[7]("abc") == [0] * 3  # as in text: nothing is selected
    for index in ("a", 0.5, slice(2), True, locum.indices):
        with pytest.raises(GraphError, match="index of an s-op: expected an integer, got"):
            locum.tokens[index]  # type: ignore[index]


def test_exclusive_or_of_booleans_alone() -> None:
    first, last = locum.indices == 0, locum.indices == locum.length - 1
    assert (first ^ last)("a") == [False]
    assert (first ^ True)("abc") == (False ^ ~first)("abc") == [False, True, True]
    assert (locum.tokens_bool ^ first)([True, True, False]) == [False, True, False]
    for wrong in (2, "a", locum.indices, locum.tokens):
        with pytest.raises(GraphError, match=r"\^: expected booleans, got .*; try \*\* for powers"):
            first ^ wrong
        with pytest.raises(GraphError, match=r"\^: expected booleans"):
            wrong ^ first


def test_a_default_for_what_a_table_lacks() -> None:
    depth = locum.lookup(locum.tokens, {"(": 1, ")": -1}, default=0)
    assert depth("(a)") == [1, 0, -1]
    assert locum.lookup(locum.tokens, {np.int64(1): "one"}, default="?")([1, 2]) == ["one", "?"]
    mixed = locum.lookup(locum.tokens, {1: 5, "b": 3}, default=0)
    assert (mixed("ab"), mixed([1, 2])) == ([0, 3], [5, 0])
    assert locum.compile(depth, length=4, vocabulary="(a)")("(a))") == [1, 0, -1, -1]
    with pytest.raises(GraphError, match="lookup"):
        locum.lookup(locum.tokens, {}, default=0)


@pytest.mark.parametrize(
    ("program", "tokens", "words"),
    [
        (-locum.tokens, "ab", "negate is not defined for 'a' at position 0"),
        (locum.tokens - 1, "ab", "subtract is not defined for 'a' and 1 at position 0"),
        (locum.tokens < 1, "ab", "less is not defined for 'a' and 1 at position 0"),
        (locum.exp(locum.tokens), [1000], "exp of 1000 is too large at position 0"),
        (1.5**locum.tokens, [1e308], r"power of 1.5 and 1e\+308 is too large at position 0"),
        (locum.floor(locum.tokens), [float("nan")], "floor is not defined for nan at position 0"),
        (locum.select(locum.tokens, locum.indices, "<"), "ab", "< is not defined for 'a' and 0"),
    ],
)
def test_errors_are_not_pythons_own(program: Any, tokens: Any, words: str) -> None:
    with pytest.raises(ExecutionError, match=words):
        program(tokens)
