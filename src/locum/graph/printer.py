"""Print graphs as RASP text that can be read again, or in a short form for messages.

:func:`to_rasp` prints a whole program. A node with inputs becomes a separate statement if, for example,
it is used more than once or would be nested too deeply. The text is therefore about as small as the
graph. Families are printed in Locum's extension of the language, ``sum l in range(4) { … }``. Reading
the text returns the same graph.

:func:`abbreviate` prints one node in a short form, for error messages and reprs.

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

#: Expressions of this nesting depth become separate statements.
_NESTING = 12
#: Maximum depth and number of characters shown by :func:`abbreviate`.
_SHORT_DEPTH, _SHORT_LENGTH = 5, 72
#: Number of entries of a table or a set shown in a short form.
_SHORT_TABLE = 4

T = TypeVar("T")

_FAMILY_NAMES = ("l", "m", "p", "q", "u", "v")


class Phrase(NamedTuple):
    """A piece of RASP text, with a flag that states whether it is a single term.

    An operand that is not a single term is put in parentheses, so that the text does not depend on
    RASP's unusual operator precedence.
    """

    text: str
    term: bool = True

    @property
    def bracketed(self) -> str:
        """The text as an operand: in parentheses unless it is a single term."""
        return self.text if self.term else f"({self.text})"


def to_rasp(root: Node, names: Mapping[Node, str] | None = None) -> str:
    """Return the program as RASP text whose last statement is ``root``.

    ``names`` maps nodes with inputs to the names that they receive in the text. A program with free
    families, or with an atom that has no RASP literal, raises :class:`GraphError`.
    """
    if root.free:
        raise GraphError(
            "expected a program without free families to print, got one with families that are not "
            "summed over"
        )
    printer = _Printer(root, names or {})
    if root.op == "constant":
        return f"constant({printer.say(root).text});"
    return "\n".join(printer.block(root, ()))


class _Printer:
    """A printer of blocks of statements: the whole program, or the body of a sum."""

    def __init__(self, root: Node, names: Mapping[Node, str]) -> None:
        self.uses = count_uses(root)
        self.names = names
        taken = set(names.values())
        self.numbered = (f"x{i}" for i in itertools.count(1) if f"x{i}" not in taken)
        self.family_names = (name for name in _family_names() if name not in taken)
        self.said: dict[Node, Phrase] = {}
        self.nesting: dict[Node, int] = {}

    def block(self, root: Node, bound: Sequence[Node]) -> Iterator[str]:
        """Yield the statements that compute ``root``, without definitions of enclosing blocks."""
        for node in postorder(root, into=depends_on(bound) if bound else None):
            if node in self.said or not node.free <= self.said.keys():
                continue  # the statement belongs to the body of an inner sum
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
        # Definitions inside are local: another sum may bind the same family.
        for local in (*postorder(body, into=depends_on(families)), *families):
            self.said.pop(local, None)
        return Phrase(f"sum {over} {{ {statements} }}", term=False)


def _family_names() -> Iterator[str]:
    yield from _FAMILY_NAMES
    yield from (f"l{i}" for i in itertools.count(1))


def abbreviate(node: Node, names: Mapping[Node, str] | None = None) -> str:
    """Return a node as text of at most 72 characters, with "…" for omitted parts.

    If ``names`` contains the node, its name is returned, whatever its length.
    """

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
    """Return the RASP text of one operation, given the text of its inputs.

    If ``exact`` is true, the text is part of a program that can be read again. A constant is then
    written as ``constant(3)`` where RASP would otherwise compute with a plain value. A string or an
    integer without a RASP literal then raises :class:`GraphError`. If ``whole`` is true, tables and
    sets are written completely; the default is the value of ``exact``.
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
        case "sum_over":  # in exact text, a sum is a block of statements instead
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
    """Return the name of a family for messages; a family that the user has not named has a generated
    name.
    """
    name = family.name
    if name.startswith("~"):
        return f"family{name.rpartition('.')[2]}"
    if not name.startswith("#"):
        return name
    height, slot = map(int, name[1:].split("."))
    more = slot - len(_FAMILY_NAMES)
    letter = _FAMILY_NAMES[slot] if more < 0 else f"l{more + 1}"
    return letter if height == 1 else f"{letter}_{height}"


def _lifted(node: Node, inputs: Sequence[Phrase]) -> Sequence[Phrase]:
    """Write constant inputs as ``constant(…)`` where RASP would otherwise compute a plain value while
    parsing.
    """
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
    """Return an atom as a RASP literal or, if ``exact`` is false, as text for messages."""
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
    """Return all entries as text or, unless ``whole`` is true, the first four, followed by "…" if there
    are more.

    Tables may have thousands of entries.
    """
    some = parts if whole else parts[:_SHORT_TABLE]
    return ", ".join([*map(say, some), *(["…"] if len(some) < len(parts) else [])])
