"""Show by a witness that a language is not regular, and return the verdicts that follow.

A witness consists of words u, v, w, x, z, y and a comparison of m with n + c, for numbers m, n ≥ 0. The
language contains u vᵐ w xⁿ zⁿ y if and only if the comparison holds. Then the words u vᵐ w have
infinitely many different sets of continuations. By the theorem of Myhill and Nerode, no finite
automaton recognises the language. :func:`find_witness` proves the equivalence by an invariant
(``solver.py``), and :func:`check` runs the words for small m and n.

>>> from locum.languages import c_rasp
>>> witness = find_witness(c_rasp.parse('d = #"a" > #"b"'))
>>> str(witness)
'aaᵐbⁿ is accepted if and only if m ≥ n'
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum.errors import InputError
from locum.graph.operations import COMPARISONS
from locum.languages.automata import Letter, show_word
from locum.languages.counters import PLAIN, CounterAutomaton, Meanings
from locum.languages.counting import require
from locum.languages.recogniser import END, Recogniser
from locum.languages.solver import EQUAL, Machine, ask, machine_of

#: Numbers of values of m and of n: in the search, and in the check by execution.
TRIED, CHECKED = 6, 5
#: The comparisons of m − n with a constant.
_RELATIONS = ("==", "!=", ">=", "<=")
_SYMBOLS = {"==": "=", "!=": "≠", ">=": "≥", "<=": "≤"}
#: Maximum number of candidates that the solver tries to prove.
_MAX_PROOFS = 4

Word = tuple[Letter, ...]


@dataclass(frozen=True)
class PumpingWitness:
    """Words of the form u vᵐ w xⁿ zⁿ y, and the condition under which a language contains them."""

    u: Word
    v: Word
    w: Word
    x: Word
    y: Word
    #: A word is accepted if and only if m ``relation`` n + ``offset``.
    relation: str = "=="
    offset: int = 0
    z: Word = ()

    def word(self, m: int, n: int) -> Word:
        """Return the word u vᵐ w xⁿ zⁿ y for these powers."""
        return (*self.u, *self.v * m, *self.w, *self.x * n, *self.z * n, *self.y)

    def expected(self, m: int, n: int) -> bool:
        """Return whether the word with the powers ``m`` and ``n`` is accepted, according to the
        condition.
        """
        return bool(COMPARISONS[self.relation].holds(m - n, self.offset))

    def __str__(self) -> str:
        """Return the witness as a line of text."""
        powers = [_shown(self.x, "ⁿ"), _shown(self.z, "ⁿ")]
        parts = [_shown(self.u), _shown(self.v, "ᵐ"), _shown(self.w), *powers]
        n = "n" if not self.offset else f"n {'+' if self.offset > 0 else '−'} {abs(self.offset)}"
        pattern = "".join([*parts, _shown(self.y)])
        return f"{pattern} is accepted if and only if m {_SYMBOLS[self.relation]} {n}"

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as a JSON-compatible dictionary."""
        words = {name: list(getattr(self, name)) for name in "uvwxzy"}
        return words | {"relation": self.relation, "offset": self.offset, "text": str(self)}


def _shown(word: Word, power: str = "") -> str:
    if not word:
        return ""
    text = show_word(word)
    if not {"(", ")"}.isdisjoint(word):  # brackets of the language, not of the notation
        return f'"{text}"{power}'
    return f"({text}){power}" if power and len(word) > 1 else text + power


def find_witness(
    language: Recogniser | CounterAutomaton, *, seconds: float = 30.0
) -> PumpingWitness | None:
    """Find and prove a witness that a language is not regular, or return None if none is proven.

    ``seconds`` limits the CPU time of the search. The proof requires z3, which the extra ``solve``
    installs. Without z3, and for programs that count later positions, the result is None.
    """
    if isinstance(language, Recogniser) and not language.causal:
        return None
    end = time.process_time() + seconds
    machine = machine_of(language)
    has_empty = not isinstance(language, Recogniser) or language.accept == END
    candidates = _candidates(machine, language.alphabet, has_empty, end)
    for witness in itertools.islice(candidates, _MAX_PROOFS):
        now = time.process_time()
        if _prove(machine, witness, now + (end - now) / 2) and check(language, witness):
            return witness
    return None


def check(language: Recogniser | CounterAutomaton, witness: PumpingWitness) -> bool:
    """Return whether all words of a witness with small powers are accepted or rejected as expected.

    Programs are run by dense execution.
    """
    return all(
        language.accepts(witness.word(m, n)) == witness.expected(m, n)
        for m in range(CHECKED)
        for n in range(CHECKED)
    )


def _candidates(
    machine: Machine, alphabet: Sequence[Letter], has_empty: bool, end: float
) -> Iterator[PumpingWitness]:
    """Yield witnesses that are correct for small powers, without proof."""
    letters = [(letter,) for letter in alphabet]
    powers: list[Word] = [*letters, *itertools.product(alphabet, repeat=2)]
    contexts: list[Word] = [(), *letters]
    triples = sorted(itertools.product(contexts, repeat=3), key=lambda each: sum(map(len, each)))
    pairs = sorted(itertools.product(powers, repeat=2), key=lambda each: sum(map(len, each)))

    def two_powers(contexts: Iterable[tuple[Word, ...]]) -> Iterator[PumpingWitness]:
        for (u, w, y), (v, x) in itertools.product(contexts, pairs):
            # If the empty word has no answer and u, w and y are empty, u is replaced by one v.
            if v != x:
                yield PumpingWitness(u if has_empty or u or w or y else v, v, w, x, y)

    three_powers = (
        PumpingWitness(() if has_empty else v, v, (), x, (), z=z)
        for v, x, z in itertools.permutations(letters, 3)
    )
    for words in itertools.chain(two_powers(triples[:1]), three_powers, two_powers(triples[1:])):
        if time.process_time() > end:
            return
        relation = _relation(machine, words)
        if relation is not None:
            yield replace(words, relation=relation[0], offset=relation[1])


def _relation(machine: Machine, words: PumpingWitness) -> tuple[str, int] | None:
    """Return the comparison of m − n with a constant that decides acceptance for small
    powers, or None.
    """
    answers: dict[int, bool] = {}
    state = _run(machine, (machine.start, None), words.u)
    for m in range(TRIED):
        inner = _run(machine, state, words.w)
        for n in range(TRIED):
            accepted = bool(machine.answer(*_run(machine, inner, words.z * n + words.y)))
            if answers.setdefault(m - n, accepted) != accepted:
                return None
            inner = _run(machine, inner, words.x)
        state = _run(machine, state, words.v)
    for relation in _RELATIONS:
        holds = COMPARISONS[relation].holds
        for offset in (0, 1, -1, 2, -2):
            if all(holds(d, offset) == accepted for d, accepted in answers.items()):
                return relation, offset
    return None


def _run(machine: Machine, state: Any, word: Word, meanings: Meanings = PLAIN) -> Any:
    """Read a word from a pair of a state and an answer, and return the pair after the word."""
    for letter in word:
        state = machine.step(state[0], letter, meanings)
    return state


class _Pumped:
    """A machine that reads v, x and z as letters, and accepts words that contradict the witness."""

    def __init__(self, machine: Machine, witness: PumpingWitness) -> None:
        self.machine, self.witness = machine, witness
        #: Registers: all registers of the machine, the phase, m − n, and n minus the number of z's.
        names = ("phase", "m - n", "n - k") if witness.z else ("phase", "m - n")
        self.letters = ("v", "x", "z")[: len(names)]
        self.registers: tuple[Any, ...] = (*machine.registers, *((self, name) for name in names))
        self._start = _run(machine, (machine.start, None), witness.u)

    @property
    def start(self) -> tuple[int, ...]:
        """The registers after u has been read."""
        return (*self._start[0], *(0,) * len(self.letters))

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Read one v, x or z, and return the next state and whether the witness is contradicted.

        In phases 0, 1 and 2, the machine reads v's, x's and z's. In phase 3, the word does not have the
        form of the witness.
        """
        own = len(self.machine.registers)
        inner, phase, differences = tuple(state[:own]), state[own], list(state[own + 1 :])
        choose, equal, witness = meanings["if_else"], meanings["equal"], self.witness
        place = self.letters.index(letter)
        inside = meanings["not"](equal(phase, 3))
        for later in range(place + 1, len(self.letters)):
            inside = meanings["and"](inside, meanings["not"](equal(phase, later)))
        if letter != "v":  # w is read after the last v
            begun = _run(self.machine, (inner, None), witness.w, meanings)[0]
            first = equal(phase, 0)
            inner = tuple(choose(first, a, b) for a, b in zip(begun, inner, strict=True))
            differences[place - 1] = differences[place - 1] - 1
        if place < len(differences):
            differences[place] = differences[place] + 1
        read = _run(self.machine, (inner, None), getattr(witness, letter), meanings)
        after = _run(self.machine, read, witness.w, meanings) if letter == "v" else read
        wrong = meanings["and"](inside, self._wrong(after, differences, meanings))
        return (*read[0], choose(inside, place, 3), *differences), wrong

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Return whether the word that was read contradicts the witness."""
        if accepted is not None:
            return accepted
        after = _run(self.machine, self._start, self.witness.w)
        return self._wrong(after, [0] * (len(self.letters) - 1), meanings)

    def _wrong(self, state: Any, differences: Sequence[Any], meanings: Meanings) -> Any:
        both, either, negate = (meanings[name] for name in ("and", "or", "not"))
        read = _run(self.machine, state, self.witness.y, meanings)
        accepted = self.machine.answer(read[0], read[1], meanings)
        relation = COMPARISONS[self.witness.relation].operation
        expected = meanings[relation](differences[0], self.witness.offset)
        wrong = either(both(accepted, negate(expected)), both(negate(accepted), expected))
        for difference in differences[1:]:
            wrong = both(wrong, meanings["equal"](difference, 0))
        return wrong


class _Never:
    """A machine that rejects every word."""

    registers: tuple[Any, ...] = ()
    start: tuple[int, ...] = ()

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Read a letter, and reject."""
        return (), False

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Reject every word."""
        return False


def _prove(machine: Machine, witness: PumpingWitness, end: float) -> bool:
    pumped = _Pumped(machine, witness)
    try:
        return ask(pumped, _Never(), pumped.letters, end, empty=True, guided=True) == EQUAL
    except InputError:  # z3 is not installed
        return False


# Verdicts -------------------------------------------------------------------------------------------

#: Classes with their descriptions, in the order of the table.
CLASSES = {
    "regular": "recognised by a finite automaton",
    "star_free": "star-free",
    "masked_UHAT": "unique hard attention with strict masks, without positions",
    "C-RASP": "C-RASP without #import, read at an end marker",
    "C-RASP_last": "C-RASP without #import, read at the last symbol",
    "C-RASP[periodic, local]": "C-RASP with #import, read at an end marker or the last symbol",
    "softmax": "softmax transformers of fixed depth",
    "UHAT": "unique hard attention with positions",
    "AHAT": "average hard attention",
}


@dataclass(frozen=True)
class Verdict:
    """A verdict on whether a language is in a class; ``holds`` is None if this is undecided."""

    key: str
    holds: bool | None
    reason: str
    theorem: str = ""


def verdicts(language: Recogniser | CounterAutomaton, witness: PumpingWitness | None) -> list[Verdict]:
    """Return one verdict for each class, from a definition of the language and a witness.

    A C-RASP program proves membership in some of the classes, whether or not its language is regular. A
    witness excludes the classes of regular languages. The remaining verdicts are undecided.
    """
    excluded = [] if witness is None else non_regular_verdicts(witness)
    found = {verdict.key: verdict for verdict in excluded}
    if isinstance(language, Recogniser):
        found |= {verdict.key: verdict for verdict in _of_program(language)}
    undecided = (Verdict(key, None, "not decided") for key in CLASSES)
    return [found.get(verdict.key, verdict) for verdict in undecided]


def non_regular_verdicts(witness: PumpingWitness) -> list[Verdict]:
    """Return the negative verdicts that follow from a witness."""
    return [
        Verdict("regular", False, str(witness), "Myhill and Nerode"),
        Verdict("star_free", False, "it is not regular", "Schützenberger 1965"),
        Verdict("masked_UHAT", False, "it is not star-free", "Yang, Chiang & Angluin 2024"),
    ]


def _of_program(program: Recogniser) -> Iterator[Verdict]:
    if not program.causal:
        yield Verdict("AHAT", True, "LTL with counting before and after", "Barceló et al. 2024")
        return
    try:
        require(program.sop.node, extensions=())
    except InputError:
        yield Verdict("C-RASP[periodic, local]", True, "this program recognises the language")
        logic = "LTL with counting, predicates of one position, and earlier positions"
        yield Verdict("AHAT", True, logic, "Barceló et al. 2024")
        return
    source = "Yang & Chiang 2024"
    keys = ("C-RASP", "C-RASP_last") if program.accept == END else ("C-RASP_last",)
    for key in (*keys, "C-RASP[periodic, local]"):
        yield Verdict(key, True, "this program recognises the language")
    yield Verdict("softmax", True, "C-RASP programs become softmax decoders", source)
    yield Verdict(
        "AHAT", True, "counts and linear comparisons of counts are recognised", "Barceló et al. 2024"
    )
