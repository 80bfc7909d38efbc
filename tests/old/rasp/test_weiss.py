"""Behaviour of Weiss's implementation, observed by running it: scopes, loops, displays, categories."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from locum.interface.cli.repl import transcript
from locum.rasp import Session


def shown(source: str, **options: Any) -> list[Any]:
    """What each statement shows: values, a plain value, or the category of its error."""
    return [
        result.category if result.kind == "error" else result.values or result.value
        for result in Session(**options).execute(source)
    ]


def test_commands_in_a_loaded_file_use_its_own_names(tmp_path: Path) -> None:
    (tmp_path / "file.rasp").write_text('e = "abc";\nset example e\nx = tokens;\n')
    session = Session(folders=[tmp_path])
    (loaded,) = session.execute('load "file";')
    assert loaded.kind == "none", loaded.printed
    assert session.execute("x;")[0].values == ["a", "b", "c"]
    # A name of the console does not get in its way.
    session = Session(folders=[tmp_path])
    session.execute('e = "wrong";\nload "file";')
    assert session.execute("x;")[0].values == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("source", "values"),
    [
        # A statement that fails when it is built ends the loop; what was set before it stays.
        ("x = 1; for i in [1, 0, 2] { x = x + 1/i; } x; i;", [2.0, 0]),
        ("x = 1; for i in [3, 4] { x = x + i; for j in [0] { y = i/j; } } x; i; j;", [4, 3, 0]),
        # A loop assigns nothing if a value that it assigns is undefined on the example.
        ("x = indices; for i in [1, 2] { x = x + 1/indices; } x;", [[0, 1, 2, 3, 4]]),
        ("x = 5; for i in [1, 2] { x = x + i; y = 1/indices; } x; y;", [5, "undefined-variable"]),
        # A loop that works does its work once.
        ("x = 0; for i in [1, 2] { x = x + i; } x;", [3]),
    ],
)
def test_what_a_loop_that_fails_assigns(source: str, values: list[Any]) -> None:
    assert shown(source)[-len(values) :] == values


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ('[" ", "c", tokens][indices % 1];', [" "] * 5),
        ("[1, indices, 3][2 * (indices % 2)];", [1, 3, 1, 3, 1]),
        ('{"h": 1, "e": 2, "l": indices, "o": full_s}[tokens]("he");', [1, 2]),
        ("[tokens][indices % 1];", "type"),
        ("indices == [1, 2];", [False] * 5),
        ("[1, 2] == indices;", [False] * 5),
        ("indices != [1, 2];", [True] * 5),
        ("def f(x) { return x; } indices == f;", [False] * 5),
        ("(1/indices) == [1];", "runtime:ZeroDivisionError"),
        ("indices + [1, 2];", "runtime:TypeError"),
        ("[1] - indices;", "runtime:TypeError"),
        ("indices < [1];", "runtime:TypeError"),
        ("indices ^ [1];", "runtime:TypeError"),
        ("indices * [1];", "type"),
        ("indices * {1: 2};", "runtime:TypeError"),
        ("indices and [1];", "type"),
        ("select(indices, [1], ==);", "type"),
    ],
)
def test_lists_beside_s_ops(source: str, answer: Any) -> None:
    assert shown(source)[-1] == answer


def test_functions_say_where_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file.rasp").write_text("def f(x) { return x; }\n")
    session = Session(folders=[tmp_path])
    assert session.execute('load "sub/file";')[0].printed == "     sub/file function: f(x)\n"
    for source, printed in [
        ("def g(a, b) { return a; }", "     console function: g(a, b)\n"),
        ("has_focus;", "     RASP_support/rasplib function: has_focus(sel)\n"),
        ("selector_width;", "     RASP_support/rasplib function: selector_width(sel)\n"),
        ("mark_last_instance;", "     RASP_support/rasplib function: mark_last_instance(seq, val)\n"),
        ("exp;", "     locum function: exp(a)\n"),
    ]:
        assert session.execute(source)[0].printed == printed


def names_in(printed: str) -> list[str]:
    """The names of the s-ops and selectors that a list shows."""
    return [
        line.split(": ", 1)[1] for line in printed.split("\n") if "s-op:" in line or "selector:" in line
    ]


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("indices", "indices"),
        ("indices + 1", "( indices + 1 )"),
        ("indices ^ 2", "( indices pow 2 )"),
        ("indices and True", "( indices and True)"),
        ("not indices", "( not indices )"),
        ("-indices", "( - indices )"),
        ("round(indices)", "( round indices )"),
        ("indicator(indices)", "I(indices)"),
        ("indices if True else 0", "indices"),
        ("+indices", "( + indices )"),
        ("1 < indices", "( indices > 1 )"),
        ("indices in [1, 2]", "indices in [1, 2]"),
        ("1 in indices", "( s-op > 0 )"),
        ("indices + indices + indices", "s-op"),
        ("indices + indices + indices + indices", "( s-op + indices )"),
        ("f(indices, f)", "s-op"),
        ("select(indices, 1, ==)", "plain select"),
        ("not select(indices, 1, ==)", "plain select"),
        ("full_s", "full_s"),
        ("tokens", "tokens"),
        ("x", "x"),
        ("x + 1", "( x + 1 )"),
        ("indices[0]", "indices[0]"),
        ("aggregate(full_s, indices)", "s-op"),
        ('f(indices, "a")', 'f(indices , "a")'),
        ("f(indices, [1, 2])", "f(indices , [1, 2])"),
        ("f(indices, range(99))", "f(indices , (list))"),
        ("f(indices, {1: 2})", "f(indices , {1: 2})"),
        ("a_very_long_name_of_a_function_indeed(indices)", "s-op"),
        ("d[tokens]", "d[tokens]"),
    ],
)
def test_members_of_lists_are_shown_by_their_names(member: str, name: str) -> None:
    session = Session()
    session.execute(
        "def f(a, b) { return a * 3; } def a_very_long_name_of_a_function_indeed(a) { return a * 4; }"
        'x = indices * 2; d = {"h": 1, "e": 1, "l": 1, "o": 1};'
    )
    (result,) = session.execute(f"[{member}];")
    assert names_in(result.printed) == [name]


def test_loaded_names_are_listed_as_their_statements_would_show_them(tmp_path: Path) -> None:
    (tmp_path / "outer.rasp").write_text(
        'a = 1;\nload "inner";\nb = [];\nfor i in [1, 2] { b = b + [i]; c = i; }\na = 2;\n_p = 3;\na;\n'
    )
    (tmp_path / "inner.rasp").write_text("q = 7;\n_q = 8;\n")
    session = Session(folders=[tmp_path])
    (result,) = session.execute('load "outer";')
    # Loop variables are not listed, lists as they were assigned, and each name once.
    assert result.printed == (
        "    value: a =  1\n    value: q =  7\n     list: b = []\n    value: a =  2\n"
    )
    assert [session.get(name) for name in ("a", "b", "c", "i", "q")] == [2, [1, 2], 2, 2, 7]


def test_the_prompt_is_indented_inside_functions() -> None:
    out = io.StringIO()
    typed = "def f(x) {\n\nreturn x;\n}\nfor i in [1] {\nx = i;\n}\n1 +\n1;\n"
    transcript(Session(), io.StringIO(typed), out.write)
    assert out.getvalue() == (
        ">> ..   ..   ..        console function: f(x)\n>> .. .. >> ..     value: out =  2\n>> \n"
    )


def test_the_name_of_a_file_may_end_in_rasp(tmp_path: Path) -> None:
    (tmp_path / "lib.rasp").write_text("x = indices;\n")
    for name in ("lib", "lib.rasp"):
        session = Session(folders=[tmp_path])
        (result,) = session.execute(f'load "{name}";')
        assert result.kind == "none", result.printed
        assert "x" in session.names()
    (result,) = session.execute('load "lost.rasp";')
    assert "could not find file: lost.rasp" in result.printed
    assert "lost.rasp.rasp" not in result.printed
