"""Heads by what they score: scores of s-ops as queries and keys, which are forms.

Scores, the sublayer and what becomes of the sink come in; a head comes out, to which values can be
added. Heads with equal scores are one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from locum.compiler.network.forms import Form, total
from locum.compiler.network.network import NO_SINK, TIED_SINK, Head, Value
from locum.compiler.scoring.linear import Linear
from locum.compiler.scoring.scores import Scores
from locum.errors import CompileError
from locum.graph import Node, abbreviate


class Heads:
    """The heads so far; ``read`` makes forms of linear combinations of s-ops."""

    def __init__(self, read: Callable[[Linear], Form]) -> None:
        self.read = read
        self._by_scores: dict[object, Head] = {}
        self._values: dict[object, list[Value]] = {}

    @property
    def all(self) -> tuple[Head, ...]:
        """The heads with what they move, in the order in which they were asked for."""
        return tuple(
            replace(head, values=tuple(self._values[scores]))
            for scores, head in self._by_scores.items()
        )

    def move(
        self,
        value: Value,
        scores: Scores,
        sink: str,
        time: int,
        label: str,
        selector: Node | None,
        node: Node,
    ) -> None:
        """Let the head with these scores at that time move a value; ``node`` needs it, for errors."""
        if scores.kind == "softmax" and sink != NO_SINK:
            raise CompileError(
                "a softmax head cannot be used beside a sink token, which would receive weight",
                abbreviate(node),
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
        self._values.setdefault(same, []).append(value)

    def _pairs(self, scores: Scores) -> tuple[list[tuple[Form, Form]], Form]:
        """Return the queries with their keys, and what depends on the query alone."""
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
