"""Convert a star-free language to a formula of temporal logic, by induction on its automaton.

This module implements Wilke's proof (1999) of Kamp's and Schützenberger's theorems. For each
transformation of the states, the proof constructs a formula for the words that induce this
transformation. If every letter fixes all states, words induce only the identity. Otherwise some letter
b merges states, since every word that permutes all states of a counter-free automaton fixes all states.
A word is split at its letters b:

- the parts before the first b, between two b's and after the last b are words over fewer letters;
- immediately after a b, the only possible states are the states in the image of b, which is smaller
  than the set of all states. Each piece between two b's (with the b that ends it) is one letter of a
  word over transformations of the states in this image.

Formulas about a piece refer to positions before the next b. Formulas about the word of pieces refer to
the positions of b. Star-free expressions are converted to automata first.

>>> from locum.languages.regular import language
>>> formula = ltl_of(language("~(~∅ a a ~∅)", alphabet="ab"))
>>> formula.automaton().accepts("abab"), formula.automaton().accepts("baab")
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from locum.errors import InputError, LimitError
from locum.languages.automata import DFA
from locum.languages.formulas import (
    TRUE,
    Formula,
    atom,
    conjunction,
    disjunction,
    fold,
    make,
    negation,
    rebuilt,
)
from locum.languages.ltl import FIRST, LTL, unary
from locum.languages.monoid import Monoid

#: The image of each state.
Map = tuple[int, ...]
#: For each transformation, the formula of the non-empty words that induce it.
Makers = dict[Map, Formula]

#: Maximum number of intermediate formulas and combined triples of transformations, together.
MAX_WORK = 200_000


def ltl_of(automaton: DFA) -> LTL:
    """Return a formula for the non-empty words of a star-free language.

    A language that is not star-free, or whose formula would be too large, raises an error.
    """
    minimal = automaton.minimal()
    if not Monoid(minimal).is_aperiodic:
        raise InputError("expected a star-free language, got one whose monoid has a group")
    letters = {
        atom(letter): tuple(row[i] for row in minimal.transitions)
        for i, letter in enumerate(minimal.alphabet)
    }
    makers = _Induction().makers(letters, len(minimal))
    accepting = [formula for mapping, formula in makers.items() if mapping[0] in minimal.accepting]
    return LTL(disjunction(*accepting), minimal.alphabet, FIRST)


class _Induction:
    def __init__(self) -> None:
        self._work = 0

    def _spend(self) -> None:
        self._work += 1
        if self._work > MAX_WORK:
            raise LimitError(
                "the formula of temporal logic for this language is too large; try a smaller automaton"
            )

    def makers(self, letters: Mapping[Formula, Map], size: int) -> Makers:
        """Return, for each transformation, a formula that describes the non-empty words over
        ``letters`` that induce it.

        The letters are mutually exclusive formulas, each with its transformation of ``size`` states.
        The formulas apply at the first position of a word that extends to the last position.
        """
        identity = tuple(range(size))
        moving = [letter for letter, mapping in letters.items() if mapping != identity]
        if not moving:
            return {identity: TRUE} if letters else {}
        # The letter with the smallest image leaves the fewest states.
        b = min(moving, key=lambda letter: len(set(letters[letter])))
        others = {letter: mapping for letter, mapping in letters.items() if letter is not b}
        pieces = self.makers(others, size)
        by_b = letters[b]
        inside = {mapping: _before(formula, b) for mapping, formula in pieces.items()}
        # The part from the current position to the position before the next b.
        until_b: dict[Map, list[Formula]] = {identity: [b]}
        for mapping, formula in inside.items():
            until_b.setdefault(mapping, []).append(conjunction(negation(b), formula))
        image = sorted(set(by_b))
        place = {state: i for i, state in enumerate(image)}
        more = unary("X", unary("F", b))
        # A b that is followed by another b: the piece between them and the next b are one letter.
        blocks: dict[Map, list[Formula]] = {}
        for mapping, formulas in until_b.items():
            acts = tuple(place[by_b[mapping[state]]] for state in image)
            ahead = unary("X", disjunction(*formulas))
            blocks.setdefault(acts, []).append(conjunction(b, more, ahead))
            self._spend()
        words = self._blocks(blocks, b, len(image))
        # After the last b: nothing, or a piece that no b ends.
        last: dict[Map, list[Formula]] = {identity: [negation(unary("X", TRUE))]}
        for mapping, formula in pieces.items():
            last.setdefault(mapping, []).append(unary("X", formula))
        by_map: dict[Map, list[Formula]] = {}
        for mapping, formula in pieces.items():  # no b at all
            by_map.setdefault(mapping, []).append(conjunction(negation(unary("F", b)), formula))
        ends = {
            mapping: unary("F", conjunction(b, negation(more), disjunction(*formulas)))
            for mapping, formulas in last.items()
        }
        for first, formulas in until_b.items():
            before = disjunction(*formulas)
            for middle, middle_formula in words.items():
                at_b = make("until", negation(b), conjunction(b, middle_formula))
                for end, behind in ends.items():
                    self._spend()
                    mapping = tuple(
                        end[image[middle[place[by_b[first[state]]]]]] for state in range(size)
                    )
                    by_map.setdefault(mapping, []).append(conjunction(before, at_b, behind))
        return {mapping: disjunction(*formulas) for mapping, formulas in by_map.items()}

    def _blocks(self, blocks: Mapping[Map, Sequence[Formula]], b: Formula, size: int) -> Makers:
        """Return, for each transformation, a formula that holds at the first b if the blocks induce it.

        The blocks are the pieces of the word from the first b to the last b.
        """
        letters = {disjunction(*formulas): acts for acts, formulas in blocks.items()}
        # New letters represent the formulas, which replace the letters at the end.
        named = {atom(f"\0{number}"): acts for number, acts in enumerate(letters.values())}
        real = dict(zip((each.name for each in named), letters, strict=True))
        inner = self.makers(named, size)
        a_block = conjunction(b, unary("X", unary("F", b)))
        by_map: dict[Map, list[Formula]] = {tuple(range(size)): [negation(unary("X", unary("F", b)))]}
        for acts, formula in inner.items():
            at_blocks = fold(formula, _at_blocks(b, a_block, real, self._spend))
            by_map.setdefault(acts, []).append(conjunction(a_block, at_blocks))
        return {acts: disjunction(*formulas) for acts, formulas in by_map.items()}


def _before(formula: Formula, b: Formula) -> Formula:
    """Restrict a formula to the piece from the current position to the next b, or to the end."""

    def changed(part: Formula, below: Sequence[Formula]) -> Formula:
        match part.op:
            case "next":
                return make("next", conjunction(negation(b), below[0]))
            case "until":
                holds, reached = (conjunction(negation(b), each) for each in below)
                return make("until", holds, reached)
            case _:
                return rebuilt(part, below)

    return fold(formula, changed)


def _at_blocks(
    b: Formula, a_block: Formula, real: Mapping[str, Formula], spend: Callable[[], None]
) -> Callable[[Formula, Sequence[Formula]], Formula]:
    """Return a function for :func:`fold` that restricts a formula to the b's followed by another b.

    These b's are the positions of the word that the formula describes.
    """

    def changed(part: Formula, below: Sequence[Formula]) -> Formula:
        spend()
        match part.op:
            case "atom" if part.name in real:
                return real[part.name]
            case "next":
                there = conjunction(a_block, below[0])
                return make("next", make("until", negation(b), there))
            case "until":
                holds = disjunction(negation(b), conjunction(a_block, below[0]))
                return make("until", holds, conjunction(a_block, below[1]))
            case _:
                return rebuilt(part, below)

    return changed
