"""The meaning of RASP programs, in plain Python: the oracle of the tests. It does not import locum.

A program is a nested tuple: ("aggregate", selector, values, default), ("add", a, b), ("tokens", "asis"),
("constant", 3), ("select", keys, queries, "=="), ("sum_over", (("family", "l", 3),), body), …
An s-op evaluates to a list with one value per position, a selector to rows of booleans (one per query).
"""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CAST = {"asis": lambda t: t, "str": str, "int": int, "float": float, "bool": bool}


class Undefined(Exception):
    """The program has no value on this input."""


def narrow(form: str, value: float) -> float:
    """Round to a narrower float, ties to even; b is bfloat16, the upper half of a float32."""
    single = struct.unpack("<f", struct.pack("<f", value))[0]  # raises OverflowError
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


ELEMENTWISE = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "modulo": remainder, "floor_divide": operator.floordiv, "power": power, "negate": operator.neg,
    "absolute": abs, "minimum": lambda a, b: a if a < b else b, "maximum": lambda a, b: a if a > b else b,
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "erf": math.erf, "tanh": math.tanh,
    "sin": math.sin, "cos": math.cos, "floor": math.floor, "round": round,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
    "and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_, "if_else": lambda c, a, b: a if c else b, "indicator": lambda a: 1 if a else 0,
    "float64": lambda a: float(a + 0), "float32": lambda a: narrow("f", a + 0),
    "float16": lambda a: narrow("e", a + 0), "bfloat16": lambda a: narrow("b", a + 0),
}  # fmt: skip


def run(program: Any, tokens: list[Any]) -> list[Any]:
    """The value of a program on an input; raises Undefined."""
    try:
        return Run(tokens).value(program, {})
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Undefined(str(error)) from None


class Run:
    def __init__(self, tokens: list[Any]) -> None:
        self.tokens, self.size, self.memory = tokens, len(tokens), {}

    def value(self, p: Any, heads: dict[str, int]) -> list[Any]:
        key = (id(p), *sorted(heads.items()))
        if key not in self.memory:
            result = self.compute(p, heads)
            if p[0] not in SELECTORS:  # a sequence may not mix strings with numbers
                if len({isinstance(v, str) for v in result}) > 1:
                    raise TypeError("mixture")
            self.memory[key] = result
        return self.memory[key]

    def compute(self, p: Any, heads: dict[str, int]) -> list[Any]:
        op, *rest = p
        everywhere = range(self.size)
        match op, rest:
            case "tokens", [cast]:
                return [CAST[cast](t) for t in self.tokens]
            case "indices", []:
                return list(everywhere)
            case "length", []:
                return [self.size] * self.size
            case "constant", [atom]:
                return [atom] * self.size
            case "family", [name, _]:
                return [heads[name]] * self.size
            case "sum_over", [families, body]:
                total = [0] * self.size
                for chosen in members(families):
                    values = self.value(body, heads | chosen)
                    total = [a + b for a, b in zip(total, values, strict=True)]
                return total
            case "select", [keys, queries, predicate]:
                ks, qs = self.value(keys, heads), self.value(queries, heads)
                return [[COMPARE[predicate](k, q) for k in ks] for q in qs]
            case "best", [selector, score]:
                rows, scores = self.value(selector, heads), self.value(score, heads)
                return [best(row, scores) for row in rows]
            case "selector_not", [a]:
                return [[not x for x in row] for row in self.value(a, heads)]
            case (("selector_and" | "selector_or"), [a, b]):
                both = zip(self.value(a, heads), self.value(b, heads), strict=True)
                join = operator.and_ if op == "selector_and" else operator.or_
                return [[join(x, y) for x, y in zip(*rows, strict=True)] for rows in both]
            case "selector_width", [selector]:
                return [sum(row) for row in self.value(selector, heads)]
            case "aggregate", [selector, values, default]:
                return aggregate(self.value(selector, heads), self.value(values, heads), default)
            case (("member" | "lookup"), [a, atoms]):
                inner = self.value(a, heads)
                if op == "member":
                    return [any(v == atom for atom in atoms) for v in inner]
                return [table(v, atoms) for v in inner]
            case _:
                return list(map(ELEMENTWISE[op], *(self.value(a, heads) for a in rest)))


SELECTORS = {"select", "best", "selector_and", "selector_or", "selector_not"}


def members(families: Any) -> list[dict[str, int]]:
    result: list[dict[str, int]] = [{}]
    for _, name, size in families:
        result = [chosen | {name: head} for chosen in result for head in range(size)]
    return result


def best(row: list[bool], scores: list[Any]) -> list[bool]:
    chosen = [s for s, here in zip(scores, row, strict=True) if here]
    return [here and not any(o > s for o in chosen) for s, here in zip(scores, row, strict=True)]


def aggregate(rows: list[list[bool]], values: list[Any], default: Any) -> list[Any]:
    numeric = {type(v) for v in values} & {int, float} and not any(isinstance(v, str) for v in values)
    result = []
    for row in rows:
        chosen = [v for v, here in zip(values, row, strict=True) if here]
        if len(chosen) > 1 and not numeric:
            raise TypeError("mean of values that are not numbers")
        if len(chosen) < 2:
            result += chosen or [default]
            continue
        total: Any = 0
        for v in chosen:  # from left to right
            total += v
        result.append(total / len(chosen))
    return result
