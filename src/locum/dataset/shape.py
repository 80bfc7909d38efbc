"""The shape of a program: its graph without numbers, tables and names, in one order.

Programs that differ in constants, in tables, in predicates or in the order of a sum have one shape. All
items of one shape are on one side of the split, so that a near-duplicate of what was trained on is
never what is tested on.

>>> from locum import indices, select, selector_width, tokens
>>> one = selector_width(select(tokens, "a", "==")) + indices
>>> other = indices + selector_width(select(tokens, "b", "!="))
>>> shape_of(one.node) == shape_of(other.node) != shape_of(indices.node)
True
"""

from __future__ import annotations

import hashlib

from locum.graph import Node, postorder

#: Operations whose inputs may stand in any order.
_COMMUTATIVE = frozenset(
    ("add", "multiply", "and", "or", "equal", "not_equal", "minimum", "maximum")
) | frozenset(("selector_and", "selector_or"))
#: Comparisons, whichever way round: operations that differ in a direction alone.
_ALIKE = {
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), "ordered"),
    **dict.fromkeys(("equal", "not_equal"), "compared"),
    **dict.fromkeys(("minimum", "maximum"), "extreme"),
    **dict.fromkeys(("add", "subtract"), "sum"),
    **dict.fromkeys(("and", "or"), "logic"),
    **dict.fromkeys(("selector_and", "selector_or"), "selector logic"),
}
#: One in so many shapes is for testing.
_TEST = 5
TRAIN, TEST = "train", "test"


def shape_of(root: Node) -> str:
    """Return 16 hexadecimal digits, equal for programs of one shape."""
    shapes: dict[Node, str] = {}
    for node in postorder(root):
        below = [shapes[part] for part in node.inputs]
        op = _ALIKE.get(node.op, node.op)
        if node.op in _COMMUTATIVE or op in ("ordered", "sum"):
            below.sort()
        # Negations turn a question round, and are not another question.
        if node.op in ("not", "negate", "selector_not"):
            shapes[node] = below[0]
            continue
        shapes[node] = hashlib.sha256(repr((op, below)).encode()).hexdigest()[:16]
    return shapes[root]


def split_of(shape: str) -> str:
    """Return the side of the split that a shape is on.

    >>> split_of("0000000000000000"), split_of("0000000000000001")
    ('test', 'train')
    """
    return TEST if int(shape, 16) % _TEST == 0 else TRAIN
