"""One job per command: its help is written once, --json everywhere, listings by name from anywhere."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from locum.interface.cli.main import COMMANDS, SECTIONS, summary
from locum.interface.playground.example_programs import program_names
from locum.paper import listings
from tests.old.interface.conftest import Run


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands, those of groups included."""
    for name in COMMANDS:
        command = importlib.import_module(f"locum.interface.cli.{name}").command
        if isinstance(command, click.Group):
            yield from (((name, sub), made) for sub, made in command.commands.items())
        else:
            yield (name,), command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_one_help_text(name: str) -> None:
    module = importlib.import_module(f"locum.interface.cli.{name}")
    assert module.command.name == name
    assert module.command.help == module.__doc__
    assert (module.__doc__ or "").splitlines()[0] == summary(name) != ""


@pytest.mark.parametrize(("names", "made"), list(commands()), ids=str)
def test_every_command_has_json_and_the_shared_options(
    names: tuple[str, ...], made: click.Command
) -> None:
    assert made.name == names[-1]
    assert made.help
    options = {option: parameter for parameter in made.params for option in parameter.opts}
    assert "--json" in options
    for other in ("--save", "--show", "--seconds", "--time-limit", "--certificate", "--simulator"):
        assert other not in options
    assert ("-o" in options) == ("--output" in options)
    for name in ("--kind", "--executor", "--dtype", "--norm", "--mask", "--attention", "--domain"):
        assert name not in options or isinstance(options[name].type, click.Choice)


def test_choices_are_those_of_the_library() -> None:
    from locum.execution import DOMAINS, EXECUTORS
    from locum.experiments.dataset.making import TIERS
    from locum.interface.cli import dataset, options
    from locum.networks.compiler.target import EXACT_WHOLE
    from locum.simulators.attention_order import KINDS
    from locum.simulators.formula.head import RECIPES
    from locum.simulators.universal_weights import RECIPES as OF_WEIGHTS

    assert options.EXECUTORS == tuple(EXECUTORS)
    assert options.DOMAINS == tuple(DOMAINS)
    assert options.KINDS == tuple(KINDS)
    assert options.RECIPES == RECIPES
    assert {*options.RECIPES, "native"} == set(OF_WEIGHTS)
    assert options.DTYPES == tuple(EXACT_WHOLE)
    assert dataset.TIERS == TIERS


def test_help_lists_every_command(command: Run) -> None:
    code, out, _ = command("--help")
    assert code == 0
    for section, names in SECTIONS.items():
        assert f"\n{section}:\n" in out
        assert all(f"  {name} " in out for name in names)
    for names, _ in commands():
        assert command(*names, "--help")[0] == 0


@pytest.mark.parametrize("name", listings.names())
def test_listings_by_name(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = 2 if name == "inverse" else 0  # erratum E4: it does not run as printed
    assert command("run", name)[0] == wrong
    code, out, _ = command("run", name, "--count", "--json")
    assert code == wrong
    if not wrong:
        assert json.loads(out)["layers"] >= 0


def test_listings_in_other_commands(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("run", "transpose", "--draw")[0] == 0
    assert Path("flow.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert (
        command("compile", "transpose", "--length", "6", "--numeric", "--fixed", "-o", "folder")[0] == 0
    )
    code, out, _ = command("run", "folder", "--input", "1,2,3,4,5,6", "--json")
    assert code == 0
    assert json.loads(out)["results"][0]["values"] == [1, 3, 5, 2, 4, 6]


def test_a_file_goes_before_a_listing(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("transpose").write_text("mine = 1; mine;")
    assert "mine" in command("run", "transpose")[1]
    Path("relu").mkdir()  # what `compile relu -o relu` wrote
    assert command("run", "relu")[0] == 0
    code, _, err = command("run", "transpos")
    assert code == 2
    assert "cannot read transpos: No such file or directory; the paper's listings are cofactor" in err


def test_examples_are_found_by_name(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in program_names():
        code, out, err = command("run", name, "--json")
        assert code == 0, err
        assert len(json.loads(out)["results"]) == 1, name
    assert command("run", "reverse", "--input", "abc")[1].endswith("[c, b, a] (strings)\n")
    code, out, _ = command(
        "compile", "reverse", "--length", "4", "--vocab", "abc", "-o", "folder", "--json"
    )
    assert code == 0
    assert "[c, a, b] (strings)" in command("run", "folder", "--input", "bac")[1]


def test_a_drawing_as_json(command: Run, tmp_path: Path) -> None:
    code, out, _ = command("run", "relu", "--draw", "-o", "-", "--json")
    assert code == 0
    drawn = json.loads(out)
    assert drawn["svg"].startswith("<svg ")
    assert command("run", "relu", "--draw", "-o", "-")[1] == drawn["svg"]


def test_inputs_are_not_overwritten(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = 'set example "ab"\nindices;\n'
    Path("s.rasp").write_text(source)
    Path("link.svg").symlink_to("s.rasp")
    for arguments in (
        ("run", "s.rasp", "--draw", "-o", "s.rasp"),
        ("run", "s.rasp", "--draw", "-o", "link.svg"),
    ):
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert "the file is also an input" in err
    assert Path("s.rasp").read_text() == source


def test_a_simulation_without_a_t_is_the_figure(command: Run) -> None:
    assert json.loads(command("simulate", "--json")[1])["figure"] == {"reproduced": True}


def test_errata(command: Run) -> None:
    rows = json.loads(command("paper", "errata", "--json")[1])["errata"]
    assert [row["number"] for row in rows] == [f"E{number}" for number in range(1, 47)]
    assert rows[1]["quotes"] == ["reqFlip = 1 if MaxminusMin<0 else 0;"]
    text = " ".join(command("paper", "errata")[1].split())
    for row in rows:
        assert f"{row['number']} ({row['severity']}): {row['where']}" in text
        for part in (*row["quotes"], row["wrong"], row["counterexample"], row["right"]):
            assert " ".join(part.split()) in text
