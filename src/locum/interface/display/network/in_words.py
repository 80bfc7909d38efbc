"""Describe a compiled transformer as text: slots over time, heads, feed-forwards.

All facts are derived from the weights: which sublayers write and read a slot, which slots a head moves,
and what a feed-forward computes. Only labels are from the compiler. Time counts sublayers: 0 is the
embedding, 2l+1 the attention of layer l, and 2l+2 its feed-forward. The output is read at the end.

A feed-forward erases a slot if it subtracts the value of the slot and adds no other value:

- Exact: a function returns its argument, the slot, and is written to the slot with the factor −1.
- relu: relu(x) − relu(−x) is x; gelu: gelu(ax) − gelu(−ax) is ax, because gelu(x) − gelu(−x) = x.
- glu: relu(g)·x is x if g is 1, where g reads only position embeddings and is 1 at every position.

A slot is not erased if the feed-forward also adds another value to it.

>>> import numpy as np
>>> from locum.networks.transformer.functions import Functions, Instruction
>>> product = Functions(2, (Instruction("multiply", (0, 1)), Instruction("exp", (2,))), (3,))
>>> expressions(product, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.0, -1.0]))[0].text
'exp(s0·(2·s1 − 1))'
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.execution.elementwise import LOOSE, MEANINGS, PRODUCT, SUM, TERM
from locum.graph import OPERATIONS
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.functions import Functions, Instruction
from locum.networks.transformer.weights import Array, AttentionWeights, FeedForwardWeights
from locum.text import shortened, shortened_apart

#: Maximum length of the label of a slot in a drawing. Pages show the full label on demand.
SHORT = 26
#: Maximum length of the label of a head in a drawing.
HEAD = 44
#: Separator of the successive values of a slot.
THEN = " → "

#: Separator of the number of units and the slots that they read.
UNITS = " on "


@dataclass(frozen=True)
class Stay:
    """A value in a slot of the residual stream, from the sublayer that writes it until it is erased."""

    #: The label of the compiler, and a short label for drawings.
    label: str
    short: str
    #: The sublayer that first writes the value, the sublayer that last reads it (``first`` if none
    #: does), and the sublayer that erases it (after the output if none does).
    first: int
    last: int
    until: int

    def is_held(self, time: int) -> bool:
        """Return whether the slot holds the value after sublayer ``time``."""
        return self.first <= time < self.until


@dataclass(frozen=True)
class HeadInWords:
    """A description of an attention head: its name, label, kind, and the slots that it moves."""

    name: str
    label: str
    #: A label that is short enough for a drawing. Different labels of a layer usually remain different.
    short: str
    kind: str
    moves: tuple[str, ...]


class NetworkInWords:
    """A description of a compiled transformer: its slots over time, heads and feed-forwards."""

    def __init__(self, model: CompiledTransformer) -> None:
        self.model = model
        weights, config = model.weights, model.config
        self.depth = len(weights.layers)
        self.sink_slot = len(config.slots) - 1 if config.sink else None
        self._writes, self._reads, self._erases = self._traffic()
        self.feeds = [
            [] if layer.feed_forward is None else self._feed(layer.feed_forward, number)
            for number, layer in enumerate(weights.layers)
        ]
        self.heads = [
            [] if layer.attention is None else self._heads(layer.attention, number)
            for number, layer in enumerate(weights.layers)
        ]
        self.slots = [self._stays(number, label) for number, label in enumerate(config.slots)]

    def held(self, slot: int, time: int) -> Stay | None:
        """Return the value that a slot holds after sublayer ``time``, or None."""
        return next((stay for stay in self.slots[slot] if stay.is_held(time)), None)

    def written(self, time: int) -> list[int]:
        """Return the slots that sublayer ``time`` writes, except slots that it erases."""
        erased = self._erases.get(time, set())
        return [slot for slot, times in enumerate(self._writes) if time in times and slot not in erased]

    def erased(self, time: int) -> list[int]:
        """Return the slots that sublayer ``time`` erases."""
        return sorted(self._erases.get(time, set()))

    # Which sublayer reads and writes which slot ----------------------------------------------------

    def _traffic(self) -> tuple[list[set[int]], list[set[int]], dict[int, set[int]]]:
        weights, size = self.model.weights, len(self.model.config.slots)
        writes: list[set[int]] = [set() for _ in range(size)]
        reads: list[set[int]] = [set() for _ in range(size)]
        erases: dict[int, set[int]] = {}

        def note(where: list[set[int]], matrix: Any, time: int) -> None:
            for slot in np.flatnonzero(np.any(matrix, axis=0)):
                where[slot].add(time)

        note(writes, np.vstack([weights.W_E, weights.W_pos]), 0)
        for number, layer in enumerate(weights.layers):
            time = 2 * number + 1
            if layer.attention is not None:
                part = layer.attention
                columns = [
                    np.swapaxes(w, 1, 2).reshape(-1, size) for w in (part.W_Q, part.W_K, part.W_V)
                ]
                note(reads, np.vstack(columns), time)
                note(writes, np.vstack([part.W_O.reshape(-1, size), part.b_O[None]]), time)
            if layer.feed_forward is not None:
                feed = layer.feed_forward
                # Reading a slot only to erase it does not count as use.
                steady = [slot for slot in range(size) if writes[slot] <= {0}]
                steady = [slot for slot in steady if not weights.W_E[:, slot].any()]
                erased = erasures(feed, weights.W_pos, steady)
                erases[time + 1] = set(erased)
                erasers = [column for columns in erased.values() for column in columns]
                note(reads, _used(feed, erasers), time + 1)
                note(writes, np.vstack([feed.W_out, feed.b_out[None]]), time + 1)
        note(reads, weights.W_U.T, 2 * self.depth + 1)
        return writes, reads, erases

    def _stays(self, slot: int, label: str) -> list[Stay]:
        ends = sorted(time for time, erased in self._erases.items() if slot in erased)
        names = label.split(THEN)
        if len(names) != len(ends) + 1:
            names = [label] * (len(ends) + 1)  # not a label of the compiler
        stays = []
        begin, end_of_time = -1, 2 * self.depth + 1
        for name, until in zip(names, [*ends, end_of_time + 1], strict=True):
            written = [time for time in self._writes[slot] if begin < time < until]
            read = [time for time in self._reads[slot] if begin < time <= until]
            if written:
                first = min(written)
                last = max((time for time in read if time > first), default=first)
                stays.append(Stay(name, self._short(slot, name, first), first, last, until))
            begin = until
        return stays

    def _short(self, slot: int, label: str, time: int) -> str:
        """Return a short label of a value: ``label`` if it is short, else the origin of the value if
        it is known.
        """
        if len(label) <= SHORT:
            return label
        if time % 2:
            names = [
                head.name
                for head, writes in zip(
                    self.heads[time // 2], self._head_writes(time // 2), strict=True
                )
                if slot in writes
            ]
            return shortened(f"from head{'s' if len(names) > 1 else ''} {', '.join(names)}", SHORT)
        for target, words in self.feeds[time // 2 - 1] if time else ():
            if target == slot:
                return shortened(words.partition(UNITS)[0], SHORT)
        if time == 0:
            return (
                "code of the token" if self.model.weights.W_E[:, slot].any() else "code of the position"
            )
        return shortened(label, SHORT)

    def says(self, layer: int) -> list[tuple[int, str]]:
        """Return a pair (slot, formula) for each slot that a feed-forward writes and does not erase.

        The formula is ``s4 = …``, or ``s4 += …`` if the slot already holds a value.
        """
        before = 2 * layer + 1
        return [
            (slot, f"s{slot} {'=' if self.held(slot, before) is None else '+='} {words}")
            for slot, words in self.feeds[layer]
        ]

    def _head_writes(self, layer: int) -> list[set[int]]:
        part = self.model.weights.layers[layer].attention
        assert part is not None
        return [set(np.flatnonzero(np.any(matrix, axis=0)).tolist()) for matrix in part.W_O]

    # Formulas
    # ------------------------------------------------------------------------------------------

    def _heads(self, part: AttentionWeights, layer: int) -> list[HeadInWords]:
        labels = self.model.config.heads[layer]
        shorts = shortened_apart(labels, HEAD)
        heads = []
        for number, (kind, label) in enumerate(zip(part.kinds, labels, strict=True)):
            moves = tuple(
                self._source(part.W_V[number, :, i], part.b_V[number, i]) + THEN + _slots(targets)
                for i in range(part.W_V.shape[2])
                if (targets := np.flatnonzero(part.W_O[number, i])).size
            )
            heads.append(HeadInWords(f"{layer}.{number}", label, shorts[number], kind, moves))
        return heads

    def _source(self, column: Any, constant: Any) -> str:
        """Return a formula of the value that a head reads at a key.

        ``column`` is a column of W_V, and ``constant`` the entry of the bias.
        """
        column = np.array(column)
        if self.sink_slot is not None:
            share = column[self.sink_slot]
            column[self.sink_slot] = 0.0  # this entry only sets the value at the sink
            if share and not column.any() and constant == 0:
                return "share of the sink"
        return combination(column, float(constant)).text

    def _feed(self, feed: FeedForwardWeights, layer: int) -> list[tuple[int, str]]:
        """Return (slot, formula) for every slot that the feed-forward writes and does not erase."""
        erased = self._erases[2 * layer + 2]
        if feed.functions is None:
            targets = [
                s for s in np.flatnonzero(np.any(feed.W_out, axis=0)).tolist() if s not in erased
            ]
            return [(slot, self._units(feed, slot)) for slot in targets]
        outputs = expressions(feed.functions, feed.W_in, feed.b_in)
        formulas = []
        for slot in np.flatnonzero(np.any(feed.W_out, axis=0)).tolist():
            if slot not in erased:
                formulas.append((slot, added(outputs[i] for i in np.flatnonzero(feed.W_out[:, slot]))))
        return formulas

    def _units(self, feed: FeedForwardWeights, slot: int) -> str:
        units = np.flatnonzero(feed.W_out[:, slot])
        read = np.any(feed.W_in[:, units], axis=1)
        if feed.W_gate is not None:
            read |= np.any(feed.W_gate[:, units], axis=1)
        noun = f"{feed.kind} unit{'s' if len(units) > 1 else ''}"
        return f"{len(units):,} {noun}{UNITS}{_slots(np.flatnonzero(read))}"


def _used(feed: FeedForwardWeights, erasers: Sequence[int]) -> Any:
    """Return the rows of the input weights that read slots for a computation.

    Reading a slot only to erase it does not count as use. ``erasers`` are the columns of ``W_in`` for
    erasing.
    """
    if feed.functions is not None:
        inputs = {place for i in feed.functions.instructions for place in i.inputs}
        columns = [i for i in range(feed.functions.arguments) if i in inputs]
        return feed.W_in.T[columns] if columns else np.zeros((1, feed.W_in.shape[0]))
    rows = np.delete(feed.W_in.T, erasers, axis=0)
    return rows if feed.W_gate is None else np.vstack([rows, feed.W_gate.T])


def _slots(numbers: Sequence[int] | Any) -> str:
    return ", ".join(f"s{int(number)}" for number in numbers)


def erasures(feed: FeedForwardWeights, places: Array, steady: Collection[int]) -> dict[int, list[int]]:
    """Return the slots that a feed-forward erases, each with the columns of ``W_in`` that erase it.

    ``places`` is ``W_pos``. ``steady`` contains the slots that hold only position embeddings.
    """
    erased = {}
    for slot in np.flatnonzero(np.any(feed.W_out, axis=0)).tolist():
        writers = np.flatnonzero(feed.W_out[:, slot]).tolist()
        columns = writers
        if feed.functions is not None:
            columns = [feed.functions.outputs[writer] for writer in writers]
            if any(column >= feed.functions.arguments for column in columns):
                continue
        alone = np.count_nonzero(feed.W_in[:, columns], axis=0) == 1
        if (
            feed.b_out[slot]
            or feed.b_in[columns].any()
            or not (alone & (feed.W_in[slot, columns] != 0)).all()
        ):
            continue
        factors, outs = feed.W_in[slot, columns], feed.W_out[writers, slot]
        if _takes_away(feed, factors, outs, columns, places, steady):
            erased[slot] = columns
    return erased


def _takes_away(
    feed: FeedForwardWeights,
    factors: Array,
    outs: Array,
    columns: list[int],
    places: Array,
    steady: Collection[int],
) -> bool:
    """Return whether hidden units that read only multiples of a slot x write −x in total.

    ``factors`` are the input weights of the units, and ``outs`` their output weights.
    """
    products = factors * outs
    if feed.functions is not None:
        return _is_minus_one(products)
    if feed.W_gate is not None:
        gates = feed.W_gate[:, columns]
        read = np.flatnonzero(np.any(gates, axis=1)).tolist()
        return (
            set(read) <= set(steady) and bool((places @ gates == 1).all()) and _is_minus_one(products)
        )
    pairs = sorted(zip(factors.tolist(), outs.tolist(), strict=True))
    opposite = sorted((-factor, -out) for factor, out in pairs)
    return pairs == opposite and _is_minus_one(products[factors > 0])


def _is_minus_one(products: Array) -> bool:
    return bool(np.isclose(products.sum(), -1.0, rtol=1e-6, atol=0.0))


#: Maximum length of formulas, since repeated subexpressions could make them exponentially long.
LONGEST = 160


@dataclass(frozen=True)
class FormulaText:
    """The text of a formula, with the precedence of its outermost operator."""

    text: str
    holds: int = TERM

    def within(self, needed: int) -> str:
        """Return the text as an operand of an operator, in brackets if its precedence is too low."""
        return self.text if self.holds >= needed else f"({self.text})"


def expressions(functions: Functions, weights: Any, biases: Any) -> list[FormulaText]:
    """Return each output of a symbolic feed-forward as a formula of slots and named values.

    Column i of ``weights`` and entry i of ``biases`` define argument i as a combination of slots.
    """
    formulas = [combination(weights[:, i], float(biases[i])) for i in range(functions.arguments)]
    called = list(formulas)
    # The last instruction with a label computes the named value; earlier ones are intermediate steps.
    last = {instruction.label: place for place, instruction in enumerate(functions.instructions)}
    for place, instruction in enumerate(functions.instructions):
        formula = _cut(_say(instruction, [called[i] for i in instruction.inputs]))
        formulas.append(formula)
        # Later formulas refer to a named value by its name.
        named = instruction.label.isidentifier() and last[instruction.label] == place
        called.append(FormulaText(instruction.label) if named else formula)
    return [formulas[place] for place in functions.outputs]


def combination(column: Any, constant: float) -> FormulaText:
    """Return the text of an affine combination of slots with coefficients ``column``.

    >>> combination(np.array([-1.0, 0.0, 0.5]), -1.0).text
    '0.5·s2 − s0 − 1'
    """
    parts: list[tuple[float, str]] = []
    for slot in np.flatnonzero(column):
        coefficient = float(column[slot])
        size = abs(coefficient)
        parts.append((coefficient, f"s{slot}" if size == 1 else f"{size:.4g}·s{slot}"))
    parts.sort(key=lambda part: part[0] < 0)  # added terms precede subtracted ones
    if constant or not parts:
        parts.append((constant, f"{abs(constant):.4g}"))
    if parts[0][0] < 0 < constant:
        parts.insert(0, parts.pop())  # 1 − s7, not −s7 + 1
    (sign, first), *rest = parts
    text = ("−" if sign < 0 else "") + first
    text += "".join((" − " if sign < 0 else " + ") + part for sign, part in rest)
    alone = not rest and sign >= 0
    return _cut(FormulaText(text, SUM if not alone else PRODUCT if "·" in first else TERM))


def added(formulas: Iterable[FormulaText]) -> str:
    """Return the text of the sum of ``formulas``."""
    parts = list(formulas)
    return parts[0].text if len(parts) == 1 else " + ".join(f.within(SUM) for f in parts)


def _say(instruction: Instruction, inputs: list[FormulaText]) -> FormulaText:
    op = instruction.op
    arguments = ", ".join(formula.text for formula in inputs)
    match op:
        case "constant":
            value = float(instruction.attributes["value"])
            return FormulaText(f"{value:.4g}".replace("-", "−"), TERM if value >= 0 else SUM)
        case "table":
            return FormulaText(f"table({arguments})")
        case "member":
            values = instruction.attributes["values"]
            shown = ", ".join(f"{value:.4g}" for value in values[:4])
            return FormulaText(
                f"{inputs[0].within(SUM)} in {{{shown}{', …' if len(values) > 4 else ''}}}", LOOSE
            )
    if op == "multiply" and inputs[0] == inputs[1]:
        return FormulaText(f"{inputs[0].within(TERM)}²", PRODUCT)
    pattern = MEANINGS[op].format
    if pattern is None:
        return FormulaText(f"{OPERATIONS[op].called}({arguments})")
    operands = (formula.within(needed) for formula, needed in zip(inputs, pattern.needs, strict=True))
    return FormulaText(pattern.text.format(*operands), pattern.holds)


def _cut(formula: FormulaText) -> FormulaText:
    if len(formula.text) <= LONGEST:
        return formula
    return FormulaText(formula.text[: LONGEST - 1] + "…", formula.holds)
