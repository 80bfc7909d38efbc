"""C-RASP: counts of earlier positions, compared. Text and Python, on the one graph.

A program is a list of definitions, one on each line (or ended by ``;``); the last one accepts.
Booleans: ``"a"`` (the symbol here is a), ``true``, ``false``, ``!``, ``&&``, ``||``, comparisons of
counts (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``). Counts: ``#P`` or ``#[P]`` (positions up to here
where P holds), integers, ``+``, ``-``, an integer ``*`` a count, ``min(x, y)``, ``max(x, y)``, ``x if
P else y``. Whatever stands behind ``#`` binds to it as tightly as to ``!``. ``//`` begins a comment.

``#import periodic`` declares positions modulo a constant, ``i % 2 == 0``, and ``#import local`` counts
at one distance, ``#[j == i - 1] P``: extensions, with which more languages are recognised. ``#accept
last`` or ``#accept end`` and ``#positions 0`` or ``#positions 1`` say the conventions: by default the
answer is read at the last symbol, and positions are counted from 0.

>>> dyck = parse('''
... opened = #"("
... closed = #")"
... accepted = #[opened < closed] == 0 && opened == closed
... ''')
>>> dyck.accepts("(())()"), dyck.accepts("())(")
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable

from locum.dialects.automata import Letter
from locum.dialects.counting import (
    EXTENSIONS,
    as_count,
    as_sop,
    count,
    count_node,
    is_boolean,
    is_remainder,
    is_symbol,
    parts_of,
    recogniser,
    symbol,
    symbols,
)
from locum.dialects.recogniser import END, LAST, Recogniser
from locum.dialects.syntax import Parser, Syntax, Token, listed
from locum.errors import InputError
from locum.graph import COMPARISONS, Node, build
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node

__all__ = ["count", "parse", "recogniser", "show", "symbol"]

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

_INFIX = {row.operation: symbol for symbol, row in COMPARISONS.items()} | {
    "and": "&&",
    "or": "||",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
}


def show(program: Recogniser) -> str:
    """Write a program as text that is read back as the same; counts have names of their own."""
    root = program.sop.node
    order = parts_of(root)
    uses: dict[Node, int] = {}
    for node in order:
        counted = as_count(node)
        for part in (counted.condition,) if counted is not None else node.inputs:
            uses[part] = uses.get(part, 0) + 1
    imports = [
        name
        for name, needed in (
            ("periodic", any(map(is_remainder, order))),
            ("local", any(c is not None and c.distance is not None for c in map(as_count, order))),
        )
        if needed
    ]
    lines = [f"#accept {program.accept}", *(f"#import {name}" for name in imports)]
    texts: dict[Node, str] = {}
    for node in order:
        text = _text(node, texts)
        plain = is_symbol(node) or node.op == "constant"
        if node is root:
            lines.append(f"accepted = {text}")
        elif as_count(node) is not None or (uses.get(node, 0) > 1 and not plain):
            lines.append(f"{(name := f'v{len(lines)}')} = {text}")
            texts[node] = name
        else:
            texts[node] = text
    return "\n".join(lines) + "\n"


def _text(node: Node, texts: dict[Node, str]) -> str:
    """Write a part whose own parts are written, in brackets where it has operators."""
    counted = as_count(node)
    if is_symbol(node):
        return f'"{node.inputs[1].attributes["value"]}"'
    if node.op == "constant":
        value = node.attributes["value"]
        return str(value).lower() if isinstance(value, bool) else str(value)
    if counted is not None:
        where = "" if counted.distance is None else f"[j == i - {counted.distance}] "
        return f"#{where}{texts[counted.condition]}"
    if is_remainder(node):
        if node.inputs[0].op != "indices":
            shift = node.inputs[0].inputs[1].attributes["value"]
            raise InputError(f"C-RASP: positions that are counted from {shift} have no text here")
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


# As text -------------------------------------------------------------------------------------------


def parse(
    text: str,
    *,
    alphabet: Iterable[Letter] | None = None,
    accept: str | None = None,
    positions: int | None = None,
) -> Recogniser:
    """Read a program; ``alphabet`` defaults to the symbols it names.

    ``accept`` ("last", the default, or "end") and ``positions`` (0, the default, or 1: the number of
    the first position, for periodic predicates) are said here or in the text, and must not contradict
    it.
    """
    reader = _Reader(text, accept, positions)
    root = reader.program()
    letters = tuple(dict.fromkeys(alphabet)) if alphabet is not None else symbols(root)
    unknown = [letter for letter in symbols(root) if letter not in letters]
    if unknown:
        raise InputError(
            f"C-RASP: expected an alphabet with every symbol of the program, got none of "
            f"{listed(unknown)}"
        )
    if not letters:
        raise InputError("C-RASP: the program names no symbol; try alphabet=… (--alphabet)")
    return Recogniser(
        "C-RASP", as_sop(root), letters, reader.conventions["accept"] or LAST, reader.names, text
    )


class _Reader(Parser[Node]):
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
        while True:
            while self.take("newline", ";"):
                pass
            if self.next.kind == "end":
                break
            if self.next.kind == "#":
                self._directive()
            else:
                last = self._definition()
            if self.next.kind not in ("newline", ";", "end"):
                self.fail(f"expected the end of the definition, got {self.next.text!r}")
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
        if self.take("["):
            value = self.expression()
            self.expect("]")
            return value
        return super().primary()

    def atom(self) -> Node:
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
