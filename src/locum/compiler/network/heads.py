"""Heads by what they score: scores of s-ops as queries and keys, which are forms.

Scores, the sublayer and what becomes of the sink come in; a head comes out, to which values can be
added. Heads with equal scores are one.
"""

from __future__ import annotations

from collections.abc import Callable

from locum.compiler.network.forms import Form, total
from locum.compiler.network.network import NO_SINK, TIED_SINK, Head
from locum.compiler.scoring.linear import Linear
from locum.compiler.scoring.scores import Scores
from locum.errors import CompileError
from locum.graph import Node, abbreviate


class Heads:
    """The heads so far; ``read`` makes forms of linear combinations of s-ops."""

    def __init__(self, read: Callable[[Linear], Form]) -> None:
        self.read = read
        self.all: list[Head] = []
        self._by_scores: dict[object, Head] = {}

    def head(
        self, scores: Scores, sink: str, time: int, label: str, selector: Node | None, node: Node
    ) -> Head:
        """The head with these scores at that time; ``node`` is what needs it, for errors."""
        if scores.kind == "softmax" and sink != NO_SINK:
            raise CompileError(
                "a softmax head weighs every key, and here a sink would be one", abbreviate(node)
            )
        pairs, offset = self._pairs(scores)
        same = (
            time,
            sink,
            scores.kind,
            offset.key if sink != NO_SINK else None,
            *((q.key, k.key) for q, k in pairs),
        )
        if same not in self._by_scores:
            head = Head(
                label,
                time,
                tuple(q for q, _ in pairs),
                tuple(k for _, k in pairs),
                offset,
                sink,
                # A sink that loses stands half way.
                scores.gap if sink in (NO_SINK, TIED_SINK) else scores.gap / 2,
                kind=scores.kind,
                selector=selector,
                how=scores.how,
            )
            if any(form.time >= time for form in (*head.queries, *head.keys)):
                raise CompileError("a head would read what is not there yet", abbreviate(node))
            self._by_scores[same] = head
            self.all.append(head)
        return self._by_scores[same]

    def _pairs(self, scores: Scores) -> tuple[list[tuple[Form, Form]], Form]:
        """Queries with their keys, and what depends on the query alone."""
        pairs = []
        offset = self.read(scores.offset)
        for query, key in scores.pairs:
            q, k = self.read(query), self.read(key)
            if not q.terms and q.constant == 0:
                continue
            if not k.terms:  # the same for all keys: it only shifts a row
                offset = total([(offset, 1.0), (q, k.constant)])
            else:
                pairs.append((q, k))
        return pairs, offset
