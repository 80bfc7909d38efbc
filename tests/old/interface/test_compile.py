"""``locum compile``, and ``locum run`` on the compiled networks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError
from locum.execution import run as run_program
from locum.interface.cli.tokens import literal, read_tokens, read_vocabulary
from locum.simulators import Attention, UniversalSimulator
from tests.cli.commands import command_line, json_of, refused

REVERSE = """
flip = select(indices, length - 1 - indices, ==);
reverse = aggregate(flip, tokens);
previous = select(indices, indices - 1, ==);
moved = aggregate(previous, tokens, "-");
square = aggregate(previous, tokens_asis * tokens_asis);
mean = aggregate(full_s, tokens_asis);
hist = selector_width(select(tokens, tokens, ==));
wrong = 1 / indices;
def f(x) { return x; }
"""


def reverse() -> locum.SOp:
    """The same in Python (RASP's tokens are text)."""
    flip = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
    return locum.aggregate(flip, locum.tokens_str)


@pytest.fixture
def rasp(tmp_path: Path) -> str:
    path = tmp_path / "reverse.rasp"
    path.write_text(REVERSE)
    return str(path)


@pytest.fixture
def folder(rasp: str, tmp_path: Path) -> str:
    path = str(tmp_path / "model")
    arguments = ("compile", rasp, "--name", "reverse", "--length", "8", "--vocab", "abcd", "-o", path)
    done = command_line(*arguments, "--feed-forward", "exact")
    assert done.returncode == 0, done.stderr
    return path


# compile ------------------------------------------------------------------------------------------


def test_a_report(rasp: str, tmp_path: Path) -> None:
    arguments = ("compile", rasp, "--name", "reverse", "--length", "8", "--vocab", "abcd")
    size = locum.compile(reverse(), length=8, vocabulary="abcd").architecture
    weights = command_line(*arguments).stdout
    assert f"  layers       {size.layers}\n" in weights
    assert "  feed-forward relu\n" in weights
    shown = command_line(*arguments, "--feed-forward", "exact").stdout
    assert "  feed-forward exact: symbolic feed-forwards, executed as code\n" in shown
    exact: dict[str, Any] = {"length": 8, "vocabulary": "abcd", "feed_forward": "exact"}
    size = locum.compile(reverse(), **exact).architecture
    for line in (
        "takes        1 to 8 tokens: a, b, c, d",
        "heads        1, 1",
        f"d_model      {size.d_model}",
        f"parameters   {size.parameters} ({size.nonzeros} non-zero)",
        "error        0 (certified)",
    ):
        assert f"  {line}\n" in shown
    assert "Saved" not in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reverse.rasp"]


def test_json(rasp: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    arguments = ("compile", rasp, "--name", "hist", "--length", "6", "--vocab", "abc", "-o", str(path))
    result = json_of(*arguments)
    assert result["name"] == "hist"
    assert result["architecture"]["layers"] == 1
    assert result["vocabulary"] == ["a", "b", "c"]
    assert result["lengths"] == [1, 6]
    assert result["files"] == [str(path)]
    model = locum.load(path)
    assert model.hash == result["weights"]
    assert model("abca") == [2, 1, 1, 2]


def test_all_kinds_of_tokens(rasp: str, tmp_path: Path) -> None:
    model = tmp_path / "m"
    words = tmp_path / "words.txt"
    words.write_text("one\n two \n\nthree\n")
    listed = tmp_path / "words.json"
    listed.write_text('["one", ","]')
    numbers = tmp_path / "numbers.json"
    numbers.write_text("[1, 2]")
    cases: list[tuple[str, tuple[str, ...], list[Any] | None]] = [
        ("reverse", ("--vocab", "one,two"), ["one", "two"]),
        ("reverse", ("--vocab", str(words)), ["one", "two", "three"]),
        ("reverse", ("--vocab", str(listed)), ["one", ","]),
        ("mean", ("--vocab", "1,2,-3.5"), [1, 2, -3.5]),
        ("mean", ("--vocab", str(numbers)), [1, 2]),
        ("mean", ("--numeric", "--fixed"), None),
    ]
    for name, option, tokens in cases:
        arguments = ("compile", rasp, "--name", name, "--length", "3", *option, "-o", str(model))
        assert json_of(*arguments)["vocabulary"] == tokens
        assert locum.load(model).config.vocabulary == (None if tokens is None else tuple(tokens))
    assert locum.load(model).config.lengths == (3, 3)


def test_the_options_of_the_network_arrive(rasp: str) -> None:
    arguments = ("compile", rasp, "--name", "mean", "--length", "3", "--numeric")
    assert json_of(*arguments, "--dtype", "float32", "--range", "-1", "1")["dtype"] == "float32"
    for option, words in [
        (("--attention", "loud"), "'loud' is not one of 'hard', 'softmax'"),
        (("--feed-forward", "loud"), "'loud' is not one of 'relu', 'gelu', 'glu', 'exact'"),
        (("--dtype", "int8"), "'int8' is not one of 'float64', 'float32'"),
        (("--tolerance", "-1"), "tolerance: expected a finite number > 0"),
        (("--separation", "0"), "separation: expected a finite number > 0"),
        (("--range", "2", "1"), "ranges: expected (low, high)"),
        (("--range", "a", "1"), "is not a valid float"),
    ]:
        assert words in refused(*arguments, *option)


def test_bad_input_to_compile(rasp: str, tmp_path: Path) -> None:
    start = ("compile", rasp, "--name", "reverse")
    full = (*start, "--length", "4", "--vocab", "ab")
    other = tmp_path / "full"
    other.mkdir()
    (other / "precious.txt").write_text("keep me")
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1}')
    half = tmp_path / "half.json"
    half.write_text('["a", "\\ud800"]')
    for arguments, words in [
        (("compile",), "expected one of PROGRAM, --language, --order, got none"),
        (
            ("compile", "nowhere.rasp", "--length", "2", "--vocab", "ab"),
            "cannot read nowhere",
        ),
        ((*start, "--vocab", "ab"), "expected --length"),
        (
            (*start, "--length", "0", "--vocab", "ab"),
            "expected an integer from 1 to 100,000",
        ),
        ((*start, "--length", "many", "--vocab", "ab"), "not a valid integer"),
        ((*start, "--length", "4"), "either --vocab TOKENS or --numeric"),
        ((*full, "--numeric"), "either --vocab TOKENS or --numeric"),
        ((*start, "--length", "4", "--vocab", ""), "vocabulary: expected one token or more"),
        (
            (*start, "--length", "4", "--vocab", "a,1"),
            "expected only strings or only numbers, got both",
        ),
        ((*start, "--length", "4", "--vocab", "a,,b"), "expected a token between two commas"),
        ((*start, "--length", "4", "--vocab", "none.txt"), "cannot read none.txt"),
        ((*start, "--length", "4", "--vocab", str(bad)), "expected a list of strings, or of numbers"),
        ((*start, "--length", "4", "--vocab", str(half)), "unpaired surrogate"),
        ((*start, "--length", "4", "--vocab", "a\udcff"), "unpaired surrogate"),
        (("compile", rasp, "--length", "4", "--vocab", "ab"), "the s-op is undefined at position 0"),
        (("compile", rasp, "--name", "nobody", "--length", "4", "--vocab", "ab"), "nobody"),
        (
            ("compile", rasp, "--name", "flip", "--length", "4", "--vocab", "ab"),
            "flip: expected an s-op",
        ),
        (
            ("compile", rasp, "--name", "f", "--length", "4", "--vocab", "ab"),
            "f: expected an s-op or",
        ),
        (("compile", rasp, "--name", "wrong", "--length", "4", "--vocab", "ab"), "1 / indices"),
        (
            ("compile", rasp, "--name", "reverse", "--length", "4", "--numeric"),
            "got real-valued tokens",
        ),
        ((*full, "-o", str(tmp_path / "no" / "where")), "there is no folder"),
        ((*full, "-o", str(other)), "it holds other files"),
        ((*full, "-o", rasp), "it exists and is not a folder"),
        ((*full, "--recipe", "paper"), "--recipe: expected --order"),
    ]:
        assert words in refused(*arguments), arguments
    assert [path.name for path in other.iterdir()] == ["precious.txt"]


def test_conditions_on_inputs(rasp: str, tmp_path: Path) -> None:
    model = str(tmp_path / "model")
    given = ["compile", rasp, "--name", "moved", "--length", "8", "--vocab", "ab+"]
    many = ["--inputs", "+: 1, a: 0..2", "--inputs", "(a|b|\\+)*b"]
    shown = command_line(*given, *many, "-o", model).stdout
    assert (
        "inputs       an input with exactly one '+'; an input with at most 2 'a'; an input of" in shown
    )
    assert "[-, a, +] (strings)" in command_line("run", model, "--input", "a+b").stdout
    assert "expected an input with exactly one '+', got 'ab'" in refused("run", model, "--input", "ab")
    assert "expected an input of the language (a|b|\\+)*b, got 'b+a'" in refused(
        "run", model, "--input", "b+a"
    )
    assert "got 'c'" in refused(*given, "--inputs", "c: 1")
    assert "expected letters of the alphabet {a, b, +}, got 'c'" in refused(*given, "--inputs", "c*")
    numeric = ["compile", rasp, "--name", "square", "--length", "4", "--numeric"]
    assert "--inputs: expected --vocab with it" in refused(*numeric, "--inputs", "a*")


def test_u_as_weights(tmp_path: Path) -> None:
    path = tmp_path / "u"
    start = ("compile", "--order", "2,2,2", "-o", str(path))
    default = json_of(*start)
    assert default["architecture"]["feed_forward"] == "relu"
    assert "recipe native" in default["name"]
    for recipe in ("fetch", "native", "width-1"):
        built = json_of(*start, "--recipe", recipe, "--feed-forward", "exact")
        assert built["report"]["layout"]["A"] == [4, 1, 2, 2]
        U = UniversalSimulator(2, 2, 2)
        T, X = Attention(A=np.eye(2), V=np.array([[1.0, 2], [3, 4]])), np.array([[1.0, 0], [0.5, -1]])
        tokens = U.encode(T, X)
        typed = ",".join(map(str, tokens.tolist()))
        result = json_of("run", str(path), "--input", typed)["results"][0]
        np.testing.assert_allclose(result["answer"], T(X), atol=1e-13)
    shown = command_line("run", str(path), "--input", typed).stdout
    assert shown.startswith("input = [1.0, ")
    assert "\nT(X) =\n" in shown
    for arguments, words in [
        (("--order", "2,2"), "--order: expected 3 integers ≥ 1"),
        (("--order", "2,2,2", "--recipe", "soup"), "'soup' is not one of 'paper', 'fetch'"),
        (("--order", "2,2,2", "--length", "4"), "leave out --length"),
    ]:
        assert words in refused("compile", *arguments)


def test_an_interrupted_compilation_leaves_nothing(
    rasp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "model"
    arguments = ("compile", rasp, "--name", "reverse", "--length", "4", "--vocab", "ab")
    monkeypatch.setattr("locum.files.os.rename", interrupted)
    code, shown, said = command_line(*arguments, "-o", str(out))
    assert (code, shown, said) == (130, "", "locum: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["reverse.rasp"]


# run -----------------------------------------------------------------------------------------------


def test_a_network_prints_what_its_program_prints(folder: str, rasp: str) -> None:
    shown = 'input = "abcd"\nreverse = [d, c, b, a] (strings)\n'
    assert command_line("run", folder, "--input", "abcd").stdout == shown
    assert command_line("run", rasp, "--input", "abcd", "--name", "reverse").stdout == shown


def test_a_network_as_json(folder: str) -> None:
    assert json_of("run", folder, "--input", '["b", "a"]') == {
        "input": ["b", "a"],
        "weights": locum.load(folder).hash,
        "results": [{"name": "reverse", "type": "string", "values": ["a", "b"]}],
    }


def test_a_network_goes_before_a_listing(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).rename("sort")
    assert "reverse = [b, a]" in command_line("run", "sort", "--input", "ab").stdout


def test_bad_input_to_a_network(folder: str, tmp_path: Path) -> None:
    for arguments, words in [
        ((), "expected an input, got none; try --input TOKENS"),
        (("--input", "abx"), "got 'x'"),
        (("--input", "abcdabcda"), "expected 1 to 8 tokens, got 9"),
        (("--input", ""), "empty"),
        (("--input", "[1, 2]"), "expected tokens that are strings"),
        (("--input", "ab", "--count"), "--count: expected a program, got the network in"),
        (("--input", "ab", "--executor", "fast"), "--executor: expected a program"),
        (("--name", "x", "--draw"), "--name, --draw: expected a program"),
    ]:
        assert words in refused("run", folder, *arguments), arguments
    assert "No such file" in refused("run", str(tmp_path / "none"), "--input", "a")
    weights = Path(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    assert "a saved model" in refused("run", folder, "--input", "ab")


@pytest.mark.parametrize("kind", ["glu", "gelu", "relu"])
def test_units_and_soft_heads(kind: str, rasp: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    soft = ("--attention", "softmax", "--feed-forward", kind)
    start = ("compile", rasp, "--name", "reverse", "--length", "8", "--vocab", "abcd", "-o", str(path))
    shown = command_line(*start, *soft).stdout
    assert f"  feed-forward {kind}\n  units        layer 0: table " in shown
    assert "nothing leaks\n" in shown
    assert "realised" not in shown
    assert json_of(*start, *soft)["report"]["realised"][0]["s-op"] == "length"
    assert "reverse = [d, c, b, a]" in command_line("run", str(path), "--input", "abcd").stdout
    native = ("compile", "--order", "2,2,2", "--recipe", "native", "--range", "-1", "1")
    shown = command_line(*native, "--tolerance", "1e-3", *soft, "-o", str(path)).stdout
    assert "takes        12 tokens: real numbers from −1 to 1\n" in shown
    assert re.search(r"  error        at most [\d.e-]+ \(certified\)\n", shown)
    tokens = ",".join(["1,-0.5,0.25"] * 4)
    (result,) = json_of("run", str(path), "--input", tokens)["results"]
    model = locum.load(path)
    expected = run_program(model.program, [float(token) for token in tokens.split(",")])
    error = max(abs(result["values"][i] - expected[i]) for row in [[0, 1], [2, 3]] for i in row)
    assert 0 < model.error_bound <= 1e-3
    assert error <= model.error_bound


# Tokens as they are typed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("2.50", 2.5),
        ("-1e-3", -0.001),
        (".5", 0.5),
        ("False", False),
        ('"12"', "12"),
        ("a b", "a b"),
        ("__import__('os')", "__import__('os')"),
        ("1+1", "1+1"),
        ("nan", "nan"),
        ("é", "é"),
        ("#", "#"),
    ],
)
def test_literals(text: str, value: Any) -> None:
    result = literal(text)
    assert result == value
    assert type(result) is type(value)


def test_very_long_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="5000 digits"):
        literal("9" * 5000)
    assert read_vocabulary("()[]") == ["(", ")", "[", "]"]


def test_inputs_are_read_by_what_the_model_takes() -> None:
    brackets = locum.compile(locum.tokens, length=4, vocabulary="()[]")
    assert read_tokens("[[]]", brackets) == "[[]]"
    assert read_tokens("[]", brackets) == "[]"
    assert read_tokens('["(", ")"]', brackets) == ["(", ")"]
    digits = locum.compile(locum.tokens, length=4, vocabulary="0123")
    assert read_tokens("123", digits) == "123"
    assert read_tokens('"12"', digits) == "12"
    numbers = locum.compile(locum.tokens, length=4, vocabulary=[1, 2, 3])
    assert read_tokens("1,2", numbers) == [1, 2]
    with pytest.raises(InputError, match="one sequence"):
        read_tokens("[[1, 2], [3, 1]]", numbers)
    assert read_tokens("3", numbers) == [3]
    assert read_tokens("[1, 2]", numbers) == [1, 2]
    words = locum.compile(locum.tokens, length=4, vocabulary=["one", "two"])
    assert read_tokens("one,two", words) == ["one", "two"]


def test_errors_recommend_options_of_the_command(tmp_path: Path) -> None:
    program = tmp_path / "plus.rasp"
    program.write_text(
        'plus = select(tokens, "+", ==);\nat = aggregate(plus, indices);\nx = sin(at);\n'
        "first = round(length * aggregate(select(indices, indices, <=), at));\n"
    )
    common = ("compile", str(program), "--name", "first", "--length", "12", "--vocab", "ab+")
    error = refused(*common, "--dtype", "float32")
    assert "try --inputs '+: 1', if an input has exactly one '+'" in error
    assert "--feed-forward exact" in error
    assert not re.search(r"\w=['{\d]", error)
    assert command_line(*common, "--dtype", "float32", "--inputs", "+: 1").stdout
    narrow = refused(*common, "--inputs", "+: 1", "--limit", "width=3")
    assert "--limit width=None for no bound" in narrow
