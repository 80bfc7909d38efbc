"""What ``length`` and ``selector_width`` are made of: heads.

Both are operations of their own, since every executor computes them directly. A transformer cannot:
it has average-hard attention and feed-forwards, nothing that counts. These rules are RASP's own
definitions (``rasplib.rasp`` in Weiss's implementation), which use nothing else:

- ``length``: attend everywhere to the indicator of position 0; the mean is 1/n. One head.
- ``selector_width(s)``: attend to what s selects *and* position 0; the mean of the indicator of
  position 0 is 1/(1 + number of the other keys). A second head says whether s selects position 0
  itself. Two heads; with a beginning-of-sequence token in the input the second is not needed.

Counting layers and heads, and compiling to weights, start from the graph after these rules.

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
    """Return the selector of the query's own position and all before it: a causal mask."""
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
    """Rewrite a program without ``length`` and ``selector_width``: attention and feed-forward only."""
    return rewrite(root, DEFINITIONS).root


def names_of_definitions(root: Node) -> dict[Node, str]:
    """Name the parts of the expanded form that were ``length`` or ``selector_width``."""
    return {
        expand_definitions(node): abbreviate(node)
        for node in postorder(root)
        if node.op in ("length", "selector_width")
    }
