"""Statements and what they became, linked by the nodes of the graph and never by names."""

from __future__ import annotations

from typing import Any

import pytest

from locum.graph import postorder
from locum.interface.playground.example_programs import examples
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.networks.compiler import compile as compile_program
from locum.networks.compiler.compiling import compile_traced
from tests.old.interface.test_answer import ask


def parts(source: str, typed: str, **options: Any) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Slots and heads by their labels, each with its statements."""
    network = ask("compile", source=source, input=typed, **options)["network"]
    slots = {stay["label"]: stay["statements"] for stays in network["slots"] for stay in stays}
    heads = {head["label"]: head["statements"] for layer in network["heads"] for head in layer}
    return slots, heads


@pytest.mark.parametrize("feed_forward", ["relu", "exact"])
def test_a_name_that_is_set_again_links_to_what_it_was(feed_forward: str) -> None:
    source = (
        "x = select(tokens, tokens, ==);\na = selector_width(x);\n"
        "x = select(tokens, tokens, <);\nb = selector_width(x) * a;\nx = indices;\nb;"
    )
    slots, heads = parts(source, "abc", feed_forward=feed_forward)
    # The statement of the selector, and that of what the head gives by it.
    assert heads["select(tokens_str, tokens_str, ==)"] == [0, 1]
    assert heads["select(tokens_str, tokens_str, <)"] == [2, 3]
    if feed_forward == "exact":
        assert slots["b"] == [3, 5]
    else:  # relu units compute the parts of a product, which have labels of their own
        assert [3, 5] in slots.values()
    shares = {label: result for label, result in slots.items() if label.startswith("1/(1+n)")}
    assert sorted({number for result in shares.values() for number in result}) == [1, 3]


def test_an_sop_that_was_called_like_a_later_one_is_its_own() -> None:
    source = (
        "x = aggregate(select(indices, indices, <=), tokens_int);\n"
        "y = x > 1;\nx = aggregate(select(indices, 0, ==), tokens_int);\nz = 1 if y and x > 2 else 0;"
    )
    slots, heads = parts(source, "[1, 3, 2]")
    assert heads == {"select(indices, indices, <=)": [0], "select(indices, 0, ==)": [2]}
    # Both are moved into one slot.
    assert slots["aggregate(select(indices, indices, <=), tokens_int) + x"] == [0, 2]


def test_two_statements_with_one_value_share_its_slot() -> None:
    slots, _ = parts("a = tokens_int * tokens_int;\nb = a;\nc = tokens_int * tokens_int;", "[1, 2]")
    assert slots["c"] == [0, 1, 2]


def test_loops_and_several_names_on_one_line_have_their_own_parts() -> None:
    source = (
        "for i in [1] { p = tokens_int * 2; } for i in [1] { q = tokens_int * tokens_int; } "
        "r, s = tokens_int % 2, p; r, s = s % 3, q;"
    )
    program = Program(source, [1, 2])
    assert [set(statement.built) for statement in program.statements] == [
        {"p"}, {"q"}, {"r", "s"}, {"r", "s"},
    ]  # fmt: skip


@pytest.mark.parametrize("feed_forward", ["relu", "exact"])
def test_every_slot_but_leaves_and_marks_belongs_to_a_statement(feed_forward: str) -> None:
    leaves = {"indices", "tokens", "tokens_str", "tokens_int", "tokens_float", "is_sink", "length"}
    for example in examples()[:20:3]:
        source, typed = example["source"], example["input"]
        slots, heads = parts(source, typed, feed_forward=feed_forward)
        assert {label for label, result in slots.items() if not result} <= leaves, example["name"]
        assert all(heads.values())


def test_the_traced_network_is_the_compiled_one_and_has_nodes_of_the_program() -> None:
    for example in examples()[:4]:
        program = Program(example["source"], tokens(example["input"]))
        _, value = program.sop(None)
        options: dict[str, Any] = {"length": 6, "vocabulary": list(program.tokens)}
        model, trace = compile_traced(value, **options)
        plain = compile_program(value, **options)
        assert plain.config == model.config
        assert [len(layer) for layer in trace.heads] == [len(layer) for layer in model.config.heads]
        known = set(postorder(value.node))
        held = {node for slot in trace.slots for each in slot for node in each.nodes}
        assert held | {node for layer in trace.heads for head in layer for node in head} <= known


def test_values_stand_under_the_input_they_belong_to() -> None:
    source = (
        'r = tokens;\nr("ab");\nset example "xyz"\nq = tokens;\n'
        "a, b = indices, length;\nfor i in [1] { c = indices + i; }"
    )
    reply = ask("run", source=source, input="hello")
    first, applied, _, q, several, loop = reply["statements"]
    assert reply["input"] == list("xyz")
    assert (first["input"], applied["input"]) == (list("hello"), list("ab"))
    assert "input" not in q
    assert [(part["name"], part["values"]) for part in several["parts"]] == [
        ("a", ["0", "1", "2"]), ("b", ["3", "3", "3"]),
    ]  # fmt: skip
    assert several["text"] == "a = [0, 1, 2] (ints), b = [3]*3 (ints)"
    assert loop["parts"][0]["values"] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "loop", ["for i in [1] { x = indices + 1; }", "for x in [indices + 1] { y = x; }", "x, y = x, y;"]
)
def test_a_loop_that_sets_a_name_to_what_it_was_sets_it(loop: str) -> None:
    source = f"x = indices + 1;\ny = tokens;\nx;\ny;\n{loop}"
    reply = ask("run", source=source, input="ab")
    last = "y" if loop.endswith(("y;", "y = x; }")) else "x"
    assert reply["sops"][-1] == last
    assert reply["statements"][-1]["parts"][-1]["name"] == last
    assert ask("draw", source=source, input="ab")["name"] == last


def test_a_lone_carriage_return_ends_a_line_as_in_the_editor() -> None:
    source = "x = indices; # one\ry = x + 1;\r\nz = y + unknown;"
    reply = ask("run", source=source, input="ab")
    assert [(s["first"], s["kind"]) for s in reply["statements"]] == [
        (1, "s-op"), (2, "s-op"), (3, "error"),
    ]  # fmt: skip
    assert reply["errors"][0]["line"] == 3
    unix = source.replace("\r\n", "\n").replace("\r", "\n")
    assert reply == ask("run", source=unix, input="ab")


@pytest.mark.parametrize(
    ("source", "own", "used"),
    [
        ('set example "xy"\nt = tokens;', True, 0),
        ('t = tokens;\nu = t;\nset example "xy"\nv = t;', True, 2),
        ("t = tokens;", False, 1),
        ('set example "xy"\nt = tokens;\nset example "abc"', False, 0),
    ],
)
def test_an_example_of_its_own_says_what_was_run_on_the_input(
    source: str, own: bool, used: int
) -> None:
    reply = ask("run", source=source, input="abc")
    assert (reply["own"], reply["used"]) == (own, used)


@pytest.mark.parametrize(
    "source", ["for i in [1] { x = indices; }", "nope; for i in [1] { x = indices; }"]
)
def test_the_variable_of_a_loop_is_no_value_of_it(source: str) -> None:
    reply = ask("run", source=source, input="ab")
    assert [part["name"] for part in reply["statements"][-1]["parts"]] == ["x"]


def test_a_head_belongs_to_what_it_gives_and_what_it_is_made_for() -> None:
    """A mean of positions needs no head; one selector serves two heads."""
    source = "before = select(indices, indices, <);\nx = aggregate(before, indices);"
    assert parts(source, "abc")[1] == {}
    assert parts(source.replace("indices);", "tokens_int);"), "123")[1] == {"before": [0, 1]}
    source = (
        "def f(s) { return aggregate(select(indices, indices - 1, ==), s, 0); }\n"
        "x = f(indices);\ny = f(x);\nz = f(f(indices));"
    )
    network = ask("compile", source=source, input="abc", name="z")["network"]
    drawn = ask("draw", source=source, input="abc", name="z")["layers"]
    last = [head["statements"] for layer in network["heads"] for head in layer][-1]
    assert last == drawn[-1][-1]["statements"] == [1, 2, 3]
