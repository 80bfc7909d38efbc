"""Parse first-order formulas with majority quantifiers, and convert them to programs that count.

``a(x)`` means that the symbol at position x is a. ``exists y``, ``forall y`` and ``maj y`` (at least
half, Merrill & Sabharwal 2023) quantify over all positions. A guard such as ``exists y < x`` restricts
a quantifier to some positions (``<``, ``<=``, ``>``, ``>=``). The formula inside a quantifier may have
no free variable except the variable of this quantifier. Each quantifier is then expressed by
comparisons of counts. The formula becomes a program of ``c_rasp.py`` whose answer is read at an end
marker.

>>> dyck = parse('maj x a(x) & forall x (b(x) | exists y > x b(y))')
>>> dyck.accepts("aabb"), dyck.accepts("abb"), dyck.accepts("bba")
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from lark import Token

from locum.graph import Node, build
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node
from locum.languages.automata import Letter
from locum.languages.c_rasp import show
from locum.languages.counting import as_sop, count_node, counts_ahead, symbol
from locum.languages.recogniser import END, Recogniser
from locum.languages.syntax import Reader, alphabet_of

_GRAMMAR = r"""
start: implication
?implication: disjunction | disjunction "->" implication -> implies
?disjunction: conjunction | conjunction (OR conjunction)+ -> chain
?conjunction: operand | operand (AND operand)+ -> chain
?operand: "(" implication ")" | NOT operand -> negated | TRUTH -> truth
    | (NAME | STRING) "(" NAME ")" -> at
    | QUANTIFIER NAME operand -> quantified
    | QUANTIFIER NAME RELATION NAME operand -> quantified
QUANTIFIER.2: /(exists|forall|maj)(?![A-Za-z0-9_])|[∃∀]/
TRUTH.2: /(true|false)(?![A-Za-z0-9_])/
RELATION: "<=" | "≤" | ">=" | "≥" | "<" | ">"
OR: "||" | "|" | "∨"
AND: "&&" | "&" | "∧"
NOT: "!" | "¬" | "~"
NAME: /[A-Za-z0-9_]+/
STRING: /"[^"\n]*"/
%ignore /[ \t\r\n]+|\/\/[^\n]*/
"""
_ALIASES = {"∃": "exists", "∀": "forall", "≤": "<=", "≥": ">="}


@dataclass(frozen=True)
class _Part:
    """The node of a subformula at the current position, with the tokens of its free variables."""

    node: Node
    free: Mapping[str, Token]


class _Symbols(Reader):
    """A reader that collects the symbols in a formula."""

    dialect, grammar = "first-order formula", _GRAMMAR
    expected: ClassVar = {
        "RPAR": ")",
        "QUANTIFIER": "a quantifier, a symbol such as a(x), or (",
        "NAME": "a variable",
        "$END": "an operator or the end of the formula",
        "LPAR": "(, as in a(x)",
    }

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def describe_character(self, character: str) -> str:
        return (
            f"expected a quantifier (exists, forall, maj), a symbol such as a(x), or one of ! & | ->, "
            f"got {character!r}"
        )

    def letter(self, token: Token) -> str:
        """Return the symbol of a token, which may be written with or without quotes."""
        return self.symbol_of(token) if token.type == "STRING" else str(token)

    def at(self, parts: list[Token]) -> Any:
        """Record the symbol of an atom such as ``a(x)``."""
        self.found.add(self.letter(parts[0]))


class _Formula(_Symbols):
    """A reader that builds the program of a formula over an alphabet."""

    def __init__(self, alphabet: Iterable[Letter]) -> None:
        super().__init__()
        letters = [node_of(symbol(letter)) for letter in alphabet]
        #: A node that is true at symbols of the word, and false at the end marker.
        self.inside = reduce(lambda one, other: build("or", one, other), letters)

    def start(self, parts: list[_Part]) -> Node:
        """Return the node of a whole formula, which must not contain free variables."""
        for name, token in parts[0].free.items():
            self.fail(
                f"expected a formula without free variables, got {name}; try exists {name}", token
            )
        return parts[0].node

    def truth(self, parts: list[Token]) -> _Part:
        """Return the constant ``true`` or ``false``."""
        return _Part(constant_node(parts[0] == "true"), {})

    def at(self, parts: list[Token]) -> _Part:
        """Return the formula of an atom such as ``a(x)``, which is true where the symbol is a."""
        letter, variable = parts
        return _Part(node_of(symbol(self.letter(letter))), {str(variable): variable})

    def negated(self, parts: list[Any]) -> _Part:
        """Return the negation of a formula."""
        return _Part(build("not", parts[1].node), parts[1].free)

    def chain(self, parts: list[Any]) -> _Part:
        """Join several formulas by "and" or by "or"."""
        operation = "and" if parts[1].type == "AND" else "or"
        node = reduce(lambda one, other: build(operation, one, other), (p.node for p in parts[::2]))
        return _Part(node, {name: token for part in parts[::2] for name, token in part.free.items()})

    def implies(self, parts: list[_Part]) -> _Part:
        """Return the implication of two formulas."""
        one, other = parts
        return _Part(build("or", build("not", one.node), other.node), {**one.free, **other.free})

    def quantified(self, parts: list[Any]) -> _Part:
        """Quantify over all positions, or over the positions that a guard allows."""
        quantifier, variable, *guard, body = parts
        for name, token in body.free.items():
            if name != variable:
                self.fail(
                    f"expected a formula about {variable} alone within its quantifier, got {name}; "
                    f"positions are compared in quantifiers only, such as exists {variable} < {name}",
                    token,
                )
        name = _ALIASES.get(quantifier, str(quantifier))
        relation = _ALIASES.get(guard[0], str(guard[0])) if guard else ""
        condition = build("not", body.node) if name == "forall" else body.node
        condition = build("and", self.inside, condition)
        if name == "maj":
            double = build("multiply", constant_node(2), _size(condition, relation))
            node = build("greater_equal", double, _size(self.inside, relation))
        else:
            node = _exists(condition, relation)
        node = build("not", node) if name == "forall" else node
        return _Part(node, {str(guard[1]): guard[1]} if guard else {})


def _exists(condition: Node, relation: str) -> Node:
    """Return a node that is true if a condition holds at some position in ``relation`` to the current
    one.
    """
    if not relation:
        return build("or", _exists(condition, "<="), _exists(condition, ">="))
    count = count_node(condition, ahead=relation[0] == ">")
    once = build("greater_equal", count, constant_node(1))
    if "=" in relation:
        return once
    # The current position is counted, but is neither before nor after itself.
    twice = build("greater_equal", count, constant_node(2))
    return build("and", once, build("or", build("not", condition), twice))


def _size(condition: Node, relation: str) -> Node:
    """Return a node that counts the positions in ``relation`` to the current one where a condition
    holds.
    """
    here = build("if_else", condition, constant_node(1), constant_node(0))
    if not relation:
        both = build("add", count_node(condition), count_node(condition, ahead=True))
        return build("subtract", both, here)
    count = count_node(condition, ahead=relation[0] == ">")
    return count if "=" in relation else build("subtract", count, here)


def parse(text: str, *, alphabet: Iterable[Letter] | None = None) -> Recogniser:
    """Parse a formula; ``alphabet`` defaults to the symbols in the formula."""
    symbols = _Symbols()
    symbols.read(text)
    letters = alphabet_of("first-order formula", symbols.found, alphabet, "formula")
    root = _Formula(letters).read(text)
    program = Recogniser("C-RASP", as_sop(root), letters, END, causal=not counts_ahead(root))
    return Recogniser("C-RASP", program.sop, letters, END, text=show(program), causal=program.causal)
