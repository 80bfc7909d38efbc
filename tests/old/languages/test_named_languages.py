"""Named languages: their definitions, published results, and the choice between a name and a word."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import settings

from locum.errors import InputError
from locum.languages import c_rasp
from locum.languages.classification import classify
from locum.languages.cookbook import COOKBOOK
from locum.languages.equivalence import equivalent
from locum.languages.first_and_parity import KParity, Parity
from locum.languages.language_catalogue import NAMED, NamedLanguage
from locum.languages.named_languages import read
from locum.languages.non_regular import describe, describe_program
from tests.cli.commands import command_line, json_of, refused

pytestmark = pytest.mark.always

FUZZ = settings().max_examples >= 20_000


def words(named: NamedLanguage) -> list[str]:
    most = 8 if FUZZ else {1: 8, 2: 7, 3: 5, 4: 4}.get(len(named.alphabet), 3)
    sizes = range(most + 1)
    return ["".join(w) for n in sizes for w in itertools.product(named.alphabet, repeat=n)]


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.form])
def test_the_definition_is_the_language(name: str) -> None:
    definition = read(name).definition
    assert [w for w in words(NAMED[name]) if definition.accepts(w) != NAMED[name].plain(w)] == []


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.witness])
def test_verdicts_on_languages_that_are_not_regular_match_the_literature(name: str) -> None:
    holds = {verdict.key: verdict.holds for verdict in describe(NAMED[name])}
    assert all(holds[claim.key] is claim.holds for claim in NAMED[name].claims)
    assert (holds["regular"], holds["star_free"], holds["masked_UHAT"]) == (False, False, False)
    assert not (holds["C-RASP"] and holds["softmax"] is False)


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if not named.witness])
def test_verdicts_on_regular_languages_match_the_literature(name: str) -> None:
    verdicts = classify(name)
    ideal = "C-RASP[periodic, local]"
    holds = {
        "UHAT": verdicts.ac0,
        "C-RASP": verdicts.c_rasp,
        ideal: verdicts.positions[ideal].holds,
        "solvable": verdicts.solvable,
    }
    decided = [claim for claim in NAMED[name].claims if claim.key in holds]
    assert decided or name == "first"
    assert all(holds[claim.key] is claim.holds for claim in decided)
    with pytest.raises(InputError, match="got a regular one"):
        describe(NAMED[name])


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.witness])
def test_the_words_of_a_witness_are_accepted_as_it_says(name: str) -> None:
    found = re.fullmatch(r"(.+) is accepted if and only if m ([=≥]) n", NAMED[name].witness)
    assert found is not None
    letters = re.findall(r'"(.)"([ᵐⁿ]?)|(.)([ᵐⁿ]?)', found[1])
    for m, n in itertools.product(range(6), repeat=2):
        times = {"": 1, "ᵐ": m, "ⁿ": n}
        word = "".join((a or b) * times[of_a or of_b] for a, of_a, b, of_b in letters)
        assert NAMED[name].plain(word) == (m == n if found[2] == "=" else m >= n), word


def test_programs_prove_membership_without_a_theorem_about_them() -> None:
    majority = c_rasp.parse('accepted = #"a" > #"b"')
    positions = c_rasp.parse('accepted = i % 3 == 1 && #"a" > #"b"')
    for program, verdicts in ((majority, (True, True, None)), (positions, (None, None, None))):
        found = {verdict.key: verdict for verdict in describe_program(program)}
        keys = ("C-RASP_last", "softmax", "regular")
        assert tuple(found[key].holds for key in keys) == verdicts
        assert found["AHAT"].holds
        assert not any(v.theorem for v in found.values() if "this program" in v.reason)


# Names and words ------------------------------------------------------------------------------------


def test_a_name_is_no_word() -> None:
    shown = command_line("language", "classify", "majority").stdout
    assert shown.startswith("language: majority (named)\n")
    assert "star-free: no" in shown
    assert "language: parity (named)" in command_line("language", "classify", "parity").stdout
    parity = json_of("language", "classify", "parity")
    assert (parity["named"], parity["star_free"], parity["alphabet"]) == (True, False, ["0", "1"])
    assert parity == json_of("language", "classify", "--from", "name", "parity")
    word = json_of("language", "classify", "--from", "regex", "parity")
    assert (word["named"], word["star_free"], word["finite"]) == (False, True, True)
    assert not classify("parity").star_free
    assert read("PARITY").name == read("Parity", "name").name == "parity"
    with pytest.raises(InputError, match="got majority, which is not regular"):
        classify("majority")


def test_a_file_is_preferred_to_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("parity").write_text("a*", encoding="utf-8")
    with pytest.raises(InputError, match="expected a file with the suffix of a known form"):
        read("parity")
    assert read("parity", "regex").automaton == read("a*").automaton
    assert read("parity", "name").name == "parity"


def test_names_are_compared() -> None:
    same = command_line("language", "equivalent", "parity", "0*(10*10*)*")
    assert same.returncode == 0
    assert same.stdout.startswith("P: language: parity (named)\nequivalent over {0, 1}")
    different = ("language", "equivalent", "parity", "(0+1)*", "--alphabet", "01", "--json")
    found = json.loads(command_line(*different).stdout)
    assert (found["named"], found["word"], found["answers"]) == (
        {"P": "parity", "Q": None}, ["1"], [False, True],
    )  # fmt: skip
    assert equivalent("parity", "0*(10*10*)*").verdict == "equivalent"
    message = refused("language", "equivalent", "majority", "dyck-1")
    assert "expected the same for both languages" in message
    assert "--alphabet" not in message


def test_names_have_a_fixed_alphabet_and_need_a_definition(tmp_path: Path) -> None:
    for name in ("parity", "dyck-2"):
        refusal = refused("language", "classify", name, "--alphabet", "abc")
        assert f"{name}: expected the alphabet {{" in refusal
        assert "--from regex" in refusal
    assert "expected the name of a language" in refused("language", "classify", "--from", "name", "x")
    drawing = str(tmp_path / "automaton.dot")
    refusal = refused("language", "classify", "dyck-2", "-o", drawing)
    assert "--output: expected a regular language" in refusal
    with pytest.raises(InputError, match="dyck-2: expected a language with a definition"):
        read("dyck-2")


def test_programs_of_languages_that_are_not_regular_are_shown() -> None:
    data = json_of("language", "classify", "anbncn", "--program")
    assert c_rasp.parse(data["program"], accept="end").accepts("abc")
    assert (data["dialect"], data["depth"], data["fragment"]) == ("C-RASP", 2, "C-RASP")
    data = json_of("language", "classify", "dyck-2", "--program")
    assert (data["program"], data["dialect"]) == (None, None)
    assert data["theorems"]["UHAT"] == "Hao, Angluin & Frank 2022"
    assert data["witness"].startswith('"("ᵐ")"ⁿ')


# One polarity of PARITY -----------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "0", "1", "11", "101", "1101", "0110", "10101"])
def test_parity_is_an_even_number_of_ones_everywhere(word: str) -> None:
    """PARITY = {w : the number of ones in w is even}, as the paper defines it."""
    even = word.count("1") % 2 == 0
    assert NAMED["parity"].plain(word) == even
    assert read("parity").definition.accepts(word) == even
    assert Parity().accepts(word) == even
    assert KParity(len(word) + 1, range(len(word) + 1)).accepts(word + "0") == even
    for name in ("PARITY", "PARITY with LayerNorm"):
        assert COOKBOOK[name].plain(word) == even
