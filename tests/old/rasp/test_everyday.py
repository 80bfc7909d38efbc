"""Everyday programs: what each file of ``locum.rasp.programs`` computes, against plain Python."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locum.rasp.programs import EVERYDAY, everyday_file, load_everyday


def most_frequent(word: list[Any]) -> list[Any]:
    return [Counter(word).most_common(1)[0][0]] * len(word)  # of several, the first one


def induction(word: list[Any]) -> Iterator[Any]:
    for i, token in enumerate(word):
        earlier = [j for j in range(1, i) if word[j - 1] == token]
        yield word[earlier[-1]] if earlier else "?"


def binary_addition(word: list[Any]) -> list[Any]:
    first, second = (int("".join(digits), 2) for digits in zip(*word, strict=True))
    return [int(bit) for bit in f"{first + second:0{len(word)}b}"[-len(word) :]]


def dyck2(word: list[Any]) -> Iterator[str]:
    stack: list[str] | None = []
    for token in word:
        if stack is not None and token in "([":
            stack.append({"(": ")", "[": "]"}[token])
        elif stack is not None and (not stack or stack.pop() != token):
            stack = None
        yield "F" if stack is None else "P" if stack else "T"


def run_length(word: list[Any]) -> Iterator[int]:
    for i in range(len(word)):
        yield len(list(itertools.takewhile(lambda token, i=i: token == word[i], word[i::-1])))  # type: ignore[misc]


def sort_freq(word: list[Any]) -> list[Any]:
    kinds = [token for token, _ in Counter(word).most_common()]
    return kinds + ["-"] * (len(word) - len(kinds))


def everywhere(value: Callable[[list[Any]], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda word: [value(word)] * len(word)


PLAIN: dict[str, Callable[[list[Any]], Any]] = {
    "most_frequent": most_frequent,
    "induction": induction,
    "binary_addition": binary_addition,
    "dyck2": dyck2,
    "palindrome": everywhere(lambda word: word == word[::-1]),
    "run_length": run_length,
    "second_largest": everywhere(lambda word: sorted(word)[-2] if len(word) > 1 else -1),
    "parity": everywhere(lambda word: word.count("1") % 2),
    "modsum": everywhere(lambda word: sum(word) % 5),
    "sort": sorted,
    "sort_freq": sort_freq,
    "reverse": lambda word: word[::-1],
}


def test_each_file_has_a_vocabulary_and_a_test() -> None:
    files = {path.stem for path in everyday_file("reverse").parent.glob("*.rasp")}
    assert files == EVERYDAY.keys() == PLAIN.keys()


@pytest.mark.parametrize("name", EVERYDAY)
def test_an_everyday_program_computes_what_it_says(name: str) -> None:
    task = load_everyday(name)
    words = (w for n in (1, 2, 3, 4) for w in itertools.product(task.vocabulary, repeat=n))
    for word in itertools.islice(words, 0, None, {2: 1, 4: 3}.get(len(task.vocabulary), 41)):
        assert task.program(list(word)) == list(PLAIN[name](list(word))), word
