"""Prepare inputs for checking a hypothesis, as tokens of the program and token ids of the model.

An :class:`Example` contains the input tokens of the program and the input ids of the model. Further
fields contain the position of each token in the model's input, and the positions of the model's
answers.

>>> reading = Reading(vocabulary={"a": 5, "b": 6}, prefix=[1], suffix=[2], answers="last")
>>> reading.example(["a", "b", "a"])
Example(tokens=('a', 'b', 'a'), ids=(1, 5, 6, 5, 2), places=(1, 2, 3), answers=((2, 4),), forced=5)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError
from locum.graph import Atom
from locum.graph.atoms import is_atom, short

#: Positions at which the model returns its answers: at each token, at the last or first position of the
#: input, or in the tokens that are generated after the input.
ANSWERS = ("each", "last", "first", "generated")


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
    #: Position from which the model's input contains answers of the program; the length of the input if
    #: there are none.
    forced: int


@dataclass(frozen=True)
class Reading:
    """A conversion of inputs and answers of a program to token ids and classes of a model."""

    tokenizer: Any = None
    #: Token id of each token; if given, it is used instead of the tokenizer.
    vocabulary: Mapping[Any, int] | None = None
    #: Class of each answer. By default, an answer is a token, or the name or number of a class.
    labels: Mapping[Any, int] | None = None
    #: Token ids before and after the tokens; None: the ids that the tokenizer adds, if there is one.
    prefix: Sequence[int] | None = None
    suffix: Sequence[int] | None = None
    answers: str = "each"
    #: Names of the classes of a classification model.
    classes: Mapping[int, str] = field(default_factory=dict)

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

    def example(self, entry: Any, expected: Sequence[Atom] | None = None) -> Example:
        """Return the example for ``entry``: some tokens, or a mapping with ``tokens`` and ``ids``.

        ``expected`` contains the program's answers, for a model that generates its answers.
        """
        if isinstance(entry, Mapping):
            return self._explicit(entry)
        tokens = _tokens(entry)
        prefix, suffix = self._around()
        ids = [*prefix, *map(self.token_id, tokens), *suffix]
        places = tuple(range(len(prefix), len(prefix) + len(tokens)))
        return self._answered(tokens, ids, places, expected)

    def text_example(self, text: str, expected: Sequence[Atom] | None = None) -> Example:
        """Return the example for a string. Its tokens are the tokenizer's, without special tokens.

        ``expected`` contains the program's answers, for a model that generates its answers.
        """
        if self.tokenizer is None:
            raise InputError("text: expected a model with a tokenizer, got none; try lists of tokens")
        ids = list(self.tokenizer(text)["input_ids"])
        special = set(self.tokenizer.all_special_ids)
        places = tuple(place for place, number in enumerate(ids) if number not in special)
        if not places:
            raise InputError(f"text: expected at least one token, got none in {short(text)}")
        tokens = tuple(self.tokenizer.decode([ids[place]]) for place in places)
        return self._answered(tokens, ids, places, expected)

    def _answered(
        self,
        tokens: tuple[Atom, ...],
        ids: list[int],
        places: tuple[int, ...],
        expected: Sequence[Atom] | None,
    ) -> Example:
        end, last = len(ids), len(tokens) - 1
        if self.answers == "each":
            answers = tuple(enumerate(places))
        elif self.answers == "last":
            answers = ((last, end - 1),)
        elif self.answers == "first":
            answers = ((0, 0),)
        else:
            assert expected is not None
            ids = ids + [self.token_id(answer) for answer in expected[:-1]]
            answers = tuple((place, end - 1 + place) for place in range(len(tokens)))
        return Example(tokens, tuple(ids), places, answers, end)

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
        return Example(tokens, ids, places, answers, len(ids))

    def _around(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return the token ids that precede and follow the tokens of an input."""
        before, after = self.prefix, self.suffix
        if (before is None or after is None) and self.tokenizer is not None:
            special = set(self.tokenizer.all_special_ids)
            for text in self.tokenizer.get_vocab():
                plain = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
                if plain and not special.intersection(plain):
                    break
            whole = list(self.tokenizer(text)["input_ids"])
            extra = len(whole) - len(plain)
            at = next(i for i in range(extra + 1) if whole[i : i + len(plain)] == plain)
            before = whole[:at] if before is None else before
            after = whole[at + len(plain) :] if after is None else after
        return before or (), after or ()

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
        if self.tokenizer is None:
            if _text(token).isdecimal():  # RASP text reads tokens as strings
                return int(_text(token))
            raise InputError(
                f"tokens: expected token ids, since there is no tokenizer, got {short(token)}; "
                "try --vocabulary, or vocabulary={...}"
            )
        text = _text(token)
        known = self.tokenizer.get_vocab()
        if text in known:
            return int(known[text])
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == self.tokenizer.unk_token_id:
            raise InputError(
                f"tokens: expected a token of the tokenizer, got {short(token)}, which is "
                f"{len(ids)} tokens or unknown; try --vocabulary, or vocabulary={{...}}"
            )
        return int(ids[0])

    # Answers ----------------------------------------------------------------------------------------

    def label_ids(self, values: Sequence[Atom], size: int) -> list[int]:
        """Return the class of each program answer, for a model with ``size`` classes."""
        found = [self._label_id(value, size) for value in values]
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
                    f"{short(value)}; try --labels, or labels={{...}}"
                )
        return found

    def _label_id(self, value: Atom, size: int) -> int:
        if self.labels is not None:
            found = _find(self.labels, value)
            if found is None:
                raise InputError(
                    f"labels: expected a class of the answer {short(value)}, got "
                    f"{', '.join(map(str, list(self.labels)[:8]))}; try to add it"
                )
            return found
        if not self.classes or len(self.classes) != size:
            return self.token_id(int(value) if _is_class(value, self) else value)
        named = [number for number, name in self.classes.items() if name == _text(value)]
        if named:
            return int(named[0])
        is_default = all(name == f"LABEL_{number}" for number, name in self.classes.items())
        if is_default and isinstance(value, (bool, int)):
            return int(value)
        raise InputError(
            f"labels: expected an answer among {', '.join(list(self.classes.values())[:8])}, got "
            f"{short(value)}; try --labels, or labels={{...}}"
        )

    def class_name(self, number: int, values: Mapping[int, Atom], size: int) -> Atom:
        """Return a readable name for a class of the model.

        The name is a program answer from ``values`` if there is one. Otherwise, it is a class name, a
        label, a vocabulary entry, a token of the tokenizer, or a text with the number.
        """
        if number in values:
            return values[number]
        if len(self.classes) == size and number in self.classes:
            return self.classes[number]
        names = self.vocabulary if self.labels is None else self.labels
        for name, known in (names or {}).items():
            if known == number:
                return str(name)
        if self.tokenizer is not None and self.vocabulary is None:
            return str(self.tokenizer.convert_ids_to_tokens(number))
        return f"class {number}"


def is_id(number: Any) -> bool:
    """Return whether ``number`` is a non-negative integer and not a boolean."""
    return hasattr(number, "__index__") and not isinstance(number, bool) and number >= 0


def _is_class(value: Atom, reading: Reading) -> bool:
    """Return whether ``value`` is a boolean that represents class 0 or 1.

    This is the case only if ``reading`` has neither a vocabulary nor a tokenizer.
    """
    return isinstance(value, bool) and reading.vocabulary is None and reading.tokenizer is None


def _tokens(entry: Any) -> tuple[Atom, ...]:
    tokens = tuple(entry) if isinstance(entry, (str, list, tuple)) else ()
    if not tokens or not all(map(is_atom, tokens)):
        raise InputError(
            f'inputs: expected a list of tokens, got {short(entry)}; try ["a", "b"] or "ab"'
        )
    return tokens


def _text(value: Atom) -> str:
    """Return an atom as written by tokenizers and in files, where 2.0 is written as 2."""
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
