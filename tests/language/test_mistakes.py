"""Ten mistakes of beginners, each with the text they get: golden, so that a change is seen."""

from __future__ import annotations

import pytest

from locum.errors import LocumError
from locum.rasp import Session

GOLDEN = {
    "missing semicolon": (
        "x = indices + 1\ny = x;",
        """\
\t!! line 1, column 16: a ; is missing after '1'
\t   x = indices + 1
\t                  ^
""",
    ),
    "missing brace": (
        "def f(x) {\n  return x;\ny = 3;",
        """\
\t!! line 2, column 12: a closing } is missing before 'y'
\t     return x;
\t              ^
""",
    ),
    "undefined name": (
        "y = indicies + 1;",
        """\
\t!! line 1, column 5: Undefined variable: indicies (did you mean indices?)
\t   y = indicies + 1;
\t       ^^^^^^^^
""",
    ),
    "wrong arity": (
        "x = selector_width(full_s, full_s);",
        """\
\t!! line 1, column 5: wrong number of args for selector_width- expected: 1, got: 2.
\t   x = selector_width(full_s, full_s);
\t       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
    ),
    "selector used as s-op": (
        "select(indices, indices, <) + 1;",
        """\
\t!! line 1, column 1: Cannot apply + to selector(s); combine them with and, or, not
\t   select(indices, indices, <) + 1;
\t   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
""",
    ),
    "wrong predicate": (
        "select(tokens, tokens, =<);",
        """\
\t!! line 1, column 24: '=<' is not a comparison: select takes ==, !=, <, <=, > or >=
\t   select(tokens, tokens, =<);
\t                          ^
""",
    ),
    "unclosed string": (
        'tokens == "l;',
        """\
\t!! line 1, column 11: the string is not closed: it needs a second " on the same line
\t   tokens == "l;
\t             ^
""",
    ),
    "reserved name": (
        "length = 5;",
        """\
\t!! line 1, column 1: Cannot set reserved name: length (it belongs to the language or its library; try another name, such as my_length)
\t   length = 5;
\t   ^^^^^^^^^^
""",
    ),
    "two values for three names": (
        "a, b, c = 1, 2;",
        """\
\t!! line 1, column 1: expected 3 values, but got: 2
\t   a, b, c = 1, 2;
\t   ^^^^^^^^^^^^^^
""",
    ),
    "non-numeric average": (
        "aggregate(full_s, tokens);",
        """\
\t!! line 1, column 1: expected numbers to average, got several values that are not all numbers ('h', 'e', 'l', 'l', …), in aggregate(select(1, 1, ==), tokens_str); try a selector of one key per query, or numbers such as indicator(…)
\t   aggregate(full_s, tokens);
\t   ^^^^^^^^^^^^^^^^^^^^^^^^
""",
    ),
    "select without comparison": (
        "x = aggregate(select(indices, indices), tokens);",
        """\
\t!! line 1, column 38: select needs keys, queries and a comparison: `select(keys, queries, ==)`; found ')'
\t   x = aggregate(select(indices, indices), tokens);
\t                                        ^
""",
    ),
    "ternary without else": (
        "1 if indices > 2;",
        """\
\t!! line 1, column 17: a ternary needs an else: `a if condition else b`; found ';'
\t   1 if indices > 2;
\t                   ^
""",
    ),
    "keyword as a name": (
        "not = 3;",
        """\
\t!! line 1, column 1: 'not' is a keyword and cannot be a name
\t   not = 3;
\t   ^^^
""",
    ),
    "semicolon after a command": (
        'set example "abc";',
        """\
\t!! line 1, column 18: a command such as set ends with its line, without ;
\t   set example "abc";
\t                    ^
""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_people_see(name: str) -> None:
    source, printed = GOLDEN[name]
    assert Session().execute(source)[0].printed == printed


def test_errors_in_earlier_functions_point_at_the_call() -> None:
    session = Session()
    session.execute("def f(x) {\n  y = x + 1;\n  return 1 / y;\n}")
    (result,) = session.execute("z = 3 + f(-1);")
    assert (result.line, result.column) == (1, 9)
    assert result.message == "division by zero (in f)"


def test_errors_in_functions_of_the_same_text_point_inside() -> None:
    result = Session().execute("def g(x) {\n  return 1 / x;\n}\nw = g(0);")[-1]
    assert (result.line, result.column) == (2, 10)


def test_errors_name_the_s_op_and_the_position() -> None:
    session = Session()
    session.execute("half = indices / 2;")
    (result,) = session.execute("1 / half;")
    assert result.message == "division by zero at position 0, in 1 / half"


@pytest.mark.parametrize("text", ["9" * 5_000 + ";", 'tokens_int(["' + "9" * 5_000 + '"]);'])
def test_integers_of_thousands_of_digits_are_refused_in_words(text: str) -> None:
    with pytest.raises(LocumError, match="at most 4,300 digits") as caught:
        Session().script(text)
    assert "sys." not in str(caught.value)
