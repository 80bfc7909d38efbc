"""The session: extensions, scopes, files, examples; what a notebook or page would use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum import graph
from locum.rasp import RaspError, Session
from locum.rasp.text import session as session_module
from tests.cases import matmul


def last(source: str, example: Any = "hello") -> Any:
    result = Session(example).execute(source)[-1]
    assert result.kind != "error", result.printed
    return result.values if result.values is not None else result.value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1; 2; 3;", 3),
        ("1 != 2;", True),
        ("indices != 1;", [True, False, True, True, True]),
        ("7 // 2;", 3),
        ("indices // 2;", [0, 0, 1, 1, 2]),
        ("1e3 + .5;", 1000.5),
        ("1.5e-1;", 0.15),
        ("sum(select(indices, indices, <), indices);", [0, 0, 1.0, 3.0, 6.0]),
        ("exp(0) + log(1) + sqrt(4) + floor(2.7) + abs(-1) + erf(0) + tanh(0);", 6.0),
        ("floor(indices / 2);", [0, 0, 1, 1, 2]),
        ("abs(indices - 2);", [2, 1, 0, 1, 2]),
        ("aggregate(best(full_s, -indices), tokens);", ["h"] * 5),
        ("sum l in range(3) { l * indices };", [0, 3, 6, 9, 12]),
        ("sum l in range(2), m in range(3) { x = l + m; x * x };", [19] * 5),
        ("sum l in range(3) { l * (sum m in range(2) { indices + m }) };", [3, 9, 15, 21, 27]),
        ("constant(3);", [3] * 5),
        ("(indices * 2)[1];", [2] * 5),
        ("[1, 2][0] + ([3, 4])[1];", 5),
        ("1 + # a comment\n 2; # another", 3),
        ("def f(x) { return x + 1; } f(f(f(1)));", 4),
        # Names of extensions are free: a program written for another RASP may use them.
        ("sum = 3; exp = sum + 1; exp;", 4),
        ("def best(x) { return x; } best(2);", 2),
        # Precedence, as RASP has it.
        ("-2^2;", 4), ("2^3^2;", 64), ("2%3*4;", 2), ("not 1 == 2;", False), ("3 > 2 > 1;", False),
        ("True or False and False;", False),
        ("1 if True else 2 if False else 3;", 3),
        ("1 if indices==0 else 2 if indices==1 else 3;", [3, 2, 3, 3, 3]),
        ("1 if False else 2 if True else 3 if True else 4;", 2),
        ("(1 if True else 2) if False else 3;", 3), ("1 if True else (2 if False else 3);", 1),
        # Closures see later assignments; locals stay local.
        ("x = 1; def f() { return x; } x = 2; f();", 2),
        ("x = 1; def f() { x = 9; return x; } f(); x;", 1),
        ("def twice(f, x) { return f(f(x)); } def inc(x) { return x + 1; } twice(inc, 1);", 3),
        ("d = {\"a\": 1, \"l\": 2, \"h\": 0, \"e\": 0, \"o\": 5}; d[tokens];", [0, 0, 2, 2, 5]),
    ],
)  # fmt: skip
def test_values(source: str, value: Any) -> None:
    assert last(source) == value


def test_matmul_at_any_shape_is_a_five_line_program() -> None:
    source = """
    tokens = tokens_asis;
    def matmul(r, k, c) {
        return k * (sum l in range(r), m in range(c) {
            row = aggregate(select(indices, indices % k + l * k, ==), tokens);
            column = aggregate(select(indices, (indices % k) * c + r * k + m, ==), tokens);
            aggregate(select(indices, k, <) and select(l * c + m, indices, ==), row * column)
        });
    }
    product = matmul(3, 2, 4);
    """
    session = Session([float(x) for x in range(14)])
    session.define(source)
    product = session.get("product")
    assert product is matmul(3, 2, 4)
    a, b = np.arange(6.0).reshape(3, 2), np.arange(6.0, 14.0).reshape(2, 4)
    np.testing.assert_allclose(product(list(map(float, range(14))))[:12], (a @ b).ravel())


def test_rasp_and_python_build_the_same_object() -> None:
    session = Session()
    session.define("h = selector_width(select(tokens, tokens, ==));")
    same = locum.select(locum.tokens_str, locum.tokens_str, "==")
    assert session.get("h") is locum.selector_width(same)


def test_building_does_not_run_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    from locum.execution import dense

    runs = []
    monkeypatch.setattr(dense, "evaluate", lambda *arguments, **_: runs.append(arguments))
    session = Session("x" * 10_000)
    session.define("a = sort(tokens, tokens); b = a + a; def f() { return b; } c = f();")
    assert session.get("c") is session.get("b")
    assert runs == []


def test_what_is_shown_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from locum.execution.domains.floats import FloatDomain

    counted = []
    original = FloatDomain.select

    def counting(self: FloatDomain, *arguments: Any) -> Any:
        counted.append(arguments)
        return original(self, *arguments)

    monkeypatch.setattr(FloatDomain, "select", counting)
    session = Session()
    session.execute("a = aggregate(select(indices, indices, <), indices);")
    session.execute("b = a + 1; c = b + a; [a, b, c];")
    assert len(counted) == 1
    session.execute('set example "other"\nc;')
    assert len(counted) == 2


def test_a_failing_statement_changes_nothing() -> None:
    session = Session()
    results = session.execute("x = 1; x = tokens + 1; y, x = 2, 1/0; x; y;")
    assert [result.kind for result in results] == ["atom", "error", "error", "atom", "error"]
    assert results[3].value == 1


def test_examples_and_switches() -> None:
    session = Session()
    assert session.execute("set s-op example [1, 2]\nshow example")[-1].printed == (
        '\ts-op example: [1, 2]\n\tselector example: "hello"\n'
    )
    assert session.execute("examples off\nindices;")[-1].printed == "     s-op: indices\n"
    assert (
        session.execute("s-op examples on\nindices; full_s;")[-1].printed == "     selector: full_s\n"
    )
    printed = session.execute('set example "abc"\nfull seq display on\ntokens == "b";')[-1].printed
    assert printed == (
        "     s-op: out\n \t Example:\n"
        " \t\tinput:   a b c \t (strings)\n"
        " \t\toutput:    T   \t (bools)\n"  # only the rarer
    )


def test_loading_files(tmp_path: Path) -> None:
    (tmp_path / "lib.rasp").write_text(
        "_hidden = 3;\nshown = _hidden + 1;\ndef inc(x) { return x + shown; }\ns = indices * 2;\n"
    )
    (tmp_path / "bad.rasp").write_text("x = 1;\ny = undefined_thing;\n")
    (tmp_path / "loop.rasp").write_text('load "loop";\n')
    session = Session(folders=[tmp_path])
    session.execute("shown = 9; mine = 1;")
    (result,) = session.execute('load "lib";')
    assert result.printed == ("    value: shown =  4\n     lib function: inc(x)\n     s-op: s\n")
    assert session.execute("inc(1);")[-1].value == 5
    assert session.execute("_hidden;")[-1].category == "undefined-variable"
    for name, category, words in [
        ("missing", "load", "could not find file: missing.rasp"),
        ("bad", "undefined-variable", "in bad.rasp (line 2, column 5): Undefined variable"),
        ("loop", "load", "loads itself"),
    ]:
        (result,) = session.execute(f'load "{name}";')
        assert result.category == category
        assert words in (result.message or "")


def test_drawing_is_handed_on() -> None:
    drawn = []

    def drawer(program: locum.SOp, name: str, tokens: Any) -> Path:
        drawn.append((program, name, tokens))
        return Path("picture.svg")

    session = Session(drawer=drawer)
    (result,) = session.execute('draw(indices, "abc");')
    assert drawn == [(locum.indices, "indices", "abc")]
    assert result.printed == "\t =  [0, 1, 2] (ints)\n\t drawn in picture.svg\n"
    assert session.execute("draw(full_s);")[-1].category == "type"
    assert Session().execute("draw(indices);")[-1].category == "draw"


@pytest.mark.always
@pytest.mark.parametrize(
    ("loop", "pictures"),
    [
        ("for i in [1, 2] { draw(indices + i); x = 1/(i - 2); }", 2),  # x fails when it is built
        ("for i in [1] { draw(indices); y = 1/indices; }", 1),  # y is undefined on the example
    ],
)
def test_a_loop_that_fails_draws_once_per_round(loop: str, pictures: int) -> None:
    drawn = []

    def drawer(program: locum.SOp, name: str, tokens: Any) -> Path:
        drawn.append(program)
        return Path("picture.svg")

    (result,) = Session(drawer=drawer).execute(loop)
    assert result.category == "runtime:ZeroDivisionError"
    assert len(drawn) == pictures


def test_drawing_is_paid_for_before_heads_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    monkeypatch.setattr(session_module, "architecture", counted.append)
    monkeypatch.setattr(Session, "run_program", lambda *_: [0, 1, 2])
    session = Session(drawer=lambda *_: Path("picture.svg"))
    session.execute("x = indices; for i in range(1000) { x = aggregate(select(indices, x, ==), x); }")
    session.budget.most_steps = 2_000
    result = session.execute('draw(x, "abc");')[-1]
    assert "this takes more than 2,000 steps" in (result.message or "")
    assert counted == []


def test_scripts_give_what_they_show() -> None:
    session = Session()
    shown = session.script("x = indices + 1;\nx;\nx * 2;\n3;")
    assert [name for name, _ in shown] == ["x", "out", "out"]
    assert shown[0][1] is locum.indices + 1
    with pytest.raises(RaspError, match="Undefined variable: nope"):
        session.script("nope;")
    with pytest.raises(RaspError, match="missing"):
        session.define("x = 1")


def test_functions_without_parameters_have_a_value() -> None:
    session = Session()
    session.define("def f() { return indices + 1; }")
    assert session.value_of("f") is locum.indices + 1


def test_out_is_the_last_value_computed_at_top_level() -> None:
    session = Session()
    for source, value in [
        ("for i in [1, 2] { i * 10; } out;", 20),
        ("x = 7; for i in [1, 2] { x = x + i; } out;", 10),
        ("a, b = 1, 2; out;", 2),
        ('set example "abc"\nout;', "abc"),
        ("def f() { 5; return 6; } f() + 1; out;", 7),
    ]:
        assert session.execute(source)[-1].value == value, source


@pytest.mark.parametrize(
    ("source", "category"),
    [
        ("{1: 2}[indices];", "index"),
        ("[1, 2][indices];", "index"),
        ("[1, 2][5];", "index"),
        ('"ab"[5];', "index"),
        ("[][indices];", "index"),
        ('{"a": 1}["b"];', "index"),
        ("range(1.5);", "type"),
        ("range(1, 2, 3, 4);", "type"),
        ("range(1, 2, 0);", "runtime:ValueError"),
        ("[1] in [[1]];", "type"),
        ("for i in [0] { x = indices / i; }", "runtime:ZeroDivisionError"),
        ("def f() { return 1; } set example f", "type"),
        ("[1] < 2;", "runtime:TypeError"),
        ("full_s * 2;", "type"),
    ],
)
def test_categories(source: str, category: str) -> None:
    assert Session().execute(source)[-1].category == category


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1] < [2];", True),
        ("indices[True];", [1] * 5),
        ("a, b = {1: 2, 3: 4}; b;", 3),
        ("[indices] == [indices];", True),
        ("[indices] == [indices + 1];", False),
        ("[1, [2, 3]] == [1.0, [2, 3]];", True),
        ("{1: [2]} == {1: [2]};", True),
        ('shift(tokens, indicator(indices < 9), "-");', ["-", "h", "e", "l", "l"]),
    ],
)
def test_more_values(source: str, value: Any) -> None:
    assert last(source) == value
    assert Session().execute("2 * [1, 2];")[-1].items == Session().execute("[1, 2] * 2;")[-1].items


def test_commands_may_span_lines_where_they_must() -> None:
    session = Session()
    session.execute('set example "a" +\n"b"\nset example\n"xyz"\n')
    assert session.execute("length;")[-1].values == [3, 3, 3]


def test_gigantic_numbers_are_no_reason_to_crash() -> None:
    for source in (
        "2^20000;", "indices + 2^20000;", "[2^20000];", "indices in [2^20000];", "[1][2^20000];",
        "{1: 1}[2^20000];", "(2^20000)(1);", "set example 2^20000", "[2^20000][indices];",
        "aggregate(full_s, indices + 2^20000);", "range(10^30);", "x = 2^20000;",
    ):  # fmt: skip
        (result,) = Session().execute(source)
        assert len(result.printed) < 1_000
    assert Session().execute("2^200;")[-1].printed.strip().endswith(str(2**200))
    big = locum.indices + 10**5000
    assert "16610 bits" in repr(big)
    assert graph.loads(graph.dumps(big.node)) is big.node
    assert len(locum.rasp.stable_hash(big)) == 64
    with pytest.raises(locum.GraphError, match="too large for a literal"):
        locum.rasp.to_rasp(big)
    with pytest.raises(locum.ExecutionError, match="division by zero"):
        (big / 0)("ab")


def test_results_are_copies() -> None:
    session = Session()
    (result,) = session.execute("x = indices;")
    assert result.values is not None
    result.values[0] = 99
    assert session.execute("x;")[-1].values == [0, 1, 2, 3, 4]


def test_equal_is_not_rounded_equal() -> None:
    assert Session().execute("indices * 0.0001 + 0.333;")[-1].printed.count("0.333") == 5


def test_loaded_lists_are_shown_in_full_in_the_order_of_their_last_definition(tmp_path: Path) -> None:
    (tmp_path / "lib.rasp").write_text('a = 1;\nb = [1, 2];\na = 3;\nd = {"k": indices};\n')
    (result,) = Session(folders=[tmp_path]).execute('load "lib";')
    assert result.printed.startswith("     list: b = [1, 2]\n    value: a =  3\n     dict: d =  {\n")
    assert "Example" not in result.printed


def test_assignments_already_done_stay_done() -> None:
    assert Session().execute("a, indices = 1, 2; a;")[-1].value == 1
