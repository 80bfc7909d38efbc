"""Fourth stage: from s-ops to heads, units and forms over the signals of a residual stream."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np

from understudy.compiler.codes import Codes
from understudy.compiler.forms import Form, Signal, Vector, total
from understudy.compiler.gates import Gate, Snap
from understudy.compiler.linear import Linear
from understudy.compiler.network import (
    LOSING_SINK,
    NO_SINK,
    TIED_SINK,
    Head,
    Network,
    Unit,
    Value,
)
from understudy.compiler.roles import AGGREGATE, COUNT, FUNCTION, LINEAR, TABLE, Roles
from understudy.compiler.schedule import Schedule
from understudy.compiler.scores import Scores
from understudy.compiler.selectors import Selectors
from understudy.compiler.values import Values
from understudy.errors import CompileError
from understudy.graph import Node, abbreviate


class Lowering:
    """The network of a scheduled program."""

    def __init__(
        self,
        schedule: Schedule,
        roles: Roles,
        *,
        names: Mapping[Node, str] | None = None,
    ) -> None:
        self.schedule = schedule
        #: What the program itself calls its s-ops and selectors.
        self.names = names
        self.roles = roles
        self.values: Values = roles.values
        self.selectors: Selectors = roles.selectors
        self.codes: Codes = roles.codes
        self.heads: list[Head] = []
        self.units: list[Unit] = []
        #: Tokens for which an s-op has no value.
        self.undefined: dict[object, str] = {}
        self._forms: dict[Node, Form] = {}
        self._signals: dict[Node, Signal] = {}
        #: For what is counted: the share of attention that the sink (or position 0) gets.
        self._shares: dict[Node, Signal] = {}
        self._columns: dict[tuple[str, bytes], Signal] = {}
        self._by_scores: dict[object, Head] = {}
        # Counting needs a sink; so does whatever may select nothing.
        self.sink = any(self._needs_sink(node) for node in schedule.order)
        #: When a head attends everywhere anyway, without the sink.
        self._everywhere = {
            time
            for node, time in schedule.heads.items()
            if node.op == "aggregate" and not self.selectors.scores(node.inputs[0]).pairs
        }

    def say(self, node: Node) -> str:
        """A label: the program's own name for it, or the expression in one line."""
        return abbreviate(node, self.names)

    def network(self, root: Node) -> Network:
        """All of it, with ``root`` as the output."""
        for node in self.schedule.order:
            if self.roles.of(node) in (AGGREGATE, COUNT):
                self._attend(node)
        network = Network(self.heads, self.units, self.form(root), self.sink)
        network.forget_unread()
        return network

    def _needs_sink(self, node: Node) -> bool:
        match self.roles.of(node):
            case "count":
                return node.op == "selector_width"
            case "aggregate":
                return self.selectors.may_be_empty(node.inputs[0])
            case _:
                return False

    def counts_sink(self, node: Node) -> bool:
        """Whether the head that counts for a width or a length attends to the sink as well.

        It does, so that nothing else is needed to count by; but the length is counted by a head that is
        there anyway, if there is one.
        """
        return self.sink and not (node.op == "length" and self.schedule.heads[node] in self._everywhere)

    # Forms --------------------------------------------------------------------------------------

    def form(self, node: Node) -> Form:
        """The s-op as a combination of signals; sums are taken apart, however long."""
        if node not in self._forms:
            parts: list[tuple[Form, float]] = []
            ticket = count()
            coefficients = {node: 1.0}
            queue = [(-node.depth, next(ticket), node)]
            while queue:
                _, _, here = heapq.heappop(queue)
                coefficient = coefficients.pop(here)
                if self.roles.of(here) != LINEAR:
                    parts.append((self._leaf(here), coefficient))
                    continue
                for below, factor in self.roles.parts(here):
                    if below in coefficients:
                        coefficients[below] += coefficient * factor
                    else:
                        coefficients[below] = coefficient * factor
                        heapq.heappush(queue, (-below.depth, next(ticket), below))
            self._forms[node] = total(parts)
        return self._forms[node]

    def linear(self, linear: Linear) -> Form:
        """A combination of s-ops as one of signals."""
        return total(((self.form(node), c) for node, c in linear.terms), linear.constant)

    def _leaf(self, node: Node) -> Form:
        match self.roles.of(node):
            case "position":
                numbers = [self.codes.number(v, node) for v in self.values.at_positions(node)]
                return self._column(numbers, "positions", self.say(node))
            case "token":
                return self._column(self._of_tokens(node), "tokens", self.say(node))
            case "number":
                if node not in self._signals:
                    self._signals[node] = Signal("tokens", 0, tokens=np.ones(1))
                return Form({self._signals[node]: 1.0})
            case "aggregate":
                return Form({self._signals[node]: 1.0})
            case _:
                return Form({self._computed(node): 1.0})

    def _of_tokens(self, node: Node) -> list[float]:
        column = self.values.column(node)
        assert column is not None
        assert self.values.target.vocabulary is not None
        numbers = []
        for token, value in zip(self.values.target.vocabulary, column.values, strict=True):
            if value is None:
                self.undefined.setdefault(token, f"{abbreviate(node)} has no value for it")
            numbers.append(0.0 if value is None else self.codes.number(value, node))
        return numbers

    def _column(self, numbers: Sequence[float], kind: str, label: str) -> Form:
        """A column of W_pos or W_E; what is the same up to a factor and a constant is there once.

        Unless positions are not to be shared: then a column is stored as it is, so that what a program
        computes from the position stays out of how it is read.
        """
        vector, factor, constant = np.array(numbers), 1.0, 0.0
        if (vector == vector[0]).all():
            return Form({}, float(vector[0]))
        if kind == "tokens" or self.values.target.share_positions:
            vector, factor, constant = _standard(vector)
        key = kind, vector.tobytes()
        if key not in self._columns:
            as_it_is = (factor, constant) == (1, 0) or kind == "tokens"
            name = label if as_it_is else _named(vector, label)
            at = {"positions": vector} if kind == "positions" else {"tokens": vector}
            self._columns[key] = Signal(name, 0, **at)
        return Form({self._columns[key]: factor}, constant)

    # Units --------------------------------------------------------------------------------------

    def _computed(self, node: Node) -> Signal:
        """The signal of a function, which some feed-forward computes."""
        if node not in self._signals:
            time = self.schedule.ready[node]
            signal = Signal(self.say(node), time)
            self._signals[node] = signal
            unit = Unit(node, signal, time)
            self.units.append(unit)
            unit.gate = self._gate(node)
            if unit.gate is None:
                unit.reads = self._reads(node, time)
        return self._signals[node]

    def _gate(self, node: Node) -> Gate | None:
        """What it is where feed-forwards have units of one kind; None: a function as it is."""
        if self.roles.of(node) == COUNT:
            gate = self.roles.counting(node, Form({self._shares[node]: 1.0}), self.sink)
        else:
            gate = self.roles.gate(node, self.linear)
        if gate is None or self.roles.delay(node) == 1:
            return gate
        # A layer of its own makes it whole.
        time = self.schedule.ready[node] - 2
        about = Signal(f"about {self.say(node)}", time)
        self.units.append(Unit(node, about, time, gate=gate))
        return Snap(Form({about: 1.0}))

    def _reads(self, root: Node, time: int) -> dict[Node, Form]:
        """What a unit finds in the stream: all parts of its expression that are there before."""
        reads: dict[Node, Form] = {}
        stack, seen = [root], {root}
        while stack:
            node = stack.pop()
            if self.roles.of(node) == COUNT:
                reads[node] = Form({self._shares[node]: 1.0})
                continue
            for below in self.roles.reads(node):
                if below in seen:
                    continue
                seen.add(below)
                if self.inlined(below, time):
                    stack.append(below)
                elif self.values.constant(below) is None:
                    reads[below] = self.form(below)
        return reads

    def inlined(self, node: Node, time: int) -> bool:
        """Whether a unit at that time computes it itself."""
        return self.roles.fused and (
            self.roles.of(node) in (COUNT, FUNCTION, TABLE, LINEAR)
            and self.schedule.ready[node] == time
        )

    # Heads --------------------------------------------------------------------------------------

    def _attend(self, node: Node) -> None:
        """The head of an aggregate, a width or the length; heads with equal scores are one."""
        time = self.schedule.heads[node]
        counting = self.roles.of(node) == COUNT
        selector = None if node.op == "length" else node.inputs[0]
        scores = Scores(()) if selector is None else self.selectors.scores(selector)
        tied = counting and self.counts_sink(node)
        losing = LOSING_SINK if self.sink else NO_SINK
        sink = TIED_SINK if tied else losing
        head = self._head(scores, sink, time, selector, node)
        if counting:
            signal = Signal(f"1/(1+n) of {self.say(node)}" if tied else "1/length", time)
            self._shares[node] = signal
            first = np.zeros(self.values.target.longest)
            first[0] = 1.0
            form = Form() if tied else self._column(first.tolist(), "positions", "indices == 0")
            head.values.append(Value(form, signal, at_sink=1.0, share=tied))
            return
        signal = Signal(self.say(node), time)
        self._signals[node] = signal
        at_sink = self._default(node)
        head.values.append(Value(self.form(node.inputs[1]), signal, at_sink=at_sink))

    def _default(self, node: Node) -> float:
        """What an aggregate reads at the sink."""
        default = node.attributes["default"]
        assert not isinstance(default, tuple)
        if not self.selectors.may_be_empty(node.inputs[0]):
            return 0.0
        if isinstance(default, str) and self.values.column(node) is None:
            raise CompileError(
                f"its default is the string {default!r}, but its values are numbers", abbreviate(node)
            )
        return self.codes.number(default, node)

    def _head(self, scores: Scores, sink: str, time: int, selector: Node | None, node: Node) -> Head:
        if scores.kind == "softmax" and sink != NO_SINK:
            raise CompileError(
                "a softmax head weighs every key, and here a sink would be one", abbreviate(node)
            )
        pairs = []
        offset = self.linear(scores.offset)
        for query, key in scores.pairs:
            q, k = self.linear(query), self.linear(key)
            if not q.terms and q.constant == 0:
                continue
            if not k.terms:  # the same for all keys: it only shifts a row
                offset = total([(offset, 1.0), (q, k.constant)])
            else:
                pairs.append((q, k))
        same = (
            time,
            sink,
            scores.kind,
            offset.key if sink != NO_SINK else None,
            *((q.key, k.key) for q, k in pairs),
        )
        if same not in self._by_scores:
            gap = scores.gap if sink == NO_SINK else scores.gap / 2
            label = "everywhere" if selector is None else self.say(selector)
            head = Head(
                label,
                time,
                tuple(q for q, _ in pairs),
                tuple(k for _, k in pairs),
                offset,
                sink,
                gap if sink != TIED_SINK else scores.gap,
                kind=scores.kind,
                selector=selector,
                how=scores.how,
            )
            if any(form.time >= time for form in (*head.queries, *head.keys)):
                raise CompileError("a head would read what is not there yet", abbreviate(node))
            self._by_scores[same] = head
            self.heads.append(head)
        return self._by_scores[same]


def _standard(vector: Vector) -> tuple[Vector, float, float]:
    """The vector as constant + factor · (whole numbers from 0 on without a common divisor)."""
    whole = bool((vector == np.round(vector)).all()) and float(np.abs(vector).max()) < 2**40
    if not whole:
        return vector, 1.0, 0.0
    constant = float(vector[0])
    rest = (vector - constant).astype(np.int64)
    divisor = math.gcd(*(abs(int(v)) for v in rest))
    sign = 1 if rest[np.flatnonzero(rest)[0]] > 0 else -1
    factor = sign * divisor
    return (rest // factor).astype(np.float64), float(factor), constant


def _named(vector: Vector, label: str) -> str:
    """What a column holds that was brought to standard form."""
    if bool((vector == np.arange(len(vector))).all()):
        return "indices"
    return label
