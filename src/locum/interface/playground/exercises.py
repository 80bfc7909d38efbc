"""Ten exercises, each checked on all short inputs and a few longer ones; the first wrong one is shown.

Whether a solution calls what it is to be written without is decided when it runs, by which function is
called: an alias is that function, and a parameter of the same name is not.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from locum.errors import LocumError
from locum.interface.playground.example_programs import without_example
from locum.interface.playground.panes import texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.paper import listings
from locum.rasp import echo

Word = Sequence[Any]
#: Numbers that differ by less look alike.
SHOWN = 1e-2


@dataclass(frozen=True)
class Exercise:
    """A task, where to begin, and what is right; the s-op that the program ends with is checked."""

    key: str
    title: str
    task: str
    hint: str
    #: What stands in the editor at first, and the input beside it.
    starter: str
    example: str
    #: The symbols and the lengths of the inputs on which a solution is checked: all of them.
    alphabet: Word
    lengths: tuple[int, ...]
    right: Callable[[Word], list[Any]]
    #: Longer inputs on which wrong solutions fail that are right on all short ones.
    longer: tuple[Word, ...]
    #: Functions of the library that would be the solution itself.
    without: tuple[str, ...] = ()

    def words(self) -> Iterator[Word]:
        """Yield every input, by length: all short ones, the example and longer ones."""
        short = (
            "".join(word) if isinstance(self.alphabet, str) else list(word)
            for length in self.lengths
            for word in itertools.product(self.alphabet, repeat=length)
        )
        more = sorted((tokens(self.example), *self.longer), key=len)
        yield from heapq.merge(short, more, key=len)

    def described(self) -> dict[str, str]:
        """Describe it for the page."""
        names = ("key", "title", "task", "hint", "starter", "example")
        return {name: getattr(self, name) for name in names}


def check(key: str, source: str) -> dict[str, Any]:
    """Check a solution: solved, or the shortest input on which it is wrong."""
    exercise = EXERCISES[key]
    program = Program(source, tokens(exercise.example), exercise.without)
    program.require_right()
    name, value = program.sop(None)
    checked = 0
    for word in exercise.words():
        program.session.budget.begin_text()
        program.session.budget.begin_statement()
        expected = exercise.right(word)
        try:
            values: list[Any] | None = list(program.session.run_program(value, word))
            problem = ""
        except LocumError as error:
            values, problem = None, str(error)
        if values is not None:
            problem = _unseen(values, expected)
        if values is None or not _same(values, expected):
            return {
                "solved": False,
                "name": name,
                "checked": checked,
                "counterexample": {
                    "input": texts(word),
                    "typed": word if isinstance(word, str) else str(word),
                    "expected": texts(expected),
                    "values": None if values is None else texts(values),
                    "problem": problem,
                },
            }
        checked += 1
    return {"solved": True, "name": name, "checked": checked, "counterexample": None}


def _same(values: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(_equal(value, right) for value, right in zip(values, expected, strict=True))


def _equal(value: Any, expected: Any, rounding: float = 1e-9) -> bool:
    """Tell whether a value is the right one: a number up to rounding, a boolean as a boolean."""
    if isinstance(value, str | bool) or isinstance(expected, str | bool):
        return type(value) is type(expected) and bool(value == expected)
    try:
        return abs(float(value) - float(expected)) <= rounding
    except OverflowError:  # an integer beyond all floats
        return False


def _unseen(values: Sequence[Any], expected: Sequence[Any]) -> str:
    """Say what is wrong where it may not be seen: a value of another kind, or off by very little."""
    for place, (value, right) in enumerate(zip(values, expected, strict=True)):
        kind, expected_kind = _kind(value), _kind(right)
        if kind != expected_kind:
            advice = "; try tokens_float" if (kind, expected_kind) == ("text", "number") else ""
            shown = f"the {kind} {echo.scalar(value)}"
            return f"at position {place} it is {shown}, not a {expected_kind}{advice}"
        if kind == "number" and not _equal(value, right) and _equal(value, right, SHOWN):
            return f"at position {place} it is {value!r}, not {right!r}"
    return ""


def _kind(value: Any) -> str:
    return {str: "text", bool: "boolean"}.get(type(value), "number")


# What is right ------------------------------------------------------------------------------------


def _everywhere(value: Any, word: Word) -> list[Any]:
    return [value] * len(word)


def _pairs_sorted(word: Word) -> list[Any]:
    pairs = zip(word[::2], word[1::2], strict=True)
    return [number for pair in pairs for number in sorted(pair, reverse=True)]


def is_balanced(word: Word) -> bool:
    """Tell whether every bracket is closed by its own kind.

    >>> is_balanced("([])"), is_balanced("([)]")
    (True, False)
    """
    stack: list[str] = []
    for bracket in word:
        if bracket in "([":
            stack.append(bracket)
        elif not stack or stack.pop() + bracket not in ("()", "[]"):
            return False
    return not stack


def _nested(pairs: int) -> tuple[str, ...]:
    """List the words of so many pairs of brackets that are balanced if their kinds are ignored.

    >>> len(_nested(2)), "([)]" in _nested(2), ")(" in _nested(1)
    (32, True, False)
    """
    shapes = ("".join(shape) for shape in itertools.product("()", repeat=2 * pairs))
    kinds = {"(": "([", ")": ")]"}
    return tuple(
        "".join(word)
        for shape in shapes
        if is_balanced(shape)
        for word in itertools.product(*(kinds[bracket] for bracket in shape))
    )


_LETTERS, _UP_TO_FIVE = "abc", (1, 2, 3, 4, 5)
_WORDS = ("abcabc", "banana", "mississippi", "cbaabccbaabc")

EXERCISES = {
    exercise.key: exercise
    for exercise in (
        Exercise(
            "reverse", "Reverse", "Give the input backwards: abc becomes cba.",
            "Which position holds what position i must receive? select(keys, queries, ==) compares.",
            "# An s-op has a value at each position. The last s-op of the program is your answer.\n"
            "reverse = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: list(word)[::-1], _WORDS,
        ),
        Exercise(
            "shift", "One to the right",
            'Move every token one place to the right; "_" stands at the first position (without the '
            "library's shift).",
            "aggregate(selector, values, default) gives the default where nothing is selected.",
            "right = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: ["_", *word[:-1]], _WORDS,
            without=("shift",),
        ),
        Exercise(
            "count", "How many a",
            "Give the number of a's in the input, at every position (without the library's count).",
            "A head averages. What is the mean of a 0/1 sequence, and what is the length?",
            'is_a = indicator(tokens == "a");\nnumber = is_a;\n',
            "banana", _LETTERS, _UP_TO_FIVE, lambda word: _everywhere(list(word).count("a"), word),
            _WORDS, without=("count",),
        ),
        Exercise(
            "histogram", "Histogram", "Give at each position how often its own token occurs.",
            "selector_width(s) counts the keys that a query selects.",
            "same = select(tokens, tokens, ==);\nhistogram = indices;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: [list(word).count(letter) for letter in word],
            _WORDS,
        ),
        Exercise(
            "new", "Seen before?",
            "True where a token occurs for the first time, False elsewhere (without the library's "
            "mark_first_instance).",
            "Selectors can be combined: s and t. Keys before the query: select(indices, indices, <).",
            "new = indices == 0;\n",
            "hello", _LETTERS, _UP_TO_FIVE,
            lambda word: [letter not in word[:i] for i, letter in enumerate(word)], _WORDS,
            without=("mark_first_instance",),
        ),
        Exercise(
            "palindrome", "Palindrome", "True everywhere if the input reads the same backwards.",
            "Compare with the reversed input, then ask whether any position differs.",
            "palindrome = tokens == tokens;\n",
            "level", "ab", (1, 2, 3, 4, 5, 6, 7), lambda word: _everywhere(word == word[::-1], word),
            ("abcba", "abcda", "abbccbba", "abbccabba", "abcdeedcba", "abcdefdcba",
             "ab" * 16 + "ba" * 16, "ab" * 16 + "ba" * 15 + "bb"),
        ),
        Exercise(
            "sort", "Sort", "Give the tokens in alphabetical order (without the library's sort).",
            "A token's rank is the number of tokens before it; equal ones keep their order.",
            "smaller = select(tokens, tokens, <);\nrank = selector_width(smaller);\nsorted = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: sorted(word), _WORDS, without=("sort",),
        ),
        Exercise(
            "listing5", "Find the bug in Listing 5",
            "The paper's MaxMin sorts each pair of numbers, the greater first. As printed it is wrong "
            "(erratum E2). Mend it.",
            "What does an odd position compute for MaxminusMin, and what does it ask for?",
            without_example(listings.text("maxmin"))[0],
            "[1.0, -2.0, 3.0, 4.0]", (-2.0, -1.0, 1.0, 3.0), (2, 4), _pairs_sorted,
            ([0.5, 0.5, -7.0, 9.0, 2.0, 1.0], [-1.0, -3.5, 0.0, 0.0, 8.0, -8.0, 4.0, 5.0]),
        ),
        Exercise(
            "balanced", "Balanced brackets", "True everywhere if the brackets ( and ) are balanced.",
            "The depth at a position: opened so far minus closed so far. It must never be negative.",
            'opened = indicator(tokens == "(");\nclosed = indicator(tokens == ")");\n'
            "balanced = opened == closed;\n",
            "(()())", "()", (1, 2, 3, 4, 5, 6, 7, 8), lambda word: _everywhere(is_balanced(word), word),
            ("(((())))()", "((()))())(", "(()(()))(())", "(()(()))(()))(", ")()()()()(",
             "())(" + "()" * 30, "()" * 31 + ")(", "()" * 31 + "((", "()" * 32),
        ),
        Exercise(
            "two_kinds", "Balanced brackets of two kinds",
            "True everywhere if ( ) and [ ] are balanced and closed by their own kind.",
            "The opening bracket that belongs to a closing one is the last before it of its depth: "
            "best(selector, indices) attends to the greatest index that is selected.",
            'opened = indicator(tokens == "(" or tokens == "[");\nbalanced = opened == 1;\n',
            "([]())", "()[]", (1, 2, 3, 4), lambda word: _everywhere(is_balanced(word), word),
            (*_nested(3), "([([])])", "([([)])]", "[[(())()]]", "[[(())(])]", "([])()[]()",
             "[]" * 30 + "([)]", "()" * 30 + "([])", "())(" + "[]" * 30),
        ),
    )
}  # fmt: skip
