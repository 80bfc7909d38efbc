"""Lower s-ops to a network of heads and units that read forms and write signals.

The input is a program with its roles and schedule, and the result is a :class:`Network`. Sums and
constant factors become forms. By default, functions of the position or the token are embedded. Heads in
one sublayer with equal scores and the same use of the sink become one head that moves several values.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import LARGEST_EXACT, identity, short
from locum.graph.labels import Labels
from locum.networks.compiler.compile_limits import check_time
from locum.networks.compiler.network.forms import Form, Gate, Signal, Snap, Vector, total
from locum.networks.compiler.network.network import (
    LOSING_SINK,
    NO_SINK,
    TIED_SINK,
    Head,
    Network,
    Schedule,
    Unit,
    Value,
)
from locum.networks.compiler.network.roles import Role, Roles, in_order
from locum.networks.compiler.scoring.scores import Linear, Scores


class Embedding:
    """The columns of the token and position embeddings.

    If positions are shared, integer functions of the position that differ only by a factor and a
    constant use one column. Otherwise, different functions use different columns, so that functions of
    the position do not change how the rest of the program is lowered.
    """

    def __init__(self, *, share_positions: bool) -> None:
        self.share_positions = share_positions
        self._positions: dict[bytes, Signal] = {}
        self._tokens: dict[bytes, Signal] = {}

    def at_positions(self, numbers: Sequence[float], label: str) -> Form:
        """Return a form that is ``numbers[i]`` at position i."""
        vector, factor, constant = np.array(numbers), 1.0, 0.0
        if (vector == vector[0]).all():
            return Form({}, float(vector[0]))
        if self.share_positions:
            vector, factor, constant = _standard(vector)
        key = vector.tobytes()
        if key not in self._positions:
            self._positions[key] = Signal(_named(vector, factor, constant, label), 0, positions=vector)
        return Form({self._positions[key]: factor}, constant)

    def of_tokens(self, numbers: Sequence[float], label: str) -> Form:
        """Return a form that is ``numbers[i]`` for the i-th token of the vocabulary."""
        vector = np.array(numbers)
        if (vector == vector[0]).all():
            return Form({}, float(vector[0]))
        vector, factor, constant = _standard(vector)
        key = vector.tobytes()
        if key not in self._tokens:
            self._tokens[key] = Signal(label, 0, tokens=vector)
        return Form({self._tokens[key]: factor}, constant)


def _named(vector: Vector, factor: float, constant: float, label: str) -> str:
    """Return the label of a column of the position embedding, given its factor and constant."""
    if (factor, constant) == (1, 0):
        return label
    if bool((vector == np.arange(len(vector))).all()):
        return "indices"
    return f"not ({label})" if (factor, constant) == (-1, 1) else f"{label}, up to scale"


def _standard(vector: Vector) -> tuple[Vector, float, float]:
    """Write a vector as constant + factor · v, and return v, the factor and the constant.

    If all entries are integers with absolute values below 2⁴⁰, v contains integers with greatest common
    divisor 1, and begins with 0. Otherwise, v is the given vector.
    """
    whole = bool((vector == np.round(vector)).all()) and float(np.abs(vector).max()) < 2**40
    if not whole:
        return vector, 1.0, 0.0
    constant = float(vector[0])
    rest = (vector - constant).astype(np.int64)
    divisor = math.gcd(*(abs(int(v)) for v in rest))
    sign = 1 if rest[np.flatnonzero(rest)[0]] > 0 else -1
    factor = sign * divisor
    return (rest // factor).astype(np.float64), float(factor), constant


class Heads:
    """The heads created so far; ``read`` converts linear combinations of s-ops to forms."""

    def __init__(self, read: Callable[[Linear], Form]) -> None:
        self.read = read
        self._by_scores: dict[object, Head] = {}
        self._values: dict[object, list[Value]] = {}

    @property
    def all(self) -> tuple[Head, ...]:
        """The heads with their values, in the order of creation."""
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
        """Add a value to the head with these scores in sublayer ``time``; create the head if necessary.

        ``node`` is the s-op that errors name.
        """
        if scores.kind == "softmax" and sink != NO_SINK:
            raise CompileError(
                "softmax attention with a sink token is not supported, since the sink would receive "
                "weight",
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
                # A sink below the selected keys has a score that is half a gap lower.
                scores.gap if sink in (NO_SINK, TIED_SINK) else scores.gap / 2,
                kind=scores.kind,
                selector=selector,
                how=scores.how,
            )
            if any(form.time >= time for form in (*head.queries, *head.keys)):
                raise CompileError("a head would read a value before it is computed", abbreviate(node))
            self._by_scores[same] = head
        self._values.setdefault(same, []).append(value)

    def _pairs(self, scores: Scores) -> tuple[list[tuple[Form, Form]], Form]:
        """Return the pairs of query and key forms of scores.

        The second result is the part of the score that depends only on the query.
        """
        pairs = []
        offset = self.read(scores.offset)
        for query, key in scores.pairs:
            q, k = self.read(query), self.read(key)
            if not q.terms and q.constant == 0:
                continue
            if not k.terms:  # the product is the same for all keys
                offset = total([(offset, 1.0), (q, k.constant)])
            else:
                pairs.append((q, k))
        return pairs, offset


@dataclass(frozen=True)
class Lowered:
    """A network, with the s-ops of the program that its parts represent."""

    network: Network
    roles: Roles
    schedule: Schedule
    #: S-ops with the role COUNT whose heads also attend to the sink.
    counted_with_sink: frozenset[Node]
    #: Tokens for which some s-op is undefined, with the reason.
    undefined: tuple[tuple[Atom, str], ...]
    #: Labels of s-ops and selectors: names in the program, or expressions.
    label: Labels
    #: The s-op that each signal represents, for results of heads and feed-forwards and for real-valued
    #: tokens. Results that a later feed-forward rounds are omitted.
    holds: Mapping[Signal, Node] = field(default_factory=dict)
    #: The s-ops that each column of the embeddings represents, usually up to a factor and a constant.
    #: The column with which a head counts the length represents the length.
    embeds: Mapping[Signal, Collection[Node]] = field(default_factory=dict)

    def computed(self) -> set[Node]:
        """Return the s-ops that feed-forwards of the network compute, also as combinations of others.

        S-ops that cancel, such as x in x − x and 0·x, are omitted.
        """
        found = {below for unit in self.network.units for below in self._within(unit)}
        gates = (Role.LINEAR, Role.FUNCTION, Role.TABLE)
        for node in self.schedule.order:
            if self.roles.of(node) is Role.LINEAR and all(
                below in found or self.roles.of(below) not in gates
                for below, _ in self.roles.parts(node)
            ):
                found.add(node)
        return found

    def _within(self, unit: Unit) -> Iterator[Node]:
        """Yield the s-ops that a unit computes, from those that it reads."""

        def below(node: Node) -> list[Node]:
            stops = unit.gate is not None or (node in unit.reads and node is not unit.node)
            return [] if stops else self.roles.reads(node)

        for node in in_order(unit.node, below):
            if node is unit.node or node not in unit.reads:
                yield node


def lower(
    root: Node,
    times: Schedule,
    roles: Roles,
    label: Labels,
    *,
    share_positions: bool = True,
) -> Lowered:
    """Return the network of a scheduled program, with the s-ops that its parts represent.

    Without ``share_positions``, different functions of the position use different columns of the
    position embeddings. Programs that differ only in functions of the position then usually have the
    same slots.
    """
    lowering = _Lowering(times, roles, label, share_positions=share_positions)
    network = lowering.network(root)
    counts = (node for node in times.order if roles.of(node) is Role.COUNT)
    return Lowered(
        network,
        roles,
        times,
        frozenset(filter(lowering.counts_sink, counts)),
        tuple(lowering.undefined.values()),
        label,
        lowering.holds(),
        lowering.embeds,
    )


class _Lowering:
    """The state of the lowering of one program: the signals, forms, heads and units created so far."""

    def __init__(
        self,
        schedule: Schedule,
        roles: Roles,
        label: Labels,
        *,
        share_positions: bool,
    ) -> None:
        self.schedule = schedule
        self.label = label
        self.roles = roles
        self.known = roles.known
        self.undefined: dict[Hashable, tuple[Atom, str]] = {}
        #: Units in the order of creation; None for a unit that is not completed yet.
        self._units: list[Unit | None] = []
        self._forms: dict[Node, Form] = {}
        self._signals: dict[Node, Signal] = {}
        #: For each count, the attention weight on the sink (or on position 0).
        self._shares: dict[Node, Signal] = {}
        self._embedding = Embedding(share_positions=share_positions)
        self.embeds: dict[Signal, dict[Node, None]] = {}
        self._heads = Heads(self.linear)
        # A sink is needed for widths and for selectors that may be empty. A decoder has a begin marker.
        causal = self.known.target.causal
        self.sink = causal or any(self._needs_sink(node) for node in schedule.order)
        #: The sublayers in which some head attends to all positions except the sink.
        self._everywhere = {
            time
            for node, time in schedule.heads.items()
            if node.op == "aggregate" and not self.known.selectors.scores(node.inputs[0]).pairs
        }

    def network(self, root: Node) -> Network:
        """Return the network that computes ``root``."""
        for node in self.schedule.order:
            if self.roles.of(node) in (Role.AGGREGATE, Role.COUNT):
                self._attend(node)
        output = self.form(root)
        units = tuple(unit for unit in self._units if unit is not None)
        network = Network(self._heads.all, units, output, self.sink).without_unread()
        if self.known.target.feed_forward == "glu":  # gates have no biases
            return replace(network, one=Signal("1", 0, positions=np.ones(self.known.target.longest)))
        return network

    def holds(self) -> dict[Signal, Node]:
        """Return the s-op that each signal of a head, a unit or a real-valued token represents.

        An attention weight represents the count that is computed from this weight. Results that a later
        feed-forward rounds are omitted.
        """
        shares = {signal: self.roles.counted(node) for node, signal in self._shares.items()}
        return {signal: node for node, signal in self._signals.items()} | shares

    def _needs_sink(self, node: Node) -> bool:
        match self.roles.of(node):
            case Role.COUNT:
                return self.roles.counted(node).op == "selector_width"
            case Role.AGGREGATE:
                return self.known.selectors.may_be_empty(node.inputs[0])
            case _:
                return False

    def counts_sink(self, node: Node) -> bool:
        """Return whether the head that counts a width or a length also attends to the sink.

        A width is always counted with the sink, since this needs no additional signal. The length is
        counted by a head of the same sublayer that attends everywhere, if there is one. With hidden
        units, the length is counted without the sink, since tables are chosen before the heads.
        """
        if self.roles.counted(node).op != "length":
            return True
        return self.sink and self.roles.fused and self.schedule.heads[node] not in self._everywhere

    # Forms --------------------------------------------------------------------------------------

    def form(self, node: Node) -> Form:
        """Return an s-op as a form; sums of any depth are expanded."""
        if node not in self._forms:
            parts: list[tuple[Form, float]] = []
            ticket = count()
            coefficients = {node: 1.0}
            queue = [(-node.depth, next(ticket), node)]
            while queue:
                _, _, here = heapq.heappop(queue)
                coefficient = coefficients.pop(here)
                if self.roles.of(here) is not Role.LINEAR:
                    parts.append((self._leaf(here), coefficient))
                    continue
                for below, factor in self.roles.parts(here):
                    if below in coefficients:
                        coefficients[below] += coefficient * factor
                    else:
                        coefficients[below] = coefficient * factor
                        heapq.heappush(queue, (-below.depth, next(ticket), below))
            self._forms[node] = total(parts)
            check_time(node)
        return self._forms[node]

    def linear(self, linear: Linear) -> Form:
        """Convert a linear combination of s-ops to a form over signals."""
        return total(((self.form(node), c) for node, c in linear.terms), linear.constant)

    def _leaf(self, node: Node) -> Form:
        match self.roles.of(node):
            case Role.POSITION:
                numbers = self.known.codes.numbers(self.known.values.at_positions(node), node)
                return self._embedded(node, self._embedding.at_positions(numbers, self.label(node)))
            case Role.TOKEN:
                form = self._embedding.of_tokens(self._of_tokens(node), self.label(node))
                return self._embedded(node, form)
            case Role.NUMBER:
                if node not in self._signals:
                    self._signals[node] = Signal("tokens", 0, tokens=np.ones(1))
                return Form({self._signals[node]: 1.0})
            case Role.AGGREGATE:
                return Form({self._signals[node]: 1.0})
            case Role.COUNT if not self.roles.fused:
                return Form({self._shares[node]: 1.0})
            case _:
                return Form({self._computed(node): 1.0})

    def _embedded(self, node: Node, form: Form) -> Form:
        """Record that an s-op is embedded, and return its form."""
        for signal in form.terms:
            self.embeds.setdefault(signal, {})[node] = None
        return form

    def _of_tokens(self, node: Node) -> list[float]:
        column = self.known.values.table(node)
        assert column is not None
        assert self.known.target.vocabulary is not None
        numbers = []
        for token, value in zip(self.known.target.vocabulary, column.values, strict=True):
            if value is None:
                why = f"{abbreviate(node)} is undefined for this token"
                self.undefined.setdefault(identity(token), (token, why))
            numbers.append(0.0 if value is None else self.known.codes.number(value, node))
        return numbers

    # Units --------------------------------------------------------------------------------------

    def _computed(self, node: Node) -> Signal:
        """Return the signal of a function that a feed-forward computes; add its unit if it is new."""
        if node not in self._signals:
            time = self.schedule.ready[node]
            signal = Signal(self.label(node), time)
            self._signals[node] = signal
            place = len(self._units)
            self._units.append(None)
            gate = self._gate(node)
            reads = self._reads(node, time) if gate is None else {}
            self._units[place] = Unit(node, signal, time, reads, gate)
        return self._signals[node]

    def _gate(self, node: Node) -> Gate | None:
        """Return the gate of an s-op; None for symbolic feed-forwards.

        If the result must be rounded in a separate layer, add a unit that computes the s-op. In this
        case, the returned gate rounds the output of this unit.
        """
        gate = self.roles.gate(node, self.linear)
        if gate is None or self.roles.delay(node) == 1:
            return gate
        # A separate layer rounds the result of the gate to an integer.
        time = self.schedule.ready[node] - 2
        about = Signal(f"about {self.label(node)}", time)
        self._units.append(Unit(node, about, time, gate=gate))
        return Snap(Form({about: 1.0}))

    def _reads(self, root: Node, time: int) -> dict[Node, Form]:
        """Return the s-ops that a symbolic unit at ``time`` reads from the stream, as forms."""
        reads: dict[Node, Form] = {}
        stack, seen = [root], {root}
        while stack:
            node = stack.pop()
            if self.roles.of(node) is Role.COUNT:
                reads[node] = Form({self._shares[node]: 1.0})
                continue
            for below in self.roles.reads(node):
                if below in seen:
                    continue
                seen.add(below)
                if self._inlined(below, time):
                    stack.append(below)
                elif self.known.values.constant(below) is None:
                    reads[below] = self.form(below)
        return reads

    def _inlined(self, node: Node, time: int) -> bool:
        """Return whether a symbolic unit at ``time`` computes an s-op instead of reading it."""
        return self.roles.fused and (
            self.roles.of(node) in (Role.COUNT, Role.FUNCTION, Role.TABLE, Role.LINEAR)
            and self.schedule.ready[node] == time
        )

    # Heads --------------------------------------------------------------------------------------

    def _attend(self, node: Node) -> None:
        """Add the head of an aggregate, a width or the length; heads with equal scores are merged."""
        time = self.schedule.heads[node]
        counting = self.roles.of(node) is Role.COUNT
        attending = self.roles.counted(node)
        selector = None if attending.op == "length" else attending.inputs[0]
        scores = Scores(()) if selector is None else self.known.selectors.scores(selector)
        tied = counting and self.counts_sink(node)
        losing = LOSING_SINK if self.sink else NO_SINK
        sink = TIED_SINK if tied else losing
        label = "everywhere" if selector is None else self.label(selector)
        if counting:
            signal = Signal(f"1/(1+n) of {self.label(attending)}" if tied else "1/length", time)
            self._shares[node] = signal
            first = np.zeros(self.known.target.longest)
            first[0] = 1.0
            form = Form()
            if not tied:
                form = self._embedding.at_positions(first.tolist(), "indices == 0")
                self._embedded(attending, form)
            value = Value(form, signal, at_sink=1.0, share=tied)
        else:
            signal = Signal(self.label(node), time)
            self._signals[node] = signal
            value = Value(self.form(node.inputs[1]), signal, at_sink=self._default(node))
        self._heads.move(value, scores, sink, time, label, selector, node)

    def _default(self, node: Node) -> float:
        """Return the number that an aggregate reads at the sink.

        If the selector may be empty, the number encodes the default of the aggregate. Otherwise, the
        number is 0.
        """
        default = node.default
        if not self.known.selectors.may_be_empty(node.inputs[0]):
            return 0.0
        if isinstance(default, str) and self.known.values.table(node) is None:
            raise CompileError(
                f"expected a number as the default, got the string {default!r}: the values are numbers",
                abbreviate(node),
            )
        listed = self.known.values.table(node) is not None
        if not listed and isinstance(default, int) and abs(default) > LARGEST_EXACT:
            raise CompileError(
                f"expected a default up to 2^53, where floats hold all integers, got {short(default)}",
                abbreviate(node),
            )
        return self.known.codes.number(default, node)
