"""Compare interventions on a network with interventions on its program, s-op by s-op.

An s-op of the program is replaced by what it is on another input, and so are all parts of the network
that compute it. Where the answers agree on every pair of inputs, these parts are that s-op, for all
that comes after it. They need not agree where the s-op is *passed by*: a table looks up what it depends
on, past the s-op itself. The compiler says so of each node (``passed_by``).

>>> import locum
>>> from locum.language.everyday import EVERYDAY
>>> units = {"attention": "softmax", "feed_forward": "relu"}
>>> model = locum.compile(EVERYDAY["induction"].program, length=4, vocabulary="ab", **units)
>>> [(part.label[:9], part.mismatches) for part in alignment(model, most=10)]
[('aggregate', 0), ('aggregate', 0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from locum.circuits.patching import pairs_of
from locum.errors import ExecutionError
from locum.graph import Atom, Node, Sort, postorder, sort_of
from locum.graph.fingerprints import fingerprints
from locum.graph.traversal import with_inputs
from locum.language.handles import wrap
from locum.language.python import indices, lookup
from locum.transformer import CompiledTransformer
from locum.transformer.interventions import read_component, setting


@dataclass(frozen=True)
class Aligned:
    """An s-op of the program, the nodes of the circuit that compute it, and whether they agree."""

    label: str
    nodes: tuple[str, ...]
    pairs: int
    mismatches: int
    #: S-ops that depend on it and do not read it in the network; where there are none, all pairs agree.
    passed_by: tuple[str, ...] = ()


def alignment(model: CompiledTransformer, *, most: int = 40, seed: int = 0) -> tuple[Aligned, ...]:
    """Return, for every s-op of the program that the network holds, on how many pairs they differ."""
    circuit, root = model.circuit, model.program
    program = {name: n for n, name in fingerprints(root).items() if sort_of(n) is Sort.SOP}
    held: dict[str, list[str]] = {}
    for node in circuit.nodes:
        # A share of attention stands for a count, but is another number.
        if node.sop in program and not node.label.startswith("1/"):
            held.setdefault(node.sop, []).append(node.id)
    parts = list(pairs_of(model, most, seed))
    pairs = [pair for part in parts for pair in zip(part.clean, part.other, strict=True)]
    step = max(1, len(pairs) // most)
    chosen = list(islice(pairs[::step], most))
    return tuple(
        _aligned(model, root, program[sop], [circuit.node(n) for n in names], chosen)
        for sop, names in held.items()
        if program[sop] is not root
    ) + tuple(
        Aligned(circuit.node(names[0]).label, tuple(names), len(chosen), 0)
        for sop, names in held.items()
        if program[sop] is root and all(model(x) == wrap(root)(x) for x, _ in chosen)
    )


def _aligned(
    model: CompiledTransformer,
    root: Node,
    sop: Node,
    nodes: Sequence[Any],
    pairs: Sequence[tuple[list[Atom], list[Atom]]],
) -> Aligned:
    mismatches = 0
    for clean, other in pairs:
        values = wrap(sop)(other)
        try:
            answer = wrap(_replaced(root, sop, values))(clean)
        except ExecutionError:  # a mixture of two inputs need not have a value
            continue
        _, cache = model.run_with_cache(other)
        places = [read_component(node) for node in nodes]
        hooks = [setting(place, cache[place.hook]) for place in places]
        patched = model.run_with_hooks(clean, hooks)
        mismatches += not all(map(_equal, patched, answer))
    passed_by = tuple(dict.fromkeys(label for node in nodes for label in node.passed_by))
    names = tuple(node.id for node in nodes)
    return Aligned(nodes[0].label, names, len(pairs), mismatches, passed_by)


def _replaced(root: Node, sop: Node, values: Sequence[Atom]) -> Node:
    """Return the program with one s-op replaced by given values, position by position."""
    new = {sop: lookup(indices, dict(enumerate(values))).node}
    for node in postorder(root):
        if node not in new:
            new[node] = with_inputs(node, tuple(new[i] for i in node.inputs))
    return new[root]


def _equal(value: Atom, answer: Atom) -> bool:
    if isinstance(value, str) or isinstance(answer, str):
        return value == answer
    return abs(float(value) - float(answer)) <= 1e-4 * max(1.0, abs(float(answer)))
