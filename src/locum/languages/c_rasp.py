"""Parse and print C-RASP programs, which compare counts of positions.

A program is a list of definitions, one on each line (or ended by ``;``). The last definition determines
acceptance. Boolean expressions are ``true``, ``false``, comparisons of counts, symbols, and
combinations with ``!``, ``&&`` and ``||``. The symbol ``"a"`` is true if the current symbol is a. The
comparisons are ``==``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``. ``#P`` or ``#[P]`` is the number of
positions up to the current one where P holds. Other counts are integers, ``-x``, sums, differences, an
integer ``*`` a count, ``min(x, y)`` and ``max(x, y)``. In ``x if P else y``, x and y are two counts or
two Boolean expressions. ``#`` binds as tightly as ``!``. ``//`` begins a comment.

Extensions let programs recognise more languages: positions modulo a constant, ``i % 2 == 0``, counts at
one distance, ``#[j == i - 1] P``, and counts from the current position to the end, ``#[j >= i] P``. The
lines ``#import periodic``, ``#import local`` and ``#import future`` declare them, but are not needed.
``#accept last`` or ``#accept end`` sets where the answer is read, and ``#positions 0`` or
``#positions 1`` sets the index of the first position. By default the answer is read at the last symbol,
and positions are counted from 0.

>>> dyck = parse('''
... opened = #"("
... closed = #")"
... accepted = #[opened < closed] == 0 && opened == closed
... ''')
>>> dyck.accepts("(())()"), dyck.accepts("())(")
(True, False)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, ClassVar, cast

from lark import Token

from locum.errors import InputError
from locum.graph import COMPARISONS, Node, build
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node
from locum.languages.automata import Letter
from locum.languages.counting import (
    EXTENSIONS,
    as_count,
    as_sop,
    count,
    count_node,
    counts_ahead,
    extensions_of,
    is_boolean,
    is_remainder,
    is_symbol,
    parts_of,
    recogniser,
    symbol,
)
from locum.languages.recogniser import END, LAST, Recogniser
from locum.languages.syntax import COMMON, Reader, alphabet_of, listed

__all__ = ["count", "parse", "recogniser", "show", "symbol"]


_INFIX = {row.operation: symbol for symbol, row in COMPARISONS.items()} | {
    "and": "&&",
    "or": "||",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
}


def show(program: Recogniser) -> str:
    """Return a program as text in the syntax of :func:`parse`; named parts keep their names.

    A program with periodic predicates whose positions are not counted from 0 raises an error.
    """
    root = program.sop.node
    order = parts_of(root)
    uses: dict[Node, int] = {}
    for node in order:
        counted = as_count(node)
        for part in (counted.condition,) if counted is not None else node.inputs:
            uses[part] = uses.get(part, 0) + 1
    lines = [f"#accept {program.accept}", *(f"#import {name}" for name in extensions_of(root))]
    texts: dict[Node, str] = {}
    taken = set(program.names.values())
    free = (name for number in itertools.count(1) if (name := f"v{number}") not in taken)
    for node in order:
        text = _text(node, texts)
        plain = is_symbol(node) or node.op == "constant"
        name = program.names.get(node, "")
        if node is root:
            lines.append(f"{name or ('accepted' if 'accepted' not in taken else next(free))} = {text}")
        elif name or (uses.get(node, 0) > 1 and not plain):
            texts[node] = name or next(free)
            lines.append(f"{texts[node]} = {text}")
        else:
            texts[node] = text
    return "\n".join(lines) + "\n"


def _text(node: Node, texts: dict[Node, str]) -> str:
    """Return a part of a program as text; ``texts`` contains the texts of its operands.

    Infix operations other than ``%``, and conditionals, are in parentheses.
    """
    counted = as_count(node)
    if is_symbol(node):
        return f'"{node.inputs[1].attributes["value"]}"'
    if node.op == "constant":
        value = node.attributes["value"]
        return str(value).lower() if isinstance(value, bool) else str(value)
    if counted is not None:
        where = "" if counted.distance is None else f"[j == i - {counted.distance}] "
        where = "[j >= i] " if counted.ahead else where
        return f"#{where}{texts[counted.condition]}"
    if is_remainder(node):
        if node.inputs[0].op != "indices":
            shift = node.inputs[0].inputs[1].attributes["value"]
            raise InputError(
                f"C-RASP: a program whose positions are counted from {shift} cannot be printed"
            )
        return f"i % {node.inputs[1].attributes['value']}"
    inner = [texts[part] for part in node.inputs]
    match node.op:
        case "not" | "negate":
            return f"{'!' if node.op == 'not' else '-'}{inner[0]}"
        case "minimum" | "maximum":
            return f"{node.op[:3]}({inner[0]}, {inner[1]})"
        case "if_else":
            return f"({inner[1]} if {inner[0]} else {inner[2]})"
        case op:
            return f"({inner[0]} {_INFIX[op]} {inner[1]})"


def parse(
    text: str,
    *,
    alphabet: Iterable[Letter] | None = None,
    accept: str | None = None,
    positions: int | None = None,
) -> Recogniser:
    """Parse a C-RASP program; ``alphabet`` defaults to the symbols in the program.

    ``accept`` is "last" or "end", and defaults to "last". ``positions`` is the index of the first
    position in periodic predicates, 0 or 1, and defaults to 0. Both can also be set in the text. An
    argument that differs from the text raises an error.
    """
    reader = ProgramReader(accept, positions)
    root = reader.read(text)
    letters = alphabet_of("C-RASP", reader.letters, alphabet)
    where, causal = reader.conventions["accept"] or LAST, not counts_ahead(root)
    return Recogniser("C-RASP", as_sop(root), letters, where, reader.names, text, causal)


#: Maximum integer in a program, and maximum distance and period.
MAX_INTEGER, MAX_DISTANCE = 10**9, 64

GRAMMAR = (
    COMMON
    + r"""
start: (_line? _END)* _line?
_line: directive | definition
directive: HASH NAME (NAME | NUMBER)?
definition: (NAME | I | J) "=" expression
?expression: disjunction | disjunction (IF disjunction ELSE disjunction)+ -> conditional
?disjunction: conjunction | conjunction (OR conjunction)+ -> chain
?conjunction: comparison | comparison (AND comparison)+ -> chain
?comparison: sum | sum (COMPARISON sum)+ -> chain
?sum: product | product ((PLUS | MINUS) product)+ -> chain
?product: prefixed | prefixed (TIMES prefixed)+ -> chain
?prefixed: operand | (NOT | MINUS | HASH) prefixed -> prefix
    | HASH "[" expression "]" guarded -> guard
    | HASH "[" J COMPARISON I (MINUS NUMBER)? "]" prefixed -> local
?guarded: operand | NOT guarded -> prefix
?operand: "(" expression ")" | "[" expression "]"
    | STRING -> string
    | NUMBER -> number
    | (TRUE | FALSE) -> truth
    | (MIN | MAX) "(" expression "," expression ")" -> extreme
    | (NAME | I | J) -> name
    | (NAME | I) "%" NUMBER -> periodic
HASH: "#"
OR: "||" | "∨"
AND: "&&" | "∧"
NOT: "!" | "¬"
COMPARISON: "==" | "!=" | "≠" | "<=" | "≤" | ">=" | "≥" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*"
IF: "if"
ELSE: "else"
MIN: "min"
MAX: "max"
TRUE: "true"
FALSE: "false"
I: "i"
J: "j"
"""
)
_ALIASES = {"∧": "&&", "∨": "||", "≤": "<=", "≥": ">=", "≠": "!="}


class ProgramReader(Reader):
    """A parser for one program; its attributes contain the conventions and names of this program."""

    dialect, grammar = "C-RASP", GRAMMAR
    expected: ClassVar = {
        "STRING": "a count or a boolean",
        "HASH": "a name to define",
        "NAME": "a name",
        "NUMBER": "a number",
        "EQUAL": "=",
        "RPAR": ")",
        "RSQB": "]",
        "COMMA": "a comma",
        "LPAR": "(",
        "ELSE": "else of a conditional",
        "_END": "the end of the definition",
        "I": "i - a distance, as in j == i - 1",
        "COMPARISON": "== or >= (j == i - 1, j >= i)",
    }

    def __init__(self, accept: str | None, positions: int | None) -> None:
        super().__init__()
        if accept not in (None, LAST, END):
            raise InputError(f"accept: expected 'last' or 'end', got {accept!r}")
        if positions not in (None, 0, 1):
            raise InputError(f"positions: expected 0 or 1, got {positions!r}")
        first = None if positions is None else str(positions)
        self.conventions: dict[str, str | None] = {"accept": accept, "positions": first}
        #: Maps names to definitions and to imported predicates; an imported distance is an integer.
        self.definitions: dict[str, Node | int] = {}
        self.names: dict[Node, str] = {}
        #: The symbols in the program, also in definitions that the last definition does not use.
        self.letters: set[Letter] = set()

    def start(self, lines: list[Node | None]) -> Node:
        """Return the node of the last definition, which must be a boolean."""
        last = next((value for value in reversed(lines) if value is not None), None)
        if last is None:
            self.fail('expected a definition, such as more = #"a" > #"b"')
        if not is_boolean(last):
            self.fail("expected the last definition to be a boolean that accepts, got a count")
        return last

    def directive(self, parts: list[Token]) -> None:
        """Process an ``#import``, ``#accept`` or ``#positions`` line."""
        word, value = parts[1], parts[-1]
        match str(word):
            case "import":
                self._import(value)
            case "accept" | "positions":
                choices = (LAST, END) if word == "accept" else ("0", "1")
                if value not in choices:
                    self.fail(f"expected {' or '.join(choices)}, got {value}", value)
                before = self.conventions[word]
                if before not in (None, value):
                    self.fail(
                        f"expected {word} {before}, as set before, got {word} {value}; "
                        "the two conventions recognise different languages",
                        value,
                    )
                self.conventions[str(word)] = str(value)
            case _:
                self.fail("expected #import, #accept or #positions at the beginning of a line", word)

    def _import(self, token: Token) -> None:
        name = str(token)
        digits = name.removeprefix("pred")
        if name in EXTENSIONS:
            return  # extensions need no declaration
        if name == "pos_even":  # as in the published interpreter: the position is even
            self.definitions[name] = build("equal", self._remainder(2), constant_node(0))
        elif name.startswith("pred") and (not digits or (digits.isdigit() and len(digits) < 4)):
            self.definitions[name] = int(digits or 1)
        else:
            self.fail(
                f"expected periodic, local or future (or pos_even, pred, pred4 as in the published "
                f"interpreter), got {name!r}",
                token,
            )

    def definition(self, parts: list[Any]) -> Node:
        """Define a name, and return the node of its value."""
        name, value = parts
        if name in self.definitions:
            self.fail(f"{name} is defined twice", name)
        self.definitions[str(name)] = self._node(value, name)
        self.names.setdefault(value, str(name))
        return cast("Node", value)

    # Operands ---------------------------------------------------------------------------------------

    def string(self, parts: list[Token]) -> Node:
        """Return a node that is true where the current symbol is the symbol in quotes."""
        letter = self.symbol_of(parts[0])
        self.letters.add(letter)
        return node_of(symbol(letter))

    def truth(self, parts: list[Token]) -> Node:
        """Return the constant node of ``true`` or ``false``."""
        return constant_node(parts[0] == "true")

    def number(self, parts: list[Token]) -> Node:
        """Return the constant node of an integer."""
        return constant_node(self._integer(parts[0]))

    def _integer(self, token: Token) -> int:
        if len(token) > 10 or int(token) > MAX_INTEGER:
            self.fail(f"expected an integer of at most {MAX_INTEGER:,}, got {token[:20]}", token)
        return int(token)

    def name(self, parts: list[Token]) -> Node | int:
        """Return the value of a defined name."""
        if parts[0] not in self.definitions:
            names = listed(self.definitions)
            self.fail(f"{parts[0]} is not defined before this; there are {names}", parts[0])
        return self.definitions[parts[0]]

    def extreme(self, parts: list[Any]) -> Node:
        """Return the node of ``min(x, y)`` or ``max(x, y)``."""
        token, one, other = parts
        self._counts(token, one, other)
        return build("minimum" if token == "min" else "maximum", one, other)

    def periodic(self, parts: list[Token]) -> Node:
        """Return the node of ``i % period``, the position modulo a constant."""
        if parts[0] != "i":
            self.fail(f"expected i % NUMBER, got {parts[0]}", parts[0])
        period = self._integer(parts[1])
        if not 1 <= period <= MAX_DISTANCE:
            self.fail(f"expected a period from 1 to {MAX_DISTANCE}, got {period}", parts[1])
        return self._remainder(period)

    def _remainder(self, period: int) -> Node:
        position = build("indices")
        if self.conventions["positions"] == "1":
            position = build("add", position, constant_node(1))
        elif self.conventions["positions"] is None:
            self.conventions["positions"] = "0"
        return build("modulo", position, constant_node(period))

    # Operators --------------------------------------------------------------------------------------

    def prefix(self, parts: list[Any]) -> Node:
        """Apply a prefix operator: ``-``, ``!`` or ``#``."""
        operator, value = parts
        if operator.type == "MINUS":
            self._counts(operator, value)
            if value.op == "constant":
                return constant_node(-int(str(value.attributes["value"])))
            return value.inputs[0] if value.op == "negate" else build("negate", value)
        self._booleans(operator, value)
        if operator.type == "HASH":
            return count_node(value)
        return value.inputs[0] if value.op == "not" else build("not", value)

    def guard(self, parts: list[Any]) -> Node:
        """Return the node of a count at the distance of an imported predicate, such as ``pred``."""
        token, distance, value = parts
        if not isinstance(distance, int):
            self.fail("expected a distance in the brackets, such as j == i - 1, got a value", token)
        return self._at(distance, value, token)

    def local(self, parts: list[Any]) -> Node:
        """Return the node of a count at one distance, or of a count from the current position to the
        end.
        """
        token, _, operator, _, *distance, value = parts
        if operator in (">=", "≥") and not distance:
            self._booleans(token, value)
            return count_node(self._node(value, token), ahead=True)
        if operator != "==":
            expected = "== (a distance: j == i - 1) or >= (j >= i)"
            self.fail(f"expected {expected}, got {str(operator)!r}", operator)
        return self._at(self._integer(distance[1]) if distance else 0, value, token)

    def _at(self, distance: int, value: Node | int, token: Token) -> Node:
        if distance > MAX_DISTANCE:
            self.fail(f"expected a distance of at most {MAX_DISTANCE}, got {distance}", token)
        self._booleans(token, value)
        return count_node(self._node(value, token), distance)

    def conditional(self, parts: list[Any]) -> Node:
        """Return the node of ``x if P else y``; chained conditionals are grouped from the right."""
        value = parts[-1]
        for place in range(len(parts) - 5, -1, -4):
            chosen, operator, condition = parts[place : place + 3]
            self._booleans(operator, condition)
            one, other = self._node(chosen, operator), self._node(value, operator)
            if is_boolean(one) != is_boolean(other):
                self.fail("expected two counts or two booleans as branches", operator)
            value = build("if_else", condition, one, other)
        return cast("Node", value)

    def chain(self, parts: list[Any]) -> Node:
        """Apply a chain of binary operators from left to right."""
        value = parts[0]
        for operator, other in zip(parts[1::2], parts[2::2], strict=True):
            value = self._binary(operator, value, other)
        return cast("Node", value)

    def _binary(self, operator: Token, left: Any, right: Any) -> Node:
        if operator.type in ("AND", "OR"):
            self._booleans(operator, left, right)
            return build(operator.type.lower(), left, right)
        self._counts(operator, left, right)
        if operator.type == "COMPARISON":
            return build(COMPARISONS[_ALIASES.get(operator, operator)].operation, left, right)
        if operator.type == "TIMES":
            if "constant" not in (left.op, right.op):
                self.fail("expected an integer times a count, got a product of counts", operator)
            return build("multiply", left, right)
        return build("add" if operator.type == "PLUS" else "subtract", left, right)

    def _node(self, value: Node | int, token: Token) -> Node:
        if isinstance(value, int):
            self.fail(f"expected a distance within #[…] alone, got it as a value at {token}", token)
        return value

    def _booleans(self, operator: Token, *values: Node | int) -> None:
        if not all(is_boolean(self._node(value, operator)) for value in values):
            self.fail(f"expected booleans for {operator}, got a count; try count > 0", operator)

    def _counts(self, operator: Token, *values: Node | int) -> None:
        if any(is_boolean(self._node(value, operator)) for value in values):
            self.fail(
                f"expected counts for {operator}, got a boolean; try #P, or 1 if P else 0", operator
            )
