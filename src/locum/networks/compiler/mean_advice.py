"""Explain errors of programs that average over the keys of a token which may occur several times.

``aggregate(select(tokens, "+", "=="), indices)`` is the position of the only "+". On inputs with
several "+" it is a mean, and hidden units may have too many fractions to tell apart. The advice is
compiled before it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from locum.errors import CompileError
from locum.graph import Atom, Node, build, postorder
from locum.graph.atoms import identity
from locum.graph.labels import Labels
from locum.graph.traversal import with_inputs
from locum.networks.compiler.program.assumed_inputs import selected_tokens
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.target import Target

#: Characters of an s-op in an error.
_LONGEST = 200


def explain_means(
    target: Target,
    root: Node,
    names: Mapping[Node, str] | None,
    compiled: Callable[[Target, Node], object],
) -> CompileError | None:
    """Return an error that names means over keys of one token, and what compiles instead.

    None if there is no such mean, or if the program does not compile without it. ``compiled`` raises
    CompileError for what does not compile.
    """
    means = _means_of_tokens(target, root)
    if not means:
        return None
    label = Labels(names, _LONGEST)
    tokens = list({identity(token): token for token in means.values()}.values())
    counts = dict.fromkeys(tokens, 1)
    shown = " or ".join(map(repr, tokens))
    advice = []
    if _compiles(compiled, replace(target, inputs=[*(target.inputs or ()), counts]), root):
        added = counts if target.inputs is None else f"[…, {counts}]"
        advice.append(
            f"inputs={added}, if an input has exactly one {' and one '.join(map(repr, tokens))}"
        )
    if _compiles(compiled, target, _with_best(root, means)):
        selector = label(next(iter(means)).inputs[0])
        advice.append(f"best({selector}, indices) instead of {selector}, for the last {shown}")
    if not advice:
        return None
    where = " and ".join(dict.fromkeys(map(label, means)))
    return CompileError(
        f"expected values that hidden units can tell apart, got a mean when several {shown} occur, in "
        f"{where}; try {'; or try '.join(advice)}"
    )


def _means_of_tokens(target: Target, root: Node) -> dict[Node, Atom]:
    """Return the aggregates of numbers over the keys of one token, each with the token."""
    selectors, vocabulary = Selectors(target), target.vocabulary or ()
    means: dict[Node, Atom] = {}
    if not vocabulary:
        return means
    for node in postorder(root):
        if node.op != "aggregate" or node.free:
            continue
        tokens = selected_tokens(node.inputs[0], vocabulary)
        if tokens is None or len(tokens) != 1 or selectors.unique(node.inputs[0]):
            continue
        values = selectors.values.finite(node.inputs[1])
        if values is None or sum(not isinstance(value, (str, bool)) for value in values) > 1:
            means[node] = vocabulary[tokens[0]]
    return means


def _with_best(root: Node, means: Collection[Node]) -> Node:
    """Return the program in which each of these aggregates reads the last of its keys."""
    new: dict[Node, Node] = {}
    for node in postorder(root):
        inputs = [new[i] for i in node.inputs]
        if node in means:
            inputs[0] = build("best", inputs[0], build("indices"))
        new[node] = with_inputs(node, tuple(inputs))
    return new[root]


def _compiles(compiled: Callable[[Target, Node], object], target: Target, root: Node) -> bool:
    try:
        compiled(target, root)
    except CompileError:
        return False
    return True
