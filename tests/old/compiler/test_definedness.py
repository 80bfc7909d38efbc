"""Where dense execution has no value, the network gives no answer either; and nowhere else."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import locum
from locum import (
    SOp,
    aggregate,
    full,
    indices,
    length,
    log,
    lookup,
    select,
    selector_width,
    tokens,
    tokens_int,
    where,
)
from locum.errors import CompileError, ExecutionError, InputError
from locum.execution import dense, fast, run
from locum.graph import Node, build, loads
from locum.graph.traversal import transform
from locum.interface.display.network.network_report import facts
from locum.networks.transformer import CompiledTransformer
from tests.cases import reverse
from tests.compiler.agreement import is_close
from tests.old.compiler.random_programs import trial

ONES = selector_width(select(tokens, 1, "=="))
KNOWN = lookup(tokens, {0: 4, 1: 4})

#: Programs of tokens 0, 1 and 2 that have no value on some inputs.
PARTIAL: dict[str, SOp] = {
    "a mean that is not in the table": lookup(aggregate(full, tokens), {0: 1, 1: 5, 2: 7}),
    "a mean that is not listed": locum.map(lambda m: m + 1, aggregate(full, tokens), over=[0, 1, 2]),
    "a count that is not in the table": lookup(ONES, {0: 3, 1: 2}),
    "a table with one value": KNOWN + indices,
    "a selector that is decided": selector_width(select(KNOWN, 4, "==")),
    "a selector that hides it": selector_width(select(KNOWN, 4, "==") | full),
    "a predicate over too few": selector_width(
        locum.select(tokens, tokens, lambda k, q: k <= q, over=([0, 1], [0, 1]))
    ),
    "a product with 0": 0 * lookup(ONES, {0: 3, 1: 2}),
    "a product beyond floats": (ONES * 10**400) * 0.5 > 0,
    "a sum beyond floats": (ONES * 10**400) + 0.5 > 0,
    "a division by a count": 6 / (ONES - 1),
    "a remainder by a count": 7 % ONES,
    "a logarithm of a count": 0 * log(ONES),
    "a branch that is not taken": where(ONES == 1, 1, 1 / (ONES - 1)),
    "a mean of booleans": aggregate(select(tokens, 1, "=="), tokens == 1),
    "a mean of strings": aggregate(select(tokens, 1, "=="), lookup(tokens, {0: "a", 1: "b", 2: "c"})),
    "strings beside numbers": where(ONES == indices, lookup(tokens, {0: "a", 1: "b", 2: "c"}), 0),
    "a default beside strings": aggregate(
        select(indices, indices - 1, "=="), lookup(tokens, {0: "a", 1: "b", 2: "c"})
    ),
    "tables of tables": lookup(lookup(ONES, {0: 1, 1: 2, 2: 0}), {0: 1, 1: 1}),
}


def inputs(vocabulary: Sequence[Any], longest: int) -> list[list[Any]]:
    sizes = range(1, longest + 1)
    return [list(sequence) for size in sizes for sequence in product(vocabulary, repeat=size)]


def value(program: SOp | Node, sequence: list[Any]) -> Any:
    """What dense execution gives, or the problem that it sees."""
    try:
        return run(program.node if isinstance(program, SOp) else program, sequence)
    except ExecutionError as error:
        return error.problem


@pytest.mark.parametrize("kind", ["relu", "exact"])
@pytest.mark.parametrize("name", PARTIAL)
def test_a_network_refuses_what_dense_execution_refuses(name: str, kind: str) -> None:
    program = PARTIAL[name]
    model = locum.compile(program, length=2, vocabulary=[0, 1, 2], feed_forward=kind)
    refused = 0
    for sequence in inputs([0, 1, 2], 2):
        expected = value(program, sequence)
        if isinstance(expected, str):
            refused += 1
            with pytest.raises(ExecutionError):
                model(sequence)
        else:
            assert is_close(model(sequence), expected, 1e-9)
    assert refused
    assert model.config.partial
    assert "may have no value" in model.report()


@pytest.mark.parametrize(
    "program",
    [
        tokens_int,
        aggregate(full, tokens_int),
        selector_width(select(tokens_int, tokens_int, "<")),
        aggregate(
            select(selector_width(select(tokens_int, tokens_int, "<")), indices, "=="), tokens_int
        ),
    ],
)
def test_what_has_no_value_for_any_input_is_refused_when_it_is_compiled(program: SOp) -> None:
    with pytest.raises(CompileError, match="undefined for every input, in tokens_int"):
        locum.compile(program, length=3, vocabulary="abc")
    model = locum.compile(program, length=3, vocabulary="a12")  # some inputs have one
    assert ("undefined", "for some inputs, in tokens_int") in facts(model)
    assert model("121") == program("121")


def test_the_error_is_that_of_dense_execution() -> None:
    program = PARTIAL["a mean that is not in the table"]
    model = locum.compile(program, length=3, vocabulary=[0, 1])
    for answer in (program, model):
        with pytest.raises(
            ExecutionError, match=r"expected a key of the lookup table \(0, 1(, 2)?\), got 0\.5"
        ):
            answer([0, 1])


def test_saved_networks_and_logits_refuse_too(tmp_path: Path) -> None:
    model = locum.compile(lookup(aggregate(full, tokens), {0: 1, 1: 5}), length=3, vocabulary=[0, 1])
    model.save(tmp_path / "model")
    read = locum.load(tmp_path / "model")
    assert read.config.partial == model.config.partial != ()
    assert read([1, 1]) == [5, 5]
    with pytest.raises(ExecutionError, match=r"lookup table \(0, 1\), got 0\.5"):
        read([0, 1])
    logits = [[[0.0, 1.0]] * 2]
    with pytest.raises(ExecutionError, match=r"lookup table \(0, 1\), got 0\.5"):
        model.decode(logits, [0, 1])


@pytest.mark.parametrize(
    "program",
    [
        aggregate(select(indices, length - 1 - indices, "=="), tokens),
        lookup(ONES, {0: 3, 1: 2, 2: 0, 3: 1}),
        locum.map(lambda m: m * 2, aggregate(full, tokens), over=[0, 1 / 3, 1 / 2, 2 / 3, 1]),
        6 / (ONES + 1),
        log(ONES + length),
        selector_width(select(lookup(tokens, {0: 4, 1: 4}), 4, "==")),
    ],
)
def test_programs_that_always_have_a_value_are_known_to(program: SOp) -> None:
    model = locum.compile(program, length=3, vocabulary=[0, 1])
    assert model.config.partial == ()
    assert all(model(sequence) == pytest.approx(program(sequence)) for sequence in inputs([0, 1], 3))


def with_gaps(program: Node, draw: random.Random) -> Node:
    """The program, with an entry less in some tables and zeros among some divisors."""

    def changed(node: Node) -> Node:
        if node.op == "lookup" and len(node.table) > 1 and draw.random() < 0.5:
            table = list(node.table)
            del table[draw.randrange(len(table))]
            return build("lookup", *node.inputs, table=tuple(table))
        if node.op in ("modulo", "divide", "floor_divide") and draw.random() < 0.5:
            less = build("subtract", node.inputs[1], build("indices"))
            return build(node.op, node.inputs[0], less)
        return node

    return transform(program, changed)


@pytest.mark.parametrize("seed", [2, 3, 4, 7, 9])
def test_random_programs_with_gaps(seed: int) -> None:
    draw = random.Random(seed)
    sequence = trial(seed)
    program, vocabulary = with_gaps(sequence.program, draw), sequence.vocabulary[:3]
    try:
        model = locum.compile(program, length=3, vocabulary=vocabulary)
    except CompileError:
        return
    for tokens_ in draw.sample(inputs(vocabulary, 3), min(12, len(inputs(vocabulary, 3)))):
        expected = value(program, tokens_)
        if isinstance(expected, str):
            with pytest.raises(ExecutionError):
                model(tokens_)
        else:
            assert is_close(model(tokens_), expected, 1e-9 + model.error_bound)


def test_checks_are_the_s_ops_that_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network runs no more of its program than that, and nothing of a program without gaps."""
    shares = 6 / (length - selector_width(select(tokens, 0, "==")))
    program = aggregate(select(indices, length - 1 - indices, "=="), shares * tokens + indices)
    model = locum.compile(program, length=3, vocabulary=[0, 1])
    (check,) = map(loads, model.config.checks)
    assert check is shares.node
    expected = pytest.approx(program([0, 1]))
    assert model([0, 1]) == expected
    with pytest.raises(ExecutionError, match="division by zero at position 0, in 6 / "):
        model([0, 0])
    assert len(model([0, 0], check=False)) == 2
    with pytest.raises(InputError, match="of the vocabulary"):
        model([0, 2], check=False)
    total = locum.compile(reverse, length=3, vocabulary=[0, 1])
    for module in (dense, fast):
        monkeypatch.setattr(module, "evaluate", None)
        monkeypatch.setattr(module, "evaluate_all", None, raising=False)
    assert total([[0, 1], [1, 1]]) == [[1, 0], [1, 1]]
    assert model([0, 1], check=False) == expected


def test_models_of_the_last_version_are_checked_by_their_program(tmp_path: Path) -> None:
    model = locum.compile(6 / ONES, length=3, vocabulary=[0, 1])
    old = CompiledTransformer(replace(model.config, checks=()), model.weights)
    old.save(tmp_path / "model")
    assert "checks" not in json.loads((tmp_path / "model" / "config.json").read_text())
    read = locum.load(tmp_path / "model")
    assert read([1, 1]) == [3.0, 3.0]
    with pytest.raises(ExecutionError, match="division by zero"):
        read([0, 0])


@pytest.mark.parametrize("kind", ["relu", "gelu", "exact"])
@pytest.mark.parametrize("program", [log(indices), indices / (indices - 1), 1 / (length - 2)])
def test_undefined_tables_with_real_tokens(program: SOp, kind: str) -> None:
    for root in (program + indices, program + tokens, locum.exp(tokens) / (indices - 1)):
        network = locum.compile(
            root, length=3, numeric=True, ranges=(0, 2), feed_forward=kind, fold=False
        )
        with pytest.raises(ExecutionError):
            network([1.0, 2.0])


@pytest.mark.parametrize("kind", ["exact", "glu"])
@pytest.mark.parametrize(
    "program",
    [
        0 * (2 / tokens),
        (2 / tokens) - (2 / tokens),
        (tokens / tokens) ** 0,
        1 ** (2 / tokens),
        aggregate(full, 0 * log(tokens)),
    ],
)
def test_an_undefined_number_that_cancels_is_refused(program: SOp, kind: str) -> None:
    model = locum.compile(program, length=2, numeric=True, feed_forward=kind, tolerance=1e-2)
    for sequence in ([1.0], [2.0, 0.5]):
        assert is_close(model(sequence), program(sequence), 1e-9)
    for sequence in ([0.0], [1.0, 0.0]):
        with pytest.raises(ExecutionError):
            model(sequence)
