"""Represent programs that accept words: a boolean s-op, its alphabet, and where its answer is read.

The position of the answer determines which languages can be recognised. A program whose answer is read
at the **last symbol** can use this symbol, and is undefined for the empty word. An **end marker** is an
additional position without a symbol of the alphabet. For example, a C-RASP program without position
predicates can recognise (a+b)*b if its answer is read at the last symbol, but not at an end marker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError
from locum.graph import Node
from locum.languages.automata import Letter, Word, show_alphabet
from locum.networks.transformer import CompiledTransformer
from locum.rasp.handles import SOp

#: The position at which the answer is read.
LAST, END = "last", "end"
#: The end marker, which follows a word if the answer is read there.
MARKER = "$"


@dataclass(frozen=True)
class Recogniser:
    """A C-RASP or B-RASP program that accepts or rejects words."""

    #: The dialect: "C-RASP" or "B-RASP".
    dialect: str
    #: A boolean s-op, whose value at the position of the answer is whether the word is accepted.
    sop: SOp
    alphabet: tuple[Letter, ...]
    #: "last" (the last symbol) or "end" (an end marker after the word).
    accept: str = LAST
    #: Names of the parts of the program.
    names: Mapping[Node, str] = field(default_factory=dict)
    #: The program as text, or "".
    text: str = ""
    #: Whether no part depends on later positions, so that the program can be compiled to a decoder.
    causal: bool = True

    def __post_init__(self) -> None:
        if self.accept not in (LAST, END):
            raise InputError(f"accept: expected 'last' or 'end', got {self.accept!r}")
        if not self.alphabet:
            raise InputError("expected an alphabet of one symbol or more; try alphabet=…")
        if self.accept == END and MARKER in self.alphabet:
            raise InputError(
                f"expected an alphabet without the end marker {MARKER!r}, got "
                f"{show_alphabet(self.alphabet)}; try accept='last'"
            )

    @property
    def vocabulary(self) -> tuple[Letter, ...]:
        """The tokens of a compiled network: the alphabet, and the end marker if the program uses it."""
        return (*self.alphabet, MARKER) if self.accept == END else self.alphabet

    def tokens(self, word: Word) -> list[Letter]:
        """Return the tokens on which the program is run.

        These are the symbols of the word, and the end marker if the answer is read there.
        """
        symbols = list(word)
        for symbol in symbols:
            if symbol not in self.alphabet:
                raise InputError(
                    f"expected symbols of the alphabet {show_alphabet(self.alphabet)}, got "
                    f"{symbol!r}; try another alphabet=… (--alphabet)"
                )
        if self.accept == END:
            return [*symbols, MARKER]
        if not symbols:
            raise InputError(
                "the empty word has no last symbol, at which the answer is read; try accept='end' "
                "(with an end marker, programs recognise a different class of languages)"
            )
        return symbols

    def accepts(self, word: Word) -> bool:
        """Return whether dense execution of the program accepts a word.

        >>> from locum.languages import c_rasp
        >>> majority = c_rasp.parse('more = #"a" > #"b"')
        >>> majority.accepts("aab"), majority.accepts("abb")
        (True, False)
        """
        return bool(self.sop(self.tokens(word))[-1])

    def compile(self, length: int, **options: Any) -> CompiledTransformer:
        """Compile the program for words of up to ``length`` symbols.

        By default, a causal program becomes a decoder.
        """
        from locum.networks.compiler.compiling import compile_for
        from locum.networks.compiler.target import Target

        options = {"causal": self.causal} | options
        name = options.pop("name", self.dialect)
        positions = length + (self.accept == END)
        target = Target.read(length=positions, vocabulary=self.vocabulary, **options)
        return compile_for(target, self.sop.node, name, names=self.names)

    def accepts_by(self, model: CompiledTransformer, words: Sequence[Word]) -> list[bool]:
        """Return for each word whether the compiled network accepts it.

        All words must have the same length.
        """
        batch = [self.tokens(word) for word in words]
        return [bool(row[-1]) for row in model(batch)]
