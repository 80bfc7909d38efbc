"""``locum run`` and ``locum compile`` on C-RASP, B-RASP and formulas, by the suffix of the file."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from locum.languages.named_languages import read
from tests.cli.commands import command_line, json_of, refused

#: Dyck-1 by counting, (ab)*-like by attention, and a formula; each with its alphabet.
PROGRAMS = {
    "dyck.crasp": ('o = #"("\nc = #")"\nd = #[o < c] == 0 && o == c\n', "()"),
    "even.crasp": ('#import periodic\n#accept end\nz = i % 2 == 0 && #"a" >= #"b"\n', "ab"),
    "after.brasp": ('p = rightmost[j < i, true] "a"(j) : false\nz = p & "b"\n', "ab"),
    "next.ltl": ("a & X b", "ab"),
    "until.ltl": ("F (b & !X (a | b))", "ab"),
    "sorted.fo": ("forall x (b(x) -> forall y > x b(y)) & exists x a(x)", "ab"),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    text, alphabet = PROGRAMS[request.param]
    path = tmp_path / request.param
    path.write_text(text)
    return path, alphabet


def test_the_word_is_accepted_as_the_language_says(program: tuple[Path, str]) -> None:
    path, alphabet = program
    language = read(path)
    for word in ("".join(w) for n in range(1, 5) for w in itertools.product(alphabet, repeat=n)):
        data = json_of("run", path, "--input", word)
        if language.automaton is not None:
            expected = language.automaton.accepts(word)
        else:
            assert language.program is not None
            expected = language.program.accepts(word)
        assert data["verdict"] == ("accepted" if expected else "rejected"), word
        assert all(len(result["values"]) == len(data["input"]) for result in data["results"])


def test_the_printed_values(tmp_path: Path) -> None:
    path = tmp_path / "dyck.crasp"
    path.write_text(PROGRAMS["dyck.crasp"][0])
    assert command_line("run", path, "--input", "(())").stdout == (
        'input = "(())"\no = [1, 2, 2, 2] (ints)\nc = [0, 0, 1, 2] (ints)\n'
        "d = [F, F, F, T] (bools)\nAccepted, read at the last symbol.\n"
    )
    assert command_line("run", path, "--input", "(()", "--name", "d").stdout == (
        'input = "(()"\nd = [F]*3 (bools)\nRejected, read at the last symbol.\n'
    )


def test_the_end_marker_and_the_empty_word(tmp_path: Path) -> None:
    path = tmp_path / "even.crasp"
    path.write_text(PROGRAMS["even.crasp"][0])
    data = json_of("run", path, "--input", "")
    assert (data["verdict"], data["accept"], data["input"]) == ("accepted", "end", ["$"])
    assert command_line("run", path, "--input", "ab").stdout.startswith('input = "ab$"\n')


def test_words_of_digits_and_longer_symbols(tmp_path: Path) -> None:
    path = tmp_path / "digits.crasp"
    path.write_text('z = #"1" > #"0"\n')
    assert json_of("run", path, "--input", "0110")["verdict"] == "rejected"
    assert json_of("run", path, "--input", "011")["verdict"] == "accepted"
    assert (
        json_of("run", path, "--input", '["1", "xy"]', "--alphabet", "0,1,xy")["verdict"] == "accepted"
    )


def test_what_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "dyck.crasp"
    path.write_text(PROGRAMS["dyck.crasp"][0])
    assert "expected a word, got none; try --input WORD" in refused("run", path)
    assert "expected symbols of the alphabet {(, )}, got 'x'" in refused("run", path, "--input", "x")
    assert "the empty word has no last symbol" in refused("run", path, "--input", "")
    assert "--alphabet: expected a program with the suffix" in refused(
        "run", "sort", "--alphabet", "ab"
    )
    assert "expected one of --count, --draw, got both" in refused("run", path, "--count", "--draw")


def test_modes_of_dialects(program: tuple[Path, str], tmp_path: Path) -> None:
    path, alphabet = program
    assert json_of("run", path, "--count")["layers"] >= 1
    picture = tmp_path / "picture.svg"
    assert command_line("run", path, "--draw", "--input", alphabet, "-o", picture).returncode == 0
    assert picture.read_text().startswith("<svg")


def test_a_program_is_compiled(program: tuple[Path, str], tmp_path: Path) -> None:
    path, alphabet = program
    folder = tmp_path / "model"
    assert json_of("compile", path, "--length", "3", "-o", folder)["files"] == [str(folder)]
    for word in ("".join(w) for n in (1, 2, 3) for w in itertools.product(alphabet, repeat=n)):
        verdict = json_of("run", path, "--input", word)["verdict"]
        # At an end marker the network reads one token more.
        tokens = word + "$" if _reads_marker(folder) else word
        values = json_of("run", folder, "--input", tokens)["results"][0]["values"]
        assert values[-1] == (verdict == "accepted"), word


def _reads_marker(folder: Path) -> bool:
    import locum

    return "$" in (locum.load(folder).config.vocabulary or ())


def test_a_language_is_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    data = json_of("compile", "--language", "(ab)*", "--length", "4", "-o", folder)
    assert data["lengths"][1] == 5
    for word, accepted in (("abab", True), ("aba", False), ("", True)):
        values = json_of("run", folder, "--input", word + "$")["results"][0]["values"]
        assert bool(values[-1]) is accepted
    assert "a language has its own tokens: leave out --vocab" in refused(
        "compile", "--language", "(ab)*", "--vocab", "ab"
    )
    assert "star-free or in C-RASP" in refused("compile", "--language", "(b*ab*ab*)*b*")
    assert "got PROGRAM and --language" in refused("compile", "sort", "--language", "a")
