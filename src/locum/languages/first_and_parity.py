"""Define languages and tasks that layers of softmax attention recognise, and run them on U.

``accepts(word)`` runs the layers on U, and ``accepts_directly(word)`` runs them without U.

>>> Parity().accepts("11"), Parity().accepts("1")
(True, False)

- :class:`Parity`: the two-layer softmax encoder of Chiang and Cholak (2022), on two U's in series, also
  with layer norm.
- :class:`First`: the encoder of Chiang and Cholak for words that begin with 1.
- :class:`KParity`: one layer with a head for each chosen bit.
- :class:`Match2`: one layer with one head, which decides whether some token and the current token sum
  to a multiple of p.

A word is embedded as X, the layers run on X in series, and the sign of one number decides acceptance.
The layers and U do not depend on the word, except for its length.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from locum.errors import InputError
from locum.settings import require_integer
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.encoder_layers import Encoder
from locum.simulators.modules.module import Module, Numbers
from locum.simulators.order import Order
from locum.simulators.stack import Stack
from locum.simulators.universal import UniversalSimulator

#: A word: a string of 0 and 1, or a sequence of integers.
Word = str | Sequence[int]


class Recogniser(ABC):
    """A language that layers of softmax attention recognise."""

    @abstractmethod
    def modules(self, length: int) -> list[Module]:
        """Return the layers for words of ``length`` tokens."""

    @abstractmethod
    def embed(self, word: Sequence[int]) -> Numbers:
        """Return the matrix X of a word, with one row per token."""

    @abstractmethod
    def read(self, result: Numbers) -> float:
        """Return the number that decides acceptance; a word is accepted if the number is at least 0."""

    def simulator(self, length: int) -> Stack:
        """Return a stack of U's, in series, for words of ``length`` tokens."""
        return _stack_for(self.modules(length), len(self.embed([0] * length)))

    def accepts(self, word: Word, *, executor: str | None = None) -> bool:
        """Run the layers on U, and return whether the word is in the language."""
        return self.margin(word, executor=executor) >= 0

    def margin(self, word: Word, *, executor: str | None = None) -> float:
        """Run the layers on U, and return the number that decides acceptance."""
        read = self.read_word(word)
        modules, X = self.modules(len(read)), self.embed(read)
        return self.read(np.asarray(_stack_for(modules, len(X))(modules, X, executor=executor)))

    def accepts_directly(self, word: Word) -> bool:
        """Run the layers without U, and return whether the word is in the language."""
        read = self.read_word(word)
        value = self.embed(read)
        for module in self.modules(len(read)):
            value = module(value)
        return self.read(value) >= 0

    def read_word(self, word: Word) -> list[int]:
        """Return the bits of a word; a word with other symbols raises an error."""
        bits: Sequence[int] = [] if isinstance(word, str) else word
        if isinstance(word, str):
            bits = [int(bit) if bit in ("0", "1") else -1 for bit in word]
        if any(bit not in (0, 1) for bit in bits):
            raise InputError(f"expected a word of 0 and 1, got {word!r}")
        return [int(bit) for bit in bits]


def _stack_for(modules: Sequence[Module], rows: int) -> Stack:
    return _stack(tuple(module.order(rows) for module in modules))


@lru_cache(maxsize=64)
def _stack(orders: tuple[Order, ...]) -> Stack:
    """Return a stack of universal simulators for these orders; stacks are cached."""
    return Stack([UniversalSimulator(order) for order in orders])


def sparse(rows: int, columns: int, entries: Mapping[tuple[int, int], float]) -> Numbers:
    """Return a matrix that is 0 except for the given ``entries``."""
    matrix = np.zeros((rows, columns))
    for place, value in entries.items():
        matrix[place] = value
    return matrix


class Parity(Recogniser):
    """The words with an even number of ones, which the paper calls PARITY.

    N is the number of tokens, including the end marker. #1 is the number of ones, and i is the
    position, counted from 0. The features of a token are indicators of 0, 1 and the end marker,
    followed by i/N and (−1)ⁱ. The encoders write #1/N, 1/N, [i = #1]/N and the result to four further
    features, which are 0 in the input. The first layer counts by uniform attention, and its
    feed-forward marks the position i = #1. The second layer compares attention to even and to odd
    positions, one of which contains the mark. Without layer norms, the magnitude of the result is about
    1.5/N² for long words. The result is positive for odd words, negative for other non-empty words, and
    0 for the empty word.
    """

    #: Strength of the second layer's preference for positions of one parity.
    STRENGTH = 1.0

    def __init__(self, layer_norm: bool = False) -> None:
        """Store the option; the encoders have layer norms if ``layer_norm`` is True.

        With layer norms, each feature is stored twice, with opposite signs.
        """
        self.layer_norm = layer_norm

    def embed(self, word: Sequence[int]) -> Numbers:
        """Return the matrix X of a word, with one row per token and the end marker last."""
        size = len(word) + 1
        X = np.zeros((size, 10 if self.layer_norm else 9))
        for i, token in enumerate([*word, 2]):
            X[i, token] = 1
            X[i, 3], X[i, 4] = i / size, (-1) ** i
        return np.hstack([X, -X]) if self.layer_norm else X

    def modules(self, length: int) -> list[Module]:
        """Return the two encoders, which do not depend on the length."""
        return self._normed() if self.layer_norm else self._plain()

    def read(self, result: Numbers) -> float:
        """Return the negation of feature 8 at the end marker; this feature is positive for
        odd words.
        """
        return -float(result[-1, 8])

    def _plain(self) -> list[Module]:
        d = 9
        count = sparse(d, d, {(1, 5): 1, (2, 6): 1})
        W1, W2 = self._mark(d)
        first = Encoder(Attention(np.zeros((d, d)), count), W1, W2, feed_forward_residual=True)
        return [first, Encoder(self._compare(d, ((7, 8, 1),)))]

    def _normed(self) -> list[Module]:
        d = 20
        count = sparse(d, d, {(1, 5): 1, (2, 6): 1, (1, 15): -1, (2, 16): -1})
        W1, W2 = self._mark(d)
        W2[:, 17] = -W2[:, 7]
        # The last feed-forward subtracts everything except the result, which the norm then enlarges.
        others = np.array([float(j % 10 != 8) for j in range(d)])
        erase = np.vstack([np.hstack([-np.eye(10), np.eye(10)]), np.hstack([np.eye(10), -np.eye(10)])])
        first = Encoder(Attention(np.zeros((d, d)), count), W1, W2, norm="post")
        compare = self._compare(d, ((7, 8, 1), (7, 18, -1)))
        return [first, Encoder(compare, np.eye(d), erase * others, norm="post")]

    def _mark(self, d: int) -> tuple[Numbers, Numbers]:
        """Return the matrices of a feed-forward that marks the position i = #1.

        Its hidden units are relu(#1/N − i/N + k/N) for k = −1, 0, 1. Their sum with the weights 1, −2,
        1 is 1/N where i = #1.
        """
        W1 = sparse(d, 3, {(row, unit): sign for row, sign in ((3, -1), (5, 1)) for unit in range(3)})
        W1[6] = [-1, 0, 1]
        return W1, sparse(3, d, {(0, 7): 1, (1, 7): -2, (2, 7): 1})

    def _compare(self, d: int, moves: Sequence[tuple[int, int, int]]) -> MultiHeadAttention:
        """Return a layer that subtracts the outputs of two heads, for even and for odd positions.

        Each entry of ``moves`` is an input feature, an output feature and a factor of the values.
        """
        heads = []
        for sign in (1, -1):
            A = sparse(d, d, {(2, 4): sign * self.STRENGTH})
            V = sparse(d, d, {(start, end): -sign * factor for start, end, factor in moves})
            heads.append(Attention(A, V))
        return MultiHeadAttention(heads, combine="sum")


class First(Recogniser):
    """Words that begin with 1: the encoder of Chiang and Cholak.

    The scores are scaled by 2 log N, where N is the number of tokens, including the marker. The margin
    tends to ½.
    """

    def embed(self, word: Sequence[int]) -> Numbers:
        """Return the matrix X of a word, with the marker in the first row.

        The features are five indicators and the result. The indicators mark a 0, a 1, the marker, the
        first position, and a 1 at the first position. The last indicator and the result are 0 in X.
        """
        X = np.zeros((len(word) + 1, 6))
        for i, token in enumerate([2, *word]):
            X[i, token] = 1
        X[1, 3] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Return two encoders: the first marks a 1 at the first position, the second attends to the
        first position.
        """
        d, size = 6, length + 1
        nothing = Attention(np.zeros((d, d)), np.zeros((d, d)))
        W1 = sparse(d, 1, {(0, 0): -1, (2, 0): -1, (3, 0): 1})
        first = Encoder(nothing, W1, sparse(1, d, {(0, 4): 1}), feed_forward_residual=True)
        look = Attention(
            sparse(d, d, {(2, 3): 2 * math.log(size)}), sparse(d, d, {(3, 5): -0.5, (4, 5): 1})
        )
        return [first, Encoder(look)]

    def read(self, result: Numbers) -> float:
        """Return the result, which is feature 5 at the marker."""
        return float(result[0, 5])

    def read_word(self, word: Word) -> list[int]:
        """Return the bits of a word; an empty word or other symbols raise an error."""
        bits = super().read_word(word)
        if not bits:
            raise InputError("FIRST: expected a word of one bit or more, got an empty word")
        return bits


class KParity(Recogniser):
    """Words of n bits with an even number of ones at k chosen positions: one layer with k heads.

    Head j attends from the end marker to position Sⱼ. The sum s of the heads' outputs is approximately
    the number of ones at these positions. The feed-forward computes the parity of s by the triangle
    wave s + Σᵢ 2(−1)ⁱ relu(s − i).
    """

    def __init__(self, n: int, chosen: Sequence[int], epsilon: float = 0.1) -> None:
        """Store the chosen positions and the strength of the heads.

        ``epsilon`` bounds the difference between the result of the encoder and the parity, 0 or 1.
        """
        self.n = n
        self.chosen = tuple(chosen)
        if not self.chosen or len(set(self.chosen)) < len(self.chosen):
            raise InputError(f"k-PARITY: expected distinct positions, got {self.chosen}")
        if min(self.chosen) < 0 or max(self.chosen) >= n:
            raise InputError(f"k-PARITY: expected positions from 0 to {n - 1}, got {self.chosen}")
        self.strength = math.log(2 * n * len(self.chosen) / epsilon)

    def embed(self, word: Sequence[int]) -> Numbers:
        """Return the matrix X of a word, with the end marker last.

        The features are the position (one-hot), the bit, an indicator of the end marker, and space for
        the sum.
        """
        n = self.n
        X = np.zeros((n + 1, n + 3))
        X[range(n), range(n)] = 1
        X[:n, n] = word
        X[n, n + 1] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Return one encoder with a head for each chosen position."""
        n, k = self.n, len(self.chosen)
        d = n + 3
        V = sparse(d, d, {(n, n + 2): 1})
        heads = [Attention(sparse(d, d, {(n + 1, s): self.strength}), V) for s in self.chosen]
        W1 = sparse(d, k, {(n + 2, unit): 1 for unit in range(k)})
        W2 = sparse(k, 1, {(unit, 0): 1 if unit == 0 else 2 * (-1) ** unit for unit in range(k)})
        b1 = -np.arange(float(k))
        return [Encoder(MultiHeadAttention(heads, combine="sum"), W1, W2, b1)]

    def read(self, result: Numbers) -> float:
        """Return ½ minus the parity at the end marker, so that parity 0 is accepted."""
        return 0.5 - float(result[self.n, 0])

    def read_word(self, word: Word) -> list[int]:
        """Return the n bits of a word; another length or other symbols raise an error."""
        bits = super().read_word(word)
        if len(bits) != self.n:
            raise InputError(f"k-PARITY: expected a word of {self.n} bits, got {len(bits)}")
        return bits


class Match2(Recogniser):
    """Sequences in which some token and a partner, possibly the token itself, sum to a multiple of p.

    The layer contains one head. A token s is represented by the angle θ = 2πs/p. The score of two
    tokens is c·cos(θᵢ + θⱼ), which is largest where the tokens match. The score of a blank token is
    lower, but higher than the scores of tokens that do not match. The output shows whether the blank
    token received the attention. ``accepts`` returns whether any token has a partner, and ``matches``
    returns this for each token.
    """

    def __init__(self, p: int) -> None:
        self.p = require_integer(p, "p")

    def embed(self, word: Sequence[int]) -> Numbers:
        """Return the matrix X of a word, with a blank token last.

        The features are cos θ, sin θ, 1, and an indicator of the blank token.
        """
        angles = 2 * math.pi * (np.array(word) % self.p) / self.p
        X = np.zeros((len(word) + 1, 4))
        X[:-1, 0], X[:-1, 1] = np.cos(angles), np.sin(angles)
        X[:, 2] = 1
        X[-1, 3] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Return one attention layer for words of ``length`` tokens.

        The scores grow with the logarithm of the length, and with p² in order to separate near matches.
        """
        nearest = math.cos(2 * math.pi / self.p) if self.p > 1 else -1.0
        threshold, gap = (1 + nearest) / 2, (1 - nearest) / 2
        c = math.log(4 * max(length, 1)) / gap
        A = sparse(4, 4, {(0, 0): c, (1, 1): -c, (2, 3): c * threshold})
        return [Attention(A, [[0.0], [0.0], [1.0], [-1.0]])]

    def read(self, result: Numbers) -> float:
        """Return the largest output minus ½; a token whose output is above ½ has a partner."""
        return float(result[:-1, 0].max()) - 0.5

    def matches(self, word: Sequence[int], *, executor: str | None = None) -> list[bool]:
        """Run the layer on U, and return for each token whether it has a partner."""
        read = self.read_word(word)
        simulator = self.simulator(len(read))
        result = simulator(self.modules(len(read)), self.embed(read), executor=executor)
        return [bool(value > 0.5) for value in np.asarray(result)[:-1, 0]]

    def read_word(self, word: Word) -> list[int]:
        """Return the tokens of a word, which must be one or more integers."""
        try:
            whole = not isinstance(word, str) and len(word) and all(int(s) == s for s in word)
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole:
            raise InputError(f"Match₂: expected one integer or more, got {word!r}")
        return [int(s) for s in word]
