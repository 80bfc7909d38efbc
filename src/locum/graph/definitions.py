"""Define ``length`` and ``selector_width`` by attention heads.

Both are operations in the table, and every executor computes them directly. A transformer cannot count
directly, since it has only averaging heads and feed-forwards. The following definitions are from
Weiss's implementation (``rasplib.rasp``):

- ``length`` uses one head, which attends to all positions and averages the indicator of position 0. The
  mean is 1/n.
- ``selector_width(s)`` uses two heads. The first head attends to the keys that s selects *and* to
  position 0. The mean of the indicator of position 0 is then 1/(1 + number of the other keys). The
  second head tests whether s selects position 0 itself. With a beginning-of-sequence token, one head is
  enough.

These definitions are applied before layers and heads are counted, and before figures of a program are
drawn. The compiler counts in a similar way, but does not use these definitions.

>>> from locum.graph.operations import build
>>> expand_definitions(build("length"))
<round: round(1 / aggregate(select(1, 1, ==), indicator(indices == 0)))>
"""

from __future__ import annotations

from locum.graph.node import Node
from locum.graph.operations import build, constant
from locum.graph.printer import abbreviate
from locum.graph.rewrite import Rule, rewrite
from locum.graph.traversal import postorder


def everywhere() -> Node:
    """Return the selector that selects every key for every query (RASP's ``full_s``)."""
    return build("select", constant(1), constant(1), predicate="==")


def up_to_here() -> Node:
    """Return the causal mask, which selects the position of the query and all earlier positions."""
    return build("select", build("indices"), build("indices"), predicate="<=")


def _at_first() -> Node:
    return build("select", build("indices"), constant(0), predicate="==")


def _is_first() -> Node:
    return build("indicator", build("equal", build("indices"), constant(0)))


def _length(node: Node) -> Node | None:
    if node.op != "length":
        return None
    share = build("aggregate", everywhere(), _is_first(), default=0)
    return build("round", build("divide", constant(1), share))


def _selector_width(node: Node) -> Node | None:
    if node.op != "selector_width":
        return None
    selector = node.inputs[0]
    with_first = build("selector_or", selector, _at_first())
    share = build("aggregate", with_first, _is_first(), default=0)
    others = build("subtract", build("divide", constant(1), share), constant(1))
    first_only = build("selector_and", selector, _at_first())
    first = build("aggregate", first_only, constant(1), default=0)
    return build("round", build("add", others, first))


DEFINITIONS = (
    Rule("length by one averaging head", _length),
    Rule("selector_width by two averaging heads", _selector_width),
)


def expand_definitions(root: Node) -> Node:
    """Return the program with ``length`` and ``selector_width`` replaced by attention heads and
    elementwise operations.
    """
    return rewrite(root, DEFINITIONS).root


def names_of_definitions(root: Node) -> dict[Node, str]:
    """Return the text of each ``length`` and ``selector_width``, by the node that replaces it in the
    expanded program.
    """
    return {
        expand_definitions(node): abbreviate(node)
        for node in postorder(root)
        if node.op in ("length", "selector_width")
    }
