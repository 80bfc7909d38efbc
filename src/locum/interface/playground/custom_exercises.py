"""Read custom exercises: a task, a starter program, a reference program and forbidden functions.

Teachers write custom exercises, and a link contains the whole exercise. The page shows the reference
program only after the exercise is solved or, if the teacher allows it, on request. Anyone who decodes
the link can read it.

>>> exercise = read({"title": "Copy", "task": "Copy it.", "reference": "x = tokens;", "example": "ab"})
>>> exercise.right("ba"), len(list(exercise.words()))
(['b', 'a'], 31)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from locum.errors import InputError, LocumError
from locum.interface.playground.exercises import EXERCISES, Exercise, Word, size
from locum.interface.playground.panes import texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import INPUT, SOURCE, tokens
from locum.rasp.text.builtins import base_scope
from locum.rasp.text.machine import Builtin, Function
from locum.rasp.text.session import Session
from locum.settings import Setting, read_settings

#: Maximum number of short inputs on which a solution is checked.
MAX_WORDS = 2_000
SETTINGS = {
    "title": Setting("a text", longest=100),
    "task": Setting("a text", longest=2_000),
    "hint": Setting("a text", default="", longest=1_000),
    "starter": Setting("a text", default="", longest=5_000),
    "example": Setting("a text", default="hello", longest=INPUT.longest),
    "alphabet": Setting("a text", default=None, longest=INPUT.longest),
    "longest": Setting("an integer", default=4, least=1, most=10),
    "inputs": Setting("a list of texts", default=[], longest=20),
    "reference": SOURCE,
    "without": Setting("a list of texts", default=[], longest=20),
    "on_request": Setting("true or false", default=False),
}


def read(value: Any) -> Exercise:
    """Return a built-in exercise by its key, or the exercise that a JSON object describes."""
    if isinstance(value, str):
        if value not in EXERCISES:
            raise ValueError
        return EXERCISES[value]
    if not isinstance(value, Mapping):
        raise TypeError
    given = read_settings(value, SETTINGS, "fields of an exercise")
    for name in ("title", "task"):
        if not given[name].strip():
            raise InputError(f"{name}: expected a text that is not blank, got {given[name]!r:.60}")
    key, words = fingerprint(given), tokens(given["alphabet"] or given["example"])
    alphabet = "".join(dict.fromkeys(words)) if isinstance(words, str) else _distinct(words)
    count = sum(len(alphabet) ** length for length in range(1, given["longest"] + 1))
    if count > MAX_WORDS:
        raise InputError(
            f"longest: expected at most {MAX_WORDS:,} inputs, got {count:,} ({len(alphabet)} symbols, "
            f"up to {given['longest']} tokens); try a smaller length or fewer symbols"
        )
    _require_functions(given["without"])
    return Exercise(
        key=key,
        title=given["title"],
        task=given["task"],
        hint=given["hint"],
        starter=given["starter"]
        or "# The last s-op of the program is your answer.\nanswer = tokens;\n",
        example=given["example"],
        alphabet=alphabet,
        lengths=tuple(range(1, given["longest"] + 1)),
        right=_Reference(given["reference"], tokens(given["example"])),
        longer=tuple(map(tokens, given["inputs"])),
        without=tuple(given["without"]),
        solution=given["reference"],
        on_request=given["on_request"],
    )


EXERCISE = Setting(f"{', '.join(EXERCISES)}, or an object with {', '.join(SETTINGS)}", convert=read)


def fingerprint(given: Mapping[str, Any]) -> str:
    """Return a short hash of all fields of an exercise, which identifies the exercise."""
    text = json.dumps(dict(given), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe(exercise: Exercise) -> dict[str, Any]:
    """Return the description of an exercise for the page.

    The correct answers to every input are computed. For a custom exercise, an input on which the
    reference program is undefined raises :class:`InputError`.
    """
    answers = [exercise.right(word) for word in exercise.words()]
    solution = Program(exercise.solution, tokens(exercise.example)).sop(None)[1]
    about = {"inputs": len(answers), "possible": size(solution)}
    return {"exercise": exercise.described() | about}


class _Reference:
    """A function that computes the correct answers of an exercise with its reference program."""

    def __init__(self, source: str, example: Word) -> None:
        self._program = Program(source, example)
        try:
            self._program.require_right()
            self._value = self._program.sop(None)[1]
        except InputError as error:
            raise InputError(f"reference: {error}") from None

    def __call__(self, word: Word) -> list[Any]:
        try:
            return self._program.run(self._value, word)
        except LocumError as error:
            shown = " ".join(texts(word))
            raise InputError(
                f"reference: expected a value for each input, got none for {shown}: {error}"
            ) from None


def _distinct(words: Word) -> list[Any]:
    found: list[Any] = []
    for word in words:
        if not any(type(word) is type(other) and word == other for other in found):
            found.append(word)
    return found


def _require_functions(names: list[str]) -> None:
    known = {**base_scope().names, **Session("a", folders=()).names()}
    for name in names:
        if not isinstance(known.get(name), (Builtin, Function)):
            raise InputError(
                f"without: expected names of library functions, got {name[:60]!r}; try sort, count or "
                "selector_width"
            )
