"""Classes of the names that Tracr's have, with what its interpreter does, for tests without it.

Written from what its documentation says of each construct.
"""

from __future__ import annotations

import enum
import operator
from typing import Any


class Comparison(enum.Enum):
    EQ = "=="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    NEQ = "!="
    TRUE = "True"
    FALSE = "False"

    def __call__(self, key: Any, query: Any) -> bool:
        if key is None or query is None:
            raise ValueError("key or query is None")
        if self.value in ("True", "False"):
            return self.value == "True"
        # EQ, LT, LEQ, GT, GEQ, NEQ: eq, lt, le, gt, ge, ne.
        return bool(getattr(operator, self.name.lower()[:2])(key, query))


class SOp:
    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)
        self.annotations: dict[str, str] = {}

    def numerical(self) -> SOp:
        self.annotations["encoding"] = "Encoding.NUMERICAL"
        return self

    def __call__(self, inputs: list[Any]) -> list[Any]:
        raise NotImplementedError


class TokensType(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        return inputs


class IndicesType(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        return list(range(len(inputs)))


class LengthType(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        return [len(inputs)] * len(inputs)


class Map(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        return [None if x is None else self.f(x) for x in self.inner(inputs)]  # type: ignore[attr-defined]


class SequenceMap(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        pairs = zip(self.fst(inputs), self.snd(inputs), strict=True)  # type: ignore[attr-defined]
        return [None if None in pair else self.f(*pair) for pair in pairs]  # type: ignore[attr-defined]


class Selector:
    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)

    def __call__(self, inputs: list[Any]) -> list[list[bool]]:
        raise NotImplementedError


class Select(Selector):
    def __call__(self, inputs: list[Any]) -> list[list[bool]]:
        keys, queries = self.keys(inputs), self.queries(inputs)  # type: ignore[attr-defined]
        return [[self.selects(k, q) for k in keys] for q in queries]

    def selects(self, key: Any, query: Any) -> bool:
        if isinstance(self.predicate, Comparison) and None in (key, query):  # type: ignore[attr-defined]
            return False  # as in its networks; its interpreter raises
        return bool(self.predicate(key, query))  # type: ignore[attr-defined]


class SelectorAnd(Selector):
    def __call__(self, inputs: list[Any]) -> list[list[bool]]:
        first, second = self.fst(inputs), self.snd(inputs)  # type: ignore[attr-defined]
        return [
            [a and b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)
        ]


class SelectorOr(Selector):
    def __call__(self, inputs: list[Any]) -> list[list[bool]]:
        first, second = self.fst(inputs), self.snd(inputs)  # type: ignore[attr-defined]
        return [
            [a or b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)
        ]


class SelectorNot(Selector):
    def __call__(self, inputs: list[Any]) -> list[list[bool]]:
        return [[not chosen for chosen in row] for row in self.inner(inputs)]  # type: ignore[attr-defined]


class SelectorWidth(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        return [sum(row) for row in self.selector(inputs)]  # type: ignore[attr-defined]


class Aggregate(SOp):
    def __call__(self, inputs: list[Any]) -> list[Any]:
        values, result = self.sop(inputs), []  # type: ignore[attr-defined]
        for row in self.selector(inputs):  # type: ignore[attr-defined]
            chosen = [v for v, here in zip(values, row, strict=True) if here]
            if not chosen:
                result.append(self.default)  # type: ignore[attr-defined]
            elif len(chosen) == 1:
                result.append(chosen[0])
            elif all(isinstance(v, (int, float)) for v in chosen):
                result.append(sum(chosen) / len(chosen))
            else:
                raise ValueError(f"a mean of {chosen}")
        return result


for _kind in list(vars().values()):
    if isinstance(_kind, type) and _kind.__module__ == __name__:
        _kind.__module__ = "tracr.rasp.rasp"
