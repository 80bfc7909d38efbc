"""Rewriting keeps the meaning, logs every step and comes to an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import locum
from locum.execution import run
from locum.graph import Node, build, problems
from locum.graph.definitions import DEFINITIONS
from locum.graph.rewrite import Rule, rewrite
from tests.old.graph.strategies import inputs, programs


def outcome(program: Node, tokens: Any) -> tuple[bool, str]:
    """The value, or that there is none (which position fails first may differ between forms)."""
    try:
        return True, repr(run(program, tokens))
    except locum.LocumError:
        return False, ""


@given(programs(), inputs)
def test_rules_keep_the_meaning(program: Node, tokens: Any) -> None:
    result = rewrite(program, DEFINITIONS)
    assert problems(result.root) == []
    assert outcome(result.root, tokens) == outcome(program, tokens)
    assert rewrite(result.root, DEFINITIONS).log == ()


@given(programs())
def test_definitions_leave_only_attention_and_feed_forward(program: Node) -> None:
    from locum.graph import postorder

    left = {node.op for node in postorder(rewrite(program, DEFINITIONS).root)}
    assert left.isdisjoint({"length", "selector_width"})


def test_the_log_says_what_was_done() -> None:
    rules = [
        Rule("s and s = s", lambda n: n.inputs[0] if n.op == "selector_and" else None),
        Rule("a + b = b", lambda n: n.inputs[1] if n.op == "add" else None),
    ]
    before = locum.select(locum.indices, locum.tokens, "==")
    moved = locum.select(1 + locum.indices, locum.tokens, "==")
    result = rewrite((moved & moved).node, rules)
    assert result.root is before.node
    assert [step.rule for step in result.log] == ["a + b = b", "s and s = s"]
    assert str(result.log[1]).startswith("s and s = s: <selector_and: select(")


def test_rewriting_under_a_sum_renames_what_is_bound() -> None:
    """A rule that puts a sum inside another must not capture the outer family."""
    l, m = locum.family(2, "l"), locum.family(3, "m")
    deeper = locum.sum_over(m, m * locum.indices).node
    rule = Rule("indices become a sum", lambda n: deeper if n.op == "length" else None)
    result = rewrite(locum.sum_over(l, l + locum.length).node, [rule])
    assert problems(result.root) == []
    assert result.root is locum.sum_over(l, l + locum.sum_over(m, m * locum.indices)).node


def test_rules_that_undo_each_other_are_stopped() -> None:
    swap = Rule("swap", lambda n: build("add", *reversed(n.inputs)) if n.op == "add" else None)
    with pytest.raises(locum.GraphError, match=r"did not come to an end in 7 passes.*'swap'"):
        rewrite((locum.indices + 1).node, [swap], passes=7)
