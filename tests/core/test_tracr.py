"""Programs of Tracr, by the names of its classes: the same answers, dense and as weights."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

import locum
from locum import CompileError, ExecutionError, GraphError
from tests.core import tracr as rasp

C = rasp.Comparison
tokens, indices, length = rasp.TokensType(), rasp.IndicesType(), rasp.LengthType()


def select(keys: Any, queries: Any, predicate: Any) -> Any:
    return rasp.Select(keys=keys, queries=queries, predicate=predicate)


def mapped(function: Any, inner: Any) -> Any:
    return rasp.Map(f=function, inner=inner)


def both(function: Any, first: Any, second: Any) -> Any:
    return rasp.SequenceMap(f=function, fst=first, snd=second)


def aggregate(selector: Any, sop: Any, default: Any = None) -> Any:
    return rasp.Aggregate(selector=selector, sop=sop, default=default)


before = select(indices, indices, C.LT)
hist = rasp.SelectorWidth(selector=select(tokens, tokens, C.EQ))
opposite = both(lambda n, i: n - i - 1, length, indices)
reverse = aggregate(select(indices, opposite, C.EQ), tokens)
previous = aggregate(select(indices, mapped(lambda i: i - 1, indices), C.EQ), tokens)
ones = mapped(lambda t: 1 if t == "a" else 0, tokens)
share = aggregate(select(indices, indices, C.LEQ), ones, 0).numerical()
half = aggregate(select(indices, indices, C.LEQ), mapped(lambda i: i / 3, indices), 0).numerical()
negative = mapped(lambda x: x < 0.5, share)
balanced = both(lambda x, y: x or y, negative, mapped(lambda x: x == 1, share))
by_length = mapped(lambda t: {"a": "short", "b": "long"}.get(t, "none"), tokens)
pairs = both(lambda t, i: (t, i % 2), tokens, indices)
earlier = rasp.SelectorAnd(fst=select(tokens, tokens, C.EQ), snd=before)

PROGRAMS = {
    "hist": hist,
    "reverse": reverse,
    "previous, None at first": mapped(lambda t: t.upper(), previous),
    "previous is the same": both(lambda a, b: a == b, previous, tokens),
    "share of a": share,
    "twice the share": mapped(lambda x: x * 2, share),
    "a truth of a mean": mapped(lambda x: not x, share),
    "truths of means": both(lambda x, y: x and not y, negative, balanced),
    "a mean of truths of means": mapped(
        lambda x: not x,
        aggregate(select(indices, indices, C.TRUE), mapped(lambda x: x, balanced), 0).numerical(),
    ),
    "branches on a mean": mapped(lambda x: 2 if x > 0.5 else -1 if x < 0.25 else 0, share),
    "texts of a mean": mapped(lambda x: "much" if x > 0.5 else "little", share),
    "a rounded share": mapped(lambda x: round(x, 1), share),
    "a rounded mean is compared": rasp.SelectorWidth(
        selector=select(share, share, lambda a, b: round(a, 1) < b)
    ),
    "an argument next to a mean": mapped(
        lambda x: {5: "five", 7: "seven"}[x],
        both(lambda x, t: t, half, mapped(lambda t: 5 if t == "a" else 7, tokens)),
    ),
    "a text of digits": mapped(lambda x: f"{x:.2f}", both(lambda x, i: x * i, share, indices)),
    "a lambda as a table": by_length,
    "seen before": mapped(lambda n: n > 0, rasp.SelectorWidth(selector=earlier)),
    "a predicate of pairs": rasp.SelectorWidth(
        selector=select(pairs, pairs, lambda a, b: a[0] == b[0] and a[1] <= b[1])
    ),
    "a predicate by classes": rasp.SelectorWidth(
        selector=select(indices, indices, lambda a, b: a // 2 == b // 2)
    ),
    "None is not None": rasp.SelectorWidth(selector=select(previous, previous, C.EQ)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_tracr_gives(name: str) -> None:
    program = PROGRAMS[name]
    ours = locum.rasp.from_tracr(program, vocabulary="abc", length=5)
    model = locum.compile(ours, length=5, vocabulary="abc")
    draw = random.Random(1)
    for _ in range(20):
        inputs = [draw.choice("abc") for _ in range(draw.randint(1, 5))]
        found = ours(inputs)
        for value, result in zip(program(inputs), found, strict=True):
            # None is -1 next to booleans and numbers, and less than all of them.
            assert result == value or (value is None and result in ("None", -1))
        assert model(inputs) == (pytest.approx(found) if name.endswith("share") else found)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 if isinstance(x, float) else 0,
        lambda x: type(x).__name__,
        lambda x: x * len(str(x)),
        lambda x: x * {0.5: 3}.get(x, 1),
        lambda x: x if isinstance(x, float) else x + 1,
    ],
)
def test_a_function_that_inspects_a_mean_is_refused(function: Any) -> None:
    with pytest.raises(GraphError, match="a function of means"):
        locum.rasp.from_tracr(mapped(function, half), vocabulary="ab", length=3)


def test_a_function_that_inspects_a_tabulated_mean_is_refused() -> None:
    """The mean of one 0 is 0, the mean of two is 0.0, and the smaller of 1 and the mean as well."""
    mean = aggregate(select(indices, indices, C.LEQ), mapped(lambda i: 0, indices), 0).numerical()
    smaller = mapped(lambda x: min(x, 1), mean)
    with pytest.raises(GraphError, match=r"got '0\.0' and '0'"):
        locum.rasp.from_tracr(mapped(str, smaller), vocabulary="ab", length=3)
    ours = locum.rasp.from_tracr(mapped(lambda x: x or 2, smaller), vocabulary="ab", length=3)
    assert ours("aba") == [2, 2, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 if x > 0.5 else 0,
        lambda x: not x,
        lambda x: 2 if x > 0.5 else -1 if x < 0.25 else x,
    ],
)
def test_branches_on_means_of_fractions_are_refused_with_a_suggestion_that_works(function: Any) -> None:
    with pytest.raises(GraphError, match=r"locum\.where\(…\) on the result"):
        locum.rasp.from_tracr(mapped(function, half), vocabulary="ab", length=3)
    ours = locum.where(locum.rasp.from_tracr(half, vocabulary="ab", length=3) > 0.3, 1, 0)
    assert ours("aba") == mapped(lambda x: 1 if x > 0.3 else 0, half)(list("aba"))


@pytest.mark.parametrize(
    ("function", "other"),
    [
        (lambda x, t: t[0], pairs),  # a text represents each pair
        (lambda x, n: x + n, aggregate(select(indices, opposite, C.LT), indices)),  # some are None
    ],
)
def test_functions_of_means_are_not_called_on_representations(function: Any, other: Any) -> None:
    with pytest.raises(GraphError, match="a function of means"):
        locum.rasp.from_tracr(both(function, half, other), vocabulary="ab", length=3)


def test_what_cannot_be_taken_over_is_refused() -> None:
    with pytest.raises(GraphError, match="expected an SOp of tracr"):
        locum.rasp.from_tracr(locum.tokens, vocabulary="ab", length=3)
    with pytest.raises(GraphError, match="a function of means"):
        locum.rasp.from_tracr(
            mapped(lambda x: "much" if round(x, 1) > 0.5 else "", half), vocabulary="ab", length=3
        )
    with pytest.raises(GraphError, match="a predicate on means"):
        locum.rasp.from_tracr(
            rasp.SelectorWidth(selector=select(half, half, lambda a, b: a + b == 1)),
            vocabulary="ab",
            length=3,
        )


NONE = {
    "None beside the text None": mapped(lambda t: "None", previous),
    "None is not less": rasp.SelectorWidth(selector=select(previous, tokens, C.LT)),
    "None is not selected": rasp.SelectorWidth(selector=select(previous, tokens, C.TRUE)),
    "not None": rasp.SelectorWidth(selector=rasp.SelectorNot(inner=select(previous, tokens, C.EQ))),
    "None or the same": rasp.SelectorWidth(
        selector=rasp.SelectorOr(fst=select(previous, previous, C.NEQ), snd=before)
    ),
    "None through two": both(lambda a, b: a + b, previous, reverse),
    "None beside negative numbers": mapped(
        lambda i: -3 if i else None,
        aggregate(select(indices, mapped(lambda i: i - 1, indices), C.EQ), indices),
    ),
    "None of a predicate": rasp.SelectorWidth(
        selector=select(previous, tokens, lambda k, q: k is not None and k != q)
    ),
}


@pytest.mark.parametrize("name", NONE)
def test_none_is_told_apart_from_every_value(name: str) -> None:
    """What Tracr gives, with None as one atom that no other value is; networks have it, too."""
    program = NONE[name]
    ours = locum.rasp.from_tracr(program, vocabulary="ab", length=3)
    model = locum.compile(ours, length=3, vocabulary="ab")
    atoms: dict[Any, Any] = {}
    for size in (1, 2, 3):
        for inputs in map(list, product("ab", repeat=size)):
            try:
                answer = program(inputs)
            except (TypeError, ValueError):  # a mean of None
                continue
            result = ours(inputs)
            assert model(inputs) == result
            for value, atom in zip(answer, result, strict=True):
                assert atoms.setdefault(value, atom) == atom
    assert len(set(atoms.values())) == len(atoms)
    assert all(atom == value for value, atom in atoms.items() if value is not None)


def test_tokens_of_several_kinds_are_looked_up_as_they_are() -> None:
    program = mapped(lambda t: f"{t}!", tokens)
    ours = locum.rasp.from_tracr(program, vocabulary=["a", 1], length=2)
    assert ours(["a", "a"]) == ["a!", "a!"]
    assert ours([1]) == ["1!"]


@pytest.mark.parametrize("comparison", [C.LT, C.NEQ, C.EQ])
def test_values_that_texts_stand_for_compare_as_values(comparison: Any) -> None:
    """Texts were compared: (2,) came behind (10,), and a token was not what had been moved."""
    ten = mapped(lambda i: (10 if i else 2,), indices)
    program = rasp.SelectorWidth(selector=select(ten, ten, comparison))
    ours = locum.rasp.from_tracr(program, vocabulary="ab", length=3)
    assert ours("aba") == program(list("aba"))
    moved = aggregate(select(indices, mapped(lambda i: i + 1, indices), C.EQ), tokens, "a")
    other = rasp.SelectorWidth(selector=select(tokens, moved, C.NEQ))
    assert locum.rasp.from_tracr(other, vocabulary=["a", 1], length=3)("aa") == other(["a", "a"])


everywhere = select(indices, indices, C.TRUE)
last = aggregate(select(indices, mapped(lambda i: i - 1, indices), C.EQ), tokens)
mean = aggregate(everywhere, tokens)

#: Programs of the tokens 0, 1 and 3 that average what is not annotated as a number, or None.
MEANS = {
    "a mean": mean,
    "a mean of None": aggregate(everywhere, last),
    "a mean of some None": aggregate(select(tokens, tokens, C.EQ), last),
    "a numerical mean of None": aggregate(select(tokens, tokens, C.EQ), last, 0).numerical(),
    "a mean of truths": aggregate(select(tokens, tokens, C.EQ), mapped(lambda t: t == 1, tokens)),
    "a mean of truths and None": aggregate(everywhere, mapped(lambda t: t == 1, last)),
    "a numerical mean of truths and None": aggregate(
        select(indices, indices, C.GT), mapped(lambda t: t == 1, last), 0
    ).numerical(),
    "a mean of nothing": aggregate(
        select(tokens, mapped(lambda _: 1, tokens), C.EQ), tokens
    ).numerical(),
    "a table of a mean": mapped(lambda x: {0: 1, 1: 2, 3: 4}.get(x, 7), mean),
    "a table of a numerical mean": mapped(
        lambda x: {0: 1, 1: 2, 3: 4}.get(x, 7), aggregate(everywhere, tokens, 0).numerical()
    ),
    "a numerical mean in a set": mapped(
        lambda x: 1 if x in {1, 2} else 0, aggregate(everywhere, tokens, 0).numerical()
    ),
    "a mean is compared": rasp.SelectorWidth(selector=select(mean, tokens, C.LT)),
    "a predicate of a mean": rasp.SelectorWidth(
        selector=select(mean, tokens, lambda k, q: int(3 * k) % 3 == q)
    ),
    "a predicate of None": rasp.SelectorWidth(
        selector=select(last, tokens, lambda k, q: k is None or k != q)
    ),
    "a predicate that raises": rasp.SelectorWidth(
        selector=select(tokens, tokens, lambda k, q: 6 % k == q)
    ),
}


@pytest.mark.parametrize("name", MEANS)
def test_what_tracr_averages_is_right_or_refused(name: str) -> None:
    """Means of None, and of values that a predicate was not tabulated for, came out as numbers."""
    program = MEANS[name]
    ours = locum.rasp.from_tracr(program, vocabulary=[0, 1, 3], length=3)
    model = locum.compile(ours, length=3, vocabulary=[0, 1, 3])
    result: list[Any] | None
    for inputs in (list(row) for size in (1, 2, 3) for row in product((0, 1, 3), repeat=size)):
        try:
            result = ours(inputs)
        except ExecutionError:
            with pytest.raises(ExecutionError):
                model(inputs)
            continue
        assert [-1 if value is None else value for value in program(inputs)] == pytest.approx(result)
        assert model(inputs) == pytest.approx([float(value) for value in result])


def test_a_mean_of_nothing_at_every_first_position_is_rejected() -> None:
    ours = locum.rasp.from_tracr(aggregate(before, tokens).numerical(), vocabulary=[0, 1, 3], length=3)
    with pytest.raises(CompileError, match="undefined at position 0"):
        locum.compile(ours, length=3, vocabulary=[0, 1, 3])
