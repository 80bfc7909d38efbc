"""The one table of cases: program, input, expected value. Every executor runs all of it.

A new program goes here, not into a test file of its own. Expected values are what Weiss's RASP
gives where it has the operation, with ints and floats told apart, and plain arithmetic elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from locum import (
    Selector,
    SOp,
    aggregate,
    best,
    constant,
    cos,
    erf,
    exp,
    family,
    floor,
    full,
    indicator,
    indices,
    length,
    log,
    lookup,
    maximum,
    member,
    minimum,
    select,
    selector_width,
    sin,
    sqrt,
    sum_over,
    tanh,
    tokens,
    tokens_bool,
    tokens_float,
    tokens_int,
    tokens_str,
    where,
)
from locum.rasp import bfloat16, float16, float32, float64


@dataclass(frozen=True)
class Case:
    """A program that has a value on this input."""

    name: str
    program: SOp | Selector
    given: Any
    expected: list[Any]


@dataclass(frozen=True)
class Failure:
    """A program that has no value on this input, and words the error must contain."""

    name: str
    program: SOp | Selector
    given: Any
    words: tuple[str, ...]


# Programs of "Thinking Like Transformers", and others that the field knows ---------------------

same_token = select(tokens, tokens, "==")
before = select(indices, indices, "<")
up_to_here = select(indices, indices, "<=")
here = select(indices, indices, "==")

histogram = selector_width(same_token)
reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)


def sort(values: SOp, by: SOp) -> SOp:
    """``values`` in ascending order of ``by``, ties in their old order."""
    smaller = select(by, by, "<") | (select(by, by, "==") & before)
    rank = selector_width(smaller)
    return aggregate(select(rank, indices, "=="), values)


first_of_its_kind = selector_width(same_token & before) == 0
# Most frequent tokens first, each once, then blanks.
frequency = where(first_of_its_kind, histogram, -1)
most_frequent = sort(where(first_of_its_kind, tokens, "-"), -frequency)
distinct_count = selector_width(select(where(first_of_its_kind, 1, 0), 1, "=="))


def prefix_balance(opening: str, closing: str) -> SOp:
    """Opened minus closed brackets up to here, as a mean over the prefix."""
    step = indicator(tokens == opening) - indicator(tokens == closing)
    return aggregate(up_to_here, step)


def prefix_count(condition: SOp) -> SOp:
    """How many positions up to here satisfy the condition."""
    return (indices + 1) * aggregate(up_to_here, indicator(condition))


# PTF of the paper: P may go on, T is balanced, F is beyond repair.
_balance = prefix_balance("(", ")")
_broken = aggregate(up_to_here, indicator(_balance < 0)) > 0
dyck1 = where(_broken, "F", where(_balance == 0, "T", "P"))


def shuffle_dyck(pairs: tuple[str, ...]) -> SOp:
    """Whether each kind of bracket is balanced by itself, at every position the same answer."""
    good: SOp = constant(True)
    for opening, closing in map(tuple, pairs):
        step = indicator(tokens == opening) - indicator(tokens == closing)
        total = aggregate(full, step)
        lowest = aggregate(best(full, -aggregate(up_to_here, step)), aggregate(up_to_here, step))
        good = good & (total == 0) & (lowest >= 0)
    return good


# Dyck-2 with best(): each closing bracket looks at the latest position of the depth below.
_opening = member(tokens, "([")
_depth = round((indices + 1) * aggregate(up_to_here, where(_opening, 1, -1)))
_level = _depth + where(_opening, 0, 1)
_partner = best(select(_level, _level, "==") & before, indices)
_fits = lookup(tokens, {"(": ")", "[": "]", ")": "-", "]": "-"})
_match = aggregate(_partner, _fits, "") == tokens
_bad = (~_opening & ~_match) | (_depth < 0)
dyck2 = where(aggregate(up_to_here, indicator(_bad)) > 0, "F", where(_depth == 0, "T", "P"))

previous_share = aggregate(up_to_here, indicator(tokens == "x"))


def matmul(rows: int, inner: int, columns: int) -> SOp:
    """The paper's Algorithm 3 with two families: r + c heads that fetch, r·c that sum."""
    l, m = family(rows, "l"), family(columns, "m")
    row = aggregate(select(indices, indices % inner + l * inner, "=="), tokens)
    column = aggregate(select(indices, (indices % inner) * columns + rows * inner + m, "=="), tokens)
    place = select(indices, inner, "<") & select(l * columns + m, indices, "==")
    return inner * sum_over(l, m, aggregate(place, row * column))


def convolution(weights: tuple[int, ...]) -> SOp:
    """Σ over a family of shifts."""
    shift = family(len(weights))
    weight = lookup(shift, dict(enumerate(weights)))
    return sum_over(shift, weight * aggregate(select(indices, indices - shift, "=="), tokens))


def _nested_sum() -> SOp:
    outer, inner = family(3), family(2)
    return sum_over(outer, outer * sum_over(inner, indices + inner))


def _matrix(*rows: str) -> list[list[bool]]:
    return [[cell == "1" for cell in row] for row in rows]


CASES = [
    # Leaves and casts.
    Case("tokens", tokens, "abc", ["a", "b", "c"]),
    Case("tokens keeps types", tokens, [1, 2.5, 2], [1, 2.5, 2]),
    Case("tokens_str", tokens_str, [1, 2.5, True], ["1", "2.5", "True"]),
    Case("tokens_int", tokens_int, "1203", [1, 2, 0, 3]),
    Case("tokens_int of bools", tokens_int, [True, False], [1, 0]),
    Case("tokens_float", tokens_float, "12", [1.0, 2.0]),
    Case("tokens_bool", tokens_bool, [0, 3, 1], [False, True, True]),
    Case("indices", indices, "abcd", [0, 1, 2, 3]),
    Case("length", length, "abc", [3, 3, 3]),
    Case("length of one", length, "a", [1]),
    Case("constant", constant("x"), "ab", ["x", "x"]),
    # Arithmetic, as Python does it.
    Case("add", indices + 1, "abc", [1, 2, 3]),
    Case("add strings", tokens + "!", "ab", ["a!", "b!"]),
    Case("subtract", 3 - indices, "abc", [3, 2, 1]),
    Case("multiply", indices * indices, "abcd", [0, 1, 4, 9]),
    Case("multiply strings", tokens * 2, "ab", ["aa", "bb"]),
    Case("divide gives floats", tokens / 2, [4, 3], [2.0, 1.5]),
    Case("modulo of negatives", tokens % 3, [-7, 7], [2, 1]),
    Case("modulo by a negative", tokens % -3, [-7, 7], [-1, -2]),
    Case("floor_divide", tokens // 2, [-3, 3, 5.0], [-2, 1, 2.0]),
    Case("power", tokens**2, [3, -2, 0.5], [9, 4, 0.25]),
    Case("power negative", 2**tokens, [-1, 3], [0.5, 8]),
    Case("negate", -indices, "abc", [0, -1, -2]),
    Case("absolute", abs(tokens), [-3, 2.5], [3, 2.5]),
    Case("minimum", minimum(indices, 1), "abc", [0, 1, 1]),
    Case("maximum", maximum(indices, 1), "abc", [1, 1, 2]),
    # Functions.
    Case("exp", exp(tokens), [0, 1], [1.0, math.e]),
    Case("log", log(tokens), [1, math.e], [0.0, 1.0]),
    Case("sqrt", sqrt(tokens), [9, 2], [3.0, math.sqrt(2)]),
    Case("erf", erf(tokens), [0, 1], [0.0, 0.8427007929497149]),
    Case("tanh", tanh(tokens), [0, 1], [0.0, 0.7615941559557649]),
    Case("sin", sin(tokens), [0, 1], [0.0, math.sin(1)]),
    Case("cos", cos(tokens), [0, 1], [1.0, math.cos(1)]),
    Case("float64", float64(tokens), [1, 0.1], [1.0, 0.1]),
    Case("float32", float32(tokens), [1, 0.1], [1.0, 0.10000000149011612]),
    Case("float16", float16(tokens), [1, 0.1, 65504.0], [1.0, 0.0999755859375, 65504.0]),
    Case("bfloat16", bfloat16(tokens), [1, 0.1, 1.005], [1.0, 0.10009765625, 1.0078125]),
    Case("floor", floor(tokens), [-1.5, 2.7, 4], [-2, 2, 4]),
    Case("round to even", round(tokens), [0.5, 1.5, 2.5, -2.5, 2.567], [0, 2, 2, -2, 3]),
    # Comparison and logic.
    Case("equal", tokens == "l", "hello", [False, False, True, True, False]),
    Case("equal across types", tokens == indices, "01", [False, False]),
    Case("not_equal", indices != 1, "abc", [True, False, True]),
    Case("less", indices < 1, "abc", [True, False, False]),
    Case("less_equal", indices <= 1, "abc", [True, True, False]),
    Case("greater", indices > 1, "abc", [False, False, True]),
    Case("greater_equal", indices >= 1, "abc", [False, True, True]),
    Case("and of numbers", indices & 1, "abc", [False, True, True]),
    Case("or", (indices == 0) | (indices == 2), "abc", [True, False, True]),
    Case("not", ~indices, "abc", [True, False, False]),
    Case("if_else", where(indices > 1, tokens, "-"), "abcd", ["-", "-", "c", "d"]),
    Case("if_else of ints and floats", where(indices > 1, 1, 0.5), "abc", [0.5, 0.5, 1]),
    Case("indicator", indicator(tokens == "a"), "aba", [1, 0, 1]),
    Case("member", member(tokens, "aeiou"), "hello", [False, True, False, False, True]),
    Case("member of mixed", member(tokens, [1, "b"]), [1.0, 2, True], [True, False, True]),
    Case("member of nothing", member(tokens, []), "ab", [False, False]),
    Case("lookup", lookup(tokens, {"a": 1, "b": 2.5}), "abba", [1, 2.5, 2.5, 1]),
    Case("bools with ints", where(indices > 0, indices == 1, 5), "abc", [5, True, False]),
    # Selectors: rows are queries.
    Case("select ==", select(indices, 1, "=="), "abc", _matrix("010", "010", "010")),
    Case("select !=", select(1, indices, "!="), "abc", _matrix("111", "000", "111")),
    Case("select <", before, "abc", _matrix("000", "100", "110")),
    Case("select <=", select(tokens, tokens, "<="), "aba", _matrix("101", "111", "101")),
    Case("select >", select(tokens, indices, ">"), [2, 0, 1], _matrix("101", "100", "000")),
    Case("select >=", select(indices * 2, indices, ">="), "abc", _matrix("111", "011", "011")),
    Case("select strings with numbers", select(tokens, indices, "=="), "ab", _matrix("00", "00")),
    Case("selector and", same_token & before, "aaa", _matrix("000", "100", "110")),
    Case("selector or", here | before, "abc", _matrix("100", "110", "111")),
    Case("selector not", ~here, "abc", _matrix("011", "101", "110")),
    Case("full", full, "ab", _matrix("11", "11")),
    Case("best", best(full, tokens), [3, 9, 9], _matrix("011", "011", "011")),
    Case("best of a part", best(before, tokens), [5, 9, 1], _matrix("000", "100", "010")),
    Case("best of strings", best(full, tokens), "aba", _matrix("010", "010", "010")),
    # Attention.
    Case("mean of what came before", aggregate(before, indices), "hello", [0, 0, 0.5, 1.0, 1.5]),
    Case("one hit keeps strings", aggregate(here, tokens), "hello", ["h", "e", "l", "l", "o"]),
    Case("one hit keeps bools", aggregate(here, indices == 1), "ab", [False, True]),
    Case("default of floats", aggregate(before, indices, -1.5), "abc", [-1.5, 0, 0.5]),
    Case(
        "default of strings",
        aggregate(select(indices, indices - 1, "=="), tokens, "-"),
        "abc",
        ["-", "a", "b"],
    ),
    Case("nothing selected", aggregate(select(indices, 9, "=="), tokens), "ab", [0, 0]),
    Case("mean of ints is a float", aggregate(full, tokens), [1, 3], [2.0, 2.0]),
    Case("mean of a constant", aggregate(full, 1), "abc", [1.0, 1.0, 1.0]),
    Case("large ints", aggregate(full, tokens), [2**60, 2**60, 2**60], [float(2**60)] * 3),
    Case("huge ints pass", aggregate(here, tokens), [10**40, 7], [10**40, 7]),
    Case(
        "infinity stays where it is",
        aggregate(select(indices, 0, ">"), tokens),
        [math.inf, 1.0, 3.0],
        [2.0, 2.0, 2.0],
    ),
    Case("selector_width", selector_width(before), "abc", [0, 1, 2]),
    Case("leftmost", aggregate(best(same_token, -indices), indices), "abab", [0, 1, 0, 1]),
    # Families.
    Case("family sum", (lambda l: sum_over(l, l + indices))(family(3)), "ab", [3, 6]),
    Case("family not used", (lambda l: sum_over(l, indices))(family(3)), "ab", [0, 3]),
    Case("nested families", _nested_sum(), "ab", [3, 9]),
    Case("two families", (lambda l, m: sum_over(l, m, l * m))(family(3), family(4)), "a", [18]),
    Case("convolution", convolution((1, 10, 100)), [1, 2, 3, 4], [1, 12, 123, 234]),
    Case(
        "matmul 2×2×2", matmul(2, 2, 2), [1, 2, 3, 4, 5, 6, 7, 8], [19.0, 22.0, 43.0, 50.0, 0, 0, 0, 0]
    ),
    Case(
        "matmul 1×3×2", matmul(1, 3, 2), [1, 2, 3, 1, 4, 2, 5, 3, 6], [14.0, 32.0, 0, 0, 0, 0, 0, 0, 0]
    ),
    Case(
        "width of a family",
        (lambda l: sum_over(l, selector_width(select(indices, l, "<"))))(family(4)),
        "abc",
        [6, 6, 6],
    ),
    # Programs.
    Case("histogram", histogram, "hello", [1, 1, 2, 2, 1]),
    Case("reverse", reverse, "hello", ["o", "l", "l", "e", "h"]),
    Case("sort", sort(tokens, tokens), [3, 1, 2, 1], [1, 1, 2, 3]),
    Case("sort strings by key", sort(tokens, -indices), "abc", ["c", "b", "a"]),
    Case("most frequent", most_frequent, "abbccddd", ["d", "b", "c", "a", "-", "-", "-", "-"]),
    Case("distinct tokens", distinct_count, "abca", [3, 3, 3, 3]),
    Case("fraction of previous", previous_share, "xax", [1, 0.5, 2 / 3]),
    Case("prefix count", prefix_count(tokens == "x"), "xax", [1, 1.0, 2.0]),
    Case("Dyck-1", dyck1, "(())()", ["P", "P", "P", "T", "P", "T"]),
    Case("Dyck-1 broken", dyck1, "())(", ["P", "T", "F", "F"]),
    Case("Dyck-2", dyck2, "([])[", ["P", "P", "P", "T", "P"]),
    Case("Dyck-2 crossed", dyck2, "([)]", ["P", "P", "F", "F"]),
    Case("shuffle-Dyck-2", shuffle_dyck(("()", "[]")), "([)]", [True] * 4),
    Case("shuffle-Dyck-2 unbalanced", shuffle_dyck(("()", "[]")), "[)](", [False] * 4),
    Case("shuffle-Dyck-1", shuffle_dyck(("()",)), "())(", [False] * 4),
    Case(
        "transpose 2×3",
        aggregate(select(indices, (indices % 2) * 3 + indices // 2, "=="), tokens),
        [1, 2, 3, 4, 5, 6],
        [1, 4, 2, 5, 3, 6],
    ),
    Case(
        "row softmax, one row",
        exp(tokens) / (length * aggregate(full, exp(tokens))),
        [0, 0],
        [0.5, 0.5],
    ),
    Case(
        "Match2, corrected",
        indicator(aggregate(select(tokens % 5, (5 - tokens % 5) % 5, "=="), 1) > 0),
        [1, 5, 4, 2],
        [1, 1, 1, 0],
    ),
]

FAILURES = [
    Failure("division by zero", 1 / indices, "ab", ("division by zero", "position 0", "1 / indices")),
    Failure(
        "division by zero in the dead branch",
        where(indices > 0, 1 / indices, 0),
        "ab",
        ("division by zero", "position 0", "1 / indices"),
    ),
    Failure("modulo by zero", tokens % 0, [1], ("division by zero", "tokens % 0")),
    Failure("mixed types", where(indices > 0, "a", 1), "ab", ("mix strings", "if (indices > 0)")),
    Failure("mixed defaults", aggregate(before, tokens), "ab", ("mix strings", "aggregate")),
    Failure("mean of strings", aggregate(full, tokens), "ab", ("average", "'a', 'b'", "aggregate")),
    Failure("mean of bools", aggregate(full, indices > 0), "ab", ("average", "aggregate")),
    Failure(
        "strings below numbers",
        select(tokens, indices, "<"),
        "ab",
        ("< is not defined for 'a' and 0", "(key 0) at position 0", "select(tokens, indices, <)"),
    ),
    Failure("int of a letter", tokens_int, "1h", ("invalid literal", "position 1", "tokens_int")),
    Failure("complex power", tokens**0.5, [4, -4], ("not a real number", "position 1")),
    Failure("log of zero", log(tokens), [1, 0], ("log is not defined for 0", "position 1")),
    Failure("float16 overflows", float16(tokens), [1.0, 70000.0], ("too large",)),
    Failure("cos of infinity", cos(tokens), [1.0, math.inf], ("cos is not defined for inf",)),
    Failure("sin of infinity", sin(tokens), [1.0, math.inf], ("sin is not defined for inf",)),
    Failure("exp too large", exp(tokens), [1, 1000], ("too large", "position 1")),
    Failure("tower of powers", tokens ** (10**9), [2], ("more than 1000000 bits",)),
    Failure("string too long", tokens * 10**9, "a", ("more than 1000000 characters",)),
    Failure("strings have no remainder", tokens % 2, ["%d"], ("modulo is not defined",)),
    Failure("lookup misses", lookup(tokens, {"a": 1}), "ab", ("got 'b'", "position 1")),
    Failure("negative strings", -tokens, "ab", ("negate is not defined", "position 0")),
    Failure(
        "in a head",
        (lambda l: sum_over(l, 1 / (indices - l)))(family(3)),
        "ab",
        ("division by zero", "l = 0"),
    ),
    Failure(
        "sum of strings", (lambda l: sum_over(l, tokens))(family(2)), "ab", ("sum_over is not defined",)
    ),
]
