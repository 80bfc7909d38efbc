"""Specs and the module that runs them: what is read, what is refused, what is printed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from locum.errors import InputError
from locum.experiments.sweeps import Case, read
from locum.experiments.sweeps.__main__ import main
from locum.experiments.sweeps.spec import parse_spec, read_spec
from locum.experiments.sweeps.sweep_kinds import KINDS, resolve

SPECS = sorted((Path(__file__).parents[3] / "sweeps").glob("*.toml"))


def spec(text: str) -> str:
    return f'[[sweep]]\nkind = "trial"\n{text}\n'


def test_grids_and_ranges() -> None:
    cases = parse_spec(spec("seed = { first = 3, count = 4 }\nseconds = [0.5, 1]"))
    assert [(case.settings["seed"], case.settings["seconds"]) for case in cases] == [
        (seed, seconds) for seed in (3, 4, 5, 6) for seconds in (0.5, 1)
    ]


CIRCUIT = '[[sweep]]\nkind = "circuit"\nfolder = "a"\nsource = "random"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected at least one"),
        ("sweep = 3", "expected at least one"),
        ("sweep = []", "expected at least one"),
        ("seed = 3\n" + spec("seed = 1"), "specification: expected sweep, got 'seed'"),
        ("[[sweep]]\nseed = 1", "number 1: expected a kind"),
        (spec("seed = 1") + '[[sweep]]\nkind = "os:system"', "number 2: there is no kind of case 'os:"),
        (spec("seed = 1\nsead = 2"), "settings of kind trial: expected seed, .* got 'sead'; try seed"),
        (spec('seed = "a"'), "seed: expected an integer ≥ 0, got 'a'"),
        (spec("seed = []"), "seed: expected at least one value"),
        (spec("seed = { first = 0 }"), "expected a range"),
        (spec("seed = { first = 0, count = 0 }"), "a count of 1 or more, got 0"),
        (spec("seed = { first = 0, count = 10_000_000_000 }"), "got 10,000,000,000 cases"),
        (spec("seconds = 1"), "seed: expected an integer ≥ 0 .*, got nothing"),
        (spec("seed = 1\nseconds = inf"), "seconds: expected a finite number ≥ 0, got inf"),
        ("[[sweep]\n", "not TOML"),
        (CIRCUIT.replace("random", "abacus"), "source: expected random, or a program such as"),
        (CIRCUIT + "layers = 9", "layers: expected 1 to 8"),
        (CIRCUIT + 'layers = 2\ntier = "plane"', "tier: expected one of plain, trained"),
    ],
)
def test_specs_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_spec(text)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_the_specs_of_the_house(path: Path) -> None:
    assert {case.kind for case in read_spec(path)} <= KINDS.keys()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_its_function(name: str) -> None:
    kind = KINDS[name]
    inspect.signature(resolve(kind.function)).bind(**kind.settings)
    if kind.check is not None:
        inspect.signature(resolve(kind.check)).bind({})


def test_the_module_runs_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "spec.toml", tmp_path / "r.jsonl"
    path.write_text(spec('seed = [0, 1, 2, 1]\nends = ["done", "failed"]'), encoding="utf-8")
    command = [str(path), "-o", str(target), "--workers", "1"]
    assert main([*command, "--shard", "1/2"]) in (0, 1)  # as the keys fall
    assert len(list(read(target))) == 3
    capsys.readouterr()
    assert main(command) == 1
    shown = capsys.readouterr().out
    assert "failed: trial ends=failed seconds=0.0 seed=0\n" in shown
    assert shown.endswith(f"3 done, 3 failed (3 known before): {target}\n")
    assert len(list(read(target))) == 6


def test_what_the_module_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "spec.toml", tmp_path / "r.jsonl"
    path.write_text(spec("sead = 1"), encoding="utf-8")
    for arguments, words in [
        ((path, "-o", target), f"{path}: [[sweep]] number 1: settings of kind trial: expected seed"),
        ((tmp_path / "nothing.toml", "-o", target), "cannot read"),
    ]:
        assert main([str(argument) for argument in arguments]) == 2
        assert words in capsys.readouterr().err
    path.write_text(spec("seed = 1"), encoding="utf-8")
    for more, words in [
        (("--shard", "3/2"), "expected k/n with 1 ≤ k ≤ n"),
        (("--workers", "0"), "workers: expected 1 or more, got 0"),
        (("--limit", "nan"), "time limit: expected seconds, more than 0, got nan"),
    ]:
        assert main([str(path), "-o", str(target), *more]) == 2
        assert words in capsys.readouterr().err
    assert main([str(path), "-o", str(path)]) == 2  # the spec is not overwritten
    assert path.read_text(encoding="utf-8") == spec("seed = 1")
    assert not target.exists()


def test_a_number_is_one_case_however_it_is_written() -> None:
    cases = [Case("trial", {"seed": 1, "seconds": seconds}) for seconds in (0, 0.0, -0.0)]
    assert len({case.key for case in cases}) == 1
    assert cases[0] == Case("trial", {"seed": 1})
    with pytest.raises(InputError, match="seconds: expected a finite number ≥ 0, got a"):
        Case("trial", {"seed": 1, "seconds": 10**400_000})


@pytest.mark.parametrize("kind", ["trial", "fuzz", "circuit"])
def test_seeds_are_not_negative(kind: str) -> None:
    """Python draws the same numbers from -1 and 1: they would be one case under two keys."""
    with pytest.raises(InputError, match="expected an integer ≥ 0, got -1"):
        Case(
            kind, {"folder": "x", "source": "random", "seed": -1} if kind == "circuit" else {"seed": -1}
        )
