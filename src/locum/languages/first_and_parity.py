"""Languages and tasks that softmax encoders are known to recognise, run on U.

``accepts(word)`` runs the encoders on U, ``accepts_directly(word)`` the encoders themselves.

>>> Parity().accepts("11"), Parity().accepts("1")
(True, False)

- :class:`Parity`: the two-layer softmax encoder of Chiang and Cholak (2022), on two U's in series; with
  layer norm, too. :class:`First`: their encoder for words that begin with 1.
- :class:`KParity`: one layer with a head for each chosen bit.
- :class:`Match2`: one layer with one head tells whether some token adds up with this one to a multiple
  of p.

A word becomes X, encoders run on it in series, and one number decides. The encoders and U depend on
the length of the word only.
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
    """A language as encoders recognise it."""

    @abstractmethod
    def modules(self, length: int) -> list[Module]:
        """Make the encoders for words of this length."""

    @abstractmethod
    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word as X."""

    @abstractmethod
    def read(self, result: Numbers) -> float:
        """Read the number that decides: a word is accepted unless it is negative."""

    def simulator(self, length: int) -> Stack:
        """Build the U's for words of this length, in series."""
        return _stack_for(self.modules(length), len(self.embed([0] * length)))

    def accepts(self, word: Word, *, executor: str | None = None) -> bool:
        """Tell whether the word is in the language, as U computes it."""
        return self.margin(word, executor=executor) >= 0

    def margin(self, word: Word, *, executor: str | None = None) -> float:
        """Compute the number that decides, by U."""
        read = self.read_word(word)
        modules, X = self.modules(len(read)), self.embed(read)
        return self.read(np.asarray(_stack_for(modules, len(X))(modules, X, executor=executor)))

    def accepts_directly(self, word: Word) -> bool:
        """Tell whether the word is in the language, as the encoders themselves compute it."""
        read = self.read_word(word)
        value = self.embed(read)
        for module in self.modules(len(read)):
            value = module(value)
        return self.read(value) >= 0

    def read_word(self, word: Word) -> list[int]:
        """Read the bits of a word."""
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
    """Build the stack once for these orders: the program depends on nothing else."""
    return Stack([UniversalSimulator(order) for order in orders])


def sparse(rows: int, columns: int, entries: Mapping[tuple[int, int], float]) -> Numbers:
    """Make a matrix that is 0 but for ``entries``."""
    matrix = np.zeros((rows, columns))
    for place, value in entries.items():
        matrix[place] = value
    return matrix


class Parity(Recogniser):
    """Words with an even number of ones, as the paper defines PARITY.

    Features of a token: is it 0, 1, the end; i/N; (−1)ⁱ; room for #1/N, 1/N, [i = #1]/N, the result.
    The first layer counts by uniform attention, and its feed-forward marks the position i = #1. The
    second compares attention to even and to odd positions: the mark is on one or the other side. The
    result is positive for odd words, by about 1/N², whatever the length (and 0 for the empty word).
    """

    #: How strongly the second layer prefers positions of one parity.
    STRENGTH = 1.0

    def __init__(self, layer_norm: bool = False, absorbed: bool = False) -> None:
        """Take ``layer_norm``: the form with norms, each feature doubled with opposite sign, mean 0.

        ``absorbed``: the residual around the feed-forward is absorbed into its matrices, since the
        paper's Corollary has none: y + relu(y W1) W2 = relu(y [W1, I, −I]) [W2; I; −I].
        """
        self.layer_norm = layer_norm
        self.absorbed = absorbed

    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word: one row per token, the end marker last."""
        size = len(word) + 1
        X = np.zeros((size, 10 if self.layer_norm else 9))
        for i, token in enumerate([*word, 2]):
            X[i, token] = 1
            X[i, 3], X[i, 4] = i / size, (-1) ** i
        return np.hstack([X, -X]) if self.layer_norm else X

    def modules(self, length: int) -> list[Module]:
        """Make the two encoders; they do not depend on the length."""
        return self._normed() if self.layer_norm else self._plain()

    def read(self, result: Numbers) -> float:
        """Read feature 8 at the end marker, which is positive for odd words."""
        return -float(result[-1, 8])

    def _plain(self) -> list[Module]:
        d = 9
        count = sparse(d, d, {(1, 5): 1, (2, 6): 1})
        W1, W2 = self._mark(d)
        if self.absorbed:
            identity = np.eye(d)
            W1, W2 = np.hstack([W1, identity, -identity]), np.vstack([W2, identity, -identity])
        residual = not self.absorbed
        first = Encoder(Attention(np.zeros((d, d)), count), W1, W2, feed_forward_residual=residual)
        return [first, Encoder(self._compare(d, ((7, 8, 1),)))]

    def _normed(self) -> list[Module]:
        d = 20
        count = sparse(d, d, {(1, 5): 1, (2, 6): 1, (1, 15): -1, (2, 16): -1})
        W1, W2 = self._mark(d)
        W2[:, 17] = -W2[:, 7]
        # The last feed-forward subtracts all but the result, which the norm then makes large.
        others = np.array([float(j % 10 != 8) for j in range(d)])
        erase = np.vstack([np.hstack([-np.eye(10), np.eye(10)]), np.hstack([np.eye(10), -np.eye(10)])])
        first = Encoder(Attention(np.zeros((d, d)), count), W1, W2, norm="post")
        compare = self._compare(d, ((7, 8, 1), (7, 18, -1)))
        return [first, Encoder(compare, np.eye(d), erase * others, norm="post")]

    def _mark(self, d: int) -> tuple[Numbers, Numbers]:
        """Make hidden units relu(#1/N − i/N + k/N) for k = −1, 0, 1; their sum is 1/N where i = #1."""
        W1 = sparse(d, 3, {(row, unit): sign for row, sign in ((3, -1), (5, 1)) for unit in range(3)})
        W1[6] = [-1, 0, 1]
        return W1, sparse(3, d, {(0, 7): 1, (1, 7): -2, (2, 7): 1})

    def _compare(self, d: int, moves: Sequence[tuple[int, int, int]]) -> MultiHeadAttention:
        """Make two heads, for even and for odd positions; one result is subtracted from the other."""
        heads = []
        for sign in (1, -1):
            A = sparse(d, d, {(2, 4): sign * self.STRENGTH})
            V = sparse(d, d, {(start, end): -sign * factor for start, end, factor in moves})
            heads.append(Attention(A, V))
        return MultiHeadAttention(heads, combine="sum")


class First(Recogniser):
    """Words that begin with 1: the encoder of Chiang and Cholak, its scores scaled by log N.

    Without that scale the margin falls as 1/N; with it, it stays near ½.
    """

    def __init__(self, scaled: bool = True) -> None:
        self.scaled = scaled

    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word, the marker first; features: 0, 1, marker, first position, 1 there, result."""
        X = np.zeros((len(word) + 1, 6))
        for i, token in enumerate([2, *word]):
            X[i, token] = 1
        X[1, 3] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Make two encoders: the first marks a 1 at the first position, the second attends to it."""
        d, size = 6, length + 1
        nothing = Attention(np.zeros((d, d)), np.zeros((d, d)))
        W1 = sparse(d, 1, {(0, 0): -1, (2, 0): -1, (3, 0): 1})
        first = Encoder(nothing, W1, sparse(1, d, {(0, 4): 1}), feed_forward_residual=True)
        strength = 2 * math.log(size) if self.scaled else 1.0
        look = Attention(sparse(d, d, {(2, 3): strength}), sparse(d, d, {(3, 5): -0.5, (4, 5): 1}))
        return [first, Encoder(look)]

    def read(self, result: Numbers) -> float:
        """Read feature 5 at the marker."""
        return float(result[0, 5])

    def read_word(self, word: Word) -> list[int]:
        """Read the bits of a word that is not empty."""
        bits = super().read_word(word)
        if not bits:
            raise InputError("FIRST: expected a word of one bit or more, got an empty word")
        return bits


class KParity(Recogniser):
    """Words of n bits with an even number of ones at chosen positions: one layer, one head for each.

    Head j attends from the end marker to position Sⱼ; the heads' values add up to the number of ones,
    and the feed-forward takes the parity by the triangle wave s + Σᵢ 2(−1)ⁱ relu(s − i).
    """

    def __init__(self, n: int, chosen: Sequence[int], epsilon: float = 0.1) -> None:
        """Take ``epsilon``: how far the result may be from 0 or 1."""
        self.n = n
        self.chosen = tuple(chosen)
        if not self.chosen or len(set(self.chosen)) < len(self.chosen):
            raise InputError(f"k-PARITY: expected distinct positions, got {self.chosen}")
        if min(self.chosen) < 0 or max(self.chosen) >= n:
            raise InputError(f"k-PARITY: expected positions from 0 to {n - 1}, got {self.chosen}")
        self.strength = math.log(2 * n * len(self.chosen) / epsilon)

    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word; features: position (one-hot), bit, end marker, room for the sum."""
        n = self.n
        X = np.zeros((n + 1, n + 3))
        X[range(n), range(n)] = 1
        X[:n, n] = word
        X[n, n + 1] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Make one encoder with k heads."""
        n, k = self.n, len(self.chosen)
        d = n + 3
        V = sparse(d, d, {(n, n + 2): 1})
        heads = [Attention(sparse(d, d, {(n + 1, s): self.strength}), V) for s in self.chosen]
        W1 = sparse(d, k, {(n + 2, unit): 1 for unit in range(k)})
        W2 = sparse(k, 1, {(unit, 0): 1 if unit == 0 else 2 * (-1) ** unit for unit in range(k)})
        b1 = -np.arange(float(k))
        return [Encoder(MultiHeadAttention(heads, combine="sum"), W1, W2, b1)]

    def read(self, result: Numbers) -> float:
        """Read the parity at the end marker: 0 accepts."""
        return 0.5 - float(result[self.n, 0])

    def read_word(self, word: Word) -> list[int]:
        """Read the n bits of a word."""
        bits = super().read_word(word)
        if len(bits) != self.n:
            raise InputError(f"k-PARITY: expected a word of {self.n} bits, got {len(bits)}")
        return bits


class Match2(Recogniser):
    """Which tokens have a partner (themselves included) with which they add up to a multiple of p.

    One head: a token s is the angle θ = 2πs/p, the score of two is c·cos(θᵢ + θⱼ), greatest where they
    match; a blank token scores just below that, and the value says whether attention fell on it.
    ``accepts`` says whether any token has a partner, ``matches`` which.
    """

    def __init__(self, p: int) -> None:
        self.p = require_integer(p, "p")

    def embed(self, word: Sequence[int]) -> Numbers:
        """Embed a word; features: cos θ, sin θ, 1, blank; the blank token last."""
        angles = 2 * math.pi * (np.array(word) % self.p) / self.p
        X = np.zeros((len(word) + 1, 4))
        X[:-1, 0], X[:-1, 1] = np.cos(angles), np.sin(angles)
        X[:, 2] = 1
        X[-1, 3] = 1
        return X

    def modules(self, length: int) -> list[Module]:
        """Make one attention; its scores grow with the length, and with p² to separate near misses."""
        nearest = math.cos(2 * math.pi / self.p) if self.p > 1 else -1.0
        threshold, gap = (1 + nearest) / 2, (1 - nearest) / 2
        c = math.log(4 * max(length, 1)) / gap
        A = sparse(4, 4, {(0, 0): c, (1, 1): -c, (2, 3): c * threshold})
        return [Attention(A, [[0.0], [0.0], [1.0], [-1.0]])]

    def read(self, result: Numbers) -> float:
        """Read the surest token: above ½ it has a partner."""
        return float(result[:-1, 0].max()) - 0.5

    def matches(self, word: Sequence[int], *, executor: str | None = None) -> list[bool]:
        """Tell for each token whether it has a partner, as U computes it."""
        read = self.read_word(word)
        simulator = self.simulator(len(read))
        result = simulator(self.modules(len(read)), self.embed(read), executor=executor)
        return [bool(value > 0.5) for value in np.asarray(result)[:-1, 0]]

    def read_word(self, word: Word) -> list[int]:
        """Read the tokens of a word: integers, one or more."""
        try:
            whole = not isinstance(word, str) and len(word) and all(int(s) == s for s in word)
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole:
            raise InputError(f"Match₂: expected one integer or more, got {word!r}")
        return [int(s) for s in word]
