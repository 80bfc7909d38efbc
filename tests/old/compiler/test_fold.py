"""``fold=False`` keeps the s-ops of a program as heads and units where embeddings would do."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

import locum
from locum import aggregate, indicator, indices, length, select, selector_width, tokens
from locum.errors import ExecutionError, LocumError
from locum.experiments.circuits.circuit_checking import alignment, check_circuit
from locum.networks.compiler import compiling, count_layers
from locum.rasp.handles import SOp
from tests.compiler.agreement import others
from tests.old.compiler.random_programs import trial

PREVIOUS = aggregate(select(indices, indices - 1, "=="), tokens, 0)
PARITY = ((tokens * 2) + 1) % 3
#: Programs of numbers; layers and heads with and without folding; the s-ops of units.
PROGRAMS: dict[str, tuple[SOp, tuple[int, int] | None, tuple[int, int], list[str]]] = {
    "a comparison": (tokens == 1, (0, 0), (1, 0), ["tokens == 1"]),
    "a line": (tokens + 1, (0, 0), (1, 0), ["tokens + 1"]),
    "a chain": (PARITY, (0, 0), (3, 0), ["tokens * 2", "(tokens * 2) + 1", "((tokens * 2) + 1) % 3"]),
    "a table": (locum.lookup(tokens, {0: 2, 1: 5, 2: 1, 3: 0}), (0, 0), (1, 0), ["{0: 2, 1: 5"]),
    "positions": (indices % 2, (0, 0), (1, 0), ["indices % 2"]),
    "two s-ops": (
        ((tokens % 2) == (tokens // 2)),
        (0, 0),
        (2, 0),
        ["tokens % 2", "tokens // 2", "(tokens % 2) == (tokens // 2)"],
    ),
    "a mean of positions": (
        aggregate(select(indices, indices, "<="), indices % 2), None, (2, 1), ["indices % 2"],
    ),
    "itself": (aggregate(select(indices, indices, "=="), tokens), (0, 0), (1, 1), []),
    "a value that is moved": (
        aggregate(select(indices, indices - 1, "=="), tokens % 2, 0), (1, 1), (2, 1), ["tokens % 2"],
    ),
    "a selector of functions": (
        selector_width(select(tokens % 2, tokens // 2, "==")), (1, 1), (2, 1),
        ["tokens % 2", "tokens // 2"],
    ),
    "a function of a move": (PREVIOUS * 2, (1, 1), (1, 1), []),
    "no function": (PREVIOUS, (1, 1), (1, 1), []),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_kept(name: str) -> None:
    program, folded, kept, labels = PROGRAMS[name]
    options: dict[str, Any] = {"length": 4, "vocabulary": range(4)}
    for fold, expected in ((True, folded), (False, kept)):
        model = locum.compile(program, fold=fold, **options)
        sizes = (model.architecture.layers, sum(model.architecture.heads))
        assert expected is None or sizes == expected, fold
        assert count_layers(program, fold=fold, **options) == sizes[0]
    found = [node.label for node in model.circuit.nodes if node.kind == "units"]
    assert [label for label in labels if not any(each.startswith(label) for each in found)] == []


@pytest.mark.parametrize("options", [
    {"feed_forward": "relu"}, {"feed_forward": "gelu", "attention": "softmax"},
    {"feed_forward": "glu", "dtype": "float32"}, {"feed_forward": "exact"},
    {"attention": "softmax", "dtype": "float32", "reuse_slots": False}, {"fixed": True},
], ids=str)  # fmt: skip
def test_answers_on_all_inputs(options: dict[str, Any]) -> None:
    for name, (program, *_) in PROGRAMS.items():
        model = locum.compile(program, length=3, vocabulary=range(3), fold=False, **options)
        shortest = 3 if options.get("fixed") else 1
        for count in range(shortest, 4):
            for given in product(range(3), repeat=count):
                _require_right(model, program, list(given), name)


def _require_right(model: Any, program: Any, given: list[Any], name: object) -> None:
    try:
        expected = program(given)
    except ExecutionError:
        with pytest.raises(ExecutionError):
            model(given)
        return
    rounding = 2.0**-48 if model.config.dtype == "float64" else 2.0**-20
    for one, other in zip(model(given), expected, strict=True):
        if isinstance(other, str):
            assert one == other, (name, given)
        else:
            allowed = model.error_bound + rounding * max(1, abs(other))
            assert abs(one - other) <= allowed, (name, given)


@pytest.mark.parametrize("part", range(2))
def test_random_programs(part: int) -> None:
    compiled = 0
    for seed in range(1000 + 15 * part, 1015 + 15 * part):
        drawn, draw = trial(seed), random.Random(seed)
        options: dict[str, Any] = {
            "attention": draw.choice(("hard", "softmax")),
            "feed_forward": draw.choice(("relu", "gelu", "glu", "exact")),
            "fixed": draw.random() < 0.2,
        }
        try:
            model = compiling.compile(
                drawn.program,
                length=len(drawn.given),
                vocabulary=drawn.vocabulary,
                fold=False,
                **options,
            )
        except LocumError:
            continue
        compiled += 1
        shortest = len(drawn.given) if options["fixed"] else 1
        for given in (drawn.given, *others(drawn.given, draw, 3, shortest=shortest)):
            _require_right(model, SOp(drawn.program), list(given), seed)
    assert compiled > 10


def test_a_causal_width_of_positions_is_counted_by_a_head() -> None:
    before = selector_width(select(indices, indices, "<="))
    options: dict[str, Any] = {"length": 4, "vocabulary": "ab", "causal": True}
    assert sum(locum.compile(before, **options).architecture.heads) == 0
    model = locum.compile(before, fold=False, **options)
    assert sum(model.architecture.heads) == 1
    assert model("abba") == [1, 2, 3, 4]


def test_tokens_without_a_value_are_rejected() -> None:
    table = locum.lookup(tokens, {"a": 1, "b": 2})
    model = locum.compile(table + 1, length=3, vocabulary="abc", fold=False)
    assert model("ab") == [2, 3]
    with pytest.raises(ExecutionError):
        model("ac")


def test_kept_s_ops_are_the_parts_of_the_circuit() -> None:
    """Interventions on the parts are interventions on the s-ops of the program."""
    program = aggregate(select(indices, indices - 1, "=="), indicator((tokens % 2) == 1), 2) + length
    model = locum.compile(
        program, length=3, vocabulary=range(3), attention="softmax", reuse_slots=False, fold=False
    )
    assert check_circuit(model).checked["complete"]
    parts = {part.label: part.mismatches for part in alignment(model, most=20)}
    assert {"tokens % 2", "(tokens % 2) == 1"} <= set(parts)
    assert set(parts.values()) == {0}
