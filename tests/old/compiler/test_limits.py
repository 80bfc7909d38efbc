"""``limit`` bounds hidden units, residual width, CPU time and memory, before the work is done."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from locum import aggregate, full, indices, length, select, selector_width, tokens
from locum.errors import CompileError
from locum.interface.playground import weights_pane
from locum.interface.playground.answer import answer
from locum.networks import compiler
from locum.networks.compiler.compile_advice import _tolerance, find_length
from locum.networks.compiler.compile_limits import DEFAULTS, UNLIMITED, LimitExceededError
from locum.networks.compiler.target import Target
from tests.cli.commands import command_line

REVERSE = aggregate(select(indices, length - 1 - indices, "=="), tokens)
#: Means of positions, compared with means of tokens: both have many values.
MEANS = selector_width(
    select(aggregate(select(tokens, tokens, "<="), indices + 1, 1), aggregate(full, tokens), "<=")
)
SOURCE = "reverse = aggregate(select(indices, length - 1 - indices, ==), tokens);"
MANY: dict[str, Any] = {"vocabulary": [-3, -1, 0, 2, 5], "prefer": "exact"}


def test_bounds_are_read_by_name_and_the_others_keep_their_defaults() -> None:
    target = Target.read(length=3, vocabulary="ab", limit={"seconds": 60})
    assert dict(target.limit) == dict(DEFAULTS) | {"seconds": 60.0}
    assert Target.read(length=3, vocabulary="ab", limit=None).limit == UNLIMITED
    assert dict(Target.read(length=3, vocabulary="ab", limit={"units": None}).limit)["units"] is None
    stored = json.loads(json.dumps(target.options()))
    assert Target.read(**stored) == target
    assert "limit" not in Target.read(length=3, vocabulary="ab").options()


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        (5, "limit: expected bounds for units, width, seconds or memory"),
        ({"unit": 5}, "limit: expected units, width, seconds, memory, got 'unit'; try units"),
        ({"units": 0}, "limit 'units': expected an integer > 0, got 0"),
        ({"width": 2.5}, "limit 'width': expected an integer > 0, got 2.5"),
        ({"seconds": "1"}, "limit 'seconds': expected a finite number > 0, got '1'"),
    ],
)
def test_what_is_no_limit(limit: Any, problem: str) -> None:
    with pytest.raises(CompileError) as refused:
        Target.read(length=3, vocabulary="ab", limit=limit)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(("resource", "bound"), [("units", 12), ("width", 5), ("memory", 2_000)])
def test_sizes_are_exact_bounds(resource: str, bound: int) -> None:
    """The network of eight tokens has 13 units for the length, width 6 and 401 parameters."""
    with pytest.raises(LimitExceededError, match=f'try .*limit={{"{resource}": None}}') as refused:
        compiler.compile(REVERSE, length=8, vocabulary="abcd", limit={resource: bound})
    assert refused.value.resource == resource
    assert refused.value.where in ("length", str(REVERSE.node.inputs[0]), "indices", "tokens")
    usual = compiler.compile(REVERSE, length=8, vocabulary="abcd")
    within = {"units": 13, "width": 6, "memory": 20_000}[resource]
    model = compiler.compile(REVERSE, length=8, vocabulary="abcd", limit={resource: within})
    assert model.hash == usual.hash


def test_units_are_counted_for_the_s_op_that_they_were_made_for() -> None:
    with pytest.raises(LimitExceededError, match=r"units, got at least .* for one s-op") as refused:
        compiler.compile(MEANS, length=6, **MANY, limit={"units": 1_000})
    assert refused.value.where.startswith("selector_width(select(aggregate(select(tokens, tokens, <=)")
    assert str(refused.value).endswith(
        """; try prefer='small'; or try limit={"units": None} for no bound"""
    )
    assert compiler.compile(MEANS, length=6, **MANY | {"prefer": "small"}, limit={"units": 1_000})
    shorter = compiler.compile(MEANS, length=3, **MANY, limit={"units": 1_000})
    assert shorter([5, -3]) == MEANS([5, -3])
    exact = compiler.compile(MEANS, length=6, **MANY, limit={"units": 1_000}, feed_forward="exact")
    assert exact([5, -3]) == MEANS([5, -3])


def test_limits_advise_only_what_was_compiled() -> None:
    """No length gives a width of 3, which half and a quarter of the length show."""
    narrow: dict[str, Any] = {"length": 8, "vocabulary": "abcd"}
    with pytest.raises(LimitExceededError) as refused:
        compiler.compile(REVERSE, **narrow, limit={"width": 5})
    message = "limit: expected at most 5 slots of the residual stream, got at least 6, in length; try "
    unbounded = 'limit={"width": None} for no bound'
    assert str(refused.value) == f"{message}length=2; or try {unbounded}"
    assert compiler.compile(REVERSE, **narrow | {"length": 2}, limit={"width": 5})
    with pytest.raises(LimitExceededError) as refused:
        compiler.compile(REVERSE, **narrow, limit={"width": 3})
    assert str(refused.value) == f"{message.replace('most 5', 'most 3')}{unbounded}"
    with pytest.raises(LimitExceededError, match="try a smaller length or vocabulary; or try limit="):
        compiler.compile(REVERSE, **narrow, limit={"seconds": 1e-6})


@pytest.mark.parametrize(("most", "found"), [(20, "length=8"), (7, "length=4"), (3, "")])
def test_shorter_networks_are_tried_if_the_time_limit_is_exceeded(most: int, found: str) -> None:
    tried = []

    def compiled(target: Target) -> None:
        tried.append((target.length, target.prefer))
        if target.length > most:
            raise CompileError("too long")

    assert find_length(Target.read(length=16, vocabulary="ab"), compiled) == found
    assert tried == [(4, "exact"), (8, "exact")]
    assert find_length(Target.read(length=16, vocabulary="ab", fixed=True), compiled) == ""


def test_no_stage_takes_longer_than_the_limit() -> None:
    """Without a limit this takes minutes."""
    started = time.thread_time()
    with pytest.raises(LimitExceededError, match=r"at most 0\.5 seconds of CPU time") as refused:
        compiler.compile(MEANS, length=30, **MANY, limit={"seconds": 0.5})
    assert time.thread_time() - started < 2.5
    assert refused.value.where.startswith("selector_width(")


def test_long_inputs_are_rejected_before_their_patterns_are_made() -> None:
    started = time.thread_time()
    with pytest.raises(LimitExceededError, match=r"at least 120,000,000,000; try limit="):
        compiler.compile(REVERSE, length=100_000, vocabulary="ab")
    assert time.thread_time() - started < 1
    model = compiler.compile(tokens, length=100_000, vocabulary="ab")
    assert model("ba") == ["b", "a"]


def test_no_limit_is_left_behind() -> None:
    with pytest.raises(LimitExceededError):
        compiler.compile(REVERSE, length=8, vocabulary="ab", limit={"width": 1})
    assert compiler.compile(REVERSE, length=8, vocabulary="ab")("ab") == ["b", "a"]


def test_the_command_has_limits() -> None:
    arguments = (
        "compile",
        "examples/reverse.rasp",
        "--name",
        "reverse",
        "--length",
        "8",
        "--vocab",
        "ab",
    )
    refused = command_line(*arguments, "--limit", "units=3", "--limit", "seconds=9")
    assert refused.returncode == 2
    assert "limit: expected at most 3 hidden units, got at least" in refused.stderr
    wrong = command_line(*arguments, "--limit", "3")
    assert wrong.returncode == 2
    assert "--limit: expected NAME=NUMBER, NAME=none or none, got '3'" in wrong.stderr
    both = command_line(*arguments, "--limit", "none", "--limit", "units=3")
    assert both.returncode == 2
    assert "expected at most 3 hidden units" in both.stderr
    for text in ("none", "units=none", "units=None"):
        assert command_line(*arguments, "--limit", text).returncode == 0


def test_the_playground_compiles_no_wide_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = {"action": "compile", "source": SOURCE, "input": "abc"}
    assert answer(request)["ok"]
    monkeypatch.setitem(weights_pane.LIMIT, "width", 4)
    reply = answer(request)
    assert not reply["ok"]
    assert reply["error"].startswith("the playground: expected at most 4 slots of the residual stream")
    assert reply["error"].endswith("try a shorter length or a smaller vocabulary, or `locum compile`")
    assert "limit" in answer(request | {"limit": None})["error"]


@pytest.mark.parametrize("bound", [0.0021, 0.00985, 0.00995, 0.0995])
def test_recommended_tolerances_are_rounded_up(bound: float) -> None:
    asked = _tolerance(bound)
    assert asked is not None
    assert asked >= 1.01 * bound
