"""C-RASP on the graph: symbols, counts, and which graphs are made of them alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from locum.errors import InputError
from locum.graph import Node, abbreviate, build, postorder
from locum.graph.definitions import up_to_here
from locum.graph.node import node_of
from locum.graph.operations import constant as constant_node
from locum.graph.traversal import walk
from locum.languages.automata import Letter
from locum.languages.recogniser import LAST, Recogniser
from locum.rasp.handles import SOp, wrap

#: Extensions that a program has to declare.
EXTENSIONS = ("periodic", "local")


def symbol(letter: Letter) -> SOp:
    """Return whether the symbol here is ``letter``."""
    return as_sop(build("equal", build("tokens", cast="asis"), constant_node(letter)))


def count(condition: SOp, distance: int | None = None) -> SOp:
    """Count the positions up to here where a condition holds; with ``distance``, at that one alone.

    >>> count(symbol("a"))("abaa")
    [1, 1, 2, 3]
    >>> count(symbol("a"), distance=1)("abaa")
    [0, 1, 0, 1]
    """
    return as_sop(count_node(node_of(condition), distance))


def recogniser(
    accepted: SOp,
    alphabet: Iterable[Letter],
    *,
    accept: str = LAST,
    extensions: Iterable[str] = (),
) -> Recogniser:
    """Return the program whose answer is an s-op, if that is made of C-RASP's operations alone.

    ``accept`` says where it is read: at the "last" symbol, or at an "end" marker. Positions are those
    of RASP, from 0. ``extensions`` are "periodic" and "local".
    """
    root = node_of(accepted)
    require(root, tuple(extensions))
    return Recogniser("C-RASP", as_sop(root), tuple(dict.fromkeys(alphabet)), accept)


def as_sop(node: Node) -> SOp:
    """Return the s-op of a node."""
    handle = wrap(node)
    assert isinstance(handle, SOp)
    return handle


def count_node(condition: Node, distance: int | None = None) -> Node:
    """Make the node of a count: up to here, or at one distance alone."""
    holds = build("select", condition, constant_node(True), predicate="==")
    if distance is None:
        return build("selector_width", build("selector_and", holds, up_to_here()))
    at = build("indices")
    there = build("subtract", at, constant_node(distance))
    return build(
        "selector_width", build("selector_and", holds, build("select", at, there, predicate="=="))
    )


@dataclass(frozen=True)
class Count:
    """What a count of the graph counts: a condition, up to here or at one distance."""

    condition: Node
    distance: int | None


def as_count(node: Node) -> Count | None:
    """Read a node as a count, if it is one."""
    if node.op != "selector_width" or node.inputs[0].op != "selector_and":
        return None
    holds, where = node.inputs[0].inputs
    if holds.op != "select" or holds.inputs[1] is not constant_node(True):
        return None
    condition = holds.inputs[0]
    if where is up_to_here():
        return Count(condition, None) if count_node(condition) is node else None
    if where.op == "select" and where.inputs[1].op == "subtract":
        shift = where.inputs[1].inputs[1]
        distance = shift.attributes.get("value") if shift.op == "constant" else None
        if type(distance) is int and count_node(condition, distance) is node:
            return Count(condition, distance)
    return None


_BOOLEAN = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
_NUMERIC = {"add", "subtract", "negate", "minimum", "maximum"}


def is_boolean(node: Node) -> bool:
    """Return whether a part of a program is a boolean, and not a count."""
    while node.op == "if_else":
        node = node.inputs[1]
    if node.op == "constant":
        return isinstance(node.attributes["value"], bool)
    return node.op in _BOOLEAN


def require(root: Node, extensions: tuple[str, ...] = EXTENSIONS) -> None:
    """Refuse a program that is not made of C-RASP's operations, by the part that is not."""

    def refuse(node: Node, why: str) -> NoReturn:
        raise InputError(f"not C-RASP: {why}, in {abbreviate(node)}")

    if not is_boolean(root):
        refuse(root, "expected a boolean that accepts, got a count or a symbol")
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        counted = as_count(node)
        if counted is not None:
            if counted.distance is not None and "local" not in extensions:
                refuse(node, "a count at one distance is an extension; try extensions=('local',)")
            if not is_boolean(counted.condition):
                refuse(node, "expected a boolean to count, got a count")
            below: tuple[Node, ...] = (counted.condition,)
        elif is_symbol(node) or node.op == "constant":
            below = ()
        elif is_remainder(node):
            if "periodic" not in extensions:
                refuse(
                    node, "positions modulo a constant are an extension; try extensions=('periodic',)"
                )
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
    """Return whether a node says that the symbol here is a certain one."""
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


def symbols(root: Node) -> tuple[Letter, ...]:
    """Return the symbols that a program names."""
    named = {str(node.inputs[1].attributes["value"]) for node in postorder(root) if is_symbol(node)}
    return tuple(sorted(named))


def parts_of(root: Node) -> list[Node]:
    """List the parts of a program, each behind what it is made of; of a count, what it counts."""

    def below(node: Node) -> tuple[Node, ...]:
        counted = as_count(node)
        if counted is not None:
            return (counted.condition,)
        return () if is_symbol(node) or is_remainder(node) else node.inputs

    return list(walk((root,), lambda node: below(node)[::-1]))
