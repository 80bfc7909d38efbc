"""Align a program with a transformer to be trained, by assigning s-ops to components.

An aggregate or a selector width that depends on tokens is assigned to a head, in the first layer for
which its inputs are available. Functions of the token alone, or of the position alone, are embeddings.
Counts and all other elementwise functions are assigned to the first possible feed-forward. For a count,
a head outputs a fraction of attention, from which hidden units compute the number. A feed-forward is
assigned only results that a head or the unembedding reads. All other heads and feed-forwards are
outside of the circuit.

>>> from locum import aggregate, indices, select, tokens
>>> previous = aggregate(select(indices, indices - 1, "=="), tokens, "?")
>>> [(part.name, part.label) for part in align((previous == tokens).node, seed=0).components][1]
('blocks.0.mlp', 'aggregate(select(indices, indices - 1, ==), tokens, "?") == tokens')
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from locum.errors import ExecutionError, LocumError
from locum.execution import run
from locum.experiments.circuits.program_interchange import interchange
from locum.experiments.dataset.agreement import RejectedProgramError
from locum.graph import Atom, Node, Sort, postorder, sort_of
from locum.graph.atoms import identity
from locum.graph.labels import Labels
from locum.rasp.handles import SOp

#: Maximum number of layers and of heads per layer of a trained network, and of inputs of a program.
MOST_LAYERS, MOST_HEADS, MOST_ROWS = 3, 6, 128
#: Minimum number of heads of a layer, at least one of them outside of the circuit.
_LEAST_HEADS = 4
#: Pairs of input length and number of tokens for named programs, of which the first possible pair is
#: used.
SIZES = ((5, 2), (4, 3), (4, 2))
#: Maximum number of distinct answers.
_MOST_ANSWERS = 40


@dataclass(frozen=True)
class Component:
    """A component of the circuit, and the s-ops that it computes."""

    layer: int
    #: Index of the head; None for the feed-forward of the layer.
    head: int | None
    sops: tuple[Node, ...]
    label: str

    @property
    def name(self) -> str:
        """Name of the component in circuits, such as ``blocks.0.mlp``."""
        if self.head is None:
            return f"blocks.{self.layer}.mlp"
        return f"blocks.{self.layer}.attn.head.{self.head}"


@dataclass(frozen=True)
class Alignment:
    """An assignment of s-ops to components of a transformer with given numbers of layers and heads."""

    program: Node
    layers: int
    heads: int
    components: tuple[Component, ...]


def align(program: Node, *, seed: int = 0) -> Alignment:
    """Return an alignment of a program at random indices of heads.

    A program that cannot be aligned raises ``RejectedProgramError``.
    """
    if any(node.op in ("family", "sum_over") for node in postorder(program)):
        raise RejectedProgramError("the program has a family of heads")
    times = _times(program)
    reads = {node for node in postorder(program) if node.op == "tokens"}
    held: list[Node] = []
    boundary = {program}
    for node in postorder(program):
        if any(part in reads for part in node.inputs):
            reads.add(node)
        if sort_of(node) is Sort.SELECTOR or node.op in ("aggregate", "selector_width"):
            boundary.update(node.inputs)
    for node in postorder(program):
        is_head = node.op in ("aggregate", "selector_width")
        if (
            sort_of(node) is Sort.SOP
            and node in reads
            and times[node] >= 0
            and (is_head or node in boundary)
        ):
            held.append(node)
    if not any(node.op in ("aggregate", "selector_width") for node in held):
        raise RejectedProgramError("the program has no head that reads tokens")
    layers = max(times[node] for node in held) // 2 + 1
    if layers > MOST_LAYERS:
        raise RejectedProgramError(f"the program requires {layers} layers, more than {MOST_LAYERS}")
    draw, label, components = random.Random(seed), Labels(longest=200), []
    widest = 0
    for layer in range(layers):
        attended = [
            node
            for node in held
            if times[node] // 2 == layer and node.op in ("aggregate", "selector_width")
        ]
        widest = max(widest, len(attended))
        places = draw.sample(range(max(_LEAST_HEADS, len(attended) + 1)), len(attended))
        components += [
            Component(layer, place, (node,), label(node))
            for place, node in zip(places, attended, strict=True)
        ]
        computed = tuple(node for node in held if times[node] == 2 * layer + 1 and node in boundary)
        if computed:
            names = "; ".join(map(label, computed))
            components.append(Component(layer, None, computed, names))
    if widest >= MOST_HEADS:
        raise RejectedProgramError(f"it has {widest} heads in a layer, more than {MOST_HEADS - 1}")
    return Alignment(program, layers, max(_LEAST_HEADS, widest + 1), tuple(components))


def count_parts(make: Callable[[int], SOp], length: int) -> tuple[int, int] | None:
    """Return the numbers of layers and components of a program for this length; None if it is
    rejected.
    """
    try:
        alignment = align(make(length).node)
    except LocumError:
        return None
    return alignment.layers, len(alignment.components)


def _times(program: Node) -> dict[Node, int]:
    """Return the time at which each node of a program is computed.

    The time is −1 for embeddings, 2·layer for aggregates, and 2·layer + 1 for counts and other results
    of hidden units. A selector has the time of its latest input. Inputs have a fixed length, so
    ``length`` is a constant.
    """
    times: dict[Node, int] = {}
    kinds: dict[Node, frozenset[str]] = {}
    for node in postorder(program):
        latest = max((times[part] for part in node.inputs), default=-1)
        own = frozenset((node.op,)) & {"tokens", "indices"}
        kinds[node] = own.union(*(kinds[part] for part in node.inputs))
        if sort_of(node) is Sort.SELECTOR:
            times[node] = latest
        elif node.op in ("aggregate", "selector_width"):
            # A head outputs a fraction of attention, from which hidden units compute a count.
            layer = 0 if latest < 0 else latest // 2 + 1
            times[node] = 2 * layer + (node.op == "selector_width")
        elif latest < 0 and len(kinds[node]) < 2:
            times[node] = -1
        else:
            times[node] = max(latest, 0) // 2 * 2 + 1
    return times


@dataclass(frozen=True)
class Targets:
    """All inputs of one length, and the program's answers with and without interventions."""

    alignment: Alignment
    rows: tuple[tuple[Atom, ...], ...]
    outputs: tuple[Atom, ...]
    #: Answers to each input, as indices into ``outputs``.
    answers: list[list[int]]
    #: For each component, clean input and other input: the answers to the clean input with the
    #: component's values on the other input. None if the program is undefined.
    interchanged: list[list[list[list[int] | None]]]

    @cached_property
    def space(self) -> int:
        """Number of inputs."""
        return len(self.rows)


def targets_of(alignment: Alignment, vocabulary: Sequence[Atom], length: int) -> Targets:
    """Return the answers of a program on all inputs of one length, and on all pairs with interventions.

    For each pair of inputs and each component, the s-ops of the component are taken from the other
    input.
    """
    if len(vocabulary) ** length > MOST_ROWS:
        raise RejectedProgramError(f"it has {len(vocabulary) ** length} inputs, more than {MOST_ROWS}")
    rows = tuple(itertools.product(vocabulary, repeat=length))
    try:
        answers = [run(alignment.program, list(row)) for row in rows]
    except ExecutionError as error:
        raise RejectedProgramError(f"the program is undefined for some input: {error}") from None
    values: list[list[list[list[Atom] | None]]] = []
    for component in alignment.components:
        # Inputs with the same values of the component lead to the same answers.
        known: dict[tuple[object, ...], int] = {}
        first: list[int] = []
        for place, row in enumerate(rows):
            parts = [run(sop, list(row)) for sop in component.sops]
            key = tuple(identity(value) for part in parts for value in part)
            first.append(known.setdefault(key, place))
        chosen = sorted(set(first))
        pairs = [(clean, rows[other]) for clean in rows for other in chosen]
        found = iter(interchange(alignment.program, component.sops, pairs))
        table = [{other: next(found) for other in chosen} for _ in rows]
        values.append([[table[clean][other] for other in first] for clean in range(len(rows))])
    every = itertools.chain(answers, *(row for part in values for row in part))
    places: dict[Atom, int] = {}
    outputs: list[Atom] = []
    for answer in every:
        for value in answer or ():
            if value not in places:  # 1 and 1.0 are the same answer
                places[value] = len(outputs)
                outputs.append(value)
    if len(outputs) > _MOST_ANSWERS:
        raise RejectedProgramError(f"it has {len(outputs)} answers, more than {_MOST_ANSWERS}")
    if len({repr(answer) for answer in answers}) < 2:
        raise RejectedProgramError("the answer does not depend on the tokens")

    def coded(answer: list[Atom] | None) -> list[int] | None:
        return None if answer is None else [places[value] for value in answer]

    numbers = [[places[value] for value in answer] for answer in answers]
    changed = [[[coded(answer) for answer in row] for row in part] for part in values]
    return Targets(alignment, rows, tuple(outputs), numbers, changed)
