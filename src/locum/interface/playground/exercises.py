"""Define the built-in exercises, and check solutions on all short inputs and some longer inputs.

An exercise can forbid library functions. The check determines at run time which functions a solution
calls. An alias of a forbidden function is also forbidden, but a parameter with the same name is
allowed.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum.errors import InputError, LocumError
from locum.graph.architecture import architecture
from locum.interface.playground.example_programs import without_example
from locum.interface.playground.panes import texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.interface.playground.solutions import SOLUTIONS
from locum.paper import listings
from locum.rasp import echo
from locum.rasp.handles import Selector, SOp

Word = Sequence[Any]
#: Numbers with a smaller difference than this may be displayed as equal.
SHOWN = 1e-2


@dataclass(frozen=True)
class Exercise:
    """An exercise: its task, its starter program and its correct answers. The last s-op is checked."""

    key: str
    title: str
    task: str
    hint: str
    #: The initial content of the editor, and the input.
    starter: str
    example: str
    #: Symbols and lengths of inputs: a solution is checked on all inputs of these lengths.
    alphabet: Word
    lengths: tuple[int, ...]
    right: Callable[[Word], list[Any]]
    #: Longer inputs, to detect wrong solutions that are correct on all short inputs.
    longer: tuple[Word, ...]
    #: Library functions that are forbidden because they would solve the task.
    without: tuple[str, ...] = ()
    #: A program that solves the exercise, and whether it is shown on request before a correct solution.
    solution: str = ""
    on_request: bool = True

    def words(self) -> Iterator[Word]:
        """Yield every input on which solutions are checked, in order of length."""
        short = (
            "".join(word) if isinstance(self.alphabet, str) else list(word)
            for length in self.lengths
            for word in itertools.product(self.alphabet, repeat=length)
        )
        more = sorted((tokens(self.example), *self.longer), key=len)
        yield from heapq.merge(short, more, key=len)

    def described(self) -> dict[str, Any]:
        """Return the fields of the exercise that the page shows."""
        names = ("key", "title", "task", "hint", "starter", "example", "on_request")
        return {name: getattr(self, name) for name in names} | {"without": list(self.without)}


def size(value: SOp | Selector) -> dict[str, int]:
    """Return the numbers of layers and heads of an s-op or selector."""
    found = architecture(value)
    return {"layers": found.layers, "heads": sum(found.heads)}


def check(exercise: Exercise, source: str) -> dict[str, Any]:
    """Check a solution, and return the verdict as a dictionary.

    For a correct solution, the result contains its size and the size of the reference solution. For a
    wrong solution, the result contains the first input, in order of length, with a wrong answer.
    """
    program = Program(source, tokens(exercise.example), exercise.without)
    program.require_right()
    name, value = program.sop(None)
    checked = 0
    for word in exercise.words():
        expected = exercise.right(word)
        try:
            values: list[Any] | None = program.run(value, word)
            problem = ""
        except LocumError as error:
            values, problem = None, str(error)
        if values is not None:
            problem = _unseen(values, expected)
        if values is None or not is_same(values, expected):
            return {
                "solved": False,
                "name": name,
                "checked": checked,
                "counterexample": {
                    "input": texts(word),
                    "typed": word if isinstance(word, str) else json.dumps(word),
                    "expected": texts(expected),
                    "values": None if values is None else texts(values),
                    "problem": problem,
                },
            }
        checked += 1
    solution = Program(exercise.solution, tokens(exercise.example)).sop(None)[1]
    sizes = {"size": size(value), "possible": size(solution)}
    return {"solved": True, "name": name, "checked": checked, "counterexample": None, **sizes}


def show_solution(exercise: Exercise, source: str) -> dict[str, Any]:
    """Return the reference solution of an exercise.

    If the solution is not shown on request, the program ``source`` must solve the exercise.
    """
    if not exercise.on_request and not check(exercise, source)["solved"]:
        raise InputError("the solution of this exercise is shown after you have solved it")
    return {"source": exercise.solution}


def is_same(values: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Return whether all values are correct, up to rounding errors."""
    return all(equal(value, right) for value, right in zip(values, expected, strict=True))


def equal(value: Any, expected: Any, rounding: float = 1e-9) -> bool:
    """Return whether a value is correct.

    Numbers may differ by ``rounding``. Strings and booleans must be equal and of the same type.
    """
    if isinstance(value, str | bool) or isinstance(expected, str | bool):
        return type(value) is type(expected) and bool(value == expected)
    try:
        # The difference of equal infinities is NaN.
        return bool(value == expected) or abs(float(value) - float(expected)) <= rounding
    except OverflowError:  # an integer beyond the range of floats
        return False


def _unseen(values: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return a note on an error that is hard to see: another type, or a very small difference.

    The note is empty if there is no such error.
    """
    for place, (value, right) in enumerate(zip(values, expected, strict=True)):
        kind, expected_kind = _kind(value), _kind(right)
        if kind != expected_kind:
            advice = "; try tokens_float" if (kind, expected_kind) == ("text", "number") else ""
            shown = f"the {kind} {echo.scalar(value)}"
            return f"at position {place} it is {shown}, not a {expected_kind}{advice}"
        if kind == "number" and not equal(value, right) and equal(value, right, SHOWN):
            return f"at position {place} it is {value!r}, not {right!r}"
    return ""


def _kind(value: Any) -> str:
    return {str: "text", bool: "boolean"}.get(type(value), "number")


# Correct answers -----------------------------------------------------------------------------------


def _everywhere(value: Any, word: Word) -> list[Any]:
    return [value] * len(word)


def _pairs_sorted(word: Word) -> list[Any]:
    pairs = zip(word[::2], word[1::2], strict=True)
    return [number for pair in pairs for number in sorted(pair, reverse=True)]


def is_balanced(word: Word) -> bool:
    """Return whether every bracket is closed by a bracket of the same kind, in the correct order.

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
    """Return all words of ``pairs`` pairs of brackets that are balanced if ``[ ]`` counts as ``( )``.

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
    exercise.key: replace(exercise, solution=SOLUTIONS[exercise.key])
    for exercise in (
        Exercise(
            "reverse", "Reverse", "Return the input in reverse order: abc becomes cba.",
            "Which position contains the token for position i? Compare with select(keys, queries, ==).",
            "# An s-op has a value at each position. The last s-op of the program is your answer.\n"
            "reverse = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: list(word)[::-1], _WORDS,
        ),
        Exercise(
            "shift", "One to the right",
            'Move every token one position to the right, and return "_" at the first position. '
            "Do not use the library function shift.",
            "aggregate(selector, values, default) returns the default for a query that selects no key.",
            "right = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: ["_", *word[:-1]], _WORDS,
            without=("shift",),
        ),
        Exercise(
            "count", "How many a",
            "Return the number of a's in the input at every position. Do not use the library function "
            "count.",
            "A head computes a mean. How does the number of ones follow from the mean of a 0/1 "
            "sequence and the length?",
            'is_a = indicator(tokens == "a");\nnumber = is_a;\n',
            "banana", _LETTERS, _UP_TO_FIVE, lambda word: _everywhere(list(word).count("a"), word),
            _WORDS, without=("count",),
        ),
        Exercise(
            "histogram", "Histogram",
            "Return at each position how often its token occurs in the input.",
            "selector_width(s) counts the keys that a query selects.",
            "same = select(tokens, tokens, ==);\nhistogram = indices;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: [list(word).count(letter) for letter in word],
            _WORDS,
        ),
        Exercise(
            "new", "First occurrence?",
            "Return True where a token occurs for the first time, and False elsewhere. Do not use the "
            "library function mark_first_instance.",
            "The selector s and t combines two selectors. select(indices, indices, <) selects all keys "
            "before the query.",
            "new = indices == 0;\n",
            "hello", _LETTERS, _UP_TO_FIVE,
            lambda word: [letter not in word[:i] for i, letter in enumerate(word)], _WORDS,
            without=("mark_first_instance",),
        ),
        Exercise(
            "palindrome", "Palindrome",
            "Return True at every position if the input equals its reverse, and False otherwise.",
            "Compare with the reversed input, and then check whether any position differs.",
            "palindrome = tokens == tokens;\n",
            "level", "ab", (1, 2, 3, 4, 5, 6, 7), lambda word: _everywhere(word == word[::-1], word),
            ("abcba", "abcda", "abbccbba", "abbccabba", "abcdeedcba", "abcdefdcba",
             "ab" * 16 + "ba" * 16, "ab" * 16 + "ba" * 15 + "bb"),
        ),
        Exercise(
            "sort", "Sort",
            "Return the tokens in alphabetical order. Do not use the library function sort.",
            "The rank of a token is the number of tokens before it in the sorted sequence. Equal "
            "tokens keep their order.",
            "smaller = select(tokens, tokens, <);\nrank = selector_width(smaller);\nsorted = tokens;\n",
            "hello", _LETTERS, _UP_TO_FIVE, lambda word: sorted(word), _WORDS, without=("sort",),
        ),
        Exercise(
            "listing5", "Find the bug in Listing 5",
            "The paper's MaxMin sorts each pair of numbers in descending order. The printed program is "
            "wrong (erratum E2). Correct it.",
            "What is MaxminusMin at an odd position, and when does this position request a flip?",
            without_example(listings.text("maxmin"))[0],
            "[1.0, -2.0, 3.0, 4.0]", (-2.0, -1.0, 1.0, 3.0), (2, 4), _pairs_sorted,
            ([0.5, 0.5, -7.0, 9.0, 2.0, 1.0], [-1.0, -3.5, 0.0, 0.0, 8.0, -8.0, 4.0, 5.0]),
        ),
        Exercise(
            "balanced", "Balanced brackets",
            "Return True at every position if the brackets ( and ) are balanced, and False otherwise.",
            "The depth at a position is the number of opened brackets minus the number of closed "
            "brackets so far. The depth must never be negative.",
            'opened = indicator(tokens == "(");\nclosed = indicator(tokens == ")");\n'
            "balanced = opened == closed;\n",
            "(()())", "()", (1, 2, 3, 4, 5, 6, 7, 8), lambda word: _everywhere(is_balanced(word), word),
            ("(((())))()", "((()))())(", "(()(()))(())", "(()(()))(()))(", ")()()()()(",
             "())(" + "()" * 30, "()" * 31 + ")(", "()" * 31 + "((", "()" * 32),
        ),
        Exercise(
            "two_kinds", "Balanced brackets of two kinds",
            "Return True at every position if the brackets ( ) and [ ] are balanced and each bracket "
            "is closed by a bracket of the same kind, and False otherwise.",
            "The opening bracket of a closing bracket is the last bracket of its depth before it. "
            "best(selector, indices) attends to the largest selected index.",
            'opened = indicator(tokens == "(" or tokens == "[");\nbalanced = opened == 1;\n',
            "([]())", "()[]", (1, 2, 3, 4), lambda word: _everywhere(is_balanced(word), word),
            (*_nested(3), "([([])])", "([([)])]", "[[(())()]]", "[[(())(])]", "([])()[]()",
             "[]" * 30 + "([)]", "()" * 30 + "([])", "())(" + "[]" * 30),
        ),
    )
}  # fmt: skip
