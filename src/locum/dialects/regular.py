"""Regular and star-free expressions, read and turned into automata by derivatives.

Syntax, loosest first: ``+`` or ``|`` (union), ``&`` (intersection), juxtaposition (concatenation),
``~`` before an expression (complement), ``*`` and ``?`` behind one. Letters are letters and digits;
``ε`` or ``()`` is the empty word, ``∅`` the empty language, ``.`` any letter of the alphabet; blanks
mean nothing, and a backslash makes any character a letter. ``+`` is union, as in the theory of formal
languages: with ``plus="repeat"`` it stands behind an expression and means once or more, and union is
``|`` alone.

>>> language("(ab+ba)*").accepts("abba")
True
>>> language("~(∅)&~(.*bb.*)", alphabet="ab").accepts("abab")
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from locum.dialects.automata import DFA, Letter, account, explore, show_alphabet
from locum.dialects.syntax import DialectError
from locum.errors import InputError
from locum.shortening import shortened

#: Brackets inside brackets, characters of an expression.
MAX_NESTING = 100
MAX_TEXT = 100_000
#: How ``+`` is read.
PLUS = ("union", "repeat")


@dataclass(frozen=True, eq=False)
class Expression:
    """An extended regular expression; equal ones of one :class:`Expressions` are one object."""

    op: str
    parts: tuple[Expression, ...]
    letter: Letter
    #: Whether it has the empty word, its size, and a number that orders expressions.
    nullable: bool
    size: int
    number: int
    #: What is left of it behind a letter, as far as it was asked for.
    derivatives: dict[Letter, Expression] = field(default_factory=dict, repr=False)


class Expressions:
    """Makes expressions, simplified, so that each has finitely many derivatives."""

    def __init__(self) -> None:
        self.budget = account()
        self._made: dict[tuple[object, ...], Expression] = {}
        self.nothing = self._make("nothing", (), "", False)
        self.empty = self._make("empty", (), "", True)
        self.everything = self.complement(self.nothing)

    def _make(
        self, op: str, parts: tuple[Expression, ...], letter: Letter, nullable: bool
    ) -> Expression:
        key = (op, letter, *(part.number for part in parts))
        if key not in self._made:
            self.budget.spend(1 + len(parts) / 4)
            size = 1 + sum(part.size for part in parts)
            self._made[key] = Expression(op, parts, letter, nullable, size, len(self._made))
        return self._made[key]

    def letter(self, letter: Letter) -> Expression:
        """Make the language of one letter."""
        return self._make("letter", (), letter, False)

    def union(self, parts: Iterable[Expression]) -> Expression:
        """Make the union, without repetitions."""
        flat = self._flat("union", parts)
        if self.everything in flat:
            return self.everything
        kept = [part for part in flat if part is not self.nothing]
        if any(part.nullable and part.op != "empty" for part in kept):
            kept = [part for part in kept if part.op != "empty"]
        return self._joined("union", kept, self.nothing)

    def intersection(self, parts: Iterable[Expression]) -> Expression:
        """Make the intersection, without repetitions."""
        flat = self._flat("intersection", parts)
        if self.nothing in flat:
            return self.nothing
        kept = [part for part in flat if part is not self.everything]
        return self._joined("intersection", kept, self.everything)

    def _flat(self, op: str, parts: Iterable[Expression]) -> list[Expression]:
        members: dict[int, Expression] = {}
        for part in parts:
            for member in part.parts if part.op == op else (part,):
                members[member.number] = member
        return [members[number] for number in sorted(members)]

    def _joined(self, op: str, kept: Sequence[Expression], neutral: Expression) -> Expression:
        if len(kept) <= 1:
            return kept[0] if kept else neutral
        some = any if op == "union" else all
        return self._make(op, tuple(kept), "", some(part.nullable for part in kept))

    def concatenation(self, parts: Iterable[Expression]) -> Expression:
        """Make the concatenation."""
        flat: list[Expression] = []
        for part in parts:
            if part is self.nothing:
                return self.nothing
            if part is not self.empty:
                flat.extend(part.parts if part.op == "concatenation" else (part,))
        if len(flat) <= 1:
            return flat[0] if flat else self.empty
        return self._make("concatenation", tuple(flat), "", all(part.nullable for part in flat))

    def star(self, part: Expression) -> Expression:
        """Make the repetition, any number of times."""
        if part.op == "star" or part is self.everything:
            return part
        if part.op in ("empty", "nothing"):
            return self.empty
        if part.op == "union":  # (ε + r)* is r*
            part = self.union(member for member in part.parts if member is not self.empty)
            if part.op == "star":
                return part
        return self._make("star", (part,), "", True)

    def complement(self, part: Expression) -> Expression:
        """Make the complement."""
        if part.op == "complement":
            return part.parts[0]
        return self._make("complement", (part,), "", not part.nullable)

    def derivative(self, whole: Expression, letter: Letter) -> Expression:
        """Return what may follow ``letter`` in words of the language; nested at most MAX_NESTING."""
        if letter in whole.derivatives:
            return whole.derivatives[letter]
        self.budget.spend(1 + len(whole.parts) / 2)
        match whole.op:
            case "letter":
                derived = self.empty if whole.letter == letter else self.nothing
            case "nothing" | "empty":
                derived = self.nothing
            case "union":
                derived = self.union(self.derivative(part, letter) for part in whole.parts)
            case "intersection":
                derived = self.intersection(self.derivative(part, letter) for part in whole.parts)
            case "complement":
                derived = self.complement(self.derivative(whole.parts[0], letter))
            case "star":
                derived = self.concatenation((self.derivative(whole.parts[0], letter), whole))
            case _:
                options = []
                for place, part in enumerate(whole.parts):
                    rest = whole.parts[place + 1 :]
                    options.append(self.concatenation((self.derivative(part, letter), *rest)))
                    if not part.nullable:
                        break
                derived = self.union(options)
        whole.derivatives[letter] = derived
        return derived


@dataclass(frozen=True)
class Regular:
    """An expression that was read, over its alphabet."""

    text: str
    expression: Expression
    alphabet: tuple[Letter, ...]
    _expressions: Expressions

    def automaton(self) -> DFA:
        """Return the minimal automaton, or refuse one that is too large."""
        expressions = self._expressions
        return explore(
            self.alphabet,
            self.expression,
            expressions.derivative,
            lambda state: state.nullable,
            expressions.budget,
            lambda state: len(state.parts) / 4,
        )


def language(text: str, alphabet: Iterable[Letter] | None = None, *, plus: str = "union") -> DFA:
    """Return the minimal automaton of an expression.

    ``alphabet`` defaults to the letters of the expression; ``plus`` says how ``+`` is read.
    """
    return read(text, alphabet, plus=plus).automaton()


def read(text: str, alphabet: Iterable[Letter] | None = None, *, plus: str = "union") -> Regular:
    """Read an expression; what is wrong with it is an error with its column."""
    if plus not in PLUS:
        raise InputError(f"plus: expected union or repeat, got {plus!r}")
    if len(text) > MAX_TEXT:
        raise InputError(
            f"expected an expression of at most {MAX_TEXT:,} characters, got {len(text):,}"
        )
    return _Reader(text, alphabet, plus).read()


#: Characters that are not letters.
_OPERATORS = "+|&~*?()ε∅.\\"


class _Reader:
    """Reads by a stack of open brackets, so that no depth of nesting is too much for it."""

    def __init__(self, text: str, alphabet: Iterable[Letter] | None, plus: str) -> None:
        self.text, self.plus = text, plus
        self.tokens = list(self._tokens())
        letters = sorted({value for kind, value, _ in self.tokens if kind == "letter"})
        symbols = tuple(dict.fromkeys(alphabet)) if alphabet is not None else tuple(letters)
        unknown = [letter for letter in letters if letter not in symbols]
        if unknown:
            raise InputError(
                f"expected letters of the alphabet {show_alphabet(symbols)}, got {unknown[0]!r} "
                f"in {shortened(text, 60)}"
            )
        if not symbols:
            raise InputError(
                "expected an alphabet, since the expression has no letters; try alphabet=… (--alphabet)"
            )
        if any(len(letter) != 1 for letter in symbols):
            raise InputError("expected letters of one character in the alphabet of an expression")
        self.alphabet = symbols
        self.make = Expressions()

    def _tokens(self) -> Iterable[tuple[str, str, int]]:
        place = 0
        while place < len(self.text):
            character = self.text[place]
            column = place + 1
            place += 1
            if character == "\\":
                if place == len(self.text):
                    self._fail("expected a character behind the backslash", column)
                yield "letter", self.text[place], column
                place += 1
            elif character in _OPERATORS:
                yield character, character, column
            elif character.isalnum() or character == "_":
                yield "letter", character, column
            elif not character.isspace():
                self._fail(
                    f"expected a letter, a digit or an operator, got {character!r}, which has no "
                    f"meaning here; try \\{character} for the letter, (a+b) for a choice, aa for twice",
                    column,
                )

    def _fail(self, problem: str, column: int) -> None:
        problem = f"{problem}, in the expression {shortened(self.text, 60)}"
        line = self.text.count("\n", 0, column - 1) + 1
        column -= self.text.rfind("\n", 0, column - 1) + 1
        raise DialectError("regular expression", problem, line, column)

    def read(self) -> Regular:
        # Of each open bracket: finished unions, finished intersections, factors, pending complements.
        stack: list[_Level] = [_Level(0)]
        for kind, value, column in self.tokens:
            level = stack[-1]
            repeat = kind == "+" and self.plus == "repeat"
            if kind == "(":
                if len(stack) > MAX_NESTING:
                    self._fail(f"brackets are nested more than {MAX_NESTING} deep", column)
                stack.append(_Level(column))
            elif kind == ")":
                if len(stack) == 1:
                    self._fail("expected an open bracket before )", column)
                inner = self._closed(stack.pop(), column, bracket=True)
                stack[-1].add(inner, self.make)
            elif kind in "*?" or repeat:
                if not level.factors or level.complements:
                    self._fail(f"expected an expression before {value}", column)
                last = level.factors.pop()
                level.factors.append(self._repeated(last, kind))
            elif kind == "~":
                level.complements += 1
            elif kind in "+|&":
                if kind != "&":
                    level.alternatives.append(self._intersected(level, column))
                else:
                    level.conjuncts.append(self._sequence(level, column))
            else:
                level.add(self._atom(kind, value), self.make)
        if len(stack) > 1:
            self._fail("expected ) for the bracket that is open here", stack[-1].column)
        whole = self._closed(stack.pop(), len(self.text) + 1, bracket=False)
        return Regular(self.text, whole, self.alphabet, self.make)

    def _repeated(self, part: Expression, kind: str) -> Expression:
        if kind == "?":
            return self.make.union((self.make.empty, part))
        star = self.make.star(part)
        return star if kind == "*" else self.make.concatenation((part, star))

    def _atom(self, kind: str, value: str) -> Expression:
        match kind:
            case "ε":
                return self.make.empty
            case "∅":
                return self.make.nothing
            case ".":
                return self.make.union(map(self.make.letter, self.alphabet))
            case _:
                return self.make.letter(value)

    def _sequence(self, level: _Level, column: int) -> Expression:
        if level.complements or not level.factors:
            hint = "; + is union here: for once or more write xx*, or try plus='repeat' (--plus repeat)"
            operator = self.text[column - 1 : column]
            before = self.text[: column - 1].rstrip()
            self._fail(
                "expected an expression"
                + (f" before {operator}" if operator else " before the end")
                + (hint if before.endswith("+") and self.plus == "union" else ""),
                column,
            )
        sequence = self.make.concatenation(level.factors)
        level.factors = []
        return sequence

    def _intersected(self, level: _Level, column: int) -> Expression:
        conjuncts = [*level.conjuncts, self._sequence(level, column)]
        level.conjuncts = []
        return self.make.intersection(conjuncts)

    def _closed(self, level: _Level, column: int, *, bracket: bool) -> Expression:
        untouched = not (level.factors or level.conjuncts or level.alternatives or level.complements)
        if untouched and bracket:
            return self.make.empty  # () is the empty word
        return self.make.union([*level.alternatives, self._intersected(level, column)])


@dataclass
class _Level:
    """What was read since a bracket was opened."""

    column: int
    alternatives: list[Expression] = field(default_factory=list)
    conjuncts: list[Expression] = field(default_factory=list)
    factors: list[Expression] = field(default_factory=list)
    complements: int = 0

    def add(self, factor: Expression, make: Expressions) -> None:
        """Take one more factor, complemented as often as was asked."""
        if self.complements % 2:
            factor = make.complement(factor)
        self.complements = 0
        self.factors.append(factor)
