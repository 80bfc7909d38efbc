"""Label a trained network: components by the alignment with a program, edges by path patching.

An edge is necessary if some answer changes when its signal is taken from another input, alone or
together with the signals of edges that are not necessary. All edge labels are measured on the trained
network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.experiments.circuits.patching import CompiledNetwork, PathPatching
from locum.experiments.dataset.agreement import Inputs, RejectedProgramError
from locum.experiments.dataset.parts import runs_of, unchanged_share
from locum.experiments.dataset.scoring import Edge, Truth
from locum.experiments.dataset.trained_alignment import Alignment, Targets
from locum.graph import Atom, dumps, stable_hash
from locum.graph.fingerprints import fingerprints
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit, CircuitEdge, CircuitNode
from locum.networks.transformer.config import Config
from locum.networks.transformer.path_patching import UNEMBED, Path
from locum.networks.transformer.weights import (
    SOFTMAX,
    Array,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

#: Roles of components inside and outside of the circuit.
_HELD, OUTSIDE = "holds an s-op", "decoy"


def inputs_of(targets: Targets) -> Inputs:
    """Return the inputs of a trained network, all of one length, with the program's answers."""
    length = len(targets.rows[0])
    answers = [[targets.outputs[place] for place in row] for row in targets.answers]
    rows = [list(row) for row in targets.rows]
    return Inputs({length: rows}, {length: answers}, True, len(rows))


def label_network(
    targets: Targets,
    tensors: Mapping[str, Array],
    vocabulary: Sequence[Atom],
    pairs: Sequence[dict[str, Any]],
    name: str,
) -> tuple[CompiledTransformer, Circuit]:
    """Return a trained network with its circuit, whose edges are measured on ``pairs`` of inputs."""
    alignment = targets.alignment
    weights = _weights({key: np.asarray(part, np.float64) for key, part in tensors.items()}, alignment)
    length, width = len(targets.rows[0]), weights.W_E.shape[1]
    config = Config(
        vocabulary=tuple(vocabulary),
        lengths=(length, length),
        sink=True,
        outputs=targets.outputs,
        attention=SOFTMAX,
        feed_forward="relu",
        dtype="float64",
        slots=tuple(f"axis {axis}" for axis in range(width)),
        heads=tuple(tuple(f"head {h}" for h in range(alignment.heads)) for _ in weights.layers),
        program=dumps(alignment.program),
        program_hash=stable_hash(alignment.program),
        name=name,
    )
    model = CompiledTransformer(config, weights)
    return model, _measured(model, Circuit(_nodes(alignment), ()), pairs)


def _weights(tensors: Mapping[str, Array], alignment: Alignment) -> Weights:
    def part(prefix: str) -> dict[str, Any]:
        start = f"{prefix}."
        return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}

    layers = tuple(
        LayerWeights(
            AttentionWeights(**part(f"blocks.{layer}.attn"), kinds=(SOFTMAX,) * alignment.heads),
            FeedForwardWeights("relu", **part(f"blocks.{layer}.mlp")),
        )
        for layer in range(alignment.layers)
    )
    return Weights(
        tensors["embed.W_E"],
        tensors["pos_embed.W_pos"],
        layers,
        tensors["unembed.W_U"],
        tensors["unembed.b_U"],
    )


def _nodes(alignment: Alignment) -> tuple[CircuitNode, ...]:
    """Return circuit nodes for all components of a trained network, with the s-op of each aligned
    component.
    """
    known = fingerprints(alignment.program)
    held = {part.name: part for part in alignment.components}

    def about(name: str) -> dict[str, Any]:
        part = held.get(name)
        if part is None:
            return {"label": OUTSIDE, "role": OUTSIDE}
        return {"label": part.label, "role": _HELD, "sop": known[part.sops[0]]}

    nodes = [
        CircuitNode("embed", "embed", "hook_embed", label="tokens"),
        CircuitNode("pos_embed", "pos_embed", "hook_pos_embed", label="indices"),
    ]
    for layer in range(alignment.layers):
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        for head in range(alignment.heads):
            name = f"{attn}.head.{head}"
            nodes.append(CircuitNode(name, "head", f"{attn}.hook_z", layer, head, **about(name)))
            nodes += [
                CircuitNode(
                    f"{name}.{letter}", letter, f"{attn}.hook_{letter}", layer, head, **about(name)
                )
                for letter in "qkv"
            ]
        nodes.append(CircuitNode(mlp, "units", f"{mlp}.hook_post", layer, **about(mlp)))
    nodes.append(CircuitNode("output", "output", UNEMBED, label="output"))
    return tuple(nodes)


def _measured(model: CompiledTransformer, circuit: Circuit, pairs: Sequence[dict[str, Any]]) -> Circuit:
    """Return the circuit with all possible edges, labelled by path patching."""
    truth, runs = Truth(circuit.data()), runs_of(CompiledNetwork(model), pairs)
    found = {edge: _tried(runs, edge) for edge in truth.candidates}
    idle = [edge for edge, (necessary, _, _) in found.items() if not necessary]
    if unchanged_share(runs, idle) < 1:  # some edges can replace each other, so one is necessary
        kept: list[Edge] = []
        for edge in idle:
            if unchanged_share(runs, [*kept, edge]) == 1:
                kept.append(edge)
            else:
                found[edge] = (True, found[edge][1], "jointly")
        idle = kept
    label = {node.id: node.label for node in circuit.nodes}
    edges = tuple(
        CircuitEdge(source, target, -1, label[source], *flags)
        for (source, target), flags in found.items()
    )
    complete = unchanged_share(runs, idle) == 1
    checked = {"pairs": len(pairs), "all inputs": False, "seed": 0, "complete": complete}
    if not complete:
        raise RejectedProgramError("replacing all unnecessary edges changes an answer")
    return replace(circuit, edges=edges, checked=checked)


def _tried(runs: Sequence[PathPatching], edge: Edge) -> tuple[bool, bool, str]:
    """Return whether an edge is necessary, whether it is sufficient, and how it is necessary."""
    necessary = sufficient = False
    for run in runs:
        patched = run.patch([Path.read(*edge)])
        necessary = necessary or not bool(run.equal(patched).all())
        differ = ~run.equal(run.other_answers)
        sufficient = sufficient or bool(np.any(differ & run.equal(patched, run.other_answers)))
    return necessary, sufficient, "alone" if necessary else ""
