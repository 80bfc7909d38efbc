"""Run interchange interventions on a program: replace some s-ops by their values on another input.

The result is the expected output of a network for this program after the corresponding patch. In this
patch, the components that compute these s-ops have their activations on the other input.

>>> from locum import aggregate, indices, select, tokens
>>> previous = aggregate(select(indices, indices - 1, "=="), tokens, "?")
>>> same = previous == tokens
>>> interchange(same.node, [previous.node], [("aab", "abb")])
[[False, True, True]]

Each position of a pair becomes one token, a code. Tables map the code to the token of the clean input
and to the values of the s-ops on the other input. All pairs are therefore runs of one program.
"""

from __future__ import annotations

from collections.abc import Sequence

from locum.errors import ExecutionError
from locum.execution import run
from locum.graph import Atom, Node, build, postorder
from locum.graph.atoms import canonical_table, identity
from locum.graph.traversal import with_inputs

#: A clean input and another input of the same length.
Pair = tuple[Sequence[Atom], Sequence[Atom]]


def interchange(root: Node, sops: Sequence[Node], pairs: Sequence[Pair]) -> list[list[Atom] | None]:
    """Return the answers of a program to clean inputs, with ``sops`` replaced by their values on other
    inputs.

    An answer is None if the program is undefined for this combination of two inputs.
    """
    leaves = [node for node in postorder(root) if node.op == "tokens"]
    nodes = [*leaves, *(sop for sop in sops if sop not in leaves)]
    known: dict[tuple[Node, tuple[object, ...]], Sequence[Atom]] = {}

    def values(node: Node, tokens: Sequence[Atom]) -> Sequence[Atom]:
        key = (node, tuple(map(identity, tokens)))
        if key not in known:
            known[key] = run(node, list(tokens))
        return known[key]

    codes: dict[tuple[object, ...], str] = {}
    tables: list[dict[Atom, Atom]] = [{} for _ in nodes]
    rows: list[list[str]] = []
    for clean, other in pairs:
        row = []
        columns = [values(node, other if node in sops else clean) for node in nodes]
        for column in zip(*columns, strict=True):
            code = codes.setdefault(tuple(map(identity, column)), f"{len(codes)}")
            for table, value in zip(tables, column, strict=True):
                table[code] = value
            row.append(code)
        rows.append(row)
    if not rows:
        return []
    here = build("tokens", cast="asis")
    new = {
        node: build("lookup", here, table=canonical_table(table))
        for node, table in zip(nodes, tables, strict=True)
    }
    for node in postorder(root):
        if node not in new:
            new[node] = with_inputs(node, tuple(new[part] for part in node.inputs))
    distinct = {tuple(row): None for row in rows}
    answers = {row: _answer(new[root], row) for row in distinct}
    return [answers[tuple(row)] for row in rows]


def _answer(program: Node, row: Sequence[str]) -> list[Atom] | None:
    try:
        found: list[Atom] = run(program, list(row))
    except ExecutionError:
        return None
    return found
