"""Exercises: no way around what they ask for, and words where kinds differ."""

from __future__ import annotations

import re

import pytest

from locum.interface.playground.exercises import EXERCISES
from locum.interface.playground.requests import MAX_TOKENS
from locum.interface.playground.solutions import SOLUTIONS
from locum.paper import listings
from tests.old.interface.test_answer import ask, refused

SORT = SOLUTIONS["sort"]
#: The library's own solution of each exercise that has one.
LIBRARY = {
    "shift": ("shift", 'shift(tokens, 1, "_")'),
    "count": ("count", 'count(tokens, "a")'),
    "new": ("mark_first_instance", "mark_first_instance(tokens, tokens)"),
    "sort": ("sort", "sort(tokens, tokens)"),
}
#: Ways to call a function F of the library on arguments (…) without its name before the bracket.
DETOURS = [
    "x = F(…);",
    "f = F; x = f(…);",
    "f, g = F, 1; x = f(…);",
    'y = "# no comment"; x = F(…);',
    "def F2(a) { return a; }\nx = F(…);",
    '"def F"; x = F(…);',
    "members = [F]; x = members[0](…);",
    "members = {1: F}; x = members[1](…);",
    "members = [f for f in [F]]; x = members[0](…);",
    "members = {1: f for f in [F]}; x = members[1](…);",
    "for f in [F] { x = f(…); }",
    "for f, i in zip([F], [1]) { x = f(…); }",
    "def call(f) { return f(…); }\nx = call(F);",
    "def give() { def inner() { return F; } return inner(); }\nf = give(); x = f(…);",
    "def give() { return F; }\nx = give()(…);",
    "F; x = out(…);",
    "f = F if True else 1; x = f(…);",
    "def deep() { y = F(…); return y; }\nx = deep();",
    "F(…);",
]


@pytest.mark.parametrize("detour", DETOURS)
@pytest.mark.parametrize("key", LIBRARY)
def test_the_library_solves_no_exercise_by_any_detour(key: str, detour: str) -> None:
    function, call = LIBRARY[key]
    arguments = call.removeprefix(function + "(")[:-1]
    source = detour.replace("…", arguments).replace("F", function)
    assert f"does not use the library function {function}" in refused(
        "exercise", exercise=key, source=source
    )


def test_a_function_of_the_library_that_calls_it_is_it() -> None:
    source = (
        "own = select(indices, indices, ==);\nx = has_focus(select_from_first(tokens, tokens) and own);"
    )
    words = refused("exercise", exercise="new", source=source)
    assert "does not use the library function mark_first_instance (in select_from_first)" in words


@pytest.mark.parametrize(
    "source",
    [
        f"# sort(tokens, tokens)\n{SORT}",
        f'note = "sort(tokens, tokens)";\n{SORT}',
        f"def unused() {{ return sort(tokens, tokens); }}\n{SORT}",
        f"def own(s) {{ {SORT} return sorted; }}\ndef f(sort) {{ return sort(tokens); }}\nx = f(own);",
        f"def f() {{ def sort(s) {{ {SORT} return sorted; }} return sort(tokens); }}\nx = f();",
        f"def sort2(s) {{ {SORT} return sorted; }}\nx = sort2(tokens);",
    ],
)
def test_what_only_has_the_same_name_is_allowed(source: str) -> None:
    assert ask("exercise", exercise="sort", source=source)["solved"]


def test_the_library_is_whole_where_nothing_is_forbidden() -> None:
    """Taking a function away is of one session, not of the library."""
    refused("exercise", exercise="sort", source="x = sort(tokens, tokens);")
    reply = ask("run", source="x = sort(tokens, tokens);", input="cab")
    assert reply["statements"][0]["values"] == list("abc")
    task = EXERCISES["sort"].task
    assert "Do not use the library function sort" in task


@pytest.mark.parametrize("key", [key for key in EXERCISES if key not in ("listing5",)])
def test_what_is_right_on_short_inputs_only_is_found_out(key: str) -> None:
    name = re.findall(r"^(\w+) =", SOLUTIONS[key], re.MULTILINE)[-1]
    longest = max(EXERCISES[key].lengths)
    other = "tokens" if key in ("reverse", "shift", "sort") else "indices == 0"
    other = "indices" if key in ("count", "histogram") else other
    source = f"{SOLUTIONS[key]}\nshort = {name} if length < {longest + 1} else {other};"
    assert not ask("exercise", exercise=key, source=source)["solved"]


def test_the_example_is_checked() -> None:
    source = f'{SOLUTIONS["reverse"]}\nwrong = "a" if reverse == "h" else reverse;'
    wrong = ask("exercise", exercise="reverse", source=source)["counterexample"]
    assert wrong["input"] == list("hello")


def test_the_mended_listing_solves_its_exercise() -> None:
    assert ask("exercise", exercise="listing5", source=listings.text("maxmin_corrected"))["solved"]


@pytest.mark.parametrize(
    ("key", "source", "words"),
    [
        ("listing5", "y = tokens;", "it is the text -2.0, not a number; try tokens_float"),
        (
            "palindrome",
            SOLUTIONS["palindrome"] + "\nn = indicator(palindrome);",
            "the number 1, not a boolean",
        ),
        ("reverse", "x = indices;", "the number 0, not a text"),
        ("count", SOLUTIONS["count"] + "\nx = number + 0.00001;", "it is 1.00001, not 1"),
    ],
)
def test_another_kind_of_value_is_told(key: str, source: str, words: str) -> None:
    wrong = ask("exercise", exercise=key, source=source)["counterexample"]
    assert words in wrong["problem"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "there is no s-op yet; try"),
        ("for i in [1, 2] { indices + i; }", "assign a name in it"),
        ("def f(x) { return x; }", "when it is called"),
        ("x = [indices, tokens];", "assign one of its members"),
        ("x = 3;", "constant(3)"),
        ("x = select(tokens, tokens, ==);", "selector_width"),
    ],
)
def test_why_there_is_no_sop_is_said(source: str, words: str) -> None:
    assert words in refused("exercise", exercise="reverse", source=source)
    assert words in ask("run", source=source, input="ab")["why"]
    assert ask("run", source="x = indices;", input="ab")["why"] is None


MOSTLY = {
    "palindrome": """
        back = aggregate(select(indices, length - 1 - indices, ==), tokens);
        r = aggregate(full_s, indicator(back == tokens)) > 0.8;
    """,
    "balanced": """
        step = indicator(tokens == "(") - indicator(tokens == ")");
        depth = (indices + 1) * aggregate(select(indices, indices, <=), step);
        last = aggregate(select(indices, length - 1, ==), depth);
        bad = aggregate(full_s, indicator(depth < -0.5), 0) > 0.05;
        r = not bad and last < 0.5 and last > -0.5;
    """,
}


@pytest.mark.parametrize(("key", "source"), MOSTLY.items())
def test_a_share_of_positions_is_not_all_of_them(key: str, source: str) -> None:
    """What is right on short inputs by a threshold is wrong on the longest that there are."""
    reply = ask("exercise", exercise=key, source=source)
    assert not reply["solved"]
    assert len(reply["counterexample"]["input"]) == MAX_TOKENS
