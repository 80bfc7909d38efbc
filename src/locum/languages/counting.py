"""Define the operations of C-RASP as graphs, and check that a program uses only these operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from locum.errors import InputError
from locum.graph import Node, abbreviate, build
from locum.graph.definitions import up_to_here
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node
from locum.graph.traversal import walk
from locum.languages.automata import Letter
from locum.languages.recogniser import LAST, Recogniser
from locum.rasp.handles import SOp, wrap

#: Extensions of C-RASP, with which programs recognise more languages: positions modulo a constant,
#: counts at one distance, and counts of later positions, which do not compile to decoders.
EXTENSIONS = ("periodic", "local", "future")


def symbol(letter: Letter) -> SOp:
    """Return an s-op that is true where the current symbol is ``letter``."""
    return as_sop(build("equal", build("tokens", cast="asis"), constant_node(letter)))


def count(condition: SOp, distance: int | None = None, *, ahead: bool = False) -> SOp:
    """Count the positions up to the current one where a condition holds.

    With ``distance``, only the position at that distance before the current one is counted. With
    ``ahead``, the positions from the current one to the end are counted instead.

    >>> count(symbol("a"))("abaa")
    [1, 1, 2, 3]
    >>> count(symbol("a"), distance=1)("abaa")
    [0, 1, 0, 1]
    >>> count(symbol("a"), ahead=True)("abaa")
    [3, 2, 2, 1]
    """
    return as_sop(count_node(node_of(condition), distance, ahead=ahead))


def recogniser(
    accepted: SOp,
    alphabet: Iterable[Letter],
    *,
    accept: str = LAST,
) -> Recogniser:
    """Return a recogniser whose answer is the s-op ``accepted``.

    An s-op with operations outside C-RASP raises an error. The answer is read at the last symbol if
    ``accept`` is "last", and at an end marker if ``accept`` is "end". Positions are counted from 0.
    """
    root = node_of(accepted)
    require(root)
    letters, causal = tuple(dict.fromkeys(alphabet)), not counts_ahead(root)
    return Recogniser("C-RASP", as_sop(root), letters, accept, causal=causal)


def as_sop(node: Node) -> SOp:
    """Return the s-op of a node."""
    handle = wrap(node)
    assert isinstance(handle, SOp)
    return handle


def _from_here() -> Node:
    return build("select", build("indices"), build("indices"), predicate=">=")


def count_node(condition: Node, distance: int | None = None, *, ahead: bool = False) -> Node:
    """Return the node of a count.

    The count includes the positions up to the current one, from the current one to the end if ``ahead``
    is true, or at one ``distance``.
    """
    holds = build("select", condition, constant_node(True), predicate="==")
    if ahead:
        return build("selector_width", build("selector_and", holds, _from_here()))
    if distance is None:
        return build("selector_width", build("selector_and", holds, up_to_here()))
    at = build("indices")
    there = build("subtract", at, constant_node(distance))
    return build(
        "selector_width", build("selector_and", holds, build("select", at, there, predicate="=="))
    )


@dataclass(frozen=True)
class Count:
    """The condition of a count, and the positions that are counted."""

    condition: Node
    distance: int | None
    ahead: bool = False


def as_count(node: Node) -> Count | None:
    """Return the count that a node computes, or None for any other node."""
    if node.op != "selector_width" or node.inputs[0].op != "selector_and":
        return None
    holds, where = node.inputs[0].inputs
    if holds.op != "select" or holds.inputs[1] is not constant_node(True):
        return None
    condition = holds.inputs[0]
    if where is up_to_here():
        return Count(condition, None) if count_node(condition) is node else None
    if where is _from_here():
        return Count(condition, None, True) if count_node(condition, ahead=True) is node else None
    if where.op == "select" and where.inputs[1].op == "subtract":
        shift = where.inputs[1].inputs[1]
        distance = shift.attributes.get("value") if shift.op == "constant" else None
        if type(distance) is int and count_node(condition, distance) is node:
            return Count(condition, distance)
    return None


_BOOLEAN = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
_NUMERIC = {"add", "subtract", "negate", "minimum", "maximum"}


def is_boolean(node: Node) -> bool:
    """Return whether a part of a program is a boolean, as opposed to a count."""
    while node.op == "if_else":
        node = node.inputs[1]
    if node.op == "constant":
        return isinstance(node.attributes["value"], bool)
    return node.op in _BOOLEAN


def require(root: Node) -> None:
    """Raise an error if a program contains an operation that is not in C-RASP with its extensions.

    The error quotes the part of the program with this operation.
    """

    def refuse(node: Node, why: str) -> NoReturn:
        raise InputError(f"not C-RASP: {why}, in {abbreviate(node)}")

    if not is_boolean(root):
        refuse(root, "expected a boolean that accepts, got a count or a symbol")
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        counted = as_count(node)
        if counted is not None:
            if not is_boolean(counted.condition):
                refuse(node, "expected a boolean to count, got a count")
            below: tuple[Node, ...] = (counted.condition,)
        elif is_symbol(node) or node.op == "constant" or is_remainder(node):
            below = ()
        elif node.op in _BOOLEAN | _NUMERIC | {"if_else"} or (
            node.op == "multiply" and any(i.op == "constant" for i in node.inputs)
        ):
            below = node.inputs
        else:
            refuse(
                node, f"expected counts of earlier positions, comparisons and booleans, got {node.op}"
            )
        for part in below:
            if part not in seen:
                seen.add(part)
                stack.append(part)


def is_symbol(node: Node) -> bool:
    """Return whether a node tests whether the current symbol is a given letter."""
    return (
        node.op == "equal"
        and node.inputs[0].op == "tokens"
        and node.inputs[1].op == "constant"
        and isinstance(node.inputs[1].attributes["value"], str)
    )


def is_remainder(node: Node) -> bool:
    """Return whether a node is the position (plus a constant) modulo a constant."""
    if node.op != "modulo" or node.inputs[1].op != "constant":
        return False
    position = node.inputs[0]
    return position.op == "indices" or (
        position.op == "add"
        and position.inputs[0].op == "indices"
        and position.inputs[1].op == "constant"
    )


def parts_of(root: Node) -> list[Node]:
    """Return the parts of a program, each after the parts that it contains.

    A count contains only its condition.
    """

    def below(node: Node) -> tuple[Node, ...]:
        counted = as_count(node)
        if counted is not None:
            return (counted.condition,)
        return () if is_symbol(node) or is_remainder(node) else node.inputs

    return list(walk((root,), lambda node: below(node)[::-1]))


def counts_ahead(root: Node) -> bool:
    """Return whether a program counts later positions."""
    return "future" in extensions_of(root)


def extensions_of(root: Node) -> tuple[str, ...]:
    """Return the extensions of C-RASP that a program uses, in the order of :data:`EXTENSIONS`."""
    parts = parts_of(root)
    counts = [counted for counted in map(as_count, parts) if counted is not None]
    used = (
        any(map(is_remainder, parts)),
        any(counted.distance is not None for counted in counts),
        any(counted.ahead for counted in counts),
    )
    return tuple(name for name, is_used in zip(EXTENSIONS, used, strict=True) if is_used)


def fragment(root: Node) -> str:
    """Return the name of the smallest fragment of C-RASP that contains a program.

    >>> fragment(node_of(count(symbol("a"), distance=1) > 0))
    'C-RASP[local]'
    """
    used = ", ".join(extensions_of(root))
    return f"C-RASP[{used}]" if used else "C-RASP"


def depth(root: Node) -> int:
    """Return the nesting depth of the counts in a program.

    Counts at one distance do not increase the depth.

    >>> depth(node_of(count(count(symbol("a")) > 2)))
    2
    """
    depths: dict[Node, int] = {}
    for node in parts_of(root):
        counted = as_count(node)
        if counted is not None:
            depths[node] = depths[counted.condition] + (counted.distance is None)
        else:
            depths[node] = max((depths.get(part, 0) for part in node.inputs), default=0)
    return depths[root]
