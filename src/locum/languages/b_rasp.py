"""Parse B-RASP (Boolean programs with masked unique hard attention) and convert it from and to LTL.

A program is a list of definitions, one on each line (or ended by ``;``). By default, the value of the
last definition at the last symbol determines acceptance. A definition is a Boolean expression of
symbols (``"a"``), earlier names, ``true`` and ``false`` with ``!``, ``&``, ``|`` and ``->``, or an
attention operation::

    before = rightmost[j < i, "a"(j) | "b"(j)] "a"(j) : false

The position j is the leftmost or rightmost position that the mask allows and at which the score is
true. The mask is ``j < i``, ``j <= i``, ``j > i``, ``j >= i`` or ``true``. The result is the value at
j, or the default after the colon if no such j exists. In the score and in the value, a position follows
each name and each symbol: ``(i)`` or ``(j)``.

>>> program = parse('''
... first = leftmost[j < i, true] true : false
... follows = rightmost[j < i, true] "a"(j) : false
... wrong = "a" & follows
... accepted = rightmost[j <= i, wrong(j)] false : true
... ''', alphabet="ab")
>>> program.accepts("abab"), program.accepts("aab")
(True, False)
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lark import Token

from locum.errors import InputError
from locum.graph import Node, build
from locum.graph.definitions import everywhere
from locum.graph.operations import constant
from locum.languages.automata import DFA, Letter
from locum.languages.formulas import (
    FALSE,
    TRUE,
    Formula,
    atom,
    atoms,
    conjunction,
    disjunction,
    fold,
    negation,
    parts_of,
    rebuilt,
    show,
    substitute,
)
from locum.languages.ltl import FIRST, LAST, LTL, FormulaReader, binary, unary
from locum.languages.recogniser import LAST as AT_LAST
from locum.languages.recogniser import Recogniser
from locum.languages.syntax import COMMON, alphabet_of, listed
from locum.rasp.handles import SOp, wrap

MASKS = ("true", "j < i", "j <= i", "j > i", "j >= i")
LEFTMOST, RIGHTMOST = "leftmost", "rightmost"
#: Maximum number of names that the score and the value read at i, in a conversion to temporal logic.
#: Each of these names doubles the formula.
MAX_QUERIES = 6


@dataclass(frozen=True)
class Attention:
    """An attention operation; the names of atoms in the score and in the value end in @i or @j."""

    direction: str
    mask: str
    score: Formula
    value: Formula
    default: Formula


@dataclass(frozen=True)
class Program:
    """A sequence of definitions, the last of which determines acceptance.

    The atoms of Boolean definitions are names or, in quotes, symbols.
    """

    definitions: Mapping[str, Formula | Attention]
    alphabet: tuple[Letter, ...]
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        lines = [f"{name} = {_written(value)}" for name, value in self.definitions.items()]
        return "\n".join(lines) + "\n"

    @property
    def accepted(self) -> str:
        """Name of the last definition, which determines acceptance."""
        return list(self.definitions)[-1]

    @property
    def is_causal(self) -> bool:
        """Whether every mask is ``j < i`` or ``j <= i``, so that no position attends to a later one."""
        attentions = [each for each in self.definitions.values() if isinstance(each, Attention)]
        return all(each.mask in ("j < i", "j <= i") for each in attentions)

    def recogniser(self, accept: str = AT_LAST) -> Recogniser:
        """Convert the program to a :class:`Recogniser`, which evaluates the program as an s-op.

        The answer is read at the last symbol if ``accept`` is "last", and at an end marker if
        ``accept`` is "end".
        """
        nodes: dict[str, Node] = {
            f'"{letter}"': build("equal", build("tokens", cast="asis"), constant(letter))
            for letter in self.alphabet
        }
        for name, value in self.definitions.items():
            if isinstance(value, Attention):
                nodes[name] = _attended(value, nodes)
            else:
                nodes[name] = fold(value, lambda part, below: _logic(part, below, nodes))
        root = wrap(nodes[self.accepted])
        assert isinstance(root, SOp)
        names = {node: name for name, node in nodes.items() if name in self.definitions}
        return Recogniser(
            "B-RASP", root, self.alphabet, accept, names, text=str(self), causal=self.is_causal
        )

    def accepts(self, word: Sequence[Letter]) -> bool:
        """Return whether dense execution of the program accepts a word."""
        return self.recogniser().accepts(word)

    def to_ltl(self) -> LTL:
        """Return a temporal formula that holds at the last position of exactly the accepted words."""
        formulas = {f'"{letter}"': atom(letter) for letter in self.alphabet}
        for name, value in self.definitions.items():
            if isinstance(value, Attention):
                formulas[name] = _as_formula(value, formulas)
            else:
                formulas[name] = substitute(value, formulas)
        return LTL(formulas[self.accepted], self.alphabet, LAST)

    def automaton(self) -> DFA:
        """Return the minimal automaton of the words that the program accepts."""
        return self.to_ltl().automaton()


def from_ltl(ltl: LTL, *, strict: bool = False) -> Program:
    """Return a program that accepts the words that satisfy a formula.

    The program contains one attention operation for each different subformula whose outermost operator
    is temporal. If the formula must hold at the first position, the program contains one more. If
    ``strict`` is true, all masks are strict, so no position attends to itself. Otherwise only the
    operators X and Y have strict masks.

    >>> since = LTL.parse("a S b", at="last")
    >>> print(from_ltl(since))
    v0 = rightmost[j <= i, !"a"(j) | "b"(j)] "b"(j) : false
    <BLANKLINE>
    >>> print(from_ltl(since, strict=True))
    v0 = rightmost[j < i, !"a"(j) | "b"(j)] "b"(j) : false
    accepted = "b" | ("a" & v0)
    <BLANKLINE>
    """
    definitions: dict[str, Formula | Attention] = {}
    known: dict[Formula, Formula] = {}
    uses = Counter(below for part in parts_of(ltl.formula) for below in part.parts)

    def named(value: Formula) -> Formula:
        if value.op in ("atom", "true", "false"):
            return value
        if value not in known:
            definitions[name := f"v{len(definitions)}"] = value
            known[value] = atom(name)
        return known[value]

    def attend(
        direction: str, mask: str, score: Formula, value: Formula, default: Formula = FALSE
    ) -> Formula:
        definitions[name := f"v{len(definitions)}"] = Attention(direction, mask, score, value, default)
        return atom(name)

    def translated(part: Formula, below: Sequence[Formula]) -> Formula:
        match part.op:
            case "atom":
                return atom(f'"{part.name}"')
            case "true" | "false":
                return part
            case "not" | "and" | "or":
                whole = rebuilt(part, below)
                # A conjunction or disjunction that occurs several times is written once.
                return named(whole) if part.op != "not" and uses[part] > 1 else whole
            case "next" | "yesterday":
                there = _at(named(below[0]), "j")
                if part.op == "next":
                    return attend(LEFTMOST, "j > i", TRUE, there)
                return attend(RIGHTMOST, "j < i", TRUE, there)
            case op:
                here = [named(each) for each in below]
                holds, reached = (_at(each, "j") for each in here)
                score = disjunction(negation(holds), reached)
                direction, mask = (LEFTMOST, "j >= i") if op == "until" else (RIGHTMOST, "j <= i")
                if not strict:
                    return attend(direction, mask, score, reached)
                beyond = attend(direction, mask.replace("=", ""), score, reached)
                return disjunction(here[1], conjunction(here[0], beyond))

    whole = fold(ltl.formula, translated)
    if ltl.at == FIRST:  # the leftmost position that the last position may attend to
        first = named(whole)
        mask, default = ("j < i", first) if strict else ("j <= i", FALSE)
        whole = attend(LEFTMOST, mask, TRUE, _at(first, "j"), default)
    if not definitions or whole is not atom(next(reversed(definitions))):
        definitions["accepted"] = whole
    return Program(definitions, ltl.alphabet)


def _at(formula: Formula, place: str) -> Formula:
    """Return an atom with the position at which it is read; other formulas are returned unchanged."""
    return atom(f"{formula.name}@{place}") if formula.op == "atom" else formula


# To the graph --------------------------------------------------------------------------------------


def _logic(part: Formula, below: Sequence[Node], nodes: Mapping[str, Node]) -> Node:
    match part.op:
        case "true" | "false":
            return constant(part.op == "true")
        case "atom":
            return nodes[part.name]
        case "not":
            return build("not", below[0])
        case op:
            return build(op, *below)


def _attended(attention: Attention, nodes: Mapping[str, Node]) -> Node:
    at, true = build("indices"), constant(True)

    def selected(part: Formula, below: Sequence[Node]) -> Node:
        match part.op:
            case "true":
                return everywhere()
            case "false":
                return build("selector_not", everywhere())
            case "atom":
                name, place = part.name.rsplit("@", 1)
                key, query = (nodes[name], true) if place == "j" else (true, nodes[name])
                return build("select", key, query, predicate="==")
            case op:
                return build(f"selector_{op}", *below)

    allowed = fold(attention.score, selected)
    if attention.mask != "true":
        mask = build("select", at, at, predicate=attention.mask.split()[1])
        allowed = mask if attention.score is TRUE else build("selector_and", allowed, mask)
    # The last position has the largest index, and the first has the largest negated index.
    rightmost = attention.direction == RIGHTMOST
    chosen = build("best", allowed, at if rightmost else build("negate", at))
    one = constant(1)

    def moved(name: str) -> Node:
        indicator = build("indicator", nodes[name])
        return build("equal", build("aggregate", chosen, indicator, default=0), one)

    there = {
        each: nodes[each[:-2]] if each.endswith("@i") else moved(each[:-2])
        for each in atoms(attention.value)
    }
    value = fold(attention.value, lambda part, below: _logic(part, below, there))
    default = fold(attention.default, lambda part, below: _logic(part, below, nodes))
    some = build("equal", build("aggregate", chosen, one, default=0), one)
    return build("or", build("and", some, value), build("and", build("not", some), default))


# To temporal logic ---------------------------------------------------------------------------------


def _as_formula(attention: Attention, formulas: Mapping[str, Formula]) -> Formula:
    """Return the temporal formula of an attention operation.

    The formula is a disjunction over all values of the names that the score and the value read at i.
    """
    both = sorted({*atoms(attention.score), *atoms(attention.value)})
    at_query = [name for name in both if name.endswith("@i")]
    if len(at_query) > MAX_QUERIES:
        raise InputError(
            f"B-RASP: expected at most {MAX_QUERIES} names read at i in a score and value, got "
            f"{len(at_query)}; try to name a combination of them first"
        )
    keys = {name: formulas[name[:-2]] for name in both if name.endswith("@j")}
    default = substitute(attention.default, formulas)
    cases = []
    for values in itertools.product((TRUE, FALSE), repeat=len(at_query)):
        known = dict(zip(at_query, values, strict=True))
        here = conjunction(
            *(
                formulas[name[:-2]] if value is TRUE else negation(formulas[name[:-2]])
                for name, value in known.items()
            )
        )
        score = substitute(attention.score, known | keys)
        value = substitute(attention.value, known | keys)
        cases.append(conjunction(here, _at_nearest(attention, score, value, default)))
    return disjunction(*cases)


def _at_nearest(attention: Attention, score: Formula, value: Formula, default: Formula) -> Formula:
    past, future = ("Y", "O", "S"), ("X", "F", "U")
    hit = conjunction(score, value)

    def nearest(words: tuple[str, str, str]) -> Formula:  # the match nearest to i
        return binary(words[2], negation(score), hit)

    def farthest(words: tuple[str, str, str]) -> Formula:  # the match farthest from i
        step, some, _ = words
        further = unary(step, unary(some, score))
        return unary(some, conjunction(hit, negation(further)))

    def on(words: tuple[str, str, str], near: bool, strict: bool) -> tuple[Formula, Formula]:
        """Return two formulas: a match exists on one side, and the value holds at the match."""
        formula = nearest(words) if near else farthest(words)
        there = unary(words[1], score)
        return (unary(words[0], there), unary(words[0], formula)) if strict else (there, formula)

    rightmost = attention.direction == RIGHTMOST
    match attention.mask:
        case "j < i" | "j <= i":
            there, holds = on(past, rightmost, attention.mask == "j < i")
        case "j > i" | "j >= i":
            there, holds = on(future, not rightmost, attention.mask == "j > i")
        case _:
            # Without a mask, rightmost attention first searches the positions after i, and then i and
            # the positions before it. Leftmost attention searches in mirrored order.
            first, second = (future, past) if rightmost else (past, future)
            there_first, holds_first = on(first, near=False, strict=True)
            there_second, holds_second = on(second, near=True, strict=False)
            there = disjunction(there_first, there_second)
            holds = disjunction(holds_first, conjunction(negation(there_first), holds_second))
    return disjunction(holds, conjunction(negation(there), default))


# As text -------------------------------------------------------------------------------------------


def _written(value: Formula | Attention) -> str:
    if isinstance(value, Formula):
        return show(value, _name)
    score, answer, default = (show(part, _name) for part in (value.score, value.value, value.default))
    return f"{value.direction}[{value.mask}, {score}] {answer} : {default}"


def _name(atom_name: str) -> str:
    name, _, place = atom_name.rpartition("@")
    return f"{name}({place})" if name and place in ("i", "j") else atom_name


_GRAMMAR = (
    COMMON
    + r"""
start: (definition? _END)* definition?
definition: NAME "=" (formula{plain} | attention)
attention: DIRECTION "[" mask ("," formula{placed})? "]" formula{placed} ":" formula{plain}
mask: TRUE | NAME COMPARISON NAME
?formula{atom}: disjunction{atom} | disjunction{atom} (IMPLIES disjunction{atom})+ -> right
?disjunction{atom}: conjunction{atom} | conjunction{atom} (OR conjunction{atom})+ -> left
?conjunction{atom}: unary{atom} | unary{atom} (AND unary{atom})+ -> left
?unary{atom}: operand{atom} | NOT+ operand{atom} -> prefix
?operand{atom}: "(" formula{atom} ")" | TRUE -> true | FALSE -> false | atom
plain: (NAME | STRING) ("(" NAME ")")?
placed: (NAME | STRING) ("(" NAME ")")?
DIRECTION.2: /(leftmost|rightmost)(?![A-Za-z0-9_])|[◀▶]/
COMPARISON: "<=" | "≤" | ">=" | "<" | ">"
IMPLIES: "->"
OR: "||" | "|" | "∨"
AND: "&&" | "&" | "∧"
NOT: "!" | "¬"
TRUE: "true"
FALSE: "false"
"""
)
_MASK = f"a mask ({', '.join(MASKS)})"


def parse(text: str, *, alphabet: Iterable[Letter] | None = None) -> Program:
    """Parse a B-RASP program; ``alphabet`` defaults to the symbols in the program."""
    reader = _Reader()
    definitions = reader.read(text)
    return Program(definitions, alphabet_of("B-RASP", reader.letters, alphabet), text)


class _Reader(FormulaReader):
    dialect, grammar = "B-RASP", _GRAMMAR
    expected: ClassVar = {
        "STRING": "a symbol in quotes or a name",
        "TRUE": _MASK,
        "COMPARISON": _MASK,
        "COLON": ": and a default, for positions without a match",
        "NAME": "a name",
        "EQUAL": "=",
        "RPAR": ")",
        "RSQB": "]",
        "LSQB": "[",
        "_END": "the end of the definition",
    }

    def __init__(self) -> None:
        super().__init__()
        self.definitions: dict[str, Formula | Attention] = {}
        self.letters: set[Letter] = set()

    def start(self, parts: list[None]) -> dict[str, Formula | Attention]:
        if not self.definitions:
            self.fail("expected a definition, got none")
        return self.definitions

    def definition(self, parts: list[Any]) -> None:
        name, value = parts
        if name in self.definitions or name in ("i", "j"):
            self.fail(f"expected a new name, got {name}, which is reserved or already defined", name)
        self.definitions[str(name)] = value

    def attention(self, parts: list[Any]) -> Attention:
        direction, mask, *score, value, default = parts
        named = {"◀": LEFTMOST, "▶": RIGHTMOST}.get(direction, str(direction))
        return Attention(named, mask, score[0] if score else TRUE, value, default)

    def mask(self, parts: list[Token]) -> str:
        mask = " ".join(parts).replace("≤", "<=")
        if mask not in MASKS:
            self.fail(f"expected {_MASK}, got {mask}", parts[0])
        return mask

    def true(self, parts: list[Token]) -> Formula:
        return TRUE

    def false(self, parts: list[Token]) -> Formula:
        return FALSE

    def plain(self, parts: list[Token]) -> Formula:
        name = self._name(parts[0])
        if parts[1:] not in ([], ["i"]):
            self.fail(f"expected no position, or (i), got ({parts[1]})", parts[0])
        return atom(name)

    def placed(self, parts: list[Token]) -> Formula:
        name = self._name(parts[0])
        if parts[1:] not in (["i"], ["j"]):
            got = f"({parts[1]})" if parts[1:] else "none"
            self.fail(f"expected (i) or (j) after a name, got {got}", parts[0])
        return atom(f"{name}@{parts[1]}")

    def _name(self, token: Token) -> str:
        if token.type == "STRING":
            self.letters.add(self.symbol_of(token))
        elif token not in self.definitions:
            names = listed(self.definitions)
            self.fail(f"{token} is not defined before this; there are {names}", token)
        return str(token)
