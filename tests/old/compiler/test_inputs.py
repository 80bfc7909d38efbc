"""Conditions on inputs: facts hold on every accepted input, and other inputs are rejected."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import locum
from locum import aggregate, indices, select, selector_width, tokens
from locum.errors import CompileError, ExecutionError, InputError
from locum.execution import dense
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, Node, Sort, build, postorder, sort_of
from locum.languages import LTL, language, regular
from locum.languages.automata import DFA
from locum.languages.named_languages import read
from locum.networks.compiler.program import normalise
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target
from locum.rasp.handles import wrap
from tests.compiler.agreement import is_close
from tests.old.compiler.random_programs import INDICES, LENGTH, TOKENS, about_tokens

PLUS = select(tokens, "+", "==")
POSITION = aggregate(PLUS, indices)

#: Weiss's long_addition.rasp: the digits of the sum of two numbers, at the end of the input.
LONG_ADDITION = """
def value_of(token) {
    table = {"0":0, "1":1, "2":2, "3":3, "4":4, "5":5, "6":6, "7":7, "8":8, "9":9};
    value = -1;
    for digit in table { value = table[digit] if token == digit else value; }
    return value;
}
add_index = aggregate(select(tokens, "+", ==), indices);
digits = value_of(tokens);
val2 = digits if indices > add_index else 0;
val1 = aggregate(select(indices + (length - add_index), indices, ==), digits, 0);
definite_carry = val1 + val2 > 9;
may_carry = val1 + val2 == 9;
definite_no_carry = val1 + val2 < 9;
previous = round(aggregate(select(indices, indices, <), indicator(definite_no_carry)) * indices);
potential = select(indices, indices, >) and select(previous, previous, ==);
triggered = aggregate(potential, indicator(definite_carry)) > 0;
carries = definite_carry or (may_carry and triggered);
receives = aggregate(select(indices, indices + 1, ==), carries, False);
sums = val1 + val2 + indicator(receives);
longsum = sums if sums < 10 else sums - 10;
"""


#: The meaning of a condition.
Holds: TypeAlias = Callable[[list[Atom]], bool]


def accepted(condition: Holds, vocabulary: Any, longest: int) -> list[list[Atom]]:
    """All inputs that satisfy a condition."""
    lengths = range(1, longest + 1)
    words = (list(word) for n in lengths for word in itertools.product(vocabulary, repeat=n))
    return [word for word in words if condition(word)]


def check(model: Any, program: Any, vocabulary: Any, condition: Holds) -> int:
    """Compare with dense execution on all inputs; return how many are accepted."""
    shortest, longest = model.config.lengths
    count = 0
    for length in range(shortest, longest + 1):
        for word in map(list, itertools.product(vocabulary, repeat=length)):
            if not condition(word):
                with pytest.raises(InputError, match="compiled for such inputs alone"):
                    model(word)
                continue
            count += 1
            expected, actual = program(word), model(word)
            assert is_close(actual, expected, max(1e-12, model.error_bound)), word
    return count


def one_plus(word: list[Atom]) -> bool:
    return word.count("+") == 1


# What is accepted --------------------------------------------------------------------------------

WAYS: dict[str, Any] = {
    "count": {"+": 1},
    "pair": {"+": (1, 1)},
    "two counts": [{"+": (1, None)}, {"+": (0, 1)}],
    "language": language(r"(a|b)*\+(a|b)*"),
    "formula": LTL.parse('F "+" & G ("+" -> WX G !"+")', alphabet="ab+"),
    "width": selector_width(PLUS) == 1,
    "width below": (selector_width(PLUS) < 2) & (selector_width(PLUS) > 0),
    "examples": (selector_width(PLUS) == 1, ["+", "a+b"]),
    "several": [(selector_width(PLUS) >= 1, ["+", ["+", "+"]]), {"+": (0, 1)}],
    "node": (selector_width(PLUS) == 1).node,
}


@pytest.mark.parametrize("way", WAYS)
def test_one_key_is_moved(way: str) -> None:
    model = locum.compile(POSITION, length=4, vocabulary="ab+", inputs=WAYS[way])
    assert (model.architecture.layers, model.architecture.d_mlp) == (1, 0)
    assert (model.error_bound, model.config.sink) == (0, False)
    assert check(model, POSITION, "ab+", one_plus) == 1 + 4 + 12 + 32


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("feed_forward", ["relu", "gelu", "glu", "exact"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kinds_of_networks(attention: str, feed_forward: str, dtype: str) -> None:
    program = (indices > POSITION) & (POSITION * 2 != locum.length)
    options: dict[str, Any] = {"attention": attention, "feed_forward": feed_forward, "dtype": dtype}
    choices: list[dict[str, Any]] = [{}, {"fixed": True}, {"reuse_slots": False}]
    for more in choices:
        model = locum.compile(program, length=4, vocabulary="ab+", inputs={"+": 1}, **options, **more)
        assert check(model, program, "ab+", one_plus) >= 32


def test_a_decoder() -> None:
    past = select(indices, indices, "<=")
    program = aggregate(PLUS & past, indices + 1, 0)
    model = locum.compile(program, length=5, vocabulary="ab+", inputs={"+": (0, 1)}, causal=True)
    assert model.error_bound == 0
    check(model, program, "ab+", lambda word: word.count("+") <= 1)


def test_each_token_once() -> None:
    """Tokens that are all different are sorted without ties."""
    smaller = selector_width(select(tokens, tokens, "<"))
    program = aggregate(select(smaller, indices, "=="), tokens)
    once = dict.fromkeys(range(4), (0, 1))
    model = locum.compile(program, length=4, vocabulary=range(4), inputs=once)
    check(model, program, range(4), lambda word: len({*word}) == len(word))


def test_widths_need_no_head() -> None:
    model = locum.compile(selector_width(PLUS), length=6, vocabulary="ab+", inputs={"+": 2})
    assert model.architecture.layers == 0
    assert model("a++") == [2, 2, 2]


def test_tokens_at_positions() -> None:
    """A language that has other tokens at the start: the combinations that occur are fewer."""
    code = locum.lookup(tokens, {"(": 0, "a": 5, "b": 7}) + 3 * indices
    inputs = language(r"\((a|b)*", alphabet="(ab")
    target = Target.read(length=3, vocabulary="(ab", inputs=inputs)
    assert Selectors(target).values.finite(code.node) == (0, 8, 10, 11, 13)
    model = locum.compile(code, length=3, vocabulary="(ab", inputs=inputs)
    assert model("(ab") == code("(ab")
    with pytest.raises(InputError, match="expected an input of the language of inputs=…, got 'a'"):
        model("a")


def test_a_language_with_its_definition() -> None:
    target = Target.read(length=3, vocabulary="ab", inputs=read("(ab)*"))
    assert target.inputs == Target.read(length=3, vocabulary="ab", inputs=regular.read("(ab)*")).inputs


def test_real_numbers() -> None:
    model = locum.compile(tokens + 1, length=3, numeric=True, inputs=(tokens > 0))
    assert model([1.5, 2.0]) == [2.5, 3.0]
    with pytest.raises(InputError, match=r"expected an input on which tokens > 0 is true everywhere"):
        model([1.5, -1.0])


# Weiss's long addition ---------------------------------------------------------------------------


@pytest.fixture
def long_addition(tmp_path: Path) -> Any:
    path = tmp_path / "long_addition.rasp"
    path.write_text(LONG_ADDITION)
    return locum.load_program(path)


def test_long_addition(long_addition: Any) -> None:
    model = locum.compile(long_addition, length=12, vocabulary="0123456789+", inputs={"+": 1})
    assert model.config.feed_forward == "relu"
    assert model.error_bound < 1e-6
    generator = random.Random(0)
    for _ in range(100):
        first, second = generator.randrange(10 ** generator.randrange(1, 6)), generator.randrange(99999)
        second = generator.choice((second, 10 ** len(str(first)) - 1 - first, 10**5 - 1))
        word = f"0{first:05}+{second:05}"
        answer = model(word)
        assert answer == long_addition(word)
        assert "".join(str(int(digit)) for digit in answer[-5:]) == f"{first + second:05}"[-5:]
    for _ in range(100):
        letters = generator.choices("0123456789", k=generator.randrange(1, 13))
        letters[generator.randrange(len(letters))] = "+"
        assert is_close(model(letters), long_addition(letters), model.error_bound)
    with pytest.raises(InputError, match=r"exactly one '\+', got '12'"):
        model("12")


def test_shorter_networks_of_long_addition_are_smaller(long_addition: Any) -> None:
    options: dict[str, Any] = {"vocabulary": "0123456789+", "inputs": {"+": 1}}
    models = [locum.compile(long_addition, length=length, **options) for length in (4, 6, 8, 12)]
    for shorter, longer in itertools.pairwise(model.architecture for model in models):
        assert shorter.parameters < longer.parameters
        assert shorter.d_model < longer.d_model
    for word in ("9+1", "+99", "095+27", "+"):
        assert is_close(models[1](word), long_addition(word), models[1].error_bound)


def test_the_mean_is_named_and_the_advice_compiles(long_addition: Any, tmp_path: Path) -> None:
    (mean,) = (
        node
        for node in postorder(long_addition.node)
        if node.op == "aggregate" and node.inputs[1].op == "indices"
    )
    options: dict[str, Any] = {"length": 8, "vocabulary": "0123456789+", "limit": None}
    with pytest.raises(CompileError) as raised:
        locum.compile(long_addition, **options, names={wrap(mean): "add_index"})
    assert "got a mean over several '+', in add_index; try inputs={'+': 1}" in str(raised.value)
    assert 'or try best(select(tokens_str, "+", ==), indices) instead of' in str(raised.value)
    text = LONG_ADDITION.replace(
        'select(tokens, "+", ==), i', 'best(select(tokens, "+", ==), indices), i'
    )
    assert text != LONG_ADDITION
    (tmp_path / "changed.rasp").write_text(text)
    locum.compile(locum.load_program(tmp_path / "changed.rasp"), **options)


# What is rejected --------------------------------------------------------------------------------


def test_rejected_inputs_and_unchecked_ones() -> None:
    model = locum.compile(POSITION, length=4, vocabulary="ab+", inputs={"+": 1})
    assert len(model("a+b+", check=False)) == 4
    with pytest.raises(InputError, match=r"expected an input with exactly one '\+', got 'a\+b\+'"):
        model("a+b+")
    with pytest.raises(InputError, match="exactly one"):
        model(np.array([["a", "+"], ["a", "b"]]))
    with pytest.raises(InputError, match="exactly one"):
        model.run_with_cache("ab")
    with pytest.raises(InputError, match="exactly one"):
        model.decode(np.zeros((1, 2, 1)), "ab")


def test_saved_networks_check(tmp_path: Path) -> None:
    inputs = [{"+": 1}, tokens != "b"]
    model = locum.compile(POSITION, length=4, vocabulary="ab+", inputs=inputs)
    model.save(tmp_path / "model")
    loaded = locum.load(tmp_path / "model")
    assert loaded.config.inputs == model.config.inputs
    assert check(loaded, POSITION, "ab+", lambda w: one_plus(w) and "b" not in w) == 1 + 2 + 3 + 4
    options = loaded.config.report["options"]
    assert Target.read(**options) == Target.read(**model.config.report["options"])
    assert Target.read(**options).inputs == model.config.inputs
    assert "exactly one '+'" in model.report()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("a*", r"got 'a\*'; try locum.languages.language"),
        (lambda word: True, "a function of Python cannot be saved with the weights"),
        (3, "inputs: expected counts of tokens such as"),
        ({"-": 1}, r"expected tokens of the vocabulary \('a', 'b', '\+'\), got '-'"),
        ({"+": -1}, r"expected a number of occurrences of \+?"),
        ({"+": (2, 1)}, "expected a number of occurrences"),
        ({"+": True}, "expected a number of occurrences"),
        ({"+": 5}, "that an input of at most 4 tokens can have, got 5"),
        (language("c*"), "over tokens of the vocabulary, got the letter 'c'"),
        (tokens, "expected an s-op that is true or false, got values of type str"),
        (PLUS, "expected an s-op, got a selector"),
        ((tokens != "a", ["b", "ba"]), "is true everywhere as an example, got 'ba'"),
        ((tokens != "a", ["bc"]), "expected examples of tokens of the vocabulary, got 'c'"),
        ((tokens != "a", [""]), "got an empty input"),
        (language("∅", alphabet="ab"), "that some input of 1 to 4 tokens satisfies"),
        ([{"+": 1}, {"+": 2}], "that some input of 1 to 4 tokens satisfies"),
        (selector_width(PLUS) == 9, "that some input of 1 to 4 tokens satisfies"),
        ((tokens == "a") & (tokens == "b"), "that some input of 1 to 4 tokens satisfies"),
    ],
)
def test_conditions_that_are_rejected(inputs: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        locum.compile(POSITION, length=4, vocabulary="ab+", inputs=inputs)


def test_counts_of_real_numbers_are_rejected() -> None:
    with pytest.raises(CompileError, match=r"since tokens are real numbers.*try vocabulary"):
        locum.compile(tokens, length=4, numeric=True, inputs={1: 1})


# Random programs and conditions ------------------------------------------------------------------

_OPERATIONS = ("equal", "equal", "less", "less_equal", "greater", "greater_equal", "not_equal")


def _constant(value: Atom) -> Node:
    return build("constant", value=value)


def _holds(node: Node) -> Holds:
    return lambda word: all(value is True for value in dense.evaluate(node, word, FloatDomain()))


def _random_condition(draw: random.Random, vocabulary: list[Atom]) -> tuple[Any, Holds]:
    """Draw a condition, with its meaning."""
    token = draw.choice(vocabulary)
    match draw.randrange(4):
        case 0:
            low = draw.choice((0, 1, 1, 1, 2))
            high = draw.choice((low, low, low + 1, None))
            count = low if high == low else (low, high)
            return {
                token: count
            }, lambda word: low <= word.count(token) <= (99 if high is None else high)
        case 1:
            letters = tuple(map(str, vocabulary if draw.random() < 0.7 else vocabulary[:-1]))
            states = draw.randrange(1, 5)
            rows = tuple(tuple(draw.randrange(states) for _ in letters) for _ in range(states))
            accepting = frozenset(draw.sample(range(states), draw.randrange(1, states + 1)))
            automaton = DFA(letters, rows, accepting)
            return (
                automaton,
                lambda word: {*map(str, word)} <= {*letters} and automaton.accepts([*map(str, word)]),
            )
        case 2:
            predicate = draw.choice(("==", "!=", "=="))
            chosen = build("select", TOKENS, _constant(token), predicate=predicate)
            parts = [build("selector_width", chosen), _constant(draw.choice((0, 1, 1, 2, 1.5)))]
            draw.shuffle(parts)
            node = build(draw.choice(_OPERATIONS), *parts)
            return node, _holds(node)
        case _:
            local = build(draw.choice(("equal", "not_equal")), TOKENS, _constant(token))
            place = build(
                draw.choice(("less", "greater_equal", "equal")),
                draw.choice((INDICES, LENGTH)),
                _constant(draw.randrange(3)),
            )
            node = build(draw.choice(("or", "and", "or")), local, place)
            return node, _holds(node)


def _check_facts(facts: Selectors, node: Node, word: list[Atom], vocabulary: list[Atom]) -> None:
    """Compare what is known of an s-op or a selector with its value on one input."""
    try:
        value: Any = dense.evaluate(node, word, FloatDomain())
    except ExecutionError:
        return
    if sort_of(node) is Sort.SELECTOR:
        widths, (low, high) = value.sum(axis=1), facts.widths(node)
        assert ((low <= widths) & (widths <= high)).all()
        assert not facts.unique(node) or (widths <= 1).all()
        assert facts.may_be_empty(node) or (widths >= 1).all()
        return
    listed, between = facts.values.finite(node), facts.values.integers(node)
    table = facts.values.table(node)
    assert listed is None or all(atom in listed for atom in value)
    assert between is None or all(between.low <= atom <= between.high for atom in value)
    if table is not None and all(isinstance(source, str) for source in table.sources):
        sizes = [len(facts.values.domain(source)) for source in table.sources]
        for position, atom in enumerate(value):
            at: dict[Any, int] = {
                "tokens": vocabulary.index(word[position]),
                "indices": position,
                "length": len(word) - facts.target.shortest,
            }
            places = tuple(at[source] for source in table.sources)
            place = int(np.ravel_multi_index(places, sizes)) if sizes else 0
            assert table.values[place] == atom


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_and_conditions(seed: int) -> None:
    """All facts hold on all accepted inputs, the network is right there, and rejects the others."""
    draw = random.Random(seed)
    vocabulary: list[Atom] = [*draw.choice(("ab+", "ab", (0, 1, 2), (1, 2.5, -1), (0, 1)))]
    longest = draw.choice((2, 3, 3))
    drawn = [_random_condition(draw, vocabulary) for _ in range(draw.choice((1, 1, 2)))]
    program, fixed = about_tokens(seed, vocabulary), draw.random() < 0.2
    words = accepted(lambda word: all(holds(word) for _, holds in drawn), vocabulary, longest)
    words = [word for word in words if not fixed or len(word) == longest]
    options: dict[str, Any] = {
        "length": longest,
        "vocabulary": vocabulary,
        "inputs": [condition for condition, _ in drawn],
        "fixed": fixed,
        "feed_forward": draw.choice(("relu", "relu", "gelu", "glu", "exact")),
        "attention": draw.choice(("hard", "softmax")),
        "reuse_slots": draw.random() < 0.7,
    }
    try:
        facts = Selectors(Target.read(**options))
    except CompileError:
        assert not words
        return
    for word in words:
        for node in postorder(normalise(program, numeric=False)):
            _check_facts(facts, node, word, vocabulary)
    try:
        model = locum.compile(program, **options)
    except CompileError:
        return
    sop: Any = wrap(program)
    for length in range(model.config.lengths[0], longest + 1):
        for word in map(list, itertools.product(vocabulary, repeat=length)):
            if word not in words:
                with pytest.raises((InputError, ExecutionError)):
                    model(word)
                continue
            try:
                expected = sop(word)
            except ExecutionError:
                with pytest.raises(ExecutionError):
                    model(word)
                continue
            bound = model.error_bound if model.error_bound < np.inf else 0.0
            assert is_close(model(word), expected, max(1e-9, bound))


def test_conditions_are_checked_before_values_are() -> None:
    """The program is undefined for tokens that no accepted input contains."""
    price = locum.lookup(tokens, {1: 10, 8: 20})
    model = locum.compile(price, length=3, vocabulary=range(10), inputs=locum.member(tokens, [1, 8]))
    assert model([1, 8]) == price([1, 8])
    for inputs in ([1, 2], np.array([1, 2]), [[1, 2], [1]]):
        with pytest.raises(InputError, match="compiled for such inputs alone"):
            model(inputs)
    with pytest.raises(ExecutionError, match="undefined for this token"):
        locum.compile(price, length=3, vocabulary=range(10))([1, 2])
