"""Read C-RASP as text: one definition a line, and directives behind ``#``."""

from __future__ import annotations

from locum.dialects.counting import (
    EXTENSIONS,
    count_node,
    is_boolean,
    symbol,
)
from locum.dialects.recogniser import END, LAST
from locum.dialects.syntax import Parser, Syntax, Token, listed
from locum.errors import InputError
from locum.graph import COMPARISONS, Node, build
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node

#: The largest integer in a program, distance and period.
MAX_INTEGER, MAX_DISTANCE = 10**9, 64

_SYNTAX = Syntax(
    "C-RASP",
    (
        *("#", "&&", "||", "!", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "%", "="),
        *("(", ")", "[", "]", ",", ";", "if", "else", "min", "max", "true", "false"),
    ),
    {
        "if": (1, "left"),
        "||": (2, "left"),
        "&&": (3, "left"),
        **dict.fromkeys(COMPARISONS, (4, "left")),
        "+": (5, "left"),
        "-": (5, "left"),
        "*": (6, "left"),
    },
    frozenset({"!", "-", "#"}),
    {"∧": "&&", "∨": "||", "¬": "!", "≤": "<=", "≥": ">=", "≠": "!="},
)


class Reader(Parser[Node]):
    """Reads one program; its conventions, definitions and names are there afterwards."""

    syntax = _SYNTAX

    def __init__(self, text: str, accept: str | None, positions: int | None) -> None:
        super().__init__(text)
        if accept not in (None, LAST, END):
            raise InputError(f"accept: expected 'last' or 'end', got {accept!r}")
        if positions not in (None, 0, 1):
            raise InputError(f"positions: expected 0 or 1, got {positions!r}")
        first = None if positions is None else str(positions)
        self.conventions: dict[str, str | None] = {"accept": accept, "positions": first}
        self.extensions: set[str] = set()
        #: Predicates of other tools, by name: a distance, or a remainder.
        self.imported: dict[str, Node | int] = {}
        self.definitions: dict[str, Node] = {}
        self.names: dict[Node, str] = {}

    def program(self) -> Node:
        """Read all definitions and return the last."""
        last: Node | None = None
        for _ in self.lines():
            if self.next.kind == "#":
                self._directive()
            else:
                last = self._definition()
        if last is None:
            self.fail('expected a definition, such as more = #"a" > #"b"')
        if not is_boolean(last):
            self.fail("expected the last definition to be a boolean that accepts, got a count")
        return last

    def _directive(self) -> None:
        self.expect("#")
        word = self.expect("name", " of a directive (import, accept or positions)")
        match word.text:
            case "import":
                self._import(self.expect("name", " to import"))
            case "accept" | "positions":
                choices = (LAST, END) if word.text == "accept" else ("0", "1")
                value = self.take("name", "number")
                if value is None or value.text not in choices:
                    self.fail(f"expected {' or '.join(choices)}", value)
                before = self.conventions[word.text]
                if before not in (None, value.text):
                    self.fail(
                        f"the program says {word.text} {value.text}, but {word.text}={before} is asked "
                        "for; the two conventions recognise different languages",
                        value,
                    )
                self.conventions[word.text] = value.text
            case _:
                self.fail("expected #import, #accept or #positions at the beginning of a line", word)

    def _import(self, token: Token) -> None:
        name = token.text
        digits = name.removeprefix("pred")
        if name in EXTENSIONS:
            self.extensions.add(name)
        elif name == "pos_even":  # of the published interpreter: the number of the position is even
            self.imported[name] = build("equal", self._remainder(2), constant_node(0))
        elif name.startswith("pred") and (not digits or (digits.isdigit() and len(digits) < 4)):
            self.imported[name] = int(digits or 1)
        else:
            self.fail(
                f"expected periodic or local (or pos_even, pred, pred4 as in the published "
                f"interpreter), got {name!r}",
                token,
            )

    def _definition(self) -> Node:
        name = self.expect("name", " to define")
        if name.text in self.definitions or name.text in self.imported:
            self.fail(f"{name.text} is defined twice", name)
        self.expect("=")
        value = self.expression()
        self.definitions[name.text] = value
        self.names.setdefault(value, name.text)
        return value

    # Expressions ------------------------------------------------------------------------------------

    def prefix_operator(self) -> Token | None:
        """Take ``!``, ``-``, ``#`` or the guard of a count, if one is next."""
        token = self.take("!", "-", "#")
        if token is None or token.kind != "#" or self.next.kind != "[":
            return token
        return self._guard(token)

    def _guard(self, token: Token) -> Token | None:
        """Read #[…]: a condition to count, or where to count what follows."""
        place = self._place
        self._place += 1
        name = self.take("name")
        if name is not None and name.text == "j":
            self.expect("==", " (a distance: j == i - 1)")
            if self.expect("name").text != "i":
                self.fail("expected i - a distance, as in j == i - 1")
            distance = 0
            if self.take("-"):
                distance = self._integer(self.expect("number"))
            self.expect("]")
            self._require_extension("local", token)
            return self._at(distance, token)
        if name is not None and isinstance(self.imported.get(name.text), int) and self.take("]"):
            distance = self.imported[name.text]  # type: ignore[assignment]
            return self._at(distance, token)
        self._place = place  # a condition: ( … ) in other brackets
        return token

    def _at(self, distance: int, token: Token) -> Token:
        if distance > MAX_DISTANCE:
            self.fail(f"expected a distance of at most {MAX_DISTANCE}, got {distance}", token)
        return Token(f"#{distance}", "#[j == …]", token.line, token.column)

    def primary(self) -> Node:
        """Read an atom, or an expression in square brackets."""
        if self.take("["):
            value = self.expression()
            self.expect("]")
            return value
        return super().primary()

    def atom(self) -> Node:
        """Read a symbol, an integer, a name or a function."""
        token = self.next
        self._place += 1
        match token.kind:
            case "string":
                if not token.text:
                    self.fail('expected a symbol in quotes, got ""', token)
                return node_of(symbol(token.text))
            case "true" | "false":
                return constant_node(token.kind == "true")
            case "number":
                return constant_node(self._integer(token))
            case "min" | "max":
                return self._extreme(token)
            case "name" if token.text == "i" and self.next.kind == "%":
                return self._periodic(token)
            case "name":
                value = self.definitions.get(token.text, self.imported.get(token.text))
                if isinstance(value, Node):
                    return value
                names = listed([*self.definitions, *self.imported])
                self.fail(f"{token.text} is not defined before this; there are {names}", token)
            case _:
                self._place -= 1
        return self.fail(f"expected a count or a boolean, got {self._got()}")

    def _integer(self, token: Token) -> int:
        if len(token.text) > 10 or int(token.text) > MAX_INTEGER:
            self.fail(f"expected an integer of at most {MAX_INTEGER:,}, got {token.text[:20]}", token)
        return int(token.text)

    def _extreme(self, token: Token) -> Node:
        self.expect("(")
        one = self.expression()
        self.expect(",")
        other = self.expression()
        self.expect(")")
        self._counts(token, one, other)
        return build("minimum" if token.kind == "min" else "maximum", one, other)

    def _periodic(self, token: Token) -> Node:
        self._require_extension("periodic", token)
        self.expect("%")
        period = self._integer(self.expect("number"))
        if not 1 <= period <= MAX_DISTANCE:
            self.fail(f"expected a period from 1 to {MAX_DISTANCE}, got {period}", token)
        return self._remainder(period)

    def _remainder(self, period: int) -> Node:
        position = build("indices")
        if self.conventions["positions"] == "1":
            position = build("add", position, constant_node(1))
        elif self.conventions["positions"] is None:
            self.conventions["positions"] = "0"
        return build("modulo", position, constant_node(period))

    def _require_extension(self, name: str, token: Token) -> None:
        if name not in self.extensions:
            self.fail(
                f"{name} position predicates are an extension of C-RASP, with which it recognises more "
                f"languages; try #import {name} in the first line",
                token,
            )

    def prefix(self, operator: Token, value: Node) -> Node:
        """Apply a prefix operator."""
        match operator.kind:
            case "!":
                self._booleans(operator, value)
                return value.inputs[0] if value.op == "not" else build("not", value)
            case "-":
                self._counts(operator, value)
                if value.op == "constant":
                    return constant_node(-int(str(value.attributes["value"])))
                return value.inputs[0] if value.op == "negate" else build("negate", value)
            case "#":
                self._booleans(operator, value)
                return count_node(value)
            case kind:
                self._booleans(operator, value)
                return count_node(value, int(kind[1:]))

    def binary(self, operator: Token, left: Node, right: Node) -> Node:
        """Apply an operator between two values."""
        match operator.kind:
            case "if":
                self._booleans(operator, right)
                self.expect("else", " of a conditional")
                other = self.expression(1)
                if is_boolean(left) != is_boolean(other):
                    self.fail("expected two counts or two booleans as branches", operator)
                return build("if_else", right, left, other)
            case "&&" | "||":
                self._booleans(operator, left, right)
                return build("and" if operator.kind == "&&" else "or", left, right)
            case "+" | "-":
                self._counts(operator, left, right)
                return build("add" if operator.kind == "+" else "subtract", left, right)
            case "*":
                self._counts(operator, left, right)
                if "constant" not in (left.op, right.op):
                    self.fail("expected an integer times a count: counts are not multiplied", operator)
                return build("multiply", left, right)
            case kind:
                self._counts(operator, left, right)
                return build(COMPARISONS[kind].operation, left, right)

    def _booleans(self, operator: Token, *values: Node) -> None:
        if not all(map(is_boolean, values)):
            self.fail(f"expected booleans for {operator.text}, got a count; try count > 0", operator)

    def _counts(self, operator: Token, *values: Node) -> None:
        if any(map(is_boolean, values)):
            self.fail(
                f"expected counts for {operator.text}, got a boolean; try #P, or 1 if P else 0",
                operator,
            )
