"""Settings: one declaration, read wherever options are taken."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import locum
from locum.errors import CompileError, InputError
from locum.interface.cli.options import settings_options
from locum.interface.playground.weights_pane import request_settings
from locum.networks.compiler import Target
from locum.networks.compiler.compiling import compile_for
from locum.settings import Setting, read_settings, require_integer, settings_of


@pytest.mark.parametrize(
    ("setting", "value", "result"),
    [
        (Setting("an integer"), np.int8(3), 3),
        (Setting("an integer"), np.array(3), 3),
        (Setting("a number"), np.float32(0.5), 0.5),
        (Setting("a number"), 2**60 + 1, 2**60 + 1),
        (Setting("true or false"), np.True_, True),
        (Setting("a text", choices=("a", "b")), np.str_("a"), "a"),
        (Setting("a list of integers"), np.array([1, 2]), [1, 2]),
        (Setting("a list of texts", longest=2), ("a", "b"), ("a", "b")),
        (Setting("a number", default=None), None, None),
    ],
)
def test_values_in_their_normal_form(setting: Setting, value: Any, result: Any) -> None:
    read = setting.read(value, "it")
    assert (read, type(read)) == (result, type(result))


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        (Setting("an integer"), True, "an integer, got True"),
        (Setting("an integer"), np.float64(3), "an integer, got np.float64(3.0)"),
        (Setting("an integer", least=1), 0, "an integer ≥ 1, got 0"),
        (Setting("an integer", least=1, most=10**6), 0, "an integer from 1 to 1,000,000, got 0"),
        (Setting("a number"), float("inf"), "a finite number, got inf"),
        (Setting("a number"), 10**400, "a finite number, got 1000"),
        (Setting("a number", above=0, most=1), 0, "a number > 0 and ≤ 1, got 0"),
        (Setting("a number"), None, "a finite number, got None"),
        (Setting("a number"), [10**5000], "a finite number, got a list of 1"),
        (Setting("a text"), "\ud800", "a text, got"),
        (Setting("a text", longest=3), "abcd", "a text of at most 3 characters, got 'abcd'"),
        (Setting("a text", choices=("a", "b")), "c", "one of a, b, got 'c'"),
        (Setting("a list of integers", least=1, longest=2), [1, 0], "a list of at most 2 integers ≥ 1"),
        (Setting("a list of integers"), 3, "a list of integers, got 3"),
    ],
)
def test_values_that_are_rejected(setting: Setting, value: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        setting.read(value, "it")
    assert f"it: expected {words}" in str(error.value)


def test_names_that_are_rejected() -> None:
    declared = {"seed": Setting("an integer", "Random seed."), "rate": Setting("a number", default=1)}
    for given, words in (
        ({"sead": 1}, "options: expected seed, rate, got 'sead'; try seed"),
        ({"rate": 1}, "seed: expected an integer (Random seed), got nothing"),
    ):
        with pytest.raises(InputError) as error:
            read_settings(given, declared, "options")
        assert words == str(error.value)
    with pytest.raises(CompileError, match="size: expected an integer ≥ 1, got 0"):
        require_integer(0, "size", error=CompileError)


@dataclass(frozen=True, kw_only=True)
class LargerTarget(Target):
    """A Target with options that there are not."""

    sparsity: Annotated[float, Setting("a number", "Share of zeros.", least=0, most=1)] = 0.5
    rounding: Annotated[str, Setting("a text", "Rounding.", choices=("up", "down"))] = "up"
    trace: Annotated[bool, Setting("true or false", "Keep a trace.")] = True


def test_a_new_option_of_target_is_declared_once(tmp_path: Path) -> None:
    options = {"sparsity": 0.25, "rounding": "down", "trace": False}
    target = LargerTarget.read(length=3, vocabulary="ab", **options)
    with pytest.raises(CompileError, match="sparsity: expected a number from 0 to 1, got 2"):
        LargerTarget.read(length=3, vocabulary="ab", sparsity=2)

    @click.command()
    @settings_options(LargerTarget)
    def command(**options: Any) -> None:
        click.echo(json.dumps({name: options[name] for name in ("sparsity", "rounding", "trace")}))

    given = ["--sparsity", "0.25", "--rounding", "down", "--no-trace"]
    shown = CliRunner().invoke(command, given)
    assert json.loads(shown.output) == options

    read = read_settings({"length": 3, **options}, request_settings(LargerTarget))
    assert {name: read[name] for name in options} == options

    model = compile_for(target, locum.indices.node, "places")
    model.save(tmp_path / "model")
    saved = locum.load(tmp_path / "model").config.report["options"]
    assert {name: saved[name] for name in options} == options
    assert LargerTarget.read(**saved) == target


def test_each_option_of_target_has_a_help_text() -> None:
    for name, setting in settings_of(Target).items():
        assert 0 < len(setting.help) <= 60, name
