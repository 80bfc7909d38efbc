"""Graph → text: RASP as a person would write it, and a short form for messages.

:func:`to_rasp` prints a whole program. What is used more than once, or would nest too deeply,
becomes a statement of its own, so that text stays as small as the graph. Families are printed in
our extension of the language, ``sum l in range(4) { … }``. The text reads back to the same object.

:func:`abbreviate` prints one node in one line of bounded length, for errors and reprs.

>>> from locum.graph.operations import build
>>> i = build("indices")
>>> s = build("select", i, i, predicate="<")
>>> difference = build("subtract", build("aggregate", s, i, default=0), build("selector_width", s))
>>> print(to_rasp(difference))
x1 = select(indices, indices, <);
aggregate(x1, indices) - selector_width(x1);
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from locum.errors import GraphError
from locum.graph.atoms import Atom, is_unprintable, short
from locum.graph.node import Node
from locum.graph.operations import OPERATIONS
from locum.graph.traversal import count_uses, depends_on, postorder

#: Expressions nested deeper than this are broken into statements.
_NESTING = 12
#: Depth and characters shown by :func:`abbreviate`.
_SHORT_DEPTH, _SHORT_LENGTH = 5, 72
#: Entries of a table that a short form shows.
_SHORT_TABLE = 4

T = TypeVar("T")

_FAMILY_NAMES = ("l", "m", "p", "q", "u", "v")


class Phrase(NamedTuple):
    """A piece of RASP, and whether it is one term: RASP's precedence is too odd to rely on."""

    text: str
    term: bool = True

    @property
    def bracketed(self) -> str:
        """The text as an operand."""
        return self.text if self.term else f"({self.text})"


def to_rasp(root: Node, names: Mapping[Node, str] | None = None) -> str:
    """Write the program as RASP text whose last statement is ``root``.

    ``names`` gives nodes the names they bear in statements (the side table of a program).
    """
    if root.free:
        raise GraphError(
            "only a whole program can be printed, but families of this one are not summed over"
        )
    printer = _Printer(root, names or {})
    if root.op == "constant":
        return f"constant({printer.say(root).text});"
    return "\n".join(printer.block(root, ()))


class _Printer:
    """Prints blocks of statements: the program, and the body of each sum in it."""

    def __init__(self, root: Node, names: Mapping[Node, str]) -> None:
        self.uses = count_uses(root)
        self.names = names
        taken = set(names.values())
        self.numbered = (f"x{i}" for i in itertools.count(1) if f"x{i}" not in taken)
        self.family_names = (name for name in _family_names() if name not in taken)
        self.said: dict[Node, Phrase] = {}
        self.nesting: dict[Node, int] = {}

    def block(self, root: Node, bound: Sequence[Node]) -> Iterator[str]:
        """Write statements for all that ``root`` needs and the enclosing blocks have not said."""
        for node in postorder(root, into=depends_on(bound) if bound else None):
            if node in self.said or not node.free <= self.said.keys():
                continue  # the latter belongs to the body of a sum further in
            expression = self.say(node)
            nesting = 1 + max((self.nesting.get(i, 0) for i in node.inputs), default=-1)
            alone = self.uses[node] > 1 or nesting >= _NESTING or node.op == "sum_over"
            if node.inputs and (node in self.names or (alone and node is not root)):
                name = self.names.get(node) or next(self.numbered)
                yield f"{name} = {expression.text};"
                expression, nesting = Phrase(name), 0
            self.said[node], self.nesting[node] = expression, nesting
        yield f"{self.said[root].text};"

    def say(self, node: Node) -> Phrase:
        if node.op != "sum_over":
            return phrase(node, [self.said[i] for i in node.inputs])
        body, *families = node.inputs
        for family in families:
            self.said[family] = Phrase(next(self.family_names))
        over = ", ".join(f"{self.said[f].text} in range({f.size})" for f in families)
        statements = " ".join(self.block(body, families))
        # What was said inside holds inside only: another sum may bind the same family.
        for local in (*postorder(body, into=depends_on(families)), *families):
            self.said.pop(local, None)
        return Phrase(f"sum {over} {{ {statements} }}", term=False)


def _family_names() -> Iterator[str]:
    yield from _FAMILY_NAMES
    yield from (f"l{i}" for i in itertools.count(1))


def abbreviate(node: Node, names: Mapping[Node, str] | None = None) -> str:
    """Write a node in one line of some seventy characters, with … for what was left out."""

    def say(node: Node, depth: int) -> Phrase:
        if names and node in names:
            return Phrase(names[node])
        if depth > _SHORT_DEPTH and node.inputs:
            return Phrase("…")
        return phrase(node, [say(i, depth + 1) for i in node.inputs], exact=False)

    if names and node in names:
        return names[node]
    line = say(node, 0).text
    return line if len(line) <= _SHORT_LENGTH else line[: _SHORT_LENGTH - 1] + "…"


Node.printer = staticmethod(abbreviate)


def phrase(
    node: Node, inputs: Sequence[Phrase], exact: bool = True, whole: bool | None = None
) -> Phrase:
    """Write one operation in RASP, given the text of its inputs.

    With ``exact`` the text must read back: where RASP would compute on plain values, constants are
    written ``constant(3)``, and a string that has no literal is an error. ``whole`` lists tables in
    full, which is the default for exact text.
    """
    whole = exact if whole is None else whole
    op = node.op
    inputs = _lifted(node, inputs) if exact else inputs
    match op:
        case "tokens":
            return Phrase("tokens" if node.cast == "asis" and not exact else f"tokens_{node.cast}")
        case "indices" | "length":
            return Phrase(op)
        case "constant":
            return literal(node.value, exact)
        case "family":
            return Phrase(family_name(node))
        case "sum_over":  # exact text has a block of statements instead
            over = ", ".join(family.text for family in inputs[1:])
            return Phrase(f"sum over {over} of {inputs[0].bracketed}", term=False)
        case "select":
            return Phrase(f"select({inputs[0].text}, {inputs[1].text}, {node.predicate})")
        case "aggregate":
            default = node.default
            unsaid = type(default) is int and default == 0
            last = "" if unsaid else f", {literal(default, exact).text}"
            return Phrase(f"aggregate({inputs[0].text}, {inputs[1].text}{last})")
        case "if_else":
            condition, then, otherwise = (i.bracketed for i in inputs)
            return Phrase(f"{then} if {condition} else {otherwise}", term=False)
        case "member":
            values = _listed(node.members, lambda value: literal(value, exact).text, whole)
            return Phrase(f"{inputs[0].bracketed} in [{values}]", term=False)
        case "lookup":
            pairs = _listed(
                node.table,
                lambda pair: ": ".join(literal(part, exact).text for part in pair),
                whole,
            )
            return Phrase(f"{{{pairs}}}[{inputs[0].text}]", term=False)
    symbol = OPERATIONS[op].symbol
    if symbol is None:
        return Phrase(f"{OPERATIONS[op].called}({', '.join(i.text for i in inputs)})")
    if len(inputs) == 1:
        space = " " if symbol == "not" else ""
        return Phrase(f"{symbol}{space}{inputs[0].bracketed}", term=False)
    return Phrase(f"{inputs[0].bracketed} {symbol} {inputs[1].bracketed}", term=False)


def family_name(family: Node) -> str:
    """Name a family for messages: its own name, or a letter if a sum has taken that away."""
    name = family.name
    if name.startswith("~"):
        return f"family{name.rpartition('.')[2]}"
    if not name.startswith("#"):
        return name
    height, slot = map(int, name[1:].split("."))
    letter = next(itertools.islice(_family_names(), slot, None))
    return letter if height == 1 else f"{letter}_{height}"


def _lifted(node: Node, inputs: Sequence[Phrase]) -> Sequence[Phrase]:
    """Mark constants where RASP would otherwise compute with the plain value at build time."""
    constants = [i.op == "constant" for i in node.inputs]
    if node.op == "if_else":
        constants[1:] = [False, False]
    elif node.op in ("select", "aggregate", "best") or not all(constants):
        return inputs
    return [
        Phrase(f"constant({said.text})") if marked else said
        for said, marked in zip(inputs, constants, strict=True)
    ]


def literal(value: Atom, exact: bool = True) -> Phrase:
    """Write an atom as RASP does."""
    if isinstance(value, str):
        if exact and any(character in value for character in '"\r\n'):
            raise GraphError(f"RASP has no literal for the string {value!r} (quotes, line breaks)")
        return Phrase(f'"{value}"')
    if is_unprintable(value):
        if exact:
            raise GraphError(f"{short(value)} is too large for a literal of RASP")
        return Phrase(short(value))
    if isinstance(value, float) and not math.isfinite(value):
        # 1e999 reads as infinity; infinity minus itself is not a number.
        infinity = "1e999" if exact else "inf"
        if math.isnan(value):
            return Phrase(f"{infinity} - {infinity}", term=False) if exact else Phrase("nan")
        return Phrase(infinity) if value > 0 else Phrase(f"-{infinity}", term=False)
    text = repr(value)
    return Phrase(text, term=not text.startswith("-"))


def _listed(parts: Sequence[T], say: Callable[[T], str], whole: bool) -> str:
    """Write all entries, or for a short line the first few: tables may have thousands."""
    some = parts if whole else parts[:_SHORT_TABLE]
    return ", ".join([*map(say, some), *(["…"] if len(some) < len(parts) else [])])
