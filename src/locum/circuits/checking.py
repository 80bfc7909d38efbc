"""Compute which edges of a circuit are necessary, and which sufficient, by interchange interventions.

What flows along one edge is taken from another input, on many pairs of inputs. The edge is *necessary*
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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.circuits.patching import CompiledNetwork, Pairs, PathPatching, more_pairs_of, pairs_of
from locum.transformer import CompiledTransformer
from locum.transformer.circuit import Circuit, CircuitEdge


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
