"""Circuits: the part of a network that computes each s-op, as data and as a figure.

Nodes are embedding columns, heads with their queries, keys, values and outputs, groups of hidden units,
slots of the residual stream and the output; each has the name of its TransformerLens hook and the s-op
that it holds. Edges say what flows from the node that writes it to the node that reads it. Whether an
edge is *necessary* or *sufficient* is not asserted here but computed (``locum.experiments.circuits``).

>>> node = CircuitNode("embed.0", "embed", "hook_embed", slots=(0,), label="tokens")
>>> Circuit((node,), ()).node("embed.0").label
'tokens'
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.files import read_json, write_file
from locum.graph import Node, Sort, abbreviate, postorder, sort_of
from locum.graph.fingerprints import fingerprints

WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 190.0, 40.0, 84.0, 16.0, 24.0
#: Characters of a label that fit into a box.
_FITS = 26
#: Characters that no XML file may contain.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    "<style>.paper{fill:#fff}.ink{fill:#1f2933}.soft{fill:#5d6b7a}.box{fill:#f6f8fa;stroke:#b4c1cd}"
    ".flow{stroke:#2f6f9f}.idle{stroke:#b4c1cd;stroke-dasharray:4 4}"
    "@media (prefers-color-scheme: dark){.paper{fill:#0f141a}.ink{fill:#e4e9ef}.soft{fill:#95a3b3}"
    ".box{fill:#171e26;stroke:#4a5a6d}.flow{stroke:#5b9bd0}.idle{stroke:#4a5a6d}}</style>"
)


def circuit_svg(
    boxes: Sequence[tuple[str, int, str]],
    arrows: Iterable[tuple[str, str, str, bool]],
    title: str,
) -> str:
    """Return an SVG of boxes (name, column, label) and arrows (from, to, what flows, idle).

    >>> drawn = circuit_svg([("a", 0, "tokens"), ("b", 1, "copy")], [("a", "b", "tokens", False)], "c")
    >>> drawn.startswith("<svg"), drawn.count("<rect"), drawn.count("<path")
    (True, 3, 1)
    """
    columns: dict[int, list[tuple[str, str]]] = {}
    for name, column, label in boxes:
        columns.setdefault(column, []).append((name, label))
    places: dict[str, tuple[float, float]] = {}
    tallest = max((len(column) for column in columns.values()), default=0)
    for across, column in enumerate(sorted(columns)):
        top = (tallest - len(columns[column])) / 2
        for down, (name, _) in enumerate(columns[column]):
            places[name] = (EDGE + across * (WIDTH + ACROSS), EDGE + (top + down) * (HEIGHT + DOWN))
    width = 2 * EDGE + len(columns) * (WIDTH + ACROSS) - ACROSS
    height = 2 * EDGE + tallest * (HEIGHT + DOWN) - DOWN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="11">'
    )
    parts = [
        head,
        f"<title>{_text(title)}</title>{_STYLE}",
        '<rect width="100%" height="100%" class="paper"/>',
        *_curves(arrows, places),
    ]
    for name, _, label in boxes:
        x, y = places[name]
        parts.append(
            f"<g><title>{_text(name)}: {_text(label)}</title>"
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" class="box"/>'
            f'<text x="{x + 8:.0f}" y="{y + 16:.0f}" class="soft">{_fitting(name)}</text>'
            f'<text x="{x + 8:.0f}" y="{y + 32:.0f}" class="ink">{_fitting(label)}</text>'
            "</g>"
        )
    return "\n".join([*parts, "</svg>\n"])


def _curves(
    arrows: Iterable[tuple[str, str, str, bool]], places: Mapping[str, tuple[float, float]]
) -> Iterable[str]:
    for source, target, flows, idle in arrows:
        if source not in places or target not in places:
            continue
        (a, b), (c, d) = places[source], places[target]
        a, b, d = a + WIDTH, b + HEIGHT / 2, d + HEIGHT / 2
        bend = max((c - a) / 2, 20.0)
        yield (
            f"<g><title>{_text(flows)}</title>"
            f'<path d="M{a:.0f} {b:.0f}C{a + bend:.0f} {b:.0f} {c - bend:.0f} {d:.0f} {c:.0f} {d:.0f}" '
            f'class="{"idle" if idle else "flow"}" fill="none" stroke-width="1.4"/></g>'
        )


def _fitting(words: str) -> str:
    return _text(words if len(words) <= _FITS else words[: _FITS - 1] + "…")


def _text(words: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", words))


#: The most bytes of a circuit's file.
MAX_FILE = 2**27


def require_head(head: int | None) -> None:
    """Refuse what is not the number of a head: NumPy takes True for all of them, Python for head 1.

    >>> require_head(True)
    Traceback (most recent call last):
    ...
    locum.errors.InputError: expected the number of a head, counted from 0, got True; try head=0
    """
    if head is not None and (type(head) is bool or not isinstance(head, (int, np.integer)) or head < 0):
        raise InputError(f"expected the number of a head, counted from 0, got {head!r}; try head=0")


@dataclass(frozen=True)
class CircuitNode:
    """A part of the network: where it is, what it holds, and what it is for."""

    id: str
    #: embed, pos_embed, head, q, k, v, o, units, slot or output.
    kind: str
    #: The TransformerLens hook at which it can be seen and changed.
    hook: str
    layer: int | None = None
    head: int | None = None
    #: The places that it has in the hook's last axis: hidden units, or numbers of a head.
    places: tuple[int, ...] = ()
    #: The slots that it writes (or is).
    slots: tuple[int, ...] = ()
    label: str = ""
    #: The fingerprint of the s-op that it computes (``graph/fingerprints.py``).
    sop: str = ""
    role: str = ""
    #: Labels of s-ops that depend on this one in the program, and pass it by in the network: a table
    #: looks up what this one depends on.
    passed_by: tuple[str, ...] = ()
    #: Fingerprints of the s-ops that a column of an embedding is, up to a factor and a constant.
    embeds: tuple[str, ...] = ()


@dataclass(frozen=True)
class CircuitEdge:
    """What one node writes and another reads."""

    source: str
    target: str
    #: The slot that it passes through, and the label of what flows.
    slot: int
    flows: str
    #: Whether changing what flows to that of another input changes some answer; None: not computed.
    necessary: bool | None = None
    #: Whether that alone turns some answer into that of the other input, which is a different one.
    sufficient: bool | None = None


@dataclass(frozen=True)
class Circuit:
    """All nodes and edges, and on which inputs the flags of edges were computed."""

    nodes: tuple[CircuitNode, ...]
    edges: tuple[CircuitEdge, ...]
    #: How necessary and sufficient were computed: pairs of inputs, whether all inputs were among them,
    #: and whether changing all edges that are not necessary, at once, changes no answer.
    checked: dict[str, Any] = field(default_factory=dict)

    def node(self, identifier: str) -> CircuitNode:
        """Return the node of that id."""
        for node in self.nodes:
            if node.id == identifier:
                return node
        raise InputError(f"expected the id of a node of the circuit, got {identifier!r}")

    def at(self, block: str, head: int | None = None) -> tuple[CircuitNode, ...]:
        """Return the nodes of a block (``blocks.1.attn``), or of one of its heads."""
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
        """Return the nodes that compute, or embed, the s-op of that fingerprint."""
        return tuple(node for node in self.nodes if node.sop == sop or sop in node.embeds)

    def attending(self, sop: str) -> tuple[CircuitNode, ...]:
        """Return the heads that move, or count for, the s-op of that fingerprint."""
        places = {(node.layer, node.head) for node in self.computing(sop) if node.kind == "o"}
        return tuple(n for n in self.nodes if n.kind == "head" and (n.layer, n.head) in places)

    @property
    def necessary(self) -> tuple[CircuitEdge, ...]:
        """Return the edges that are known to be necessary."""
        return tuple(edge for edge in self.edges if edge.necessary)

    def data(self) -> dict[str, Any]:
        """Return it as JSON has it; fields that say nothing are left out."""
        return {
            "nodes": [_plain(node) for node in self.nodes],
            "edges": [_plain(edge) for edge in self.edges],
            **({"checked": self.checked} if self.checked else {}),
        }

    def save(self, path: str | Path) -> None:
        """Write ``circuit.json``."""
        text = json.dumps(self.data(), ensure_ascii=False, indent=1)
        write_file(path, text + "\n")

    @classmethod
    def read(cls, data: Any) -> Circuit:
        """Return the circuit that :meth:`data` described; anything else is an ``InputError``."""
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
        """Return the circuit that a file holds."""
        data = read_json(path, MAX_FILE)
        try:
            return cls.read(data)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def mermaid(self) -> str:
        """Return a flowchart in Mermaid's language, which Markdown viewers draw; one box per part.

        Edges that are known not to be necessary are dotted.
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

    def draw(self, path: str | Path | None = None) -> str:
        """Return a picture as SVG, from the embedding to the output, and write it to ``path`` if given.

        Edges that are known not to be necessary are dashed; pointing at an edge says what flows.
        """
        drawn = [n for n in self.nodes if n.kind not in ("slot", "q", "k", "v", "o")]
        last = max((_column(node) for node in drawn), default=0)
        boxes = [
            (node.id, last + 1 if node.kind == "output" else _column(node), node.label)
            for node in drawn
        ]
        arrows: dict[tuple[str, str, str, bool], None] = {}
        for edge in self.edges:
            ends = _part(edge.source), _part(edge.target)
            arrows[(*ends, edge.flows, edge.necessary is False)] = None
        svg = circuit_svg(boxes, arrows, f"a circuit of {len(drawn)} parts, {len(self.edges)} edges")
        if path is not None:
            write_file(path, svg)
        return svg

    def _repr_svg_(self) -> str:
        return self.draw()

    def __str__(self) -> str:
        shown = [f"{len(self.nodes)} nodes, {len(self.edges)} edges"]
        flag = {None: " ", False: "·", True: "!"}
        shown += [
            f"{flag[edge.necessary]} {edge.source} → {edge.target}: {edge.flows} (slot {edge.slot})"
            for edge in self.edges
        ]
        return "\n".join(shown)


def parts_of(circuit: Circuit, program: Node, sop: Node) -> tuple[CircuitNode, ...]:
    """Return the nodes of the circuit that compute an s-op, or attend by a selector, of a program."""
    names = fingerprints(program, sop)
    computing = circuit.computing(names[sop])
    if computing:
        return computing
    if names[sop] not in {names[node] for node in postorder(program)}:
        raise InputError(
            f"expected an s-op of the program {abbreviate(program)}, got {abbreviate(sop)}, which is "
            "not in it; try one of the s-ops that it was made of"
        )
    if sort_of(sop) is Sort.SELECTOR:
        users = [node for node in postorder(program) if sop in node.inputs]
        heads = (head for node in users for head in circuit.attending(names[node]))
        return tuple(dict.fromkeys(heads))
    kind = {"tokens": "embed", "indices": "pos_embed"}.get(sop.op)
    return tuple(node for node in circuit.nodes if node.kind == kind)


def _column(node: CircuitNode) -> int:
    """Return the column, from left to right: embeddings, then heads and units of each layer."""
    return 0 if node.layer is None else 2 * node.layer + (1 if node.kind == "head" else 2)


def _part(identifier: str) -> str:
    """Return the head that a query, key, value or output belongs to; anything else is itself."""
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
