"""Random programs in RASP text, most of them with strings, and inputs of every type.

In RASP text ``tokens`` are strings whatever the input is, so a program meets strings even on numbers.
Expressions are drawn by the type they are to have; the types are only likely, not certain, so that some
programs have no value and executors must refuse them as dense execution does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

#: What tokens are drawn from: texts that are numbers and texts that are not, ties, signs, halves.
_WORDS = ("a", "b", "1", "2", "10", "-1", "0.5", "(", ")", "True")
_INTEGERS = (0, 1, 2, 3, 10, -1, 7, 2**53 + 1)
_FLOATS = (0.5, 1.0, 2.0, -1.5, 0.1, 1e300, float("inf"), -0.0)

inputs: st.SearchStrategy[Any] = st.one_of(
    st.text("ab12()", min_size=1, max_size=7),
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=7),
    st.lists(st.sampled_from(_INTEGERS[:7]), min_size=1, max_size=7),
    st.lists(st.sampled_from(_INTEGERS), min_size=1, max_size=5),
    st.lists(st.sampled_from(_FLOATS), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=6),
    st.lists(st.sampled_from((*_INTEGERS[:5], *_FLOATS[:5])), min_size=2, max_size=6),
    st.lists(st.sampled_from((*_INTEGERS[:4], *_FLOATS[:4], True, False)), min_size=2, max_size=6),
    st.lists(st.sampled_from((*_WORDS[:5], *_INTEGERS[:3], True)), min_size=2, max_size=5),
)

_NUMBERS = ("indices", "length", "tokens_int", "tokens_float", "tokens_asis", "1", "2", "0.5", "3")


class _Text:
    """Draws expressions; ``deep`` is how much deeper they may still go."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, *options: Any) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def expression(self, kind: str, deep: int) -> str:
        made: Callable[[int], str] = getattr(self, kind)
        return made(deep)

    def string(self, deep: int) -> str:
        leaves = ("tokens", "tokens", "tokens_str", '"a"', '"1"', '"10"')
        if deep <= 0:
            return str(self.one_of(*leaves))
        inner = self.string(deep - 1)
        option = self.one_of(0, 0, 1, 2, 3, 4, 5, 6, 7)
        match option:
            case 0:
                return str(self.one_of(*leaves))
            case 1:
                return f"({inner} + {self.string(deep - 1)})"
            case 2:
                return f'"abc"[{self.number(deep - 1)} % 3]'
            case 3:
                return f"({inner} if {self.boolean(deep - 1)} else {self.string(deep - 1)})"
            case 4:
                return f'aggregate({self.single(deep - 1)}, {inner}, "-")'
            case 5:
                return f"aggregate({self.single(deep - 1)}, {inner})"
            case 6:
                return f"sort({inner}, {self.any(deep - 1)})"
        return f"({inner} * {self.one_of(0, 1, 2)})"

    def number(self, deep: int) -> str:
        leaf = self.one_of(*_NUMBERS)
        if deep <= 0:
            return str(leaf)
        a, b = self.number(deep - 1), self.number(deep - 1)
        match self.one_of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9):
            case 0:
                return str(leaf)
            case 1 | 2:
                return f"({a} {self.one_of('+', '-', '*', '/', '%', '^')} {b})"
            case 3:
                return f"selector_width({self.selector(deep - 1)})"
            case 4:
                return f"aggregate({self.selector(deep - 1)}, {a})"
            case 5:
                return f"aggregate({self.single(deep - 1)}, {a}, {self.one_of(0, 0.5)})"
            case 6:
                return f"indicator({self.boolean(deep - 1)})"
            case 7:
                return f"({a} if {self.boolean(deep - 1)} else {b})"
            case 8:
                return f"round({a})"
        return f"{self.one_of('min', 'max')}({a}, {b})"

    def boolean(self, deep: int) -> str:
        if deep <= 0:
            return str(self.one_of("tokens_bool", 'tokens == "1"', "indices > 0", "True"))
        symbol = self.one_of("==", "!=", "<", "<=", ">", ">=")
        match self.one_of(0, 1, 2, 3, 4, 5):
            case 0 | 1:
                return f"({self.string(deep - 1)} {symbol} {self.string(deep - 1)})"
            case 2:
                return f"({self.number(deep - 1)} {symbol} {self.number(deep - 1)})"
            case 3:
                word = self.one_of("and", "or")
                return f"({self.boolean(deep - 1)} {word} {self.boolean(deep - 1)})"
            case 4:
                return f'({self.string(deep - 1)} in ["a", "1", "b"])'
        return f"(not {self.boolean(deep - 1)})"

    def any(self, deep: int) -> str:
        return self.expression(self.one_of("string", "number", "boolean"), deep)

    def selector(self, deep: int) -> str:
        if deep > 0 and self.one_of(0, 1, 2) == 2:
            word = self.one_of("and", "or")
            joined = f"({self.selector(deep - 1)} {word} {self.selector(deep - 1)})"
            return str(self.one_of(joined, f"(not {joined})"))
        kind = self.one_of("string", "number", "number", "boolean")
        symbol = self.one_of("==", "==", "!=", "<", "<=", ">", ">=")
        return f"select({self.expression(kind, deep - 1)}, {self.expression(kind, deep - 1)}, {symbol})"

    def single(self, deep: int) -> str:
        """A selector that probably leaves no more than one key."""
        at = self.one_of("indices", "length - 1 - indices", "indices - 1", "0", self.number(deep - 1))
        return str(self.one_of(f"select(indices, {at}, ==)", self.selector(deep)))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of one expression."""
    kind = draw(st.sampled_from(("string", "number", "boolean")))
    return _Text(draw).expression(kind, draw(st.integers(1, 4))) + ";"
