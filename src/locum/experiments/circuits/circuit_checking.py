"""Check circuits by interchange interventions: edges by outputs, components by s-ops.

:func:`check_circuit` computes which edges are necessary and which are sufficient. To test an edge, its
signal is replaced by its signal on another input, for many pairs of inputs. The edge is *necessary* if
some output changes, either by this edge alone or together with edges that are not necessary. The edge
is *sufficient* if some output that differs between the two inputs becomes the output for the other
input. Each test runs the patched network instead of estimating its output.

>>> import locum
>>> from locum import aggregate, select, indices, tokens
>>> previous = aggregate(select(indices, indices - 1, "=="), tokens, "?")
>>> model = locum.compile(previous, length=3, vocabulary="ab", attention="softmax", feed_forward="relu")
>>> checked = check_circuit(model)
>>> len(checked.edges), len(checked.necessary), checked.checked["complete"]
(6, 6, True)

:func:`alignment` compares interventions on a network with interventions on its program. In the program,
an s-op is replaced by its value on another input. In the network, the activations of all parts that
compute the s-op are replaced. The outputs agree if every later computation reads the s-op from these
parts. The outputs may differ if the s-op is *bypassed*, because a table looks up the sources of the
s-op instead. The compiler records this for each node (``passed_by``).

>>> from locum.rasp.programs import load_everyday
>>> units = {"attention": "softmax", "feed_forward": "relu"}
>>> model = locum.compile(load_everyday("induction").program, length=4, vocabulary="ab", **units)
>>> [(part.label[:9], part.mismatches) for part in alignment(model, most=10)]
[('aggregate', 0), ('aggregate', 0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import (
    CompiledNetwork,
    Pairs,
    PathPatching,
    more_pairs_of,
    pairs_of,
)
from locum.experiments.circuits.program_interchange import interchange
from locum.graph import Atom, Node, Sort, sort_of
from locum.graph.fingerprints import fingerprints
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit, CircuitEdge
from locum.networks.transformer.interventions import read_place, setting
from locum.rasp.handles import wrap

#: Ways in which an edge is necessary (:class:`CircuitEdge`).
ALONE, JOINTLY, LENGTH = "alone", "jointly", "length"


def check_circuit(model: CompiledTransformer, *, most: int = 400, seed: int = 0) -> Circuit:
    """Return the circuit of a network with ``necessary`` and ``sufficient`` computed for every edge.

    ``necessity`` states how an edge is necessary: alone, jointly with edges that are not necessary, or
    only through the length of the input.

    If the model accepts at most ``most`` inputs, all of them are used, and otherwise random samples of
    about this size. ``checked`` states whether all inputs are used. First, each input is paired with
    two inputs of its length. Then, unless an edge is already both sufficient and necessary alone, it is
    tested on all pairs of inputs of each length, or on 2·``most`` random pairs. All inputs of one
    length have the same positions, so their position embeddings are permuted in many ways instead.
    Signals that depend only on the length are taken from an input of another length, if the network
    accepts several lengths.
    """
    circuit, network = model.circuit, CompiledNetwork(model)
    pairs, more = list(pairs_of(model, most, seed)), list(more_pairs_of(model, most, seed))
    runs = runs_on(network, pairs)
    edges = tuple(_checked(network, edge, runs) for edge in circuit.edges)
    if not all(edge.necessity == ALONE and edge.sufficient for edge in edges):
        others = runs_on(network, more)
        edges = tuple(_checked(network, edge, others) for edge in edges)
        runs, pairs = [*runs, *others], [*pairs, *more]
    idle = [edge for edge in edges if not edge.necessary]
    if _break(network, runs, idle):  # some can replace each other, so one of them is necessary
        idle = _idle_together(network, runs, idle)
        edges = tuple(
            edge if edge.necessary or edge in idle else replace(edge, necessary=True, necessity=JOINTLY)
            for edge in edges
        )
    checked: dict[str, Any] = {
        "pairs": sum(len(part.clean) for part in pairs),
        "all inputs": all(part.complete for part in pairs),
        "seed": seed,
        # Whether replacing all edges that are not necessary at once changes no output.
        "complete": not _break(network, runs, idle),
    }
    return replace(circuit, edges=edges, checked=checked)


def runs_on(network: CompiledNetwork, pairs: Sequence[Pairs]) -> list[PathPatching]:
    """Return a path-patching run for each set of pairs, the largest set first.

    The largest set decides most edges.
    """
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
    """Return whether replacing the signals of all ``edges`` at once changes some output."""
    paths = [network.path(edge) for edge in edges]
    return bool(paths) and not all(run.equal(run.patch(paths)).all() for run in runs)


def _idle_together(
    network: CompiledNetwork, runs: list[PathPatching], edges: list[CircuitEdge]
) -> list[CircuitEdge]:
    """Return a subset of ``edges``, chosen greedily in order, whose joint replacement changes no
    output.
    """
    idle: list[CircuitEdge] = []
    for edge in edges:
        if not _break(network, runs, [*idle, edge]):
            idle.append(edge)
    return idle


def _checked(network: CompiledNetwork, edge: CircuitEdge, runs: list[PathPatching]) -> CircuitEdge:
    """Return ``edge`` with its flags updated by the results of ``runs``.

    Flags that are already true do not change.
    """
    necessity, sufficient, path = edge.necessity, bool(edge.sufficient), network.path(edge)
    for run in runs:
        if necessity == ALONE and sufficient:
            break
        patched = run.patch([path])
        if not run.equal(patched).all():
            necessity = LENGTH if run.takes_length(path) and necessity != ALONE else ALONE
        differ = ~run.equal(run.other_answers)
        sufficient = sufficient or bool(np.any(differ & run.equal(patched, run.other_answers)))
    return replace(edge, necessary=bool(necessity), sufficient=sufficient, necessity=necessity)


@dataclass(frozen=True)
class Aligned:
    """The result of interventions on one s-op: the nodes that compute it, and the number of
    mismatches.
    """

    label: str
    nodes: tuple[str, ...]
    #: Number of pairs of inputs. Pairs for which the changed program is undefined are not compared.
    pairs: int
    mismatches: int
    #: S-ops that depend on this s-op but do not read it in the network. If there are none, all pairs
    #: are expected to agree.
    passed_by: tuple[str, ...] = ()


def alignment(model: CompiledTransformer, *, most: int = 40, seed: int = 0) -> tuple[Aligned, ...]:
    """Return an :class:`Aligned` result for each s-op of the program that nodes of the circuit compute.

    Heads that represent a count by a fraction of attention are not included. Each result counts the
    pairs on which the network and the program differ after the intervention. The s-op of the output is
    not replaced. Its result has no mismatches, and is included only if the network is correct on the
    clean inputs of the pairs.
    """
    circuit, root = model.circuit, model.program
    program = {name: n for n, name in fingerprints(root).items() if sort_of(n) is Sort.SOP}
    held: dict[str, list[str]] = {}
    for node in circuit.nodes:
        # A fraction of attention represents a count, but is a different number.
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
    answers = interchange(root, [sop], pairs)
    for (clean, other), answer in zip(pairs, answers, strict=True):
        if answer is None:
            continue
        _, cache = model.run_with_cache(other)
        places = [read_place(node) for node in nodes]
        hooks = [setting(place, cache[place.hook]) for place in places]
        patched = model.run_with_hooks(clean, hooks)
        mismatches += not all(map(_equal, patched, answer))
    passed_by = tuple(dict.fromkeys(label for node in nodes for label in node.passed_by))
    names = tuple(node.id for node in nodes)
    return Aligned(nodes[0].label, names, len(pairs), mismatches, passed_by)


def _equal(value: Atom, answer: Atom) -> bool:
    if isinstance(value, str) or isinstance(answer, str):
        return value == answer
    return abs(float(value) - float(answer)) <= 1e-4 * max(1.0, abs(float(answer)))
