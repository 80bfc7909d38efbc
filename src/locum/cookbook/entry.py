"""An entry of the cookbook: what it computes, of what size it is, and how far it was checked."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from locum.compiler import compile as compile_program
from locum.dialects.recogniser import END, Recogniser
from locum.language.handles import SOp
from locum.shortening import at_most
from locum.transformer import CompiledTransformer

Word = tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """What was found of an entry."""

    layers: int
    heads: tuple[int, ...]
    #: Words that were run, the longest of them, and the first that came out wrong.
    words: int
    longest: int
    wrong: Word | None
    #: How sure it is: "certified" weights have no error on any input of their lengths.
    status: str


@dataclass(frozen=True)
class Entry(ABC):
    """A construction by its name."""

    name: str
    #: What it computes, in one line.
    about: str
    #: "average-hard", "unique hard" or "softmax", and what its numbers need.
    attention: str
    precision: str
    source: str
    alphabet: str
    #: What is right, by a plain computation.
    plain: Callable[[str], Any]
    #: The longest words that it is checked on.
    longest: int

    def words(self) -> Iterator[list[Word]]:
        """Yield the words of each length that it is checked on."""
        for size in range(1, self.longest + 1):
            yield list(itertools.product(self.alphabet, repeat=size))

    @abstractmethod
    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Return what the network says to words of one length."""

    @abstractmethod
    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of layers, and of heads in each."""

    @abstractmethod
    def status(self) -> str:
        """Say how sure it is beyond the words that were run."""

    def examine(self) -> Finding:
        """Run the network on all words and compare, once: an entry does not change."""
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
        """Return the entry and what was found as plain data."""
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
    """An entry that is a program: a recogniser, or an s-op whose values are compared."""

    program: Callable[[], Recogniser | SOp]
    #: Whether all outputs are compared, or the last one alone.
    everywhere: bool = False

    @cached_property
    def built(self) -> Recogniser | SOp:
        """The program."""
        return self.program()

    @cached_property
    def model(self) -> CompiledTransformer:
        """The network, for words as long as those that are checked.

        Its feed-forwards are instructions, as those of published constructions are any functions.
        """
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
        """Yield all words, with the empty one where that has an answer."""
        if isinstance(self.built, Recogniser) and self.built.accept == END:
            yield [()]
        yield from super().words()

    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Run the compiled weights."""
        if isinstance(self.built, Recogniser):
            return list(self.built.accepts_by(self.model, words))
        rows = self.model([list(word) for word in words])
        return [row if self.everywhere else row[-1] for row in rows]

    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return layers and heads of the compiled network."""
        return self.model.architecture.layers, self.model.architecture.heads

    def status(self) -> str:
        """Say what the compiler certifies."""
        bound = self.model.error_bound
        return (
            "certified: error 0" if bound == 0 else f"certified: error at most {at_most(bound, '.1g')}"
        )


@dataclass(frozen=True)
class Direct(Entry):
    """An entry whose weights are given by hand: a function runs them on a word."""

    run: Callable[[str], Any]
    layers: int
    heads: tuple[int, ...]

    def answers(self, words: Sequence[Word]) -> list[Any]:
        """Run the network word by word."""
        return [self.run("".join(word)) for word in words]

    def size(self) -> tuple[int, tuple[int, ...]]:
        """Return what the construction has."""
        return self.layers, self.heads

    def status(self) -> str:
        """Say that words were run."""
        return "checked on all words of these lengths"
