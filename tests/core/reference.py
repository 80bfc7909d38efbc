"""The meaning of RASP programs, in plain Python: the oracle of the tests. It does not import locum.

A program is a nested tuple, such as ("aggregate", selector, values, default), ("tokens", "asis"),
("constant", 3), ("select", keys, queries, "==") or ("sum_over", (("family", "l", 3),), body). An s-op
evaluates to a list with one value for each position, a selector to a row of booleans for each query.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CASTS: dict[str, Callable[[Any], Any]] = {
    "asis": lambda token: token,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
}
SELECTORS = {"select", "best", "selector_and", "selector_or", "selector_not"}


class UndefinedError(Exception):
    """The program has no value on this input."""


def narrow(form: str, value: float) -> Any:
    """Round to a narrower float, ties to even; b is bfloat16, the upper half of a float32."""
    single = struct.unpack("<f", struct.pack("<f", float(value)))[0]  # raises OverflowError
    if form == "f":
        return single
    if form == "e":
        return struct.unpack("<e", struct.pack("<e", single))[0]
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    result = struct.unpack("<f", struct.pack("<I", bits))[0]
    if math.isinf(result) and math.isfinite(value):
        raise OverflowError("too large")
    return result


def remainder(a: Any, b: Any) -> Any:
    if isinstance(a, str):
        raise TypeError("strings have no remainder")
    return a % b


def power(a: Any, b: Any) -> Any:
    if isinstance(value := a**b, complex):
        raise ValueError("not a real number")
    return value


def table(a: Any, rows: tuple[tuple[Any, Any], ...]) -> Any:
    for key, value in rows:
        if key == a:
            return value
    raise ValueError("not in the table")


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "modulo": remainder,
    "floor_divide": operator.floordiv,
    "power": power,
    "negate": operator.neg,
    "absolute": abs,
    "minimum": lambda a, b: a if a < b else b,
    "maximum": lambda a, b: a if a > b else b,
    **{
        name: getattr(math, name)
        for name in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos", "floor")
    },
    "round": round,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_,
    "if_else": lambda condition, a, b: a if condition else b,
    "indicator": lambda a: 1 if a else 0,
    "float64": lambda a: float(a + 0),
    "float32": lambda a: narrow("f", a + 0),
    "float16": lambda a: narrow("e", a + 0),
    "bfloat16": lambda a: narrow("b", a + 0),
}


def run(program: Any, tokens: list[Any]) -> list[Any]:
    """The value of a program on an input; raises UndefinedError."""
    return Run(tokens).defined(program)


class Run:
    """The values of a program and of its parts on one input."""

    elementwise: ClassVar[Mapping[str, Callable[..., Any]]] = ELEMENTWISE

    def __init__(self, tokens: list[Any]) -> None:
        self.tokens, self.size = tokens, len(tokens)
        self.memory: dict[Any, list[Any]] = {}

    def defined(self, program: Any) -> list[Any]:
        """The value of a program; raises UndefinedError."""
        try:
            return self.value(program, {})
        except (ArithmeticError, TypeError, ValueError) as error:
            raise UndefinedError(str(error)) from None

    def is_defined(self, program: Any) -> bool:
        try:
            return bool(self.defined(program))
        except UndefinedError:
            return False

    def value(self, p: Any, heads: dict[str, int]) -> list[Any]:
        key = (id(p), *sorted(heads.items()))
        if key not in self.memory:
            result = self.compute(p, heads)
            if p[0] not in SELECTORS and len({isinstance(v, str) for v in result}) > 1:
                raise TypeError("a sequence of strings and numbers")
            self.memory[key] = result
        return self.memory[key]

    def compute(self, p: Any, heads: dict[str, int]) -> list[Any]:
        op, *rest = p
        match op, rest:
            case "tokens", [cast]:
                return [CASTS[cast](token) for token in self.tokens]
            case "indices", []:
                return list(range(self.size))
            case "length", []:
                return [self.size] * self.size
            case "constant", [atom]:
                return [atom] * self.size
            case "family", [name, _]:
                return [heads[name]] * self.size
            case "sum_over", [families, body]:
                total = [0] * self.size
                names = [name for _, name, _ in families]
                for chosen in itertools.product(*(range(size) for _, _, size in families)):
                    values = self.value(body, heads | dict(zip(names, chosen, strict=True)))
                    total = list(map(operator.add, total, values))
                return total
            case "select", [keys, queries, predicate]:
                ks, qs = self.value(keys, heads), self.value(queries, heads)
                return [[COMPARE[predicate](k, q) for k in ks] for q in qs]
            case "best", [selector, score]:
                rows, scores = self.value(selector, heads), self.value(score, heads)
                return [self.best(row, scores) for row in rows]
            case "selector_not", [a]:
                return [[not x for x in row] for row in self.value(a, heads)]
            case (("selector_and" | "selector_or"), [a, b]):
                join = operator.and_ if op == "selector_and" else operator.or_
                both = zip(self.value(a, heads), self.value(b, heads), strict=True)
                return [list(map(join, *rows)) for rows in both]
            case "selector_width", [selector]:
                return [sum(row) for row in self.value(selector, heads)]
            case "aggregate", [selector, values, default]:
                rows = self.value(selector, heads)
                return self.aggregate(rows, self.value(values, heads), default)
            case "member", [a, atoms]:
                return [any(v == atom for atom in atoms) for v in self.value(a, heads)]
            case "lookup", [a, atoms]:
                return [table(v, atoms) for v in self.value(a, heads)]
            case _:
                return list(map(self.elementwise[op], *(self.value(a, heads) for a in rest)))

    def best(self, row: list[bool], scores: list[Any]) -> list[bool]:
        """The selected keys with the largest score."""
        chosen = [s for s, here in zip(scores, row, strict=True) if here]
        return [
            here and not any(other > s for other in chosen) for s, here in zip(scores, row, strict=True)
        ]

    def aggregate(self, rows: list[list[bool]], values: list[Any], default: Any) -> list[Any]:
        """The mean of the selected values, at each query."""
        result = []
        for row in rows:
            chosen = [v for v, here in zip(values, row, strict=True) if here]
            if len(chosen) < 2:
                result += chosen or [default]
            elif any(isinstance(v, str) for v in values) or all(isinstance(v, bool) for v in values):
                raise TypeError("the mean of values that are not numbers")
            else:
                result.append(self.mean(chosen))
        return result

    def mean(self, values: list[Any]) -> Any:
        return sum(values) / len(values)


#: Operations that have a value only if all their arguments have one.
STRICT = {*ELEMENTWISE, "member", "lookup"} - {"if_else", "multiply", "and", "or"}


def is_surely_undefined(program: Any, tokens: list[Any]) -> bool:
    """Whether an operation is undefined that no executor may omit.

    Executors may omit keys, branches, factors of 0 (docs/execution.md), and one operand of "and" and
    "or". They compute all positions of the result, and so of the arguments of other operations.
    """
    values = Run(tokens)

    def fails(p: Any) -> bool:
        arguments = [a for a in p[1:] if p[0] not in ("member", "lookup") or a is p[1]]
        if p[0] not in STRICT:
            return False
        return any(map(fails, arguments)) or (
            not values.is_defined(p) and all(map(values.is_defined, arguments))
        )

    return fails(program)
