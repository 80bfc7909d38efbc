"""Draw the flow of a compiled network, and map heads of the program to parts of the network.

Heads of the program are numbered from 1 in the order of ``draw``, and each member of a family has a
number. The compiler may merge heads, or replace a head by a table. Each head of the network was made
for nodes of the traced program. The head corresponds to the heads of the program whose results these
nodes combine, after ``length`` and ``selector_width`` are replaced by their heads.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from locum.errors import InputError
from locum.graph import Node, Sort, postorder, sort_of
from locum.graph.architecture import architecture
from locum.graph.definitions import everywhere, expand_definitions, names_of_definitions
from locum.graph.labels import Labels
from locum.interface.playground.program_pane import Program
from locum.networks.compiler.tracing import Trace
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import CircuitNode
from locum.networks.transformer.circuit_figure import Part, draw_parts

#: Maximum number of boxes and lines of a figure.
MAX_PARTS, MAX_LINES = 60, 300
#: The width of the figure.
PAGE = 690.0
#: Operations that a transformer computes with heads.
_ATTENDING = ("aggregate", "selector_width", "length")
#: The name of the selector that selects every key.
EVERYWHERE = "everywhere"


class ProgramHeads:
    """The heads of an s-op of a program, with their numbers and names."""

    def __init__(self, program: Program, node: Node) -> None:
        self.structure = architecture(expand_definitions(node)).structure
        heads = [head for layer in self.structure for head in layer]
        ends = list(itertools.accumulate((head.members for head in heads), initial=1))
        #: Each head with its numbers. A family of heads has several numbers.
        self.heads = [(head, range(*ends[n : n + 2])) for n, head in enumerate(heads)]
        #: For each ``aggregate``, the index of its head.
        self.serving = {each: n for n, head in enumerate(heads) for each in head.serves}
        #: S-ops that use each head, by the index of the head.
        self.origins: dict[int, list[Node]] = {}
        for each in postorder(node):
            if each.op in _ATTENDING:
                for n in self.below(each):
                    self.origins.setdefault(n, []).append(each)
        own = {expand_definitions(named): words for named, words in program.names.items()}
        self.names = {everywhere(): EVERYWHERE, **names_of_definitions(node), **own}
        self.label = Labels(self.names, longest=400)
        self._own = program.names

    def below(self, node: Node) -> list[int]:
        """Return the indices of the heads whose results ``node`` combines.

        Heads that are only operands of these heads are excluded.
        """
        stack, seen, found = [expand_definitions(node)], set[Node](), set[int]()
        while stack:
            each = stack.pop()
            if each in seen:
                continue
            seen.add(each)
            if each in self.serving:
                found.add(self.serving[each])
            else:
                stack += each.inputs
        return sorted(found)

    def purpose(self, place: int) -> str:
        """Return the names in the program of the s-ops that use the head with index ``place``."""
        nodes = self.origins.get(place, ())
        found = [self._own.get(node) or (node.op if node.op == "length" else "") for node in nodes]
        return ", ".join(filter(None, dict.fromkeys(found)))


class Flow:
    """The correspondence between the heads of a program and the heads of its compiled network."""

    def __init__(self, program: Program, node: Node, model: CompiledTransformer, trace: Trace) -> None:
        self.program, self.model, self.trace = program, model, trace
        self.own = ProgramHeads(program, node)
        self.heads = self.own.heads
        #: For each head of the network, by layer and number, the indices of heads of the program.
        self.made_of = {
            (layer, number): sorted(
                {n for each in nodes if sort_of(each) is Sort.SOP for n in self.own.below(each)}
            )
            for layer, heads in enumerate(trace.heads)
            for number, nodes in enumerate(heads)
        }
        self._parts = collections.Counter(n for places in self.made_of.values() for n in places)

    def name(self, layer: int, number: int) -> str:
        """Return the name of a head of the network.

        If the head corresponds one to one to a head of the program, the result is the label of the
        selector in the program. Otherwise, the result is the label of the head in the network, or
        ``EVERYWHERE`` for the selector of every key.
        """
        places = self.made_of[layer, number]
        if len(places) == 1 and self._parts[places[0]] == 1:
            return self.own.label(self.heads[places[0]][0].selector)
        label = self.model.config.heads[layer][number]
        return EVERYWHERE if label == Labels()(everywhere()) else label

    def title(self, layer: int, number: int) -> str:
        """Return a title with the numbers of the program's heads that a network head computes."""
        places = self.made_of[layer, number]
        way = (
            " merged"
            if len(places) > 1
            else " (part)"
            if any(self._parts[n] > 1 for n in places)
            else ""
        )
        return _heads(self._numbers(places)) + way if places else "helper head"

    def _numbers(self, places: Sequence[int]) -> list[range]:
        return [self.heads[place][1] for place in places]

    def became(self) -> list[dict[str, Any]]:
        """Return, for each head of the program, the part of the network that computes its result."""
        return [self._became(place) for place in range(len(self.heads))]

    def _became(self, place: int) -> dict[str, Any]:
        numbers = self.heads[place][1]
        found = [at for at, places in self.made_of.items() if place in places]
        entry: dict[str, Any] = {"numbers": list(numbers), "at": [list(at) for at in found]}
        if not found:
            return entry | self._replaced(place)
        peers = sorted({other for at in found for other in self.made_of[at]} - {place})
        names = ", ".join(f"{layer}.{number}" for layer, number in found)
        own = f"head {names}" if len(found) == 1 else f"heads {names}"
        if not peers:
            how = "head" if len(found) == 1 else "split"
            split = "" if how == "head" else "split into "
            return entry | {"how": how, "text": f"{split}{own} of the network"}
        others = _heads(self._numbers(peers))
        return entry | {"how": "merged", "text": f"merged with {others}: {own} of the network"}

    def _replaced(self, place: int) -> dict[str, Any]:
        """Describe the part of the network, if any, that computes the result of a head of the program.

        This method is called only if no head of the network corresponds to the head of the program.
        """
        for sop in self.own.origins.get(place, ()):
            try:
                found = self.model.where(sop)
            except InputError:
                continue
            if not found:
                continue
            part = found[0]
            if part.kind == "embed":
                return _gone(part, "no head: a table of tokens in the embedding")
            if part.kind == "pos_embed":
                return _gone(part, "no head: a table of positions in the embedding")
            if part.kind == "units":
                way = "skips it" if found.how == "merged" else "replaces it"
                return _gone(part, f"no head: a table in the MLP of layer {part.layer} {way}")
            if part.layer is not None and part.head is not None:
                return _gone(part, f"no separate head: part of head {part.layer}.{part.head}")
        return {"how": "absent", "text": "no head: the output does not depend on it", "part": ""}

    def figure(self, name: str, output: Sequence[str], tokens: Sequence[str]) -> dict[str, Any]:
        """Return a drawing of the flow, and the statements of each part.

        If there is no circuit, or if it is too large, return the reason instead of a drawing.
        ``name`` and ``output`` are the name and the values of the s-op, and ``tokens`` is the input.
        """
        became = self.became()
        made = {
            "made": [
                {
                    "title": self.title(*at),
                    "name": self.name(*at),
                    "at": [*at],
                    "first": self._first(at),
                }
                for at in self.made_of
            ]
        }
        parts, lines, headings = self.model.circuit.figure()
        if not parts or len(parts) > MAX_PARTS or len(lines) > MAX_LINES:
            why = "no circuit" if not parts else f"{len(parts)} parts and {len(lines)} lines"
            return {"heads": became, **made, "why": f"The network is not drawn ({why})."}
        statements = self._statements()
        titled = [self._titled(part, statements, name, output, tokens) for part in parts]
        titled += list(self._dashed(became, parts))
        titled.sort(key=lambda part: (part.column, self._order(part.id)))
        title = f"the network from tokens to {name}"
        return {
            "heads": became,
            **made,
            "parts": {
                part.id: sorted({n for of in part.marks.values() for n in of}) for part in titled
            },
            "svg": draw_parts(titled, lines, headings, title, styled=False, page=PAGE),
        }

    def _order(self, part: str) -> tuple[int, str]:
        at = _place(part)
        return -1 if at is None else self._first(at), part if part.startswith("gone") else ""

    def _first(self, at: tuple[int, int]) -> int:
        return min(self.made_of[at], default=len(self.heads))

    def _statements(self) -> dict[str, tuple[int, ...]]:
        """Return a mapping from ids of heads, moved values and hidden units to their statements."""
        found: dict[str, list[int]] = {}
        for node in self.model.circuit.nodes:
            if node.kind == "head" and node.layer is not None and node.head is not None:
                nodes = self.trace.heads[node.layer][node.head]
            elif node.kind in ("o", "units") and node.layer is not None:
                time = 2 * node.layer + (2 if node.kind == "units" else 1)
                nodes = tuple(n for slot in node.slots for n in self.trace.held(slot, time, time + 1))
            else:
                continue
            found[node.id] = self.program.statements_of(nodes)
        return {part: tuple(numbers) for part, numbers in found.items()}

    def _titled(
        self,
        part: Part,
        statements: Mapping[str, tuple[int, ...]],
        name: str,
        output: Sequence[str],
        tokens: Sequence[str],
    ) -> Part:
        marks = {row: statements[row] for row in (part.id, *part.outs) if statements.get(row)}
        part = replace(part, marks=marks)
        at = _place(part.id)
        if at in self.made_of:
            title = self.title(*at).removesuffix(" merged")  # boxes are small
            return replace(part, title=title, label=self.name(*at))
        if part.id == "embed":
            return replace(part, label=" ".join(tokens))
        if part.id == "output":
            return replace(part, title=name, label=" ".join(output))
        return part

    def _dashed(self, became: Sequence[dict[str, Any]], parts: Sequence[Part]) -> Iterator[Part]:
        """Yield a dashed box for each head of the program that another part of the network replaces."""
        columns = {part.id: part.column for part in parts}
        for entry, (head, numbers) in zip(became, self.heads, strict=True):
            if not entry["at"] and entry["how"] != "absent":
                statements = self.program.statements_of((head.selector, *head.serves))
                box = f"gone.{numbers[0]}"
                marks = {box: tuple(statements)} if statements else {}
                text = _heads([numbers])
                yield Part(
                    box, columns.get(entry["part"], 0), text, entry["text"], marks=marks, dashed=True
                )


def _gone(part: CircuitNode, text: str) -> dict[str, Any]:
    boxes = {"embed": "tokens", "pos_embed": "positions", "units": f"blocks.{part.layer}.mlp"}
    box = boxes.get(part.kind, f"blocks.{part.layer}.attn.head.{part.head}")
    return {"how": "table" if part.kind in boxes else "merged", "text": text, "part": box}


def _place(part: str) -> tuple[int, int] | None:
    """Return the layer and the number of a head of the network from the id of its box, or None."""
    words = part.split(".")
    return (int(words[1]), int(words[4])) if words[0] == "blocks" and "head" in words else None


def _heads(numbers: Sequence[range]) -> str:
    """Format the numbers of heads: "head 1", "heads 1, 2", "heads 3–8"."""
    texts = [str(each[0]) if len(each) == 1 else f"{each[0]}–{each[-1]}" for each in numbers]
    if not texts:
        return ""
    many = len(texts) > 1 or len(numbers[0]) > 1
    return f"{'heads' if many else 'head'} {', '.join(texts)}"
