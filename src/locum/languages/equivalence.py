"""Compare two languages, and find a shortest word that separates different languages.

If automata of both languages are computed, these automata are compared. Otherwise, both definitions are
first run on short words, and then passed to a solver (``solver.py``). Programs that count later
positions and cannot be reduced are only run on words. A word that separates two programs is run again
by dense execution.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.languages.automata import DFA, Letter, Word, show_alphabet
from locum.languages.counters import PLAIN, Meanings
from locum.languages.named_languages import Language, Source, as_language
from locum.languages.recogniser import END, Recogniser
from locum.languages.solver import EQUAL, Machine, ask, machine_of, z3_module

EQUIVALENT, SEPARATED, UNDECIDED = "equivalent", "different", "undecided"
#: Default limit of CPU time in seconds.
SECONDS = 20.0
#: Numbers of pairs of states at which the search on short words stops: before the solver is called, and
#: in total.
FIRST_PAIRS, MAX_PAIRS = 1_000, 300_000


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two languages."""

    #: "equivalent", "different" or "undecided".
    verdict: str
    #: The method of the decision; if the verdict is "undecided", the words that were compared.
    method: str
    #: A shortest word in exactly one of the languages, or None if no such word was found.
    word: tuple[Letter, ...] | None = None
    #: Whether each of the languages contains this word.
    answers: tuple[bool, ...] = ()
    #: Whether the empty word was compared.
    empty_word: bool = True
    #: The alphabet of both languages.
    alphabet: tuple[Letter, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON-compatible dictionary."""
        return {
            "verdict": self.verdict,
            "method": self.method,
            "word": None if self.word is None else list(self.word),
            "answers": list(self.answers),
            "empty_word": self.empty_word,
            "alphabet": list(self.alphabet),
        }


def equivalent(p: Source, q: Source, *, seconds: float = SECONDS) -> Comparison:
    """Compare two languages or programs over the same alphabet.

    Different alphabets raise :class:`~locum.errors.InputError`, because a program is undefined for
    words with symbols outside its alphabet. Read both languages with the same ``alphabet`` instead.

    Only non-empty words are compared if a language is given by a temporal formula, or by a program
    whose answer is read at the last symbol. The verdict is "undecided" if neither a proof nor a
    separating word is found. ``seconds`` limits the CPU time of the search. To compare programs that
    count, the solver z3 may be required, which the extra ``solve`` installs.

    >>> equivalent("(ab)*", "ε+a(ba)*b").verdict
    'equivalent'
    >>> equivalent("(ab)*", "(ab)*+a").word
    ('a',)
    >>> from locum.languages.named_languages import read
    >>> equivalent(read("a*", alphabet="ab"), "a*b?").word
    ('b',)
    """
    if not seconds > 0:
        raise InputError(f"expected a limit of more than 0 seconds, got {seconds}")
    end = time.process_time() + seconds
    one, other = as_language(p), as_language(q)
    alphabet = _common_alphabet(one, other)
    empty = all(map(_answers_empty, (one, other)))
    if one.automaton is not None and other.automaton is not None:
        word = _started(one.automaton, empty).separate(_started(other.automaton, empty))
        comparison = Comparison(
            EQUIVALENT if word is None else SEPARATED, "automata", word, empty_word=empty
        )
    else:
        comparison = _by_counting(one, other, alphabet, empty, end)
    word = comparison.word
    if word is None:
        return replace(comparison, alphabet=alphabet)
    answers = _accepts(one, word), _accepts(other, word)
    assert answers[0] != answers[1], word
    return replace(comparison, alphabet=alphabet, answers=answers)


def _common_alphabet(one: Language, other: Language) -> tuple[Letter, ...]:
    """Return the common alphabet of two languages; different alphabets raise an error."""
    if set(one.alphabet) == set(other.alphabet):
        return one.alphabet
    problem = (
        "alphabets: expected the same for both languages, got "
        f"{show_alphabet(one.alphabet)} and {show_alphabet(other.alphabet)}"
    )
    union = sorted({*one.alphabet, *other.alphabet})
    if any(each.name and set(each.alphabet) != set(union) for each in (one, other)):
        raise InputError(problem)  # the alphabet of a named language is fixed
    advice = f"try read(…, alphabet={union}) for both"
    if all(letter.strip() and "," not in letter for letter in union):
        advice += f" (--alphabet {shlex.quote(','.join(union))})"
    raise InputError(f"{problem}; {advice}")


def _answers_empty(language: Language) -> bool:
    if language.program is not None:
        return language.program.accept == END
    return language.ltl is None


def _started(automaton: DFA, empty: bool) -> DFA:
    """Return an automaton of the same language, without the empty word if ``empty`` is False."""
    if empty or 0 not in automaton.accepting:
        return automaton
    # Add a new initial state that rejects.
    shifted = tuple(tuple(target + 1 for target in row) for row in automaton.transitions)
    rows = (shifted[0], *shifted)
    return DFA(automaton.alphabet, rows, frozenset(state + 1 for state in automaton.accepting))


class _WordMachine:
    """A machine for a program that counts later positions; its state is the word itself."""

    def __init__(self, program: Recogniser) -> None:
        self.program = program
        self.registers: tuple[Any, ...] = ()
        self.start: tuple[Any, ...] = ()

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Append a letter to the word; the answer is computed by ``answer``."""
        return (*state, letter), None

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Run the program on the word, by dense execution."""
        return self.program.accepts(state)


def _machine(language: Language) -> Machine:
    definition = language.definition
    if isinstance(definition, Recogniser) and not definition.causal:
        return _WordMachine(definition)
    return machine_of(definition)


def _by_counting(
    one: Language, other: Language, alphabet: Sequence[Letter], empty: bool, end: float
) -> Comparison:
    machines = _machine(one), _machine(other)
    search = _Search(machines, alphabet, empty)
    now = time.process_time()
    word = search.run(now + 0.2 * (end - now), FIRST_PAIRS)
    by_word = any(isinstance(machine, _WordMachine) for machine in machines)
    if word is None and by_word:
        word = search.run(end, MAX_PAIRS)
    elif word is None and not search.exhausted:
        z3_module()
        now = time.process_time()
        if ask(*machines, alphabet, now + 0.8 * (end - now), empty=empty) == EQUAL:
            return Comparison(EQUIVALENT, "an invariant found by Spacer", empty_word=empty)
        word = search.run(end, MAX_PAIRS)
    if word is not None:
        return Comparison(SEPARATED, "all shorter words agree", word, empty_word=empty)
    if search.exhausted:
        return Comparison(EQUIVALENT, "a run on all reachable counts", empty_word=empty)
    return Comparison(
        UNDECIDED, f"they agree on all words of up to {search.size} symbols", empty_word=empty
    )


#: A word as a linked list that shares prefixes; None is the empty word.
_Linked: TypeAlias = "tuple[_Linked, Letter] | None"


def _spelled(word: _Linked) -> tuple[Letter, ...]:
    letters: list[Letter] = []
    while word is not None:
        word, letter = word
        letters.append(letter)
    return tuple(reversed(letters))


class _Search:
    """A search for a separating word, which runs two machines on all words, shorter words first.

    Words that lead to equal states of both machines are merged.
    """

    def __init__(
        self, machines: tuple[Machine, Machine], alphabet: Sequence[Letter], empty: bool
    ) -> None:
        self.machines, self.alphabet = machines, alphabet
        start = tuple(machine.start for machine in machines)
        #: Pairs of states that are first reached by words of the current length, each with such a word.
        self._layer: dict[Any, _Linked] = {start: None}
        self._seen: set[Any] = {start}
        #: Length up to which all words were compared, and whether all reachable states were compared.
        self.size = 0
        self.exhausted = False
        self._pending: tuple[Letter, ...] | None = None
        if empty and self._differ([machine.answer(machine.start, None, PLAIN) for machine in machines]):
            self._pending = ()

    @staticmethod
    def _differ(answers: Sequence[Any]) -> bool:
        return bool(answers[0]) != bool(answers[1])

    def run(self, end: float, most: int) -> tuple[Letter, ...] | None:
        """Return a shortest separating word, or None if none is found.

        The search stops at the CPU time ``end``, or after the word length at which ``most`` pairs of
        states have been reached.
        """
        if self._pending is not None:
            return self._pending
        one, other = self.machines
        while self._layer and len(self._seen) < most:
            following: dict[Any, _Linked] = {}
            for states, word in self._layer.items():
                if time.process_time() > end:
                    return None  # the next run starts this layer again
                for letter in self.alphabet:
                    first, accepted = one.step(states[0], letter, PLAIN)
                    second, other_accepted = other.step(states[1], letter, PLAIN)
                    answers = (
                        one.answer(first, accepted, PLAIN),
                        other.answer(second, other_accepted, PLAIN),
                    )
                    if self._differ(answers):
                        return _spelled((word, letter))
                    reached = first, second
                    if reached not in self._seen and reached not in following:
                        following[reached] = word, letter
            self._seen.update(following)
            self._layer = following
            self.size += 1
        self.exhausted = not self._layer
        return None


def _accepts(language: Language, word: Word) -> bool:
    """Return whether a language contains a word, by dense execution if it is given by a program."""
    if language.program is not None:
        return language.program.accepts(word)
    assert language.automaton is not None
    return language.automaton.accepts(word)


def regular_automaton(program: Recogniser, *, seconds: float = 10.0) -> DFA | None:
    """Return the minimal automaton of a C-RASP program, or None.

    A candidate automaton distinguishes words by the answers after a few more letters. The candidate is
    then compared with the program. The result is None if no candidate is proven to be equivalent
    within ``seconds`` of CPU time, and for programs that count later positions.
    """
    if not program.causal:
        return None
    language = Language("c-rasp", program.text, None, program)
    empty = _answers_empty(language)
    end = time.process_time() + seconds
    for depth in range(1, 6):
        automaton = _suggested(program, empty, depth)
        if automaton is None or time.process_time() > end:
            return None
        left = end - time.process_time()
        comparison = _by_counting(
            language,
            Language("dfa", "", automaton),
            program.alphabet,
            empty,
            time.process_time() + left / 2,
        )
        if comparison.verdict == EQUIVALENT:
            return automaton.minimal()
        if comparison.verdict == UNDECIDED:
            return None
    return None


#: Maximum number of states of a candidate automaton.
_MAX_SUGGESTED = 40


def _suggested(program: Recogniser, empty: bool, depth: int) -> DFA | None:
    """Return an automaton that distinguishes words by the answers after up to ``depth`` letters.

    The result is None if the automaton or the number of answers would be too large.
    """
    machine = machine_of(program)
    alphabet = program.alphabet
    if len(alphabet) ** depth > 4096:
        return None

    def behaviour(state: Any, accepted: Any) -> tuple[bool, ...]:
        has_answer = accepted is not None or empty
        answers = [has_answer and bool(machine.answer(state, accepted, PLAIN))]
        layer = [state]
        for _ in range(depth):
            stepped = [machine.step(each, letter, PLAIN) for each in layer for letter in alphabet]
            answers += [bool(machine.answer(*pair, PLAIN)) for pair in stepped]
            layer = [pair[0] for pair in stepped]
        return tuple(answers)

    start = behaviour(machine.start, None)
    numbers = {start: 0}
    order = [(machine.start, start)]
    rows = []
    accepting = set()
    for state, seen in order:
        if seen[0]:
            accepting.add(numbers[seen])
        row = []
        for letter in alphabet:
            target, accepted = machine.step(state, letter, PLAIN)
            after = behaviour(target, accepted)
            if after not in numbers:
                if len(numbers) >= _MAX_SUGGESTED:
                    return None
                numbers[after] = len(order)
                order.append((target, after))
            row.append(numbers[after])
        rows.append(tuple(row))
    return DFA(tuple(alphabet), tuple(rows), frozenset(accepting))
