"""Draw random programs for the dataset: typed, small, and of about a given depth.

Symbols, numbers and booleans are separate types, so that programs are defined on every input. Attention
operations are usually nested to a given depth along one path of the program. Other parts are shallow or
reused, so programs are graphs. The result depends only on the arguments, such as the random generator.

>>> import random
>>> program = draw_program(random.Random(3), ("a", "b", "c"), depth=2)
>>> len(program(["a", "b", "a"]))
3
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from locum.graph import Atom
from locum.rasp.handles import Selector, SOp
from locum.rasp.python import (
    aggregate,
    best,
    full,
    indicator,
    indices,
    length,
    lookup,
    maximum,
    member,
    minimum,
    select,
    selector_width,
    tokens,
    where,
)

#: Symbol if nothing is selected; no vocabulary contains it.
NOTHING = "-"
SYMBOL, NUMBER, TRUTH = "symbol", "number", "truth"


def draw_program(draw: random.Random, vocabulary: Sequence[str], depth: int) -> SOp:
    """Return a random program whose attention operations are nested to a depth of about ``depth``.

    The depth of some programs is smaller or larger.
    """
    drawing = _Drawing(draw, tuple(vocabulary))
    return drawing.of(draw.choice((SYMBOL, NUMBER, NUMBER, TRUTH)), depth)


class _Drawing:
    """A generator of random programs, from the output to the inputs.

    The argument ``depth`` of a method is the number of attention operations that remain to be nested.
    """

    def __init__(self, draw: random.Random, vocabulary: tuple[str, ...]) -> None:
        self.draw = draw
        self.vocabulary = vocabulary
        self.made: dict[str, list[SOp]] = {SYMBOL: [], NUMBER: [], TRUTH: []}

    def of(self, kind: str, depth: int) -> SOp:
        """Return a random s-op of this type with about this depth.

        For depth 0, the result may be a deeper s-op that was drawn before.
        """
        known = self.made[kind]
        if depth == 0 and known and self.draw.random() < 0.4:
            return self.draw.choice(known)
        drawn = self._leaf(kind) if depth == 0 else self._deep(kind, depth)
        if depth:
            known.append(drawn)
        return drawn

    def _leaf(self, kind: str) -> SOp:
        draw = self.draw
        if kind == SYMBOL:
            return tokens
        if kind == NUMBER:
            codes = {token: place for place, token in enumerate(self._shuffled())}
            return draw.choice((lookup(tokens, codes), lookup(tokens, codes), indices))
        some = draw.sample(self.vocabulary, draw.randint(1, len(self.vocabulary) - 1))
        return draw.choice((member(tokens, some), member(tokens, some), indices % 2 == 0))

    def _shuffled(self) -> list[str]:
        return self.draw.sample(self.vocabulary, len(self.vocabulary))

    def _deep(self, kind: str, depth: int) -> SOp:
        choices: dict[str, Sequence[Callable[[int], SOp]]] = {
            SYMBOL: (self._moved_symbol, self._moved_symbol, self._chosen_symbol, self._renamed),
            NUMBER: (self._counted, self._counted, self._moved_number, self._computed),
            TRUTH: (self._some, self._all, self._moved_truth, self._compared, self._combined),
        }
        return self.draw.choice(choices[kind])(depth)

    # Symbols ------------------------------------------------------------------------------------

    def _moved_symbol(self, depth: int) -> SOp:
        return self._moved(SYMBOL, depth, NOTHING)

    def _chosen_symbol(self, depth: int) -> SOp:
        return where(self.of(TRUTH, depth), tokens, self.of(SYMBOL, 0))

    def _renamed(self, depth: int) -> SOp:
        table: dict[Atom, Atom] = dict(zip(self.vocabulary, self._shuffled(), strict=True))
        return lookup(self.of(SYMBOL, depth), table | {NOTHING: NOTHING})

    # Numbers ------------------------------------------------------------------------------------

    def _counted(self, depth: int) -> SOp:
        return selector_width(self._selector(depth - 1))

    def _moved_number(self, depth: int) -> SOp:
        return self._moved(NUMBER, depth, self.draw.choice((0, -1)))

    def _computed(self, depth: int) -> SOp:
        one, other = self.of(NUMBER, depth), self.of(NUMBER, 0)
        base = self.draw.choice((2, 3))
        return self.draw.choice(
            (one % base, (one + other) % base, maximum(one, other), minimum(one, other), one - other)
        )

    # Truths -------------------------------------------------------------------------------------

    def _some(self, depth: int) -> SOp:
        return aggregate(self._selector(depth - 1), indicator(self.of(TRUTH, 0))) > 0

    def _all(self, depth: int) -> SOp:
        return aggregate(self._reach(), indicator(self.of(TRUTH, depth - 1)), 1) == 1

    def _moved_truth(self, depth: int) -> SOp:
        return self._moved(TRUTH, depth, False)

    def _compared(self, depth: int) -> SOp:
        kind = self.draw.choice((SYMBOL, NUMBER))
        one, other = self.of(kind, depth), self.of(kind, 0)
        if kind == SYMBOL:
            return one == other
        return self.draw.choice((one == other, one < other, one > self.draw.randint(0, 1)))

    def _combined(self, depth: int) -> SOp:
        one, other = self.of(TRUTH, depth), self.of(TRUTH, 0)
        return self.draw.choice((one & other, one | other, ~one))

    # Attention ----------------------------------------------------------------------------------

    def _moved(self, kind: str, depth: int, default: Atom) -> SOp:
        """Return an s-op that moves a value between positions.

        The nested attention operations are in the moved value, or in the value that determines the
        position. If the position is a fixed function of the index and the length, the latter are
        omitted.
        """
        draw = self.draw
        along_values = draw.random() < 0.5
        values = self.of(kind, depth - 1 if along_values else 0)
        rest = 0 if along_values else depth - 1
        match draw.randrange(4):
            case 0:
                where_from = select(indices, indices - draw.choice((1, 1, 2)), "==")
            case 1:
                where_from = select(indices, length - 1 - indices, "==")
            case 2 if rest or draw.random() < 0.3:
                where_from = select(indices, self.of(NUMBER, rest), "==")
            case _:
                last = draw.choice((indices, -indices))
                where_from = best(self._selector(rest), last)
        return aggregate(where_from, values, default)

    def _reach(self) -> Selector:
        return self.draw.choice(
            (full, select(indices, indices, "<"), select(indices, indices, "<="), full)
        )

    def _selector(self, depth: int) -> Selector:
        """Return a selector that compares keys with queries.

        In some cases, the selector selects only earlier keys or only later keys.
        """
        draw = self.draw
        kind = draw.choice((SYMBOL, NUMBER, TRUTH))
        keys, queries = self.of(kind, depth), self.of(kind, 0)
        if draw.random() < 0.5:
            keys, queries = queries, keys
        if kind == TRUTH:
            chosen = select(self.of(TRUTH, depth), True, "==")
        else:
            chosen = select(keys, queries, draw.choice(("==", "==", "!=" if kind == SYMBOL else "<")))
        return chosen & select(indices, indices, draw.choice("<>")) if draw.random() < 0.4 else chosen
