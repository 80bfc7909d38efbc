"""Represent circuits: the parts of a network that compute each s-op, as data and as a figure.

The nodes of a circuit are embedding columns, heads, groups of hidden units, slots of the residual
stream, and the output. Queries, keys, values and outputs of a head are separate nodes. Each node
contains the name of its hook and a label, for example of the s-op that it computes. Edges connect
the node that writes a signal with the node that reads the signal. ``locum.experiments.circuits``
computes by interventions whether an edge is *necessary* or *sufficient*.

>>> node = CircuitNode("embed.0", "embed", "hook_embed", slots=(0,), label="tokens")
>>> Circuit((node,), ()).node("embed.0").label
'tokens'
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from locum.errors import InputError
from locum.files import read_json, write_file
from locum.graph import Node, Sort, abbreviate, postorder, sort_of
from locum.graph.fingerprints import fingerprints
from locum.networks.transformer.circuit_figure import Line, draw_parts
from locum.networks.transformer.circuit_figure import Part as BoxPart

#: Maximum size of a circuit's file in bytes.
MAX_FILE = 2**27


def require_head(head: int | None) -> None:
    """Raise ``InputError`` unless ``head`` is None or an integer that is at least 0.

    Booleans are rejected, because NumPy interprets True as all heads and Python as head 1.

    >>> require_head(True)
    Traceback (most recent call last):
    ...
    locum.errors.InputError: expected the number of a head, counted from 0, got True; try head=0
    """
    if head is not None and (type(head) is bool or not isinstance(head, (int, np.integer)) or head < 0):
        raise InputError(f"expected the number of a head, counted from 0, got {head!r}; try head=0")


@dataclass(frozen=True)
class CircuitNode:
    """A part of a network: its location and the s-op that it computes."""

    id: str
    #: Kind of part: embed, pos_embed, head, q, k, v, o, units, slot or output.
    kind: str
    #: Name of the hook at which this part can be read and changed.
    hook: str
    layer: int | None = None
    head: int | None = None
    #: Indices of this part in the last axis of the hook: hidden units, or components of a head.
    places: tuple[int, ...] = ()
    #: Slots of the residual stream that this part writes, or the slot that this part is.
    slots: tuple[int, ...] = ()
    label: str = ""
    #: Fingerprint of the s-op that this part computes (``graph/fingerprints.py``).
    sop: str = ""
    role: str = ""
    #: Labels of s-ops that depend on this s-op in the program, but that the network may compute without
    #: this s-op. For example, a table computes them directly from the sources of this s-op.
    passed_by: tuple[str, ...] = ()
    #: Fingerprints of the s-ops that an embedding column represents, usually up to a factor and a
    #: constant.
    embeds: tuple[str, ...] = ()
    #: Fingerprints of s-ops that no single node computes, but that can be recovered from nodes such as
    #: this one. The compiler rewrote such an s-op, or it is a linear combination of the outputs of
    #: these nodes.
    made_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class CircuitEdge:
    """A signal that one node writes and another node reads."""

    source: str
    target: str
    #: Slot of the residual stream that carries the signal (−1: all slots), and label of the signal.
    slot: int
    flows: str
    #: Whether replacing the signal by the signal of another input changes some output, alone or
    #: together with edges that are not necessary; None: not computed.
    necessary: bool | None = None
    #: Whether this replacement alone changes some output to the output for the other input; None: not
    #: computed.
    sufficient: bool | None = None
    #: How the edge is necessary: "alone"; "length", only for inputs of different lengths; or "jointly",
    #: only together with edges that are not necessary. Empty if the edge is not necessary, or if this
    #: is not computed.
    necessity: str = ""

    @property
    def id(self) -> str:
        """Identifier of the edge, made of the ids of both ends: ``embed.2->blocks.0.attn.head.0.v``."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class Circuit:
    """The nodes and edges of a circuit, and how the flags of its edges were computed."""

    nodes: tuple[CircuitNode, ...]
    edges: tuple[CircuitEdge, ...]
    #: How ``necessary`` and ``sufficient`` were computed: the number of pairs of inputs, whether these
    #: pairs cover all inputs, and the random seed. The entry ``complete`` states whether replacing all
    #: unnecessary edges at once changes no output.
    checked: dict[str, Any] = field(default_factory=dict)

    def node(self, identifier: str) -> CircuitNode:
        """Return the node whose id is ``identifier``."""
        return _find(self.nodes, identifier, "a node")

    def edge(self, identifier: str) -> CircuitEdge:
        """Return the edge whose id is ``identifier``, such as ``embed.2->blocks.0.attn.head.0.v``."""
        return _find(self.edges, identifier, "an edge")

    def at(self, block: str, head: int | None = None) -> tuple[CircuitNode, ...]:
        """Return the nodes of a block such as ``blocks.1.attn``, or only the nodes of one of its
        heads.
        """
        require_head(head)
        nodes = tuple(
            node
            for node in self.nodes
            if (node.id == block or node.id.startswith(f"{block}."))
            and (head is None or node.head == head)
        )
        if not nodes:
            blocks = sorted({".".join(node.id.split(".")[:3]) for node in self.nodes if "." in node.id})
            raise InputError(f"expected a block of the circuit, got {block!r}; try {', '.join(blocks)}")
        return nodes

    def computing(self, sop: str) -> tuple[CircuitNode, ...]:
        """Return the nodes that compute or embed the s-op with the fingerprint ``sop``."""
        return tuple(node for node in self.nodes if node.sop == sop or sop in node.embeds)

    def attending(self, sop: str) -> tuple[CircuitNode, ...]:
        """Return the heads whose output computes the s-op with the fingerprint ``sop``."""
        places = {(node.layer, node.head) for node in self.computing(sop) if node.kind == "o"}
        return tuple(n for n in self.nodes if n.kind == "head" and (n.layer, n.head) in places)

    @property
    def necessary(self) -> tuple[CircuitEdge, ...]:
        """Edges that are known to be necessary."""
        return tuple(edge for edge in self.edges if edge.necessary)

    def data(self) -> dict[str, Any]:
        """Return the circuit as a JSON-compatible dictionary; empty fields are omitted."""
        return {
            "nodes": [_plain(node) for node in self.nodes],
            "edges": [_plain(edge) for edge in self.edges],
            **({"checked": self.checked} if self.checked else {}),
        }

    def save(self, path: str | Path) -> None:
        """Write the circuit to ``path`` as JSON."""
        text = json.dumps(self.data(), ensure_ascii=False, indent=1)
        write_file(path, text + "\n")

    @classmethod
    def read(cls, data: Any) -> Circuit:
        """Return the circuit described by ``data``, in the format that :meth:`data` returns.

        ``InputError`` is raised for missing lists, and for unknown or missing required fields of nodes
        and edges. The values of fields are not checked.
        """
        if not isinstance(data, Mapping):
            raise InputError(f"expected a circuit (a JSON object), got {type(data).__name__}")
        checked = data.get("checked", {})
        return cls(
            tuple(_made(CircuitNode, item) for item in _listed(data, "nodes")),
            tuple(_made(CircuitEdge, item) for item in _listed(data, "edges")),
            dict(checked) if isinstance(checked, Mapping) else {},
        )

    @classmethod
    def load(cls, path: str | Path) -> Circuit:
        """Return the circuit in a JSON file written by :meth:`save`."""
        data = read_json(path, MAX_FILE)
        try:
            return cls.read(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def mermaid(self) -> str:
        """Return a Mermaid flowchart of the circuit, with one box per head, group of hidden units or
        embedding column, and one for the output.

        Edges that are known not to be necessary are dotted. Many Markdown viewers render Mermaid.
        """
        drawn = {n.id: n for n in self.nodes if n.kind not in ("slot", "q", "k", "v", "o")}
        lines = ["flowchart LR"]
        for node in drawn.values():
            text = node.label.replace('"', "'")[:60]
            lines.append(f'  {_box(node.id)}["{node.id}<br>{text}"]')
        for edge in self.edges:
            source, target = (_part(end) for end in (edge.source, edge.target))
            via = edge.target.rsplit(".", 1)[-1] if target != edge.target else ""
            arrow = "-.->" if edge.necessary is False else "-->"
            lines.append(f"  {_box(source)} {arrow}{f'|{via}|' if via else ''} {_box(target)}")
        return "\n".join(dict.fromkeys(lines))

    def draw(self, path: str | Path | None = None, *, narrow: bool = False) -> str:
        """Return an SVG figure of the circuit, and write it to ``path`` if given.

        The columns of the figure are the input, the sublayers and the output. With ``narrow``, all
        parts are in one column, and the figure is 400 pixels wide. One box contains all columns of an
        embedding. The tooltip of a line shows the signals. Lines are dashed for edges that carry only
        the length, and dotted for edges that are necessary only jointly or not at all.
        """
        parts, lines, headings = self.figure()
        title = f"a circuit of {len(parts)} parts and {len(self.edges)} edges"
        svg = draw_parts(parts, lines, headings, title, narrow=narrow)
        if path is not None:
            write_file(path, svg)
        return svg

    def figure(self) -> tuple[list[BoxPart], list[Line], dict[int, str]]:
        """Return the boxes, the lines and the column headings of the figure, for :func:`draw_parts`."""
        parts, rows = _boxes(self)
        kinds: dict[tuple[str, str], dict[str, None]] = {}
        flows: dict[tuple[str, str], dict[str, None]] = {}
        for edge in self.edges:
            ends = rows.get(edge.source, edge.source), edge.target
            kind = "idle" if edge.necessary is False else edge.necessity or "alone"
            kinds.setdefault(ends, {})[kind] = None
            flows.setdefault(ends, {})[edge.flows] = None
        order = ("alone", "jointly", "length", "idle")
        lines = [
            Line(*ends, ", ".join(flows[ends]), min(found, key=order.index))
            for ends, found in kinds.items()
        ]
        headings = {_column(node): _heading(node) for node in self.nodes if node.kind != "slot"}
        return parts, lines, headings

    def _repr_html_(self) -> str:
        style = (
            "<style>.circuit-narrow{display:none}@media (max-width:600px)"
            "{.circuit-wide{display:none}.circuit-narrow{display:block}}</style>"
        )
        figures = (("wide", self.draw()), ("narrow", self.draw(narrow=True)))
        return style + "".join(f'<div class="circuit-{name}">{svg}</div>' for name, svg in figures)

    def __str__(self) -> str:
        shown = [f"{len(self.nodes)} nodes, {len(self.edges)} edges"]
        flag = {None: " ", False: "·", True: "!"}
        shown += [
            f"{flag[edge.necessary]} {edge.source} → {edge.target}: {edge.flows} ({_slots(edge)})"
            for edge in self.edges
        ]
        return "\n".join(shown)


def _slots(edge: CircuitEdge) -> str:
    return f"slot {edge.slot}" if edge.slot >= 0 else "all slots"


_Item = TypeVar("_Item", CircuitNode, CircuitEdge)


def _find(items: Sequence[_Item], identifier: str, kind: str) -> _Item:
    for item in items:
        if item.id == identifier:
            return item
    near = difflib.get_close_matches(str(identifier), [item.id for item in items], 3, cutoff=0.3)
    shown = ", ".join(near or [item.id for item in items[:3]])
    raise InputError(f"expected the id of {kind} of the circuit, got {identifier!r}; try {shown}")


class Found(tuple[CircuitNode, ...]):
    """The nodes of a circuit that represent an s-op."""

    #: How the nodes represent the s-op: "computed", "combined", "merged" or "absent"
    #: (:meth:`CompiledTransformer.where`).
    how: str

    def __new__(cls, nodes: Iterable[CircuitNode], how: str) -> Found:
        """Create the tuple of nodes without duplicates."""
        found = super().__new__(cls, dict.fromkeys(nodes))
        found.how = how if found else "absent"
        return found

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.how


def parts_of(circuit: Circuit, program: Node, sop: Node) -> Found:
    """Return the nodes of ``circuit`` that represent ``sop``, an s-op or a selector of ``program``.

    The attribute ``how`` of the result states how the nodes represent ``sop``.
    """
    names = fingerprints(program, sop)
    order = list(postorder(program))
    here = next((node for node in order if names[node] == names[sop]), None)
    if here is None:
        computing = circuit.computing(names[sop])
        if computing:
            return Found(computing, "computed")
        raise InputError(
            f"expected an s-op of the program {abbreviate(program)}, got {abbreviate(sop)}, which the "
            "program does not contain; try an s-op that is a part of the program"
        )
    users: dict[Node, list[Node]] = {}
    for node in order:
        for below in dict.fromkeys(node.inputs):
            users.setdefault(below, []).append(node)
    found = _found(circuit, users, names, here)
    # An s-op that no part of the network computes is merged into the next s-ops that read it.
    merged, waiting, seen = list[CircuitNode](), [] if found else [here], {here}
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in seen:
                seen.add(user)
                nodes = _found(circuit, users, names, user)
                merged += nodes
                waiting += [] if nodes else [user]
    return found or Found(merged, "merged")


def _found(
    circuit: Circuit, users: Mapping[Node, Sequence[Node]], names: Mapping[Node, str], sop: Node
) -> Found:
    """Return the nodes that compute ``sop``, or from whose outputs ``sop`` can be recovered."""
    computing = circuit.computing(names[sop])
    if not computing and sort_of(sop) is Sort.SELECTOR:
        heads = (circuit.attending(names[user]) for user in users.get(sop, ()))
        computing = tuple(head for each in heads for head in each)
    if not computing and sop.op in ("tokens", "indices"):
        kind = {"tokens": "embed", "indices": "pos_embed"}[sop.op]
        computing = tuple(node for node in circuit.nodes if node.kind == kind)
    if computing:
        return Found(computing, "computed")
    return Found((node for node in circuit.nodes if names[sop] in node.made_for), "combined")


def _column(node: CircuitNode) -> int:
    """Return the column of a node in the figure: embeddings first, then heads and hidden units by
    layer.
    """
    if node.layer is None:
        return 10**6 if node.kind == "output" else 0
    return 2 * node.layer + (2 if node.kind == "units" else 1)


def _heading(node: CircuitNode) -> str:
    if node.layer is None:
        return "output" if node.kind == "output" else "input"
    return f"layer {node.layer}\n{'MLP' if node.kind == 'units' else 'attention'}"


def _boxes(circuit: Circuit) -> tuple[list[BoxPart], dict[str, str]]:
    """Return the boxes of a figure and, for each embedding column, the row of its box."""
    boxes: dict[str, BoxPart] = {}
    rows: dict[str, str] = {}
    embedded = {"embed": "tokens", "pos_embed": "positions"}
    for node in circuit.nodes:
        column = _column(node)
        if node.kind in embedded:
            rows[node.id] = node.kind
            boxes[node.kind] = BoxPart(node.kind, 0, embedded[node.kind], outs=(node.kind,))
        elif node.kind == "output":
            boxes[node.id] = BoxPart(node.id, column, "answer", ins=(node.id,))
        elif node.kind == "head":
            ports = {f"{node.id}.{letter}": letter for letter in "qkv"}
            boxes[node.id] = BoxPart(
                node.id, column, f"head {node.layer}.{node.head}", node.label, tuple(ports), (), ports
            )
        elif node.kind == "o":
            box = boxes[_part(node.id)]
            names = {**box.names, node.id: node.label}
            boxes[box.id] = replace(box, outs=(*box.outs, node.id), names=names)
        elif node.kind == "units":
            mlp = f"blocks.{node.layer}.mlp"
            box = boxes.get(mlp, BoxPart(mlp, column, f"MLP {node.layer}"))
            names, group = {**box.names, node.id: node.label}, (*box.ins, node.id)
            boxes[mlp] = replace(box, ins=group, outs=group, names=names)
    for node in circuit.nodes:
        if node.kind == "head" and not boxes[node.id].outs:  # a head without slots in the circuit
            boxes[node.id] = replace(boxes[node.id], outs=(node.id,))
    return list(boxes.values()), rows


def _part(identifier: str) -> str:
    """Return the id of the head to which a query, key, value or output belongs; other ids unchanged."""
    parts = identifier.split(".")
    return ".".join(parts[:5]) if "head" in parts else identifier


def _box(identifier: str) -> str:
    return identifier.replace(".", "_")


def _plain(item: CircuitNode | CircuitEdge) -> dict[str, Any]:
    values = ((part.name, getattr(item, part.name)) for part in fields(item))
    return {name: value for name, value in values if value not in (None, "", ())}


def _listed(data: Mapping[str, Any], name: str) -> Iterable[Any]:
    items = data.get(name)
    if not isinstance(items, list):
        raise InputError(f"expected a list of {name} in a circuit, got {type(items).__name__}")
    return items


def _made(kind: type, item: Any) -> Any:
    known = {f.name for f in fields(kind)}
    if not isinstance(item, Mapping) or not set(item) <= known:
        raise InputError(f"expected a {kind.__name__} with fields of {sorted(known)}, got {item!r}")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in item.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise InputError(f"expected a {kind.__name__}, got {item!r}: {error}") from None
