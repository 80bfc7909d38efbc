"""Feed-forwards of relu, gelu and gated units: gates against their errors, and whole programs."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum import (
    SOp,
    aggregate,
    best,
    full,
    indices,
    length,
    select,
    selector_width,
    tokens,
    tokens_str,
)
from locum.errors import CompileError, ExecutionError, InputError
from locum.execution.dense import evaluate
from locum.execution.domains.floats import FloatDomain
from locum.graph import abbreviate
from locum.networks.compiler import compile  # noqa: A004
from locum.networks.compiler.network.forms import Bend, Curved, Form, Gate, Masked, Product, Table
from locum.networks.compiler.units.curves import CURVES, UnitsError, approximate, exponential
from locum.networks.compiler.units.hidden import Argument, Hidden
from locum.networks.compiler.units.realise import realise
from locum.networks.transformer import load
from locum.rasp.python import exp
from tests.old.compiler.finite import Programs

KINDS = ("relu", "gelu", "glu")
RANGES = {
    "exp": [(-1.0, 1.0), (-12.0, 3.0)],
    "log": [(0.05, 16.0), (3e-4, 3e4)],
    "sqrt": [(0.0, 4.0), (0.5, 9.0)],
    "reciprocal": [(0.1, 16.0), (-3.0, -0.25)],
    "square": [(-2.0, 2.0), (0.5, 3.0)],
    "tanh": [(-3.0, 3.0), (-30.0, 30.0), (0.5, 2.0)],
    "erf": [(-3.0, 5.0), (-2.0, -0.2)],
    "sin": [(-1.5, 1.5), (0.2, 1.2)],
}


@pytest.mark.parametrize("error", [1e-2, 1e-5])
@pytest.mark.parametrize("name", CURVES)
def test_broken_lines_keep_their_certificate_and_nearly_reach_it(name: str, error: float) -> None:
    draw = np.random.default_rng(1)
    for low, high in RANGES[name]:
        line = approximate(name, low, high, error)
        x = np.concatenate(
            [draw.uniform(low, high, 50_000), line.knots, (line.knots[1:] + line.knots[:-1]) / 2]
        )
        worst = float(np.abs(line(x) - CURVES[name].function(x)).max())
        assert 0.95 * line.error <= worst <= line.error <= error


def test_exponentials_of_relative_error() -> None:
    line = exponential(-9.0, 9.0, 1e-4)
    x = np.random.default_rng(2).uniform(-9, 9, 50_000)
    worst = float(np.abs(line(x) / np.exp(x) - 1).max())
    assert 0.95 * line.error <= worst <= line.error <= 1e-4


@pytest.mark.parametrize(
    ("name", "low", "high"), [("log", -1, 1), ("reciprocal", -1, 1), ("exp", 0, math.inf)]
)
def test_where_a_curve_has_no_value_there_is_no_line(name: str, low: float, high: float) -> None:
    with pytest.raises(UnitsError):
        approximate(name, low, high, 1e-3)


def test_gelu_that_would_have_to_be_too_sharp_is_refused() -> None:
    gate = Curved("exp", Form(), relative=True)
    with pytest.raises(UnitsError, match="an input scale of inf"):
        realise(gate, "gelu", (Argument(-690.0, 500.0),), 1e-1, 2.0**-53)


def computed(hidden: Hidden, kind: str, *arguments: Any) -> Any:
    """What the units give."""
    x = np.stack(arguments, axis=-1)
    pre = x @ hidden.pre.T + hidden.bias
    if kind == "glu":
        assert hidden.gate is not None
        assert hidden.gate_bias is not None
        after = np.maximum(x @ hidden.gate.T + hidden.gate_bias, 0) * pre
    elif kind == "relu":
        after = np.maximum(pre, 0)
    else:
        after = pre * 0.5 * (1 + np.vectorize(math.erf)(pre / math.sqrt(2)))
    return after @ hidden.out + hidden.constant


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("low", [-2.0, 0.5])
def test_gates_are_within_their_errors(kind: str, low: float) -> None:
    draw = np.random.default_rng(3)
    a, b = draw.uniform(low, 3, 4000), draw.uniform(-1, 5, 4000)
    one, other = Argument(low, 3.0), Argument(-1.0, 5.0)
    form = Form()
    mask = draw.integers(0, 2, 4000).astype(float)
    trials: list[tuple[Gate, tuple[Argument, ...], tuple[Any, ...], Any]] = [
        (Product(form, form), (one, other), (a, b), a * b),
        (Masked(form, form), (Argument(0.0, 1.0), other), (mask, b), mask * b),
        (Bend(form, -1.0, 1.0), (one,), (a,), np.abs(a)),
        (Curved("square", form), (one,), (a,), a * a),
        (Curved("tanh", form), (one,), (a,), np.tanh(a)),
    ]
    for gate, ranges, arguments, expected in trials:
        hidden = realise(gate, kind, ranges, 1e-4, 2.0**-53)
        worst = float(np.abs(computed(hidden, kind, *arguments) - expected).max())
        assert hidden.error <= 1e-4
        assert worst <= hidden.error + 2.0**-53 * (hidden.size + 8) * hidden.weight


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_whole_numbers_are_exact_and_staircases_stop_noise(kind: str) -> None:
    keys = np.array([0.0, 1, 2, 5, 11, 12])
    values = np.array([3.0, -1, 4, 4, 0, 7])
    exact = realise(Table(Form(), keys, values), kind, (Argument(0, 12),), 1e-3, 2.0**-53)
    assert (computed(exact, kind, keys) == values).all()
    noisy = realise(Table(Form(), keys, values), kind, (Argument(0, 12, 0.1),), 1e-3, 2.0**-53)
    for noise in (-0.1, 0.05, 0.1):
        assert np.abs(computed(noisy, kind, keys + noise) - values).max() < 1e-12


def agree(seed: int, kind: str, *, real: bool, **options: Any) -> float | None:
    """Compares a random program with dense execution; its bound, or None where it is refused."""
    draw = random.Random(seed)
    node = Programs(seed, real=real).value(3 + seed % 2)
    size, fixed = draw.randrange(1, 6), draw.random() < 0.4
    inputs: dict[str, Any] = {"numeric": True, "ranges": (-2, 2)} if real else {"vocabulary": range(4)}
    try:
        model = compile(node, length=size, fixed=fixed, feed_forward=kind, **inputs, **options)
    except CompileError:
        return None
    bound = float(model.config.report["error_bound"])
    for _ in range(4):
        many = size if fixed else draw.randrange(1, size + 1)
        sequence = [draw.uniform(-2, 2) if real else draw.randrange(4) for _ in range(many)]
        try:
            expected = evaluate(node, sequence, FloatDomain())
        except ExecutionError:
            continue
        actual = model(sequence)
        for one, other in zip(actual, expected, strict=True):
            assert abs(float(one) - float(other)) <= max(bound, 1e-12), (seed, node, sequence)
    return bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_random_programs_within_their_bounds(kind: str, real: bool, attention: str) -> None:
    bounds = [agree(seed, kind, real=real, attention=attention) for seed in range(20)]
    kept = [bound for bound in bounds if bound is not None]
    assert len(kept) >= 18  # few are refused
    if kind == "glu":  # products are exact
        assert max(kept) < 1e-9
    else:
        assert max(kept) <= 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_in_single_precision(kind: str) -> None:
    bounds = [agree(seed, kind, real=False, dtype="float32", tolerance=0.01) for seed in range(15)]
    assert sum(bound is not None for bound in bounds) >= 8


@pytest.mark.parametrize("kind", KINDS)
def test_constants_that_single_precision_does_not_hold(kind: str) -> None:
    """Written down they are off: the output itself, or what is added to the units of a curve."""
    for program in (indices * 0 + 0.1, exp(tokens)):
        model = compile(
            program, length=1, numeric=True, ranges=(-0.1, -0.1), feed_forward=kind, dtype="float32",
            tolerance=1e-3,
        )  # fmt: skip
        assert 0 < abs(model([-0.1])[0] - program([-0.1])[0]) <= model.error_bound < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_counts_as_keys_of_hard_attention(kind: str) -> None:
    """Ties have to be exact, so counts are made whole first."""
    smaller = select(tokens, tokens, "<") | (
        select(tokens, tokens, "==") & select(indices, indices, "<")
    )
    ordered = aggregate(select(selector_width(smaller), indices, "=="), tokens)
    model = compile(ordered, length=8, vocabulary=[1, 2, 3, 4, 5], feed_forward=kind)
    for inputs in ([3, 1, 2], [5, 5, 1, 2, 2, 4, 1, 3], [4]):
        assert model(inputs) == sorted(inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_length_counted_by_a_head_that_is_there_anyway(kind: str) -> None:
    """That head does not attend to the sink, as others that count do."""
    total = aggregate(select(1, 1, "=="), tokens) * length
    program = total + aggregate(select(indices, indices, "<"), tokens)  # the first selects nothing
    model = compile(program, length=4, vocabulary=[0, 1, 2], feed_forward=kind)
    for inputs in ([2], [2, 1], [2, 1, 0], [1, 1, 2, 0]):
        assert model(inputs) == pytest.approx(program(inputs), abs=model.error_bound + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_reverse_at_every_length(kind: str) -> None:
    reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    model = compile(reverse, length=9, vocabulary="abcd", feed_forward=kind)
    for size in range(1, 10):
        inputs = [random.Random(size).choice("abcd") for _ in range(size)]
        assert model(inputs) == inputs[::-1]


@pytest.mark.parametrize("kind", ["relu", "gelu"])
@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize(
    "program",
    [
        selector_width(select(tokens, tokens, "==")),
        selector_width(select(tokens, tokens, "<")),
        aggregate(best(full, tokens), tokens),
    ],
)
def test_keys_that_are_not_there_need_not_be_apart(program: SOp, attention: str, kind: str) -> None:
    """Behind the end of a shorter input is 0, nearer to a token than the separation: it was counted."""
    model = compile(
        program, length=4, numeric=True, ranges=(-1, 1), separation=0.5, attention=attention,
        feed_forward=kind,
    )  # fmt: skip
    for first in np.linspace(-0.99, 0.49, 25).tolist():
        for inputs in ([first], [first + 0.5, first], [first, first, first + 0.5]):
            assert model(inputs) == pytest.approx(program(inputs), abs=1e-6), inputs


@pytest.mark.parametrize(
    ("kind", "attention"), [("glu", "hard"), ("relu", "hard"), ("gelu", "softmax")]
)
def test_real_numbers_compared_with_a_separation(kind: str, attention: str) -> None:
    ordered = aggregate(select(selector_width(select(tokens, tokens, "<")), indices, "=="), tokens)
    model = compile(
        ordered, length=5, numeric=True, fixed=True, ranges=(-1, 1), separation=0.01,
        feed_forward=kind, attention=attention, tolerance=1e-3,
    )  # fmt: skip
    inputs = [0.3, -0.2, 0.9, 0.1, -0.7]
    assert (
        np.abs(np.array(model(inputs)) - sorted(inputs)).max()
        <= model.config.report["error_bound"]
        <= 1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_outside_of_the_declared_ranges_are_refused(kind: str, tmp_path: Path) -> None:
    """Units do not serve them: the square of 5 would come out as that of 1."""
    model = compile(tokens * tokens, length=3, numeric=True, feed_forward=kind, ranges=(-1, 1))
    model.save(tmp_path / "model")
    for one in (model, load(tmp_path / "model")):
        assert one([1, -1.0]) == pytest.approx([1, 1], abs=1e-3)
        for inputs in ([0.5, 1.5], [5], np.array([0.0, -1.0000001])):
            with pytest.raises(InputError, match="from -1 to 1"):
                one(inputs)
            with pytest.raises(InputError, match="from -1 to 1"):
                one.encode(inputs)


def test_ranges_of_positions_and_of_rounded_numbers() -> None:
    ends = [(-1, 1), (0, math.inf), (0.1, 0.1)]
    model = compile(tokens * indices, length=3, numeric=True, feed_forward="glu", ranges=ends)
    assert model([1, 5e9, 0.1]) == [0, 5e9, 0.2]
    with pytest.raises(InputError, match="from 0 to inf at position 1"):
        model([1, -1])
    single = compile(
        tokens, length=1, numeric=True, feed_forward="relu", ranges=(0, 0.1), dtype="float32"
    )
    single(np.array([0.1], dtype=np.float32))  # more than 0.1, in the last bit
    anywhere = compile(tokens * tokens, length=2, numeric=True, ranges=(-1, 1), feed_forward="exact")
    assert anywhere([5, 6]) == [25, 36]  # exact feed-forwards have no range


REFUSED = [
    (tokens * indices, {"numeric": True, "feed_forward": "relu"}, "ranges"),
    (exp(tokens), {"numeric": True, "feed_forward": "glu", "ranges": (-1, 1)}, "tolerance"),
    (tokens // 2, {"numeric": True, "feed_forward": "relu", "ranges": (-1, 1)}, "discontinuous"),
    (tokens > 0.5, {"numeric": True, "feed_forward": "glu", "ranges": (-1, 1)}, "separation"),
    (1 / tokens, {"numeric": True, "feed_forward": "relu", "ranges": (-1, 1)}, "reciprocal"),
]


@pytest.mark.parametrize(("program", "options", "word"), REFUSED)
def test_refusals_say_what_would_help(program: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(CompileError, match=word) as refused:
        compile(program, length=4, **options)
    assert refused.value.where == abbreviate(program.node)
    advice = r"try feed_forward='(glu'|gelu'|exact' \(symbolic feed-forwards, executed as code\))$"
    assert re.search(advice, str(refused.value))


def test_what_nothing_can_compute_is_not_recommended() -> None:
    """Instructions are named where they would do, and only there."""
    with pytest.raises(CompileError, match="got real-valued tokens") as refused:
        compile(tokens_str, length=4, numeric=True)
    assert "exact" not in str(refused.value)


def test_hidden_units_are_the_default() -> None:
    reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    model = compile(reverse, length=5, vocabulary="abc")
    assert model.weights.feed_forwards == {"relu"}
    assert model("abc") == list("cba")
    assert model.config.attention == "hard"


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("kind", ["relu", "gelu"])
def test_numbers_that_units_do_not_touch_need_no_range(kind: str, attention: str) -> None:
    """They are moved and added up, and the slots that they were in are erased."""
    flip = select(indices, length - 1 - indices, "==")
    there_and_back = aggregate(flip, aggregate(flip, tokens)) * 2
    options: dict[str, Any] = {"attention": attention, "feed_forward": kind}
    model = compile(there_and_back, length=4, numeric=True, **options)
    inputs = [1e300, -3.5, 0.0]
    assert model(inputs) == there_and_back(inputs)
    with pytest.raises(CompileError, match=r"try ranges=\(low, high\)"):
        compile(abs(tokens), length=4, numeric=True, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "program",
    [
        indices**tokens,  # 0 ** 1 is 0, although log(0) has no value
        (indices - 1) ** tokens,
        (indices - 1) ** 65,
        indices**1.5 + tokens,
        exp(indices) / (2 * tokens - 3),  # the divisor may be negative
    ],
    ids=lambda program: abbreviate(program.node),
)
def test_powers_and_quotients_of_numbers_that_may_not_be_positive(program: SOp, kind: str) -> None:
    for prefer in (None, "small"):
        try:
            network = compile(
                program, length=3, vocabulary=[1, 2], feed_forward=kind, prefer=prefer, fold=False
            )
        except CompileError:
            continue
        for inputs in ([1, 1, 2], [2, 1, 2], [2, 2]):
            np.testing.assert_allclose(network(inputs), program(inputs), rtol=1e-9, atol=1e-3)


def test_products_beyond_the_range_of_floats_with_gated_units() -> None:
    program = aggregate(select(indices, indices, "<"), tokens) * tokens
    network = compile(program, length=1, vocabulary=[1e300, 1.0], feed_forward="glu")
    assert network([1.0]) == program([1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_tables_whose_steps_floats_round(kind: str) -> None:
    """The difference 2⁶³ − 2 of two products is not a float, so steps of a table would lose the 2."""
    try:
        network = compile(
            tokens * length, length=3, vocabulary=[2**62, 1], feed_forward=kind, dtype="float32"
        )
    except CompileError:
        return
    for inputs in ([1, 1], [2**62, 1], [1]):
        assert (
            np.abs(np.subtract(network(inputs), (tokens * length)(inputs))).max() <= network.error_bound
        )


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_comparison_of_unbounded_numbers_has_no_certified_error(dtype: str, attention: str) -> None:
    """The network loses an index that it adds to a large token: the bound was near 0 all the same."""
    model = compile(
        aggregate(select(tokens + indices, tokens, "<="), length),
        length=4, numeric=True, feed_forward="glu", separation=0.05, tolerance=0.01, prefer="exact",
        dtype=dtype, attention=attention,
    )  # fmt: skip
    assert model.error_bound == math.inf
