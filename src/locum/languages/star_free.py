"""Write a star-free language as a formula of temporal logic, by induction on its automaton.

The proof of Kamp's and Schützenberger's theorems that Wilke (1999) gives, as a program. Say which
words make which transformation of the states. If every letter leaves all states in place, only the
identity is made. Else some letter b merges states: a counter-free automaton permutes none. A word is
cut at its b's:

- what stands before the first b, between two b's and behind the last b is over fewer letters;
- just behind a b only states of the image of b occur, which are fewer, and each piece between two b's
  (with the b that ends it) is one letter of a word over transformations of these.

Formulas about a piece are about positions before the next b; formulas about the word of pieces are
about the positions of b. Star-free expressions come here by way of their automaton.

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
#: For each transformation, the formula of the words (of one letter or more) that make it.
Makers = dict[Map, Formula]

#: Formulas that may be made on the way, and triples of transformations that are combined.
MAX_WORK = 200_000


def ltl_of(automaton: DFA) -> LTL:
    """Return a formula that the words of a star-free language satisfy, but for the empty word.

    A language that is not star-free is refused, and so is one whose formula would be too large.
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
        """Say which words over these letters (formulas that exclude each other) make what.

        A word ends where no letter holds any more: formulas speak about positions with a letter only.
        """
        identity = tuple(range(size))
        moving = [letter for letter, mapping in letters.items() if mapping != identity]
        if not moving:
            return {identity: TRUE} if letters else {}
        # The letter that merges most leaves the fewest states.
        b = min(moving, key=lambda letter: len(set(letters[letter])))
        others = {letter: mapping for letter, mapping in letters.items() if letter is not b}
        pieces = self.makers(others, size)
        by_b = letters[b]
        inside = {mapping: _before(formula, b) for mapping, formula in pieces.items()}
        until_b: dict[Map, list[Formula]] = {identity: [b]}  # from here, what stands before the next b
        for mapping, formula in inside.items():
            until_b.setdefault(mapping, []).append(conjunction(negation(b), formula))
        image = sorted(set(by_b))
        place = {state: i for i, state in enumerate(image)}
        more = unary("X", unary("F", b))
        # A b that another follows: the piece between them and the next b are one letter.
        blocks: dict[Map, list[Formula]] = {}
        for mapping, formulas in until_b.items():
            acts = tuple(place[by_b[mapping[state]]] for state in image)
            ahead = unary("X", disjunction(*formulas))
            blocks.setdefault(acts, []).append(conjunction(b, more, ahead))
            self._spend()
        words = self._blocks(blocks, b, len(image))
        # Behind the last b: nothing, or a piece that no b ends.
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
        """Say at the first b what all pieces up to the last b make; without a piece, nothing."""
        letters = {disjunction(*formulas): acts for acts, formulas in blocks.items()}
        # Letters stand for formulas here: they are put in their places at the end.
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
    """Say of the piece from here to the next b (or to the end) what a formula says of a word."""

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
    """Say of the b's that another follows what a formula says of the positions of a word."""

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
