"""Linear temporal logic over finite words, with past: read, written, turned into automata.

Atoms are symbols: ``a`` (names in lower case) or ``"("``. Operators, tightest first: ``!``, ``X``
(next), ``F`` (eventually), ``G`` (always), ``Y`` (yesterday), ``O`` (once), ``H`` (historically), and
``WX``, ``WY`` (weak: true where there is no such position); ``U`` (until), ``R`` (release), ``S``
(since), ``T`` (triggered), which group to the right; ``&``; ``|``; ``->``; ``<->``. U, F, G, S, O and
H include the present. A word satisfies a formula if it holds at its first position, or, with
``at="last"``, at its last. Words have one symbol or more: the empty one satisfies nothing.

>>> alternating = LTL.parse("G (a -> WX b) & G (b -> WX a)")
>>> dfa = alternating.automaton()
>>> dfa.accepts("abab"), dfa.accepts("aab")
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lark import Token

from locum.budget import Budget
from locum.errors import InputError, LimitError
from locum.languages.automata import DFA, Letter, account, explore
from locum.languages.formulas import (
    FALSE,
    TRUE,
    Formula,
    atom,
    atoms,
    conjunction,
    disjunction,
    make,
    negation,
    parts_of,
    show,
)
from locum.languages.syntax import MAX_NESTING, MAX_PREFIXES, Reader, alphabet_of

#: Where a word satisfies a formula.
FIRST, LAST = "first", "last"
#: Next and until operators that a state guesses about.
MAX_PROMISES = 12

_GRAMMAR = r"""
start: equivalence
?equivalence: implication | implication (EQUIVALENT implication)+ -> right
?implication: disjunction | disjunction (IMPLIES disjunction)+ -> right
?disjunction: conjunction | conjunction (OR conjunction)+ -> left
?conjunction: until | until (AND until)+ -> left
?until: unary | unary (UNTIL unary)+ -> right
?unary: operand | PREFIX+ operand -> prefix
?operand: "(" equivalence ")" | (NAME | STRING) -> atom
EQUIVALENT: "<->" | "↔"
IMPLIES: "->" | "→"
OR: "||" | "|" | "∨"
AND: "&&" | "&" | "∧"
UNTIL.2: /[URST](?![A-Za-z0-9_])/
PREFIX.2: /[!¬~]|(W?[XY]|[FGOH])(?![A-Za-z0-9_])/
NAME: /[a-z_][a-z0-9_]*(?![A-Za-z0-9_])/
STRING: /"[^"\n]*"/
%ignore /[ \t\r\n]+|\/\/[^\n]*/
"""
#: Other spellings of operators.
_ALIASES = {"&&": "&", "∧": "&", "||": "|", "∨": "|", "→": "->", "↔": "<->", "¬": "!", "~": "!"}


def unary(operator: str, part: Formula) -> Formula:
    """Apply a prefix operator, by those that there are: !, X, U, Y and S."""
    match operator:
        case "!":
            return negation(part)
        case "X" | "Y":
            return make("next" if operator == "X" else "yesterday", part)
        case "WX" | "WY":
            return negation(unary(operator[1], negation(part)))
        case "F" | "O":
            return make("until" if operator == "F" else "since", TRUE, part)
        case _:  # G, H
            return negation(unary("F" if operator == "G" else "O", negation(part)))


def binary(operator: str, left: Formula, right: Formula) -> Formula:
    """Apply a binary operator."""
    match operator:
        case "&":
            return conjunction(left, right)
        case "|":
            return disjunction(left, right)
        case "->":
            return disjunction(negation(left), right)
        case "<->":
            same = conjunction(left, right)
            return disjunction(same, conjunction(negation(left), negation(right)))
        case "U" | "S":
            return make("until" if operator == "U" else "since", left, right)
        case _:  # R, T
            return negation(binary("U" if operator == "R" else "S", negation(left), negation(right)))


class FormulaReader(Reader):
    """Reads formulas: chains of operators, which group to the left or to the right."""

    def prefix(self, parts: list[Any]) -> Any:
        """Apply prefix operators."""
        *operators, value = parts
        if len(operators) > MAX_PREFIXES:
            self.fail(f"operators are nested more than {MAX_PREFIXES:,} deep", operators[MAX_PREFIXES])
        for operator in reversed(operators):
            value = unary(_ALIASES.get(operator, operator), value)
        return value

    def left(self, parts: list[Any]) -> Any:
        """Apply binary operators, the first one first."""
        value = parts[0]
        for operator, other in zip(parts[1::2], parts[2::2], strict=True):
            value = binary(_ALIASES.get(operator, operator), value, other)
        return value

    def right(self, parts: list[Any]) -> Any:
        """Apply binary operators, the last one first."""
        if len(parts) > 2 * MAX_NESTING:
            self.fail(
                f"expressions are nested more than {MAX_NESTING} deep", parts[2 * MAX_NESTING - 1]
            )
        value = parts[-1]
        for operator, other in zip(parts[-2::-2], parts[-3::-2], strict=True):
            value = binary(_ALIASES.get(operator, operator), other, value)
        return value


class _Reader(FormulaReader):
    dialect, grammar = "LTL", _GRAMMAR
    expected: ClassVar = {
        "STRING": "a symbol or an operator",
        "RPAR": ")",
        "$END": "an operator or the end of the formula",
    }

    def describe_character(self, character: str) -> str:
        return (
            f"expected a symbol in lower case, or in quotes, got {character!r}; operators are "
            "! X WX F G Y WY O H U R S T & | -> <->"
        )

    def start(self, parts: list[Formula]) -> Formula:
        return parts[0]

    def atom(self, parts: list[Token]) -> Formula:
        token = parts[0]
        if token.type == "STRING":
            return atom(self.symbol_of(token))
        if token in ("true", "false"):
            return TRUE if token == "true" else FALSE
        return atom(str(token))


@dataclass(frozen=True)
class LTL:
    """A formula that words satisfy, over an alphabet."""

    formula: Formula
    alphabet: tuple[Letter, ...]
    #: Where it has to hold: "first" or "last".
    at: str = FIRST

    def __post_init__(self) -> None:
        if self.at not in (FIRST, LAST):
            raise InputError(f"at: expected 'first' or 'last', got {self.at!r}")
        alphabet_of("LTL", atoms(self.formula), self.alphabet, "formula")

    def __str__(self) -> str:
        return show(self.formula)

    @classmethod
    def parse(cls, text: str, *, alphabet: Iterable[Letter] | None = None, at: str = FIRST) -> LTL:
        """Read a formula; ``alphabet`` defaults to the symbols it names."""
        formula = _Reader().read(text)
        return cls(formula, alphabet_of("LTL", atoms(formula), alphabet, "formula"), at)

    def automaton(self) -> DFA:
        """Return the minimal automaton of the words that satisfy it, or refuse one too large."""
        parts = parts_of(self.formula)
        if any(part.op in ("yesterday", "since") for part in parts):
            return _Tableau(self, account()).automaton()
        return _backwards(self, parts, account())


def _backwards(ltl: LTL, parts: list[Formula], budget: Budget) -> DFA:
    """Return the automaton of a formula about the future alone: from the end it needs no guesses.

    The automaton that reads words from the end to the beginning is turned round.
    """
    number = {part: i for i, part in enumerate(parts)}
    # What is asked of the position to the right: of X φ the value of φ, of an until its own.
    kept = [number[p.parts[0] if p.op == "next" else p] for p in parts if p.op in ("next", "until")]

    def step(state: tuple[tuple[int, ...] | None, bool], letter: Letter) -> tuple[Any, bool]:
        right = state[0] or (0,) * len(kept)
        values = _evaluate(parts, number, letter, 1, (), right)
        accepted = bool(values[-1]) if ltl.at == FIRST or state[0] is None else state[1]
        return tuple(values[place] for place in kept), accepted

    reversed_words = explore(
        ltl.alphabet, (None, False), step, lambda state: state[1], budget, lambda _: len(parts) / 8
    )
    return reversed_words.reversed(budget)


def _evaluate(
    parts: Sequence[Formula],
    number: Mapping[Formula, int],
    letter: Letter,
    everywhere: int,
    past: Iterable[int],
    future: Iterable[int],
) -> list[int]:
    """Return the value of each part at a position: the bits of an integer are cases, all at once.

    ``past`` and ``future`` are what each operator about them reads of the neighbouring position.
    """
    before, after = iter(past), iter(future)
    values: list[int] = []
    for part in parts:
        below = [values[number[each]] for each in part.parts]
        match part.op:
            case "true" | "false":
                value = everywhere if part.op == "true" else 0
            case "atom":
                value = everywhere if part.name == letter else 0
            case "not":
                value = everywhere & ~below[0]
            case "and":
                value = below[0] & below[1]
            case "or":
                value = below[0] | below[1]
            case "next" | "yesterday":
                value = next(after if part.op == "next" else before)
            case op:  # until, since
                value = below[1] | (below[0] & next(after if op == "until" else before))
        values.append(value)
    return values


class _Tableau:
    """Reads a word and keeps, of every past operator, its value; of every future one, all guesses.

    A guess (a *promise*) says what holds at the next position; it dies where that does not come true.
    The values of a formula under all promises at once are the bits of one integer.
    """

    def __init__(self, ltl: LTL, budget: Budget) -> None:
        self.ltl, self.budget = ltl, budget
        self.parts = parts_of(ltl.formula)
        self.number = {part: i for i, part in enumerate(self.parts)}
        self.past = [part for part in self.parts if part.op in ("yesterday", "since")]
        self.future = [part for part in self.parts if part.op in ("next", "until")]
        if len(self.future) > MAX_PROMISES:
            raise LimitError(
                f"the formula has {len(self.future)} different next and until operators; the limit is "
                f"{MAX_PROMISES}: try a smaller formula"
            )
        self.options = 1 << len(self.future)
        self.all = (1 << self.options) - 1
        #: For each promise, the options in which it is made.
        self.made = [
            sum(1 << option for option in range(self.options) if option >> k & 1)
            for k in range(len(self.future))
        ]

    def automaton(self) -> DFA:
        """Explore the sets of guesses."""
        start = (frozenset({(-1, -1)}), False)
        return explore(
            self.ltl.alphabet,
            start,
            self._step,
            lambda state: state[1],
            self.budget,
            lambda state: len(state[0]) * (1 + len(self.parts) * (0.2 + self.options / 4096)),
        )

    def _step(
        self, state: tuple[frozenset[tuple[int, int]], bool], letter: Letter
    ) -> tuple[frozenset[tuple[int, int]], bool]:
        members, _ = state
        following: set[tuple[int, int]] = set()
        accepted = False
        values_by_left = {left: self._values(letter, left) for left in {left for left, _ in members}}
        for left, promise in members:
            values = values_by_left[left]
            alive = self.all
            if promise >= 0:
                for k, part in enumerate(self.future):
                    # What was promised of X φ is φ itself; of an until, the until.
                    kept = part.parts[0] if part.op == "next" else part
                    value = values[self.number[kept]]
                    alive &= value if promise >> k & 1 else ~value
            whole = values[-1]
            if self.ltl.at == FIRST and promise < 0:
                alive &= whole
            # At the end nothing is promised.
            accepted = accepted or bool(alive & 1 and (self.ltl.at == FIRST or whole & 1))
            self.budget.spend(alive.bit_count() * (2 + len(self.past)) / 8)
            remembered = [
                values[self.number[part.parts[0] if part.op == "yesterday" else part]]
                for part in self.past
            ]
            while alive:
                option = (alive & -alive).bit_length() - 1
                alive &= alive - 1
                bits = sum((value >> option & 1) << k for k, value in enumerate(remembered))
                following.add((bits, option))
        return frozenset(following), accepted

    def _values(self, letter: Letter, left: int) -> list[int]:
        """Return each part's value at a position, under every promise for the next one."""
        before = [self.all * (left >= 0 and left >> k & 1) for k in range(len(self.past))]
        return _evaluate(self.parts, self.number, letter, self.all, before, self.made)
