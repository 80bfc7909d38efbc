"""Parse and print linear temporal logic with past over finite words, and convert it to automata.

Atoms are symbols: lower-case names such as ``a``, or symbols in quotes such as ``"("``. ``true`` and
``false`` are constants. The operators are, in order of decreasing precedence:

- ``!``, ``X`` (next), ``F`` (eventually), ``G`` (always), ``Y`` (yesterday), ``O`` (once), ``H``
  (historically), ``WX`` (weak next) and ``WY`` (weak yesterday);
- ``U`` (until), ``R`` (release), ``S`` (since), ``T`` (triggered), which are right-associative;
- ``&``;
- ``|``;
- ``->``, which is right-associative;
- ``<->``, which is right-associative.

F, G, U, R, O, H, S and T include the current position. WX and WY are true if there is no next or
previous position. A word satisfies a formula if the formula holds at the first position of the word
or, with ``at="last"``, at the last position. The empty word satisfies no formula.

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

#: The positions at which a formula can be required to hold.
FIRST, LAST = "first", "last"
#: Maximum number of different next and until operators in a formula that contains past operators.
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
    """Apply a prefix operator; derived operators are expressed by !, X, U, Y and S."""
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
    """Apply a binary operator; derived operators are expressed by !, &, |, U and S."""
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
    """A reader of formulas with prefix operators and chains of left- or right-associative operators."""

    def prefix(self, parts: list[Any]) -> Any:
        """Apply a chain of prefix operators to a formula."""
        *operators, value = parts
        if len(operators) > MAX_PREFIXES:
            self.fail(f"operators are nested more than {MAX_PREFIXES:,} deep", operators[MAX_PREFIXES])
        for operator in reversed(operators):
            value = unary(_ALIASES.get(operator, operator), value)
        return value

    def left(self, parts: list[Any]) -> Any:
        """Apply a chain of left-associative binary operators."""
        value = parts[0]
        for operator, other in zip(parts[1::2], parts[2::2], strict=True):
            value = binary(_ALIASES.get(operator, operator), value, other)
        return value

    def right(self, parts: list[Any]) -> Any:
        """Apply a chain of right-associative binary operators."""
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
    """A formula of temporal logic over an alphabet, which defines a language."""

    formula: Formula
    alphabet: tuple[Letter, ...]
    #: The position at which the formula must hold: "first" or "last".
    at: str = FIRST

    def __post_init__(self) -> None:
        if self.at not in (FIRST, LAST):
            raise InputError(f"at: expected 'first' or 'last', got {self.at!r}")
        alphabet_of("LTL", atoms(self.formula), self.alphabet, "formula")

    def __str__(self) -> str:
        return show(self.formula)

    @classmethod
    def parse(cls, text: str, *, alphabet: Iterable[Letter] | None = None, at: str = FIRST) -> LTL:
        """Parse a formula; ``alphabet`` defaults to the symbols in the formula."""
        formula = _Reader().read(text)
        return cls(formula, alphabet_of("LTL", atoms(formula), alphabet, "formula"), at)

    def automaton(self) -> DFA:
        """Return the minimal automaton of the non-empty words that satisfy the formula.

        An automaton that is too large raises an error.
        """
        parts = parts_of(self.formula)
        if any(part.op in ("yesterday", "since") for part in parts):
            return _Tableau(self, account()).automaton()
        return _backwards(self, parts, account())


def _backwards(ltl: LTL, parts: list[Formula], budget: Budget) -> DFA:
    """Return the automaton of a formula without past operators.

    The construction reads words from their end, because no guesses about later positions are needed in
    this direction. The resulting automaton is then reversed.
    """
    number = {part: i for i, part in enumerate(parts)}
    # The values that are needed from the next position: of φ for X φ, and of an until for itself.
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
    """Return the value of each subformula at a position; each bit of a value is the result of one case.

    ``past`` and ``future`` are the values that each operator reads from the adjacent positions.
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
    """The construction of an automaton for a formula that contains past operators.

    A state contains a set of pairs: the values of the past operators, and guesses about the future
    operators at the next position. The guesses that an operator is true are called *promises*. A
    combination of promises is discarded when a guess proves wrong. The values of a subformula for all
    combinations are the bits of one integer.
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
        #: For each promise, the combinations that contain it, as bits of an integer.
        self.made = [
            sum(1 << option for option in range(self.options) if option >> k & 1)
            for k in range(len(self.future))
        ]

    def automaton(self) -> DFA:
        """Return the minimal automaton, by exploring the reachable sets of guesses."""
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
                    # The promise of X φ is φ; the promise of an until is the until itself.
                    kept = part.parts[0] if part.op == "next" else part
                    value = values[self.number[kept]]
                    alive &= value if promise >> k & 1 else ~value
            whole = values[-1]
            if self.ltl.at == FIRST and promise < 0:
                alive &= whole
            # At the end of a word, only the combination without promises is possible.
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
        """Return the value of each subformula at a position, under every combination of promises."""
        before = [self.all * (left >= 0 and left >> k & 1) for k in range(len(self.past))]
        return _evaluate(self.parts, self.number, letter, self.all, before, self.made)
