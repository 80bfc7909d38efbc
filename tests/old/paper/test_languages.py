"""PARITY, FIRST, k-PARITY and Match₂ through U: accept or reject as the encoder does, and rightly."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from locum.errors import InputError
from locum.languages.first_and_parity import First, KParity, Match2, Parity, Recogniser

Once = Callable[[Recogniser], Recogniser]
#: Long words need sequences of 10⁴ tokens: too many for literal execution.


def words(shortest: int, longest: int) -> Iterator[tuple[int, ...]]:
    for length in range(shortest, longest + 1):
        yield from itertools.product((0, 1), repeat=length)


def is_even(word: tuple[int, ...]) -> bool:
    return sum(word) % 2 == 0


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> Once:
    """Has the encoders of a recogniser made once for each length, and not for each word."""

    def keep(recogniser: Recogniser) -> Recogniser:
        monkeypatch.setattr(recogniser, "modules", functools.cache(recogniser.modules))
        return recogniser

    return keep


def test_parity_of_short_words() -> None:
    recogniser = Parity()
    for word in words(0, 3):
        assert recogniser.accepts(word) == recogniser.accepts_directly(word) == is_even(word)


def test_the_encoders_of_parity_with_layer_norm(once: Once) -> None:
    recogniser = once(Parity(layer_norm=True))
    assert all(recogniser.accepts_directly(word) == is_even(word) for word in words(0, 10))


def test_parity_of_all_words_to_length_10(once: Once) -> None:
    recogniser = once(Parity())
    for word in words(0, 10):
        assert recogniser.accepts(word, executor="fast") == is_even(word)


def test_parity_of_long_words() -> None:
    generator = np.random.default_rng(0)
    recogniser = Parity()
    for _ in range(50):
        word = tuple(generator.integers(0, 2, size=100).tolist())
        assert recogniser.accepts(word, executor="fast") == is_even(word)


def test_parity_with_layer_norm() -> None:
    generator = np.random.default_rng(1)
    recogniser = Parity(layer_norm=True)
    for word in words(0, 4):
        assert recogniser.accepts(word, executor="fast") == is_even(word)
    for _ in range(10):
        word = tuple(generator.integers(0, 2, size=40).tolist())
        assert recogniser.accepts(word, executor="fast") == is_even(word)


def test_the_margin_of_parity_falls_as_the_square_of_the_length() -> None:
    recogniser = Parity()
    for word in ("1", "101", "10110"):
        size = len(word) + 1
        assert 0.5 < abs(recogniser.margin(word)) * size**2 < 2


def test_first() -> None:
    recogniser = First()
    for word in words(1, 4):
        assert recogniser.accepts(word) == recogniser.accepts_directly(word) == (word[0] == 1)


def test_the_margin_of_first() -> None:
    recogniser = First()
    assert recogniser.read(_directly(recogniser, "1" + "0" * 99)) > 0.45


def _directly(recogniser: Recogniser, word: str) -> np.ndarray:
    value = recogniser.embed(recogniser.read_word(word))
    for module in recogniser.modules(len(word)):
        value = module(value)
    return value


@pytest.mark.parametrize(("n", "chosen"), [(4, (0, 3)), (5, (1, 2, 4)), (4, (2,))])
def test_k_parity_of_all_inputs(n: int, chosen: tuple[int, ...]) -> None:
    recogniser = KParity(n, chosen)
    for word in itertools.product((0, 1), repeat=n):
        expected = sum(word[place] for place in chosen) % 2 == 0
        margin = recogniser.margin(word)
        assert (margin >= 0) == recogniser.accepts_directly(word) == expected
        assert abs(abs(margin) - 0.5) < 0.1


@pytest.mark.parametrize(("n", "chosen"), [(8, (1, 4, 6)), (9, (0, 3, 5, 7)), (10, (2,))])
def test_k_parity_of_all_longer_inputs(n: int, chosen: tuple[int, ...], once: Once) -> None:
    recogniser = once(KParity(n, chosen))
    for word in itertools.product((0, 1), repeat=n):
        expected = sum(word[place] for place in chosen) % 2 == 0
        assert recogniser.accepts(word, executor="fast") == expected


def test_match2_on_a_thousand_inputs() -> None:
    generator = np.random.default_rng(2)
    found_some = 0
    for trial in range(1000):
        size, p = int(generator.integers(1, 6)), int(generator.integers(1, 500))
        tokens = generator.integers(1, p + 1, size=size)
        if trial % 2:  # a planted match, or a near miss
            tokens[0] = (p - tokens[-1] + trial % 4 - 1) % p or p
        expected = [any((a + b) % p == 0 for b in tokens) for a in tokens]
        recogniser = Match2(p)
        assert recogniser.matches(tokens.tolist()) == expected
        found_some += any(expected)
    assert 200 < found_some < 800


def test_match2_as_a_recogniser() -> None:
    recogniser = Match2(10)
    assert recogniser.accepts([3, 4, 7])
    assert not recogniser.accepts([3, 4, 8])
    assert recogniser.accepts([10])
    assert recogniser.matches([3, 4, 7]) == [True, False, True]


def test_one_program_for_all_words_of_a_length() -> None:
    recogniser = Parity()
    before = recogniser.simulator(2).hash
    recogniser.accepts("01")
    assert recogniser.simulator(2).hash == before
    assert len(recogniser.simulator(2).simulators) == 2


def test_words_that_are_refused() -> None:
    with pytest.raises(InputError, match="expected a word of 0 and 1"):
        Parity().accepts("102")
    with pytest.raises(InputError, match="got an empty word"):
        First().accepts("")
    with pytest.raises(InputError, match="expected a word of 4 bits, got 3"):
        KParity(4, (0,)).accepts("101")
    with pytest.raises(InputError, match="expected positions from 0 to 2"):
        KParity(3, (3,))
    with pytest.raises(InputError, match="distinct"):
        KParity(3, (1, 1))
    with pytest.raises(InputError, match="expected one integer or more"):
        Match2(5).accepts("12")
    for word in (["a"], [1.5], [float("inf")], [None], []):
        with pytest.raises(InputError, match="expected one integer or more"):
            Match2(5).accepts(word)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected an integer ≥ 1"):
        Match2(0)
