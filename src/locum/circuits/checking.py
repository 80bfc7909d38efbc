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

from dataclasses import replace
from typing import Any

import numpy as np

from locum.circuits.pairs import Pairs, more_pairs_of, pairs_of
from locum.circuits.running import PairRun
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
    circuit = model.circuit
    pairs, more = list(pairs_of(model, most, seed)), list(more_pairs_of(model, most, seed))
    runs = runs_on(model, circuit, pairs, seed)
    edges = tuple(_checked(edge, runs) for edge in circuit.edges)
    if not all(edge.necessary and edge.sufficient for edge in edges):
        others = runs_on(model, circuit, more, seed + 1)
        edges = tuple(_checked(edge, others) for edge in edges)
        runs, pairs = [*runs, *others], [*pairs, *more]
    idle = [edge for edge in edges if not edge.necessary]
    if _break(runs, idle):  # some stand in for each other: one of them is needed
        idle = _idle_together(runs, idle)
        edges = tuple(edge if edge in idle else replace(edge, necessary=True) for edge in edges)
    checked: dict[str, Any] = {
        "pairs": sum(len(part.clean) for part in pairs),
        "all inputs": all(part.complete for part in pairs),
        "seed": seed,
        # Changing all that is not necessary, at once, changes no answer.
        "complete": not _break(runs, idle),
    }
    return replace(circuit, edges=edges, checked=checked)


def runs_on(
    model: CompiledTransformer, circuit: Circuit, pairs: list[Pairs], seed: int
) -> list[PairRun]:
    """Return the network on these pairs; those with most first, which decide most by themselves."""
    runs = [PairRun(model, circuit, part, seed) for part in pairs]
    for place, run in enumerate(runs):
        run.borrow([*runs[place + 1 :], *runs[:place]])
    return sorted(runs, key=lambda run: -len(run.words))


def _break(runs: list[PairRun], edges: list[CircuitEdge]) -> bool:
    """Return whether changing these edges at once changes some answer."""
    for run in runs if edges else ():
        patched = run.patched(edges)
        if patched is None or not run.same(patched, run.answers).all():
            return True
    return False


def _idle_together(runs: list[PairRun], edges: list[CircuitEdge]) -> list[CircuitEdge]:
    """Return as many of these edges, from the first on, as change no answer when changed together."""
    idle: list[CircuitEdge] = []
    for edge in edges:
        if not _break(runs, [*idle, edge]):
            idle.append(edge)
    return idle


def _checked(edge: CircuitEdge, runs: list[PairRun]) -> CircuitEdge:
    """Return an edge with what these runs show of it; what is known of it stays."""
    necessary, sufficient = bool(edge.necessary), bool(edge.sufficient)
    for run in runs:
        if necessary and sufficient:
            break
        patched = run.patched([edge])
        if patched is None:
            necessary = True
            continue
        necessary = necessary or not bool(run.same(patched, run.answers).all())
        differ = ~run.same(run.answers, run.other_answers)
        sufficient = sufficient or bool(np.any(differ & run.same(patched, run.other_answers)))
    return replace(edge, necessary=necessary, sufficient=sufficient)
