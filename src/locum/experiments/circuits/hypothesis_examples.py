"""Prepare inputs for checking a hypothesis, as tokens of the program and token ids of the model.

An :class:`Example` contains the input tokens of the program and the input ids of the model. Further
fields contain the position of each token in the model's input, and the positions of the model's
answers.

>>> reading = Reading(vocabulary={"a": 5, "b": 6}, prefix=[1], suffix=[2], answers="last")
>>> reading.example(["a", "b", "a"])
Example(tokens=('a', 'b', 'a'), ids=(1, 5, 6, 5, 2), places=(1, 2, 3), answers=((2, 4),))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError
from locum.graph import Atom
from locum.graph.atoms import is_atom, short

#: Positions at which the model returns its answers: at each token, or at the last or first position of
#: the input.
ANSWERS = ("each", "last", "first")


@dataclass(frozen=True)
class Example:
    """An input in two notations: as tokens of the program, and as token ids of the model."""

    tokens: tuple[Atom, ...]
    ids: tuple[int, ...]
    #: Position of each program token in the model's input.
    places: tuple[int, ...]
    #: Answers to compare, each as a position in the program's output and a position in the model's
    #: output.
    answers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Reading:
    """A conversion of inputs and answers of a program to token ids and classes of a model."""

    #: Token id of each token; without it, tokens are ids.
    vocabulary: Mapping[Any, int] | None = None
    #: Class of each answer. By default, the class is the token id of the answer.
    labels: Mapping[Any, int] | None = None
    #: Token ids before and after the tokens.
    prefix: Sequence[int] = ()
    suffix: Sequence[int] = ()
    answers: str = "each"

    def __post_init__(self) -> None:
        if self.answers not in ANSWERS:
            raise InputError(
                f"answers: expected one of {', '.join(ANSWERS)}, got {self.answers!r}; "
                'try answers="each"'
            )
        for name, table, what in (
            ("vocabulary", self.vocabulary, "a token id for each token"),
            ("labels", self.labels, "a class for each answer"),
        ):
            if table is not None and not isinstance(table, Mapping):
                raise InputError(
                    f"{name}: expected a dict with {what}, got {short(table)}; try {name}={{'a': 0}}"
                )
            for key, number in (table or {}).items():
                if not is_id(number):
                    raise InputError(
                        f"{name}: expected {what}, got {number!r} for {short(key)}; "
                        f"try {name}={{{key!r}: 0}}"
                    )

    # Inputs -----------------------------------------------------------------------------------------

    def example(self, entry: Any) -> Example:
        """Return the example for ``entry``: some tokens, or a mapping with ``tokens`` and ``ids``."""
        if isinstance(entry, Mapping):
            return self._explicit(entry)
        tokens = _tokens(entry)
        ids = (*self.prefix, *map(self.token_id, tokens), *self.suffix)
        places = tuple(range(len(self.prefix), len(self.prefix) + len(tokens)))
        if self.answers == "each":
            answers = tuple(enumerate(places))
        elif self.answers == "last":
            answers = ((len(tokens) - 1, len(ids) - 1),)
        else:
            answers = ((0, 0),)
        return Example(tokens, ids, places, answers)

    def _explicit(self, entry: Mapping[str, Any]) -> Example:
        unknown = set(entry) - {"tokens", "ids", "places", "answers"}
        if unknown or "tokens" not in entry or "ids" not in entry:
            raise InputError(
                "input: expected tokens, ids, places and answers, got "
                f'{", ".join(entry)}; try {{"tokens": ["a"], "ids": [5]}}'
            )
        tokens, ids = _tokens(entry["tokens"]), tuple(entry["ids"])
        if not all(type(number) is int and number >= 0 for number in ids):
            raise InputError(f"ids: expected token ids, got {short(entry['ids'])}; try [5, 6, 5]")
        places = tuple(entry.get("places", range(len(tokens))))
        answers = tuple(map(tuple, entry.get("answers", enumerate(places))))
        inside = all(type(place) is int and 0 <= place < len(ids) for place in places)
        if len(places) != len(tokens) or not inside:
            raise InputError(
                f"places: expected {len(tokens)} positions from 0 to {len(ids) - 1}, got "
                f"{list(places)}; try one for each token"
            )
        for pair in answers:
            whole = len(pair) == 2 and all(type(place) is int for place in pair)
            if not whole or not (0 <= pair[0] < len(tokens) and 0 <= pair[1] < len(ids)):
                raise InputError(
                    f"answers: expected [position of the program, position of the model], got "
                    f"{list(pair)}; try [0, {places[0]}]"
                )
        return Example(tokens, ids, places, answers)

    def token_id(self, token: Atom) -> int:
        """Return the model's token id for a program token."""
        if self.vocabulary is not None:
            found = _find(self.vocabulary, token)
            if found is None:
                raise InputError(
                    f"vocabulary: expected an id of the token {short(token)}, got "
                    f"{', '.join(map(str, list(self.vocabulary)[:8]))}; try to add it"
                )
            return found
        if _text(token).isdecimal():  # RASP text reads tokens as strings
            return int(_text(token))
        raise InputError(
            f"tokens: expected token ids without a vocabulary, got {short(token)}; try "
            "vocabulary={...}"
        )

    # Answers ----------------------------------------------------------------------------------------

    def label_ids(self, values: Sequence[Atom], size: int) -> list[int]:
        """Return the class of each program answer, for a model with ``size`` classes."""
        found = [self._label_id(value) for value in values]
        for value, number in zip(values, found, strict=True):
            if not 0 <= number < size:
                raise InputError(
                    f"labels: expected a class from 0 to {size - 1} for {short(value)}, got {number}; "
                    "try other labels"
                )
            first = values[found.index(number)]
            if first != value:
                raise InputError(
                    f"labels: expected one class for each answer, got {number} for {short(first)} and "
                    f"{short(value)}; try labels={{...}}"
                )
        return found

    def _label_id(self, value: Atom) -> int:
        if self.labels is None:
            # Without a vocabulary, a boolean is class 0 or 1.
            is_class = isinstance(value, bool) and self.vocabulary is None
            return self.token_id(int(value) if is_class else value)
        found = _find(self.labels, value)
        if found is None:
            raise InputError(
                f"labels: expected a class of the answer {short(value)}, got "
                f"{', '.join(map(str, list(self.labels)[:8]))}; try to add it"
            )
        return found

    def class_name(self, number: int) -> str:
        """Return a readable name for a class: an answer, a token, or a text with the number."""
        names = self.vocabulary if self.labels is None else self.labels
        known = [str(name) for name, key in (names or {}).items() if key == number]
        return known[0] if known else f"class {number}"


def is_id(number: Any) -> bool:
    """Return whether ``number`` is a non-negative integer and not a boolean."""
    return hasattr(number, "__index__") and not isinstance(number, bool) and number >= 0


def _tokens(entry: Any) -> tuple[Atom, ...]:
    tokens = tuple(entry) if isinstance(entry, (str, list, tuple)) else ()
    if not tokens or not all(map(is_atom, tokens)):
        raise InputError(
            f'inputs: expected a list of tokens, got {short(entry)}; try ["a", "b"] or "ab"'
        )
    return tokens


def _text(value: Atom) -> str:
    """Return an atom as text, where 2.0 is written as 2."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _find(table: Mapping[Any, int], value: Atom) -> int | None:
    """Return the entry of ``table`` for ``value``, or None if there is none.

    The key is equal to ``value`` and of the same type or, if there is no such key, has the same text.
    """
    for key, number in table.items():
        if type(key) is type(value) and key == value:
            return int(number)
    for key, number in table.items():
        if _text(key) == _text(value):
            return int(number)
    return None
