"""Find the Python type of every value of a program: from the program alone, or by a second program.

Dense execution computes with Python's own objects, so a value is a ``bool``, an ``int``, a ``float`` or
a ``str``, and a sequence may mix the first three: ``aggregate`` passes on the value of a single key as
it is, gives a float for the mean of several, and the default for none. Executors that compute on arrays
hold all of them as one dtype. Most types follow from the program and the types of the tokens
(:func:`possible_types`). For the rest, :func:`measure` builds an s-op that is positive exactly at the
positions that hold a float (or a bool); an executor runs it beside the program.

>>> from locum.graph import build
>>> i, tokens = build("indices"), build("tokens", cast="asis")
>>> before = build("select", i, i, predicate="<")
>>> means = build("aggregate", before, tokens, default=0)
>>> sorted(t.__name__ for t in possible_types(means, frozenset([int]))[means])
['float', 'int']
>>> from locum.execution import run
>>> run(means, [1, 2, 3])
[0, 1, 1.5]
>>> run(measure(means, possible_types(means, frozenset([int])), float), [1, 2, 3])
[0, 0, 1.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.execution.elementwise import MEANINGS
from locum.graph import Node, build, postorder, sum_over

#: The types that a value may have at some position.
Types: TypeAlias = frozenset[type]


def _giving(kind: str | None) -> frozenset[str]:
    return frozenset(op for op, meaning in MEANINGS.items() if meaning.kind == kind)


#: Elementwise operations that give booleans.
BOOLEAN = _giving("bool")
_INTEGER = _giving("int") | {"indices", "length", "selector_width", "family"}
_REAL = _giving("float")
_CASTS: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
#: Operations whose result has a type that follows from the types of all inputs; not those that hand on
#: one of their operands.
MIXING = _giving(None) - {"minimum", "maximum", "if_else", "lookup"}
#: Operations that hand on values as they are (or means, which are floats).
_MOVING = ("aggregate", "if_else", "minimum", "maximum")
#: Measures of more parts than this are reduced to one.
_MANY = 16


def types_of(values: Iterable[object]) -> Types:
    """Return the types of some atoms.

    >>> sorted(t.__name__ for t in types_of([1, 2.5, 3]))
    ['float', 'int']
    """
    return frozenset(map(type, values))


def has_strings(root: Node) -> bool:
    """Return whether strings occur in a program: casts, constants, defaults or table entries.

    >>> from locum.graph import build
    >>> has_strings(build("tokens", cast="asis")), has_strings(build("tokens", cast="str"))
    (False, True)
    """
    return any(
        node.cast == "str" if node.op == "tokens" else _holds(node, str) for node in postorder(root)
    )


def _holds(node: Node, kind: type) -> bool:
    """Return whether an atom of this type is among the attributes of a node."""
    return any(type(atom) is kind for atom in atoms(node))


def atoms(node: Node) -> list[object]:
    """List the atoms of a constant, of a default, of a set or of a table."""
    match node.op:
        case "constant":
            return [node.value]
        case "aggregate":
            return [node.default]
        case "member":
            return list(node.members)
        case "lookup":
            return [atom for pair in node.table for atom in pair]
    return []


def moved_atoms(root: Node, tokens: Iterable[object]) -> list[object]:
    """List the atoms that may come out as they are: constants, defaults, entries of tables and tokens.

    >>> from locum.graph import build
    >>> moved_atoms(build("aggregate", build("select", *[build("indices")] * 2, predicate="<"),
    ...     build("tokens", cast="asis"), default=7), "ab")
    [7, 'a', 'b']
    """
    moved: list[object] = []
    for node in handed_on(root):
        match node.op:
            case "aggregate" | "constant":
                moved += atoms(node)
            case "lookup":
                moved += [value for _, value in node.table]
            case "tokens":
                moved += tokens
    return moved


def only_moves(root: Node) -> bool:
    """Return whether no integer that comes out was computed, but for counts and positions."""
    moved = (*_MOVING, "constant", "lookup", "tokens", *BOOLEAN)
    small = ("indices", "length", "selector_width", "family", "indicator")
    return all(node.op in (*moved, *small) for node in handed_on(root))


def handed_on(root: Node) -> list[Node]:
    """List the s-ops whose values may come out of a program as they are, and the program itself."""
    reached = {root: None}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.op in _MOVING:
            values = node.inputs if node.op in ("minimum", "maximum") else node.inputs[1:]
            stack += [value for value in values if value not in reached]
            reached.update(dict.fromkeys(values))
    return list(reached)


def possible_types(root: Node, tokens: Types, *roots: Node) -> dict[Node, Types]:
    """Return for each s-op below the roots, inputs first, the types it may have on such tokens."""
    possible: dict[Node, Types] = {}
    for node in postorder(root, *roots):
        possible[node] = _possible(node, [possible[i] for i in node.inputs], tokens)
    return possible


def _possible(node: Node, below: list[Types], tokens: Types) -> Types:
    op = node.op
    if op in BOOLEAN:
        return frozenset([bool])
    if op in _INTEGER:
        return frozenset([int])
    if op in _REAL:
        return frozenset([float])
    if op in ("negate", "absolute"):
        return _combined(op, below[0], frozenset([int]))
    if op in MIXING:
        combined = _combined(op, below[0], below[1])
        inverse = op == "power" and int in combined and not _is_natural(node.inputs[1])
        return combined | {float} if inverse else combined
    match op:
        case "tokens":
            return tokens if node.cast == "asis" else frozenset([_CASTS[node.cast]])
        case "constant":
            return types_of(atoms(node))
        case "lookup":
            return types_of(value for _, value in node.table)
        case "if_else":
            return below[1] | below[2]
        case "minimum" | "maximum":
            return below[0] | below[1]
        case "sum_over":
            return _combined("add", frozenset([int]), below[0])
        case "aggregate":
            mean = {float} if below[1] & {int, float} else set()
            return below[1] | types_of(atoms(node)) | mean
    return frozenset()  # a selector


@cache
def _combined(op: str, left: Types, right: Types) -> Types:
    """Return the types of ``op`` on two values.

    Anything numeric where every combination is an error.
    """
    results = [_result(op, a, b) for a, b in product(left, right)]
    return frozenset(kind for kind in results if kind is not None) or frozenset([int, float])


def _result(op: str, a: type, b: type) -> type | None:
    if str not in (a, b):
        return float if float in (a, b) else int
    if op == "add":
        return str if a is b else None
    return str if op == "multiply" and not {a, b} <= {str, float} else None


def _is_natural(node: Node) -> bool:
    return node.op == "constant" and isinstance(node.value, int) and node.value >= 0


# Types that depend on the position ----------------------------------------------------------------


#: Leaves that stand for whether the token at a position has a type: 1 or 0. They are part of no user's
#: program: whoever runs a measure supplies their values.
LEAVES: Mapping[type, Node] = {
    kind: Node("tokens", (), {"cast": f"is {kind.__name__}"}) for kind in (float, bool)
}


def measure(root: Node, possible: Mapping[Node, Types], kind: type) -> Node | bool:
    """Return an s-op, never negative, that is positive exactly where ``root`` has this type.

    ``kind`` is ``float`` or ``bool``; the answer is True or False where ``possible`` decides. Measures
    are sums rather than conditions as far as that is possible: with families in them they are then
    lowered as the program is.
    """
    if possible[root] <= {kind}:
        return True
    if kind not in possible[root]:
        return False
    rule = _float_parts if kind is float else _bool_parts
    undecided: dict[Node, None] = {root: None}
    stack = [root]
    while stack:
        for other in _deciding(stack.pop(), kind):
            if other not in undecided and kind in possible[other] and not possible[other] <= {kind}:
                undecided[other] = None
                stack.append(other)
    parts: dict[Node, tuple[Node, ...]] = {}

    def measured(node: Node) -> tuple[Node, ...]:
        """Return the parts whose sum measures a node that is above in the graph, or decided."""
        if node in parts:
            return parts[node]
        return (_ONE,) if possible[node] <= {kind} else ()

    for node in possible:  # inputs first
        if node in undecided:
            reduced = tuple(dict.fromkeys(rule(node, measured)))
            if len(reduced) > _MANY and not node.free:
                reduced = (build("indicator", _total(reduced)),)
            parts[node] = reduced
    return _total(parts[root])


_ZERO, _ONE = build("constant", value=0), build("constant", value=1)


def _deciding(node: Node, kind: type) -> tuple[Node, ...]:
    """Return the inputs whose types decide that of a node."""
    if node.op in ("if_else", "aggregate"):
        return node.inputs[1:]
    if node.op == "sum_over":
        return node.inputs[:1]
    if node.op in ("minimum", "maximum"):
        return node.inputs
    return node.inputs if kind is float and node.op in MIXING else ()


def _float_parts(node: Node, measured: Any) -> Iterable[Node]:
    if node.op == "sum_over":
        body, *families = node.inputs
        return [sum_over(families, _total(measured(body)))]
    if node.op == "aggregate":
        # One key: its own type. Several: a float; width − [width > 0] is positive there.
        selector, values = node.inputs
        inside, default = _total(measured(values)), int(_holds(node, float))
        passed = [build("aggregate", selector, _clipped(inside), default=default)]
        if inside is _ONE:
            return passed
        width = build("selector_width", selector)
        some = build("aggregate", selector, _ONE, default=0)
        several = build("subtract", width, some)
        return [several, *passed] if inside is not _ZERO or default else [several]
    if node.op not in MIXING:
        return _choice(node, measured, float)
    parts = [part for i in node.inputs for part in measured(i)]
    if node.op == "power" and not _is_natural(node.inputs[1]):
        parts.append(build("indicator", build("less", node.inputs[1], _ZERO)))
    return parts


def _bool_parts(node: Node, measured: Any) -> Iterable[Node]:
    if node.op != "aggregate":
        return _choice(node, measured, bool)
    selector, values = node.inputs
    default = int(_holds(node, bool))
    passed = build("aggregate", selector, _clipped(_total(measured(values))), default=default)
    single = build("less_equal", build("selector_width", selector), _ONE)
    return [build("if_else", single, passed, _ZERO)]


def _choice(node: Node, measured: Any, kind: type) -> Iterable[Node]:
    """Return the measure of what chooses among values, or of a leaf."""
    match node.op:
        case "tokens":
            return [LEAVES[kind]]
        case "lookup":
            chosen = tuple((key, int(type(value) is kind)) for key, value in node.table)
            return [build("lookup", node.inputs[0], table=chosen)]
        case "if_else":
            condition, left, right = node.inputs
        case "minimum" | "maximum":
            left, right = node.inputs
            condition = build("less" if node.op == "minimum" else "greater", left, right)
    return [build("if_else", condition, _total(measured(left)), _total(measured(right)))]


def _total(parts: tuple[Node, ...]) -> Node:
    return reduce(lambda a, b: build("add", a, b), parts) if parts else _ZERO


def _clipped(total: Node) -> Node:
    """Clip to 1, so that towers of sums stay small; inside a family leave it linear."""
    return total if total.free or total.op in ("constant", "tokens") else build("indicator", total)


# Results ------------------------------------------------------------------------------------------


def python_values(
    array: NDArray[Any], floats: NDArray[Any] | bool, bools: NDArray[Any] | bool
) -> list[Any]:
    """Return the values of an array as Python objects, given where they are floats and bools.

    >>> python_values(np.array([0.0, 1.0, 2.0]), np.array([0, 1, 0]), np.array([1, 0, 0]))
    [False, 1.0, 2]
    """
    if array.dtype.kind in "USO":
        return [str(value) for value in array.tolist()]
    values = np.empty(array.shape, dtype=object)
    is_float = np.broadcast_to(np.asarray(floats) > 0, array.shape)
    is_bool = np.broadcast_to(np.asarray(bools) > 0, array.shape)
    is_int = ~(is_float | is_bool)
    values[is_float] = array[is_float].astype(np.float64)
    values[is_bool] = array[is_bool] != 0
    integers = array[is_int]
    # Booleans too: a plan holds a product of conditions as booleans, where Python has integers.
    rounded = np.rint(integers) if integers.dtype.kind == "f" else integers
    values[is_int] = rounded if rounded.dtype.kind == "u" else rounded.astype(np.int64)
    result: list[Any] = values.tolist()
    return result
