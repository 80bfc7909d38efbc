"""Define constructions from surveys and papers about transformers and formal languages.

Each construction contains a plain Python function, with which the outputs of its network are compared.
"""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.languages import b_rasp, c_rasp, rasp_l
from locum.languages.c_rasp_programs import program
from locum.languages.first_and_parity import First, Parity
from locum.languages.ltl import LTL
from locum.languages.recogniser import END, Recogniser
from locum.languages.regular import language
from locum.networks.compiler import compile as compile_program
from locum.networks.transformer import CompiledTransformer
from locum.rasp.handles import SOp
from locum.rasp.python import aggregate, best, indices, select, selector_width, tokens, where
from locum.text import at_most

Word = tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """The result of checking a construction on words."""

    layers: int
    heads: tuple[int, ...]
    #: Number of words that were run, length of the longest, and the first word with a wrong answer.
    words: int
    longest: int
    wrong: Word | None
    #: The level of certainty. A "certified" error bound holds on all inputs of these lengths.
    status: str


@dataclass(frozen=True)
class Entry(ABC):
    """A construction: a network with its description, its source and the correct answers."""

    name: str
    #: A one-line description.
    about: str
    #: "average-hard", "unique hard" or "softmax", and the required precision or the margin of the
    #: answer.
    attention: str
    precision: str
    source: str
    alphabet: str
    #: A plain Python function that computes the correct answer.
    plain: Callable[[str], Any]
    #: Length of the longest words on which the construction is checked.
    longest: int

    def words(self) -> Iterator[list[Word]]:
        """Yield, for each length, the words on which the construction is checked."""
        for size in range(1, self.longest + 1):
            yield list(itertools.product(self.alphabet, repeat=size))

    @abstractmethod
    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Return the outputs of the network for words of one length."""

    @abstractmethod
    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of layers, and the number of heads in each layer."""

    @abstractmethod
    def status(self) -> str:
        """Return a text that describes how certain the correctness of the network is."""

    def examine(self) -> Finding:
        """Run the network on the words from :meth:`words`, and compare its answers with the correct
        answers.

        The result is cached.
        """
        return self._finding

    @cached_property
    def _finding(self) -> Finding:
        layers, heads = self.size()
        count, wrong = 0, None
        for batch in self.words():
            for start in range(0, len(batch), 512):
                part = batch[start : start + 512]
                for word, answer in zip(part, self.answers(part), strict=True):
                    count += 1
                    if wrong is None and answer != self.plain("".join(word)):
                        wrong = word
        return Finding(layers, heads, count, self.longest, wrong, self.status())

    def to_dict(self) -> dict[str, Any]:
        """Return the construction and the result of its check as a JSON-compatible dictionary."""
        examined = self.examine()
        return {
            "name": self.name,
            "about": self.about,
            "layers": examined.layers,
            "heads": list(examined.heads),
            "attention": self.attention,
            "precision": self.precision,
            "source": self.source,
            "status": examined.status,
            "words": examined.words,
            "longest": examined.longest,
            "holds": examined.wrong is None,
            "wrong": None if examined.wrong is None else list(examined.wrong),
        }


@dataclass(frozen=True)
class Compiled(Entry):
    """A construction given as a program: a recogniser or an s-op."""

    program: Callable[[], Recogniser | SOp]
    #: Whether all outputs of an s-op are compared, or only the last one.
    everywhere: bool = False

    @cached_property
    def built(self) -> Recogniser | SOp:
        """The recogniser or s-op of the construction."""
        return self.program()

    @cached_property
    def model(self) -> CompiledTransformer:
        """The compiled network for words of up to ``longest`` letters, with symbolic feed-forwards."""
        if isinstance(self.built, Recogniser):
            return self.built.compile(self.longest, name=self.name, feed_forward="exact")
        return compile_program(
            self.built,
            length=self.longest,
            vocabulary=self.alphabet,
            causal=True,
            name=self.name,
            feed_forward="exact",
        )

    def words(self) -> Iterator[list[Word]]:
        """Yield, for each length, all words of this length.

        The empty word is included if the answer is read at an end marker.
        """
        if isinstance(self.built, Recogniser) and self.built.accept == END:
            yield [()]
        yield from super().words()

    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Return the outputs of the compiled network."""
        if isinstance(self.built, Recogniser):
            return list(self.built.accepts_by(self.model, words))
        rows = self.model([list(word) for word in words])
        return [row if self.everywhere else row[-1] for row in rows]

    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of layers of the compiled network, and the number of heads in
        each layer.
        """
        return self.model.architecture.layers, self.model.architecture.heads

    def status(self) -> str:
        """Return the certified error bound of the compiled network as text."""
        bound = self.model.error_bound
        return (
            "certified: error 0" if bound == 0 else f"certified: error at most {at_most(bound, '.1g')}"
        )


@dataclass(frozen=True)
class Direct(Entry):
    """A construction that is not compiled; the function ``run`` computes its output for a word."""

    run: Callable[[str], Any]
    layers: int
    heads: tuple[int, ...]

    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Return the outputs of the network, which is run word by word."""
        return [self.run("".join(word)) for word in words]

    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of layers of the construction, and the number of heads in each layer."""
        return self.layers, self.heads

    def status(self) -> str:
        """Return a text that states on which words the answers were checked."""
        return "checked on all words of these lengths"


HARD, SOFT, UNIQUE = "average-hard", "softmax", "unique hard"
LOGARITHMIC, CONSTANT = "O(log n) bits", "O(1) bits"
_SURVEY = "Strobl et al. 2024"
_COOKBOOK = "Transformer Cookbook 2025"

_PAST = select(indices, indices, "<=")


def _balanced(word: str, pairs: str = "()") -> bool:
    depth = 0
    for letter in word:
        depth += {pairs[0]: 1, pairs[1]: -1}.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0


def _top(word: str) -> list[str]:
    """Return the bracket on top of the stack after every prefix, or "empty".

    The result is "-" from the first prefix that no Dyck word of depth at most 3 extends.
    """
    stack: list[str] = []
    answers: list[str] = []
    for letter in word:
        if letter in "([":
            stack.append(letter)
        elif stack and stack[-1] + letter in ("()", "[]"):
            stack.pop()
        else:
            return [*answers, *["-"] * (len(word) - len(answers))]
        if len(stack) > 3:
            return [*answers, *["-"] * (len(word) - len(answers))]
        answers.append(stack[-1] if stack else "empty")
    return answers


def _dyck_top() -> SOp:
    """Return an s-op that computes the bracket on top of the stack.

    This bracket is the last one that was opened at the current depth. Layer 1 computes the depth, and
    layer 2 attends to the bracket. After an error, the depth and the bracket do not determine the
    answer. The construction is therefore checked only on prefixes of Dyck words of depth at most 3.
    """
    is_open = (tokens == "(") | (tokens == "[")
    depth = 2 * selector_width(select(is_open, True, "==") & _PAST) - indices - 1
    at_depth = select(where(is_open, depth, 0), depth, "==") & _PAST
    top = aggregate(best(at_depth, indices), tokens, default="empty")
    return where(depth == 0, "empty", top)


class _Prefixes(Compiled):
    """A construction that is checked only on prefixes of Dyck words."""

    def words(self) -> Any:
        """Yield, for each length, the words that are prefixes of Dyck words of depth at most 3."""
        for batch in super().words():
            kept = [word for word in batch if "-" not in _top("".join(word))]
            if kept:
                yield kept


def _shuffle(word: str) -> bool:
    return _balanced(word) and _balanced(word, "[]")


def _counts(text: str, alphabet: str) -> Callable[[], Recogniser]:
    return functools.partial(c_rasp.parse, text, alphabet=alphabet, accept="end")


def _regular_c_rasp() -> Recogniser:
    recogniser = program(language("(ab+ba)*"))
    assert recogniser is not None
    return recogniser


def _regular_star_free() -> Recogniser:
    return b_rasp.from_ltl(LTL.parse("F (b & X b)", alphabet="ab")).recogniser()


def _trigram() -> SOp:
    one, two = (rasp_l.shift_right(tokens, n, default="-") for n in (1, 2))
    return (two == "a") & (one == "b") & (tokens == "a")


def _induction() -> SOp:
    """Return an s-op that computes the token after the last earlier occurrence of the current token."""
    before = rasp_l.shift_right(tokens, 1, default="-")
    earlier = select(before, tokens, "==") & _PAST
    return aggregate(best(earlier, indices), tokens, default="-")


def _plain_induction(word: str) -> list[str]:
    answers = []
    for i, letter in enumerate(word):
        places = [j + 1 for j in range(i) if word[j] == letter]
        answers.append(word[places[-1]] if places else "-")
    return answers


def _count_of(letter: str) -> SOp:
    return selector_width(select(tokens, letter, "==") & _PAST)


def _hash_count(word: str) -> list[int]:
    """Count the letters a in every prefix by comparing layer-norm hashes.

    A layer norm of (x, y, −x, −y) keeps only the direction of (x, y), which is its hash. Uniform
    attention over n letters computes the mean c/n and 1/n. The query is the hash of (c/n, 1/n), and the
    keys are the hashes of (j, 1) for integers j. Pairs with equal ratios have equal hashes, so the
    query attends to the key j = c.
    """
    size = len(word)

    def hashed(x: Any, y: Any) -> Any:
        columns = np.stack([x, y, -x, -y], axis=-1)
        return columns / np.sqrt(np.mean(columns**2, axis=-1, keepdims=True))

    held = np.array([float(letter == "a") for letter in word])
    lengths = np.arange(1, size + 1)
    means, shares = np.cumsum(held) / lengths, 1 / lengths
    numbers = np.arange(size + 1, dtype=float)
    scores = hashed(means, shares) @ hashed(numbers, np.ones(size + 1)).T
    return [int(place) for place in scores.argmax(axis=1)]


def _running(word: str, letter: str) -> list[int]:
    return [word[: i + 1].count(letter) for i in range(len(word))]


_COUNT3 = """
bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0
accepted = #bad == 0 && #"a" == #"b" && #"b" == #"c"
"""
_DYCK = 'o = #"("\nc = #")"\naccepted = #[o < c] == 0 && o == c'
_SHUFFLE = """
o = #"("
c = #")"
p = #"["
q = #"]"
accepted = #[o < c || p < q] == 0 && o == c && p == q
"""

#: All entries, by name.
COOKBOOK: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Compiled(
            "predecessor", "the token before this one", HARD, CONSTANT, _COOKBOOK, "abc",
            lambda w: ["-", *w[:-1]], 6, lambda: rasp_l.shift_right(tokens, 1, default="-"), True,
        ),
        Compiled(
            "n-grams", "whether the last three tokens are a, b, a", HARD, CONSTANT, _COOKBOOK, "ab",
            lambda w: [w[: i + 1].endswith("aba") for i in range(len(w))], 8, _trigram, True,
        ),
        Compiled(
            "induction head", "the token after the last earlier occurrence of this token", HARD,
            LOGARITHMIC, "Olsson et al. 2022", "abc", _plain_induction, 6, _induction, True,
        ),
        Compiled(
            "majority", "more a's than b's", HARD, LOGARITHMIC, "Hao et al. 2022", "ab",
            lambda w: w.count("a") > w.count("b"), 8, _counts('m = #"a" > #"b"', "ab"),
        ),
        Compiled(
            "Dyck-1", "balanced brackets", HARD, LOGARITHMIC, "Bhattamishra et al. 2020", "()",
            _balanced, 8, _counts(_DYCK, "()"),
        ),
        _Prefixes(
            "Dyck-2-3", "the bracket on top of the stack, to depth 3, in two layers", HARD, LOGARITHMIC,
            "Yao et al. 2021", "()[]", _top, 6, _dyck_top, True,
        ),
        Compiled(
            "shuffle-Dyck-2", "two kinds of brackets, each balanced separately", HARD, LOGARITHMIC,
            "Bhattamishra et al. 2020", "()[]", _shuffle, 5, _counts(_SHUFFLE, "()[]"),
        ),
        Compiled(
            "aⁿbⁿcⁿ", "equal numbers of a, b and c, in this order", HARD, LOGARITHMIC,
            "Yang & Chiang 2024", "abc", lambda w: w == "".join(x * (len(w) // 3) for x in "abc"), 6,
            _counts(_COUNT3, "abc"),
        ),
        Compiled(
            "parity by counting", "the number of 1's modulo 2, by counting", HARD, LOGARITHMIC,
            _SURVEY, "01", lambda w: [n % 2 for n in _running(w, "1")], 8, lambda: _count_of("1") % 2,
            True,
        ),
        Compiled(
            "MOD without positions", "the number of a's modulo 3, without positional encodings", HARD,
            LOGARITHMIC, "Barcelo et al. 2024", "ab", lambda w: [n % 3 for n in _running(w, "a")], 8,
            lambda: _count_of("a") % 3, True,
        ),
        Direct(
            "PARITY", "an even number of 1's, by softmax", SOFT, "margin ~ 1/n²",
            "Chiang & Cholak 2022", "01", lambda w: w.count("1") % 2 == 0, 8,
            Parity().accepts_directly, 2, (1, 2),
        ),
        Direct(
            "PARITY with LayerNorm", "an even number of 1's, with a larger margin by norms", SOFT,
            "margin √10", "Chiang & Cholak 2022", "01", lambda w: w.count("1") % 2 == 0, 8,
            Parity(layer_norm=True).accepts_directly, 2, (1, 2),
        ),
        Direct(
            "FIRST", "words that begin with 1, scores scaled by log n", SOFT, "margin ~ ½",
            "Chiang & Cholak 2022", "01", lambda w: w[0] == "1", 8, First().accepts_directly, 2, (1, 1),
        ),
        Direct(
            "layer-norm hash", "a count, by comparing directions, without division", HARD, LOGARITHMIC,
            "Merrill & Sabharwal 2024", "ab", lambda w: _running(w, "a"), 9, _hash_count, 2, (1, 1),
        ),
        Compiled(
            "C-RASP of a regular language", "(ab+ba)*, a regular language in C-RASP, by potentials",
            HARD, LOGARITHMIC, "Yang & Chiang 2024", "ab", language("(ab+ba)*").accepts, 8,
            _regular_c_rasp,
        ),
        Compiled(
            "B-RASP of a star-free language", "(a+b)*bb(a+b)*, which is F (b & X b)",
            UNIQUE, CONSTANT, "Yang, Chiang & Angluin 2024", "ab", lambda w: "bb" in w, 8,
            _regular_star_free,
        ),
    )
}  # fmt: skip
