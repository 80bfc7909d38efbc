"""Check circuits by interchange interventions: edges against answers, components against s-ops.

:func:`check_circuit` computes which edges are necessary and which are sufficient. What flows along one
edge is taken from another input, on many pairs of inputs. The edge is *necessary*
if some answer changes, by itself or together with edges that are not necessary, and *sufficient* if
some answer that differs between the two inputs becomes that of the other one. Nothing is approximated:
networks are run as they are.

>>> import locum
>>> from locum import aggregate, select, indices, tokens
>>> previous = aggregate(select(indices, indices - 1, "=="), tokens, "?")
>>> model = locum.compile(previous, length=3, vocabulary="ab", attention="softmax", feed_forward="relu")
>>> checked = check_circuit(model)
>>> len(checked.edges), len(checked.necessary), checked.checked["complete"]
(6, 6, True)

:func:`alignment` compares interventions on a network with interventions on its program. An s-op of the
program is replaced by what it is on another input, and so are all parts of the network
that compute it. Where the answers agree on every pair of inputs, these parts are that s-op, for all
that comes after it. They need not agree where the s-op is *passed by*: a table looks up what it depends
on, past the s-op itself. The compiler says so of each node (``passed_by``).

>>> from locum.rasp.everyday import EVERYDAY
>>> units = {"attention": "softmax", "feed_forward": "relu"}
>>> model = locum.compile(EVERYDAY["induction"].program, length=4, vocabulary="ab", **units)
>>> [(part.label[:9], part.mismatches) for part in alignment(model, most=10)]
[('aggregate', 0), ('aggregate', 0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from locum.errors import ExecutionError
from locum.experiments.circuits.patching import (
    CompiledNetwork,
    Pairs,
    PathPatching,
    more_pairs_of,
    pairs_of,
)
from locum.graph import Atom, Node, Sort, postorder, sort_of
from locum.graph.fingerprints import fingerprints
from locum.graph.traversal import with_inputs
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit, CircuitEdge
from locum.networks.transformer.interventions import read_component, setting
from locum.rasp.handles import wrap
from locum.rasp.python import indices, lookup


def check_circuit(model: CompiledTransformer, *, most: int = 400, seed: int = 0) -> Circuit:
    """Return the circuit of a network with ``necessary`` and ``sufficient`` computed for every edge.

    All inputs are tried where there are at most ``most`` of them, else a sample of about as many; which
    of the two is in ``checked``. What two partners of each input leave open is tried on all pairs of a
    length, or on 2·``most`` of them. Positions are the same in all inputs of one length: what they
    embed is interchanged between positions instead, in many orders; and what depends on the length
    alone is taken from an input of another length.
    """
    circuit, network = model.circuit, CompiledNetwork(model)
    pairs, more = list(pairs_of(model, most, seed)), list(more_pairs_of(model, most, seed))
    runs = runs_on(network, pairs)
    edges = tuple(_checked(network, edge, runs) for edge in circuit.edges)
    if not all(edge.necessary and edge.sufficient for edge in edges):
        others = runs_on(network, more)
        edges = tuple(_checked(network, edge, others) for edge in edges)
        runs, pairs = [*runs, *others], [*pairs, *more]
    idle = [edge for edge in edges if not edge.necessary]
    if _break(network, runs, idle):  # some stand in for each other: one of them is needed
        idle = _idle_together(network, runs, idle)
        edges = tuple(edge if edge in idle else replace(edge, necessary=True) for edge in edges)
    checked: dict[str, Any] = {
        "pairs": sum(len(part.clean) for part in pairs),
        "all inputs": all(part.complete for part in pairs),
        "seed": seed,
        # Changing all that is not necessary, at once, changes no answer.
        "complete": not _break(network, runs, idle),
    }
    return replace(circuit, edges=edges, checked=checked)


def runs_on(network: CompiledNetwork, pairs: Sequence[Pairs]) -> list[PathPatching]:
    """Return the network on these pairs, most pairs first: these decide most."""
    runs = []
    for place, part in enumerate(pairs):
        others = [*pairs[place + 1 :], *pairs[:place]]
        elsewhere = None
        if others:
            turns = [others[row % len(others)].clean for row in range(len(part.clean))]
            elsewhere = [inputs[row % len(inputs)] for row, inputs in enumerate(turns)]
        runs.append(PathPatching(network, replace(part, elsewhere=elsewhere)))
    return sorted(runs, key=lambda run: -run.size)


def _break(network: CompiledNetwork, runs: list[PathPatching], edges: list[CircuitEdge]) -> bool:
    """Return whether changing these edges at once changes some answer."""
    paths = [network.path(edge) for edge in edges]
    return bool(paths) and not all(run.equal(run.patch(paths)).all() for run in runs)


def _idle_together(
    network: CompiledNetwork, runs: list[PathPatching], edges: list[CircuitEdge]
) -> list[CircuitEdge]:
    """Return as many of these edges, from the first on, as change no answer when changed together."""
    idle: list[CircuitEdge] = []
    for edge in edges:
        if not _break(network, runs, [*idle, edge]):
            idle.append(edge)
    return idle


def _checked(network: CompiledNetwork, edge: CircuitEdge, runs: list[PathPatching]) -> CircuitEdge:
    """Return an edge with what these runs show of it; what is known of it stays."""
    necessary, sufficient = bool(edge.necessary), bool(edge.sufficient)
    for run in runs:
        if necessary and sufficient:
            break
        patched = run.patch([network.path(edge)])
        necessary = necessary or not bool(run.equal(patched).all())
        differ = ~run.equal(run.other_answers)
        sufficient = sufficient or bool(np.any(differ & run.equal(patched, run.other_answers)))
    return replace(edge, necessary=necessary, sufficient=sufficient)


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
