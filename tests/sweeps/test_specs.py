"""Specs and the command: what is read, what is refused where, what is printed."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from locum.errors import InputError
from locum.experiments.sweeps import Case, read
from locum.experiments.sweeps.spec import SpecError, parse_spec, read_spec
from locum.experiments.sweeps.sweep_kinds import KINDS, resolve
from locum.interface.cli.main import COMMANDS
from tests.cli.commands import command_line, json_of, refused

SPECS = sorted((Path(__file__).parents[2] / "sweeps").glob("*.toml"))


def spec(text: str) -> str:
    return f'[[sweep]]\nkind = "trial"\n{text}\n'


def test_grids_and_ranges() -> None:
    cases = parse_spec(spec("seed = { first = 3, count = 4 }\nseconds = [0.5, 1]"))
    assert [(case.settings["seed"], case.settings["seconds"]) for case in cases] == [
        (seed, seconds) for seed in (3, 4, 5, 6) for seconds in (0.5, 1)
    ]
    circuit = '[[sweep]]\nkind = "circuit"\nfolder = "a"\nsource = "random"\nlayers = 2\n'
    nested = parse_spec(f'{circuit}tiers = [["plain"], ["plain", "plain"]]')
    assert [case.settings["tiers"] for case in nested] == [["plain"], ["plain", "plain"]]
    (single,) = parse_spec(f'{circuit}tiers = ["plain"]')
    assert single == nested[0]


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("", "expected at least one", None),
        ("sweep = 3", "expected at least one", None),
        ("sweep = [3]", "expected at least one", None),
        ("seed = 3\n" + spec("seed = 1"), "got the unknown name 'seed'", 1),
        ("[[sweep]]\nseed = 1", "needs a kind", 1),
        ('[[sweep]]\n\nkind = "os:system"', "no kind of case 'os:system': expected one of trial", 3),
        ("[[sweep]]\nkind = [1]", "no kind of case", 2),
        (
            spec("seed = 1\nsead = 2"),
            "settings of kind trial: expected seed, seconds, ends, got 'sead'; try seed",
            4,
        ),
        (spec("seed = 1") + spec('seed = "a"'), "seed: expected an integer ≥ 0, got 'a'", 6),
        (spec("seed = [1, 2.5]"), "seed: expected an integer ≥ 0, got 2.5", 3),
        (spec("seed = []"), "seed: expected at least one value", 3),
        (spec("seed = { first = 0 }"), "expected a range", 3),
        (spec("seed = { first = 0, count = 0 }"), "a count of 1 or more, got 0", 3),
        (spec("seed = { first = 0, count = 10_000_000_000 }"), "makes 10,000,000,000 cases", 1),
        (spec("seconds = 1"), "seed: expected an integer ≥ 0 .*, got nothing", 1),
        (spec("seed = 1\nseconds = inf"), "seconds: expected a finite number ≥ 0, got inf", 4),
        (spec('cases = "all"'), "has no list 'all' of cases: it has none", 3),
        ("[[sweep]\n", "not TOML", None),
        (spec("seed = 1\nseed = 2"), "not TOML (.*line 4", None),
    ],
)
def test_specs_that_are_refused(text: str, words: str, line: int | None) -> None:
    with pytest.raises(SpecError, match=words.replace("(.", r"\(.").replace("[]", r"\[\]")) as refusal:
        parse_spec(text)
    assert refusal.value.place == ("" if line is None else f", line {line}")


def asks(kind: str, text: str) -> str:
    return f'[[sweep]]\nkind = "{kind}"\n{text}\n'


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (asks("learning", 'task = "U"'), "order: expected n, d and d_v of U", 1),
        (asks("learning", 'task = "U"\norder = [2, 0, 1]'), "order: expected", 4),
        (asks("learning", 'task = "fetch"\ndevice = "abacus"'), "device: expected cpu or cuda", 4),
        (asks("learning", 'task = "fetch"\ninputs = "smaller"'), "inputs: expected a U", 4),
        (
            asks("circuit", 'folder = "a"\nsource = "abacus"'),
            "source: there is no program 'abacus': expected random, or such as",
            4,
        ),
        (asks("circuit", 'folder = "a"\nsource = "random"\nlayers = 9'), "layers: expected 1 to 8", 5),
        (
            asks("circuit", 'folder = "a"\nsource = "random"\nlayers = 2\ntiers = ["plane"]'),
            "tiers: expected one or more of plain",
            6,
        ),
    ],
)
def test_what_there_is_not_is_refused_when_the_spec_is_read(
    text: str, words: str, line: int | None
) -> None:
    with pytest.raises(SpecError, match=words) as refusal:
        parse_spec(text)
    assert refusal.value.place == ("" if line is None else f", line {line}")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_the_specs_of_the_house(path: Path) -> None:
    cases = read_spec(path)
    assert cases
    assert {case.kind for case in cases} <= KINDS.keys()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_its_function_and_lists(name: str) -> None:
    kind = KINDS[name]
    inspect.signature(resolve(kind.function)).bind(**kind.settings)
    if kind.check is not None:
        inspect.signature(resolve(kind.check)).bind({})
    if kind.kept is not None:
        inspect.signature(resolve(kind.kept)).bind({}, {})
    for listed in kind.lists.values():
        assert all(Case(name, settings) for settings in resolve(listed)())


def test_the_kinds_are_listed() -> None:
    done = command_line("sweep", "--kinds", columns=400)
    assert done.returncode == 0
    result = json_of("sweep", "--kinds")["kinds"]
    assert result.keys() == KINDS.keys()
    assert result["fuzz"]["settings"]["size"]["default"] == 12
    for kind in KINDS.values():
        assert kind.summary in done.stdout
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+)` \|", page[page.index("| kind |") :].partition("\n\n")[0], re.M)
    assert {*shown} <= KINDS.keys()


def test_the_command(tmp_path: Path) -> None:
    assert "sweep" in COMMANDS
    path, target = tmp_path / "spec.toml", tmp_path / "r.jsonl"
    path.write_text(spec('seed = [0, 1, 2, 1]\nends = ["done", "failed"]'), encoding="utf-8")
    assert json_of("sweep", path, "--plan")["remaining"] == 6
    done = command_line("sweep", path, "-o", target, "--workers", 1, "--shard", "1/2")
    assert done.returncode in (0, 1)  # as the keys fall
    assert "shard 1 of 2; 2 given more than once; 0 done before; 3 to do." in done.stdout
    done = command_line("sweep", path, "-o", target, "--workers", 1)
    assert done.returncode == 1
    assert "3 done before; 3 to do." in done.stdout
    assert "failed: trial ends=failed seconds=0.0 seed=0\n" in done.stdout
    assert done.stdout.endswith(f"3 done, 3 failed: {target}\n")
    done = command_line("sweep", path, "-o", target, "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["outcomes"]["failed"], result["done_before"]) == (1, 3, 6)
    assert len(list(read(target))) == 6


def test_what_the_command_refuses(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(spec("sead = 1"), encoding="utf-8")
    target = tmp_path / "r.jsonl"
    assert f"locum: {path}, line 3: settings of kind trial: expected seed" in refused(
        "sweep", path, "-o", target
    )
    assert "cannot read" in refused("sweep", tmp_path / "nothing.toml", "-o", target)
    assert "a sweep needs a spec" in refused("sweep", "-o", target)
    path.write_text(spec("seed = 1"), encoding="utf-8")
    for arguments, words in [
        ((), "needs a file for its results: try -o"),
        (
            ("-o", target, "--shard", "3/2"),
            "expected k/n with 1 ≤ k ≤ n, such as 1/4, got '3/2'",
        ),
        (("-o", target, "--shard", "1"), "--shard: expected k/n"),
        (("-o", target, "--workers", 0), "workers: expected 1 to 4,096, got 0"),
        (("-o", target, "--limit", 0), "--limit: expected a positive number of seconds, got 0"),
        (("-o", target, "--limit", "nan"), "--limit: expected a positive number of seconds, got nan"),
        (("-o", path), "the file is also an input; try another name"),
        (("-o", tmp_path), "exists and is not a regular file"),
        (
            ("-o", target, "--scheduler", "tcp://x:1", "--workers", 2),
            "or --scheduler, not both",
        ),
    ]:
        assert words in refused("sweep", path, *arguments)
    assert not target.exists()
    with pytest.raises(InputError, match="seconds: expected a finite number ≥ 0, got a"):
        Case("trial", {"seed": 1, "seconds": 10**400_000})


def test_a_number_is_one_case_however_it_is_written() -> None:
    cases = [Case("trial", {"seed": 1, "seconds": seconds}) for seconds in (0, 0.0, -0.0)]
    assert len({case.key for case in cases}) == 1
    assert cases[0] == Case("trial", {"seed": 1})


@pytest.mark.parametrize("kind", ["trial", "fuzz", "circuit"])
def test_seeds_are_not_negative(kind: str) -> None:
    """Python draws the same numbers from -1 and 1: they would be one case under two keys."""
    with pytest.raises(InputError, match="expected an integer ≥ 0, got -1"):
        Case(
            kind, {"folder": "x", "source": "random", "seed": -1} if kind == "circuit" else {"seed": -1}
        )


def test_a_spec_without_cases_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        parse_spec("sweep = []")
