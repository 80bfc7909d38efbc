"""Any text ends, after a bounded number of steps and within a gigabyte, whoever wrote it.

Every text here took longer, more memory, or ended in a traceback once. They are run by a session and by
the commands, in processes whose time and memory the system limits.
"""

from __future__ import annotations

import difflib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Token

from locum.errors import LimitError
from locum.rasp import Limits, Session
from tests.old.rasp.limited import FACES, Worker, run_alone

#: Whether this is ``make fuzz``.
MANY = settings().max_examples > 1_000


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    process = Worker(tmp_path_factory.mktemp("worker"))
    yield process
    process.close()


#: Text → words of the error it ends in, by all faces but JSON.
MEMORY = {
    "long strings in a list": ('x=["a"*1000000 for i in range(2500)];', "of memory"),
    "long strings in a dict": ('{i:"a"*1000000 for i in range(5000)};', "of memory"),
    "long strings at run time": ('(tokens*1000000)("a"*5000);', "of memory"),
    "large integers at run time": ('((indices+2)^300000)("a"*3000);', "steps"),
    "lists under many names": (
        "".join(f"for i in [1] {{ a{k}=[0]*4000000; }}\n" for k in range(60)),
        "steps in all",
    ),
    "strings under many names": (
        "".join(f'for i in [1] {{ a{k}="a"*1000000; }}\n' for k in range(400)),
        "of memory",
    ),
    "a selector of large scores": (
        '(aggregate(best(full_s,indices),indices))("a"*16000);',
        "16,000 × 16,000 cells is too large",
    ),
    "many patterns at a time": (
        "(" + " and (".join(f"select(indices,{k},<)" for k in range(300)) + ")" * 300 + '("a"*2000);',
        "cells is too large",
    ),
    "a list as a table": ("for i in [1] { x=[1]*2000000; }\nx[indices];", "steps"),
    "closures": (
        'def f(n) { x="a"*900000; def g() { return x; } return g; } l=[f(i) for i in range(2000)];',
        "of memory",
    ),
    "a string shown often": ('["a"*1000000]*20000;', "characters, too many to show"),
    "a huge family": ("sum l in range(300000000) { l };", "300,000,000 heads"),
    "families of families": ("sum a in range(30000), b in range(30000) { a*b };", "900,000,000 heads"),
    "more heads than digits": (
        "sum " + ", ".join(f"a{k} in range(10^9)" for k in range(600)) + " { a0 };",
        "expand to more than 10^30 heads",
    ),
    "many families": (
        "sum " + ", ".join(f"a{k} in range(9)" for k in range(6_000)) + " { a0 };",
        "steps in all",
    ),
}
TIME = {
    "semicolons": ("1;" + ";" * 100_000, ""),
    "misspelt names": ("1; x;" + "y;" * 100_000, ""),
    "short statements": ("1;" * 200_000, "steps in all"),
    "indices of indices": ("x=[1];x" + "[0]" * 100_000 + ";", "steps in all"),
    "a long sum": ("1+" * 100_000 + "1;", "steps in all"),
    "signs": ("-" * 100_000 + "indices;", "steps in all"),
    "an open function": ("def f(x) {" + " x=1;" * 60_000, "steps in all"),
    "powers in a loop": ("for i in range(45000) { x=3^300000; }", "100,000 steps"),
    "powers in a list": ("[3^300000 for i in range(90000)];", "100,000 steps"),
    "long division": ("x=3^500000; y=7^100000; for i in range(1000) { z=x%y; }", "100,000 steps"),
    "long division at run time": ('(((indices+3)^300000) % (7^100000+indices))("a"*200);', "steps"),
    "long names": (
        "".join(f"n{'q' * 145}{k:04d}=1;\n" for k in range(2_000)) + "n" + "q" * 145 + "00x1;",
        "Undefined variable",
    ),
    "lists of themselves": ("x=[1];\n" + "x=[x,x];\n" * 60 + "x;", ""),
    "integers of one hash": ("{i*(2^61-1):0 for i in range(20000)};", "steps"),
    "constants of one hash": ("x=[indices+i*(2^61-1) for i in range(10000)];", "steps"),
    "a long expression in a loop": (
        "x=1; for i in range(33000) { y=" + "+".join(["x"] * 30_000) + "; }",
        "steps",
    ),
    "calls in a nest": (
        "def f(x) { return " + "(" * 400 + "f(x)" + ")" * 400 + "; } f(1);",
        "calls deep",
    ),
    "a large set": ('for i in [1] { x=range(60000); }\n(indices in x)("a"*10000);', "steps"),
    "a long example": ('set example "a"*1000000\n' + "indices;" * 2_000, "this takes more than"),
    "sums of large integers": ('(aggregate(full_s,indices+10^30))("a"*4000);', "cells is too large"),
    "many functions": (
        "".join(f"def f{k}(x) {{ return x; }}\n" for k in range(15_000)),
        "steps in all",
    ),
}
#: Texts that took long, and have a value.
VALUES = {
    "a sum over many lines": "1+\n" * 5_000 + "1;",
    "large integers compared": '(select(indices+10^30,indices,<))("a"*4000);',
    "strings beside numbers": '(select(tokens,indices,==))("a"*2000);',
    "the best of no numbers": '(best(full_s, indices*(1e999-1e999)))("a"*2000);',
    "a grid of 25,000,000 cells": 'full_s("a"*5000);',
}


@pytest.mark.parametrize("name", [*MEMORY, *TIME])
def test_greedy_texts_end_in_an_error(name: str, worker: Worker) -> None:
    text, words = {**MEMORY, **TIME}[name]
    # Each by one face, in turns; `make fuzz` has all of them.
    number, faces = list({**MEMORY, **TIME}).index(name), ("session", "run", "repl", "json")
    for face in faces if MANY else (faces[number % 4],):
        answer = worker.run(face, text)
        assert words in answer["out"] + answer["error"]


@pytest.mark.parametrize("name", VALUES)
def test_what_took_long_has_a_value(name: str, worker: Worker) -> None:
    number, faces = list(VALUES).index(name), ("session", "run", "repl")
    for face in faces if MANY else (faces[number % 3], faces[(number + 1) % 3]):
        answer = worker.run(face, VALUES[name])
        assert "!!" not in answer["out"]
        assert answer["error"] == ""
        assert len(answer["out"]) < 5_000 or face == "repl"


@pytest.mark.parametrize("executor", ["auto", "heads"])
@pytest.mark.parametrize(
    "name", ["a huge family", "families of families", "long strings at run time", "a long example"]
)
def test_other_executors_have_the_same_limits(name: str, executor: str, worker: Worker) -> None:
    text = {**MEMORY, **TIME}[name][0]
    assert worker.run(executor, text)["code"] == 2


def test_an_input_of_the_user_has_no_limits(tmp_path: Path) -> None:
    """Only what a text asks for by itself is limited."""
    from locum.interface.cli.programs import Program

    path = tmp_path / "program.rasp"
    path.write_text("sort(tokens, tokens);")
    (program,) = [value for _, value in Program(path).shown]
    tokens = "cab" * 3_000
    assert Program(path, tokens).run(program, "auto", "float") == sorted(tokens)
    path.write_text('set example "cab" * 3000\nsort(tokens, tokens);')
    for executor in ("dense", "auto"):
        with pytest.raises(LimitError, match=r"9,000 × 9,000 cells is too large.*try --input"):
            Program(path).run(program, executor, "float")


@pytest.mark.parametrize("face", ["run", "repl", "json"])
def test_a_process_of_its_own(face: str, tmp_path: Path) -> None:
    """The limits hold from the start of Python on."""
    greedy = (TIME["powers in a loop"], MEMORY["long strings in a list"])
    # A program ends with its first error; a session goes on, and has both in one process.
    for several in [(one,) for one in greedy] if face == "run" else [greedy]:
        done = run_alone(face, "\n".join(text for text, _ in several), tmp_path)
        for _, words in several:
            assert words in done.stdout + done.stderr


def test_the_repl_goes_on_after_a_greedy_statement(worker: Worker) -> None:
    for text, words in MEMORY.values():
        if "in all" in words:
            continue
        answer = worker.run("repl", f"{text}\n1 + 1;\n")
        assert "value: out =  2" in answer["out"]


def test_memory_is_counted_for_the_session_and_comes_back() -> None:
    session = Session(limits=Limits(memory=20_000_000))
    fill = 'for i in [1] {{ a{} = "a" * 1000000; }}'
    kinds = [session.execute(fill.format(k))[0].kind for k in range(30)]
    assert kinds[:15] == ["none"] * 15
    assert kinds[-1] == "error"
    assert session.execute("a0 + a1;")[0].message.startswith("this needs ")  # type: ignore[union-attr]
    # Names that are used for something else give their memory back.
    for k in range(30):
        session.execute(f"a{k} = 1;")
    assert [session.execute(fill.format(k))[0].kind for k in range(10)] == ["none"] * 10


def test_work_is_counted_for_a_text_and_for_each_statement() -> None:
    session = Session(limits=Limits(steps=1_000, text_steps=2_500))
    loop = "for i in range(200) { x = i; }\n"
    assert [r.kind for r in session.execute(loop)] == ["none"]
    assert session.execute(loop + "for i in range(2000) { x = i; }\n1;")[1].kind == "error"
    results = session.execute(loop * 20)
    assert results[0].kind == "none"
    assert "the text takes more than 2,500 steps in all" in (results[-1].message or "")
    assert len(results) < 20
    assert session.execute("1;")[0].value == 1  # a new text


def test_what_lists_around_a_text_write_again_is_counted() -> None:
    session, steps = Session(), []
    for depth in (10, 60):
        session.execute(
            f"for k in [1] {{ x=range(9000); x=[x,[x]]; for i in range({depth}) {{ x=[x]; }} }}"
        )
        session.execute("x;")
        steps.append(session.budget.steps)
    characters = 2 * len(str(list(range(9_000))))
    assert steps[1] - steps[0] > 50 * characters / 5_000


def test_each_token_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement over many lines, and one that a terminal asks about, is not read again and again."""
    from locum.rasp.text import reader

    read = []
    original = reader._Piece.add

    def counting(self: reader._Piece, token: Token) -> None:
        read.append(token)
        original(self, token)

    monkeypatch.setattr(reader._Piece, "add", counting)
    session = Session()
    read.clear()
    for _ in range(300):
        assert session.feed("1 +\n") == []
        assert session.waiting
    assert session.feed("1;\n")[0].value == 301
    assert len(read) == 602
    read.clear()
    assert session.is_complete("1 + 1;")
    assert session.execute("1 + 1;")[0].value == 2
    assert len(read) == 4


def test_few_names_are_compared_with_a_misspelt_one(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counting(word: str, possibilities: set[str], n: int) -> list[str]:
        compared.append(len(possibilities))
        return []

    session = Session()
    session.execute("".join(f"name_{k:04d} = 1;" for k in range(2_000)))
    monkeypatch.setattr(difflib, "get_close_matches", counting)
    assert session.execute("nam_0001;")[0].message == "Undefined variable: nam_0001"
    assert session.execute("a" * 400_000 + ";")[0].printed.count("a") < 500
    assert sum(compared) < 100


# Files ----------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for k in range(30):
        (tmp_path / f"twice{k}.rasp").write_text(f'load "twice{k + 1}";\nload "twice{k + 1}";\n')
    (tmp_path / "twice30.rasp").write_text("x = 1;\n")
    for k in range(400):
        (tmp_path / f"chain{k}.rasp").write_text(f'load "chain{k + 1}";\n')
    (tmp_path / "chain400.rasp").write_text("x = 1;\n")
    (tmp_path / "loop.rasp").symlink_to(tmp_path / "loop.rasp")
    (tmp_path / "zero.rasp").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.rasp")
    (tmp_path / "folder.rasp").mkdir()
    with (tmp_path / "large.rasp").open("wb") as file:
        file.truncate(3 * 2**30)
    (tmp_path / "binary.rasp").write_bytes(b"\xff\xfe")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twice0", "100,000 steps"),
        ("chain0", "expected at most 100 nested loads of files"),
        ("chain350", ""),
        ("loop", "could not find file"),
        ("zero", "could not find file"),
        ("pipe", "could not find file"),
        ("folder", "could not find file"),
        ("large", "it has more than 2,000,000 bytes"),
        ("binary", "is not UTF-8 text"),
        ("a\0b", "could not find file"),
        ("a" * 300, "could not find file"),
        ("../" * 2_000, "could not find file"),
        ("\x1b[2J", "could not find file"),
    ],
)
def test_files(name: str, words: str, files: Path) -> None:
    session = Session(folders=[files])
    (result,) = session.execute(f'load "{name}";')
    assert words in (result.message or "")
    assert (result.kind == "error") == bool(words)
    assert len(result.printed) < 1_000
    assert session.execute("1;")[0].value == 1


# Generated texts ------------------------------------------------------------------------------------

_NUMBERS = ["0", "1", "7", "300", "5000", "90000", "1000000", "10^9", "2^61-1", "3^300000", "1e999"]
_ATOMS = [*_NUMBERS, '"a"', '"é"*1000000', "True", "0.5", "indices", "tokens", "x", "y", "length", "i"]
_FORMS = [
    "({a}+{b})", "({a}*{b})", "({a}^{b})", "({a}%{b})", "({a}//{b})", "({a}=={b})", "({a} and {b})",
    "[{a},{b}]", "[{a}]*{n}", "({a}*{n})", "range({n})", "[{a} for i in range({n})]", "{{{a}:{b}}}",
    "{{i:{a} for i in range({n})}}", "({a} if {b} else {a})", "({a} in {b})", "{a}[{b}]",
    "aggregate(select({a},{b},<),{a})", "aggregate(best(full_s,{a}),{b})", "sort({a},{b})",
    "selector_width(select({a},{b},==))", "({a})({b})", '({a})("ab"*{n})', "f({a})", "round({a})",
    "(sum l in range({n}) {{ {a}*l }})", "zip([{a}]*{n},[{b}]*{n})", "not {a}", "-{a}",
]  # fmt: skip
_STATEMENTS = [
    "{a};", "x={a};", "y={a};", "x,y={a},{b};", "for i in range({n}) {{ x={a}; }}",
    "for i in range({n}) {{ x=[x,{a}]; }}", "def f(x) {{ return {a}; }}",
    "def f(x) {{ return f({a}); }}", "set example {a}", "full seq display on", 'load "program";',
    "draw({a});", "x={a}", "{a} {b};", "(((",
    "\x1b[2J;", "#{a}", "\"", "exit", "show example",
]  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text of statements that ask for much, each of them now and then very often."""
    chance = random.Random(draw(st.integers(0, 2**32)))

    def expression(depth: int) -> str:
        if depth == 0 or chance.random() < 0.2:
            return chance.choice(_ATOMS)
        parts = {name: expression(depth - 1) for name in "ab"}
        return chance.choice(_FORMS).format(**parts, n=chance.choice(_NUMBERS))

    lines = ["x=1; y=indices; i=2; def f(x) { return x; }"]
    for _ in range(draw(st.integers(1, 8))):
        form, n = chance.choice(_STATEMENTS), chance.choice(_NUMBERS)
        line = form.format(a=expression(chance.randrange(4)), b=expression(1), n=n)
        often = 1 if chance.random() < 0.8 else chance.choice([30, 3_000, 40_000])
        lines.append(f"{line}\n" * often)
    return "\n".join(lines)[:600_000]


@settings(max_examples=2_000 if MANY else 12)
@given(texts(), st.sampled_from(FACES))
def test_random_hostile_texts_stay_within_the_limits(worker: Worker, text: str, face: str) -> None:
    worker.run(face, text)


@pytest.mark.parametrize(("cells", "shown"), [(36, None), (35, 5), (10, 3), (1, 1)])
def test_the_display_of_a_selector_has_at_most_the_permitted_cells(
    cells: int, shown: int | None
) -> None:
    session = Session(limits=Limits(cells=cells))
    session.execute('set example "abcdef"')
    text = session.execute("select(indices, indices, ==);")[-1].printed
    omitted = f"(6 × 6 cells, the first {shown} rows and columns shown)"
    assert text.count("|") == (shown or 6)
    assert ("…" in text) == (shown is not None)
    assert shown is None or omitted in text
