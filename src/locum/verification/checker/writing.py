"""Formulas as lines of text, and the order in which to go through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from locum.errors import InputError
from locum.verification.checker.formula_table import Attribute, Shape

#: Characters of one sentence, at most.
LONGEST = 100_000
#: How tightly a text binds: sums must be bracketed in products, products before a raised sign.
_SUM, _PRODUCT, _ATOM = range(3)

_INFIX = {"add": " + ", "subtract": " − "}
#: Operations beside whose matrix a number can stand without its shape.
ENTRY_BY_ENTRY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
#: How operations are called in writing.
FUNCTIONS = {
    "exp": "exp",
    "maximum": "max",
    "minimum": "min",
    "hardmax": "hardmax",
    "permanent": "per",
    "cofactors": "cof",
    "determinant": "det",
}


class Expression(Protocol):
    """What can be written: an operation on operands."""

    op: str
    attribute: Attribute

    @property
    def operands(self) -> Sequence[Any]: ...

    @property
    def shape(self) -> Shape: ...


Part = TypeVar("Part", bound=Expression)


def nodes(*roots: Part) -> Iterator[Part]:
    """List every formula below ``roots`` once, operands first."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        formula, done = stack.pop()
        if done:
            yield formula
        elif id(formula) not in seen:
            seen.add(id(formula))
            stack.append((formula, True))
            stack.extend((part, False) for part in reversed(formula.operands) if id(part) not in seen)


def written(formula: Expression) -> str:
    """Write a formula as one line."""
    texts: dict[int, tuple[str, int]] = {}
    in_all = 0
    names = [part.attribute[0] for part in nodes(formula) if part.op == "input"]
    # Capital letters can stand side by side; e·x·p(A + B) must not read as exp(A + B).
    letters = all(len(name) == 1 and name.isupper() for name in names)
    for part in nodes(formula):
        text, level = _write(part, [texts[id(operand)] for operand in part.operands], letters)
        texts[id(part)] = limited(text), level
        in_all += len(text)
        if in_all > 50 * LONGEST:
            raise InputError(f"expected formulas that are written in {50 * LONGEST:,} characters")
    return texts[id(formula)][0]


def limited(text: str) -> str:
    """Refuse a text that is too long to be read."""
    if len(text) > LONGEST:
        raise InputError(f"expected a statement of at most {LONGEST:,} characters")
    return text


def _write(formula: Expression, operands: Sequence[tuple[str, int]], letters: bool) -> tuple[str, int]:
    op, attribute = formula.op, formula.attribute
    if op in ENTRY_BY_ENTRY and sum(one.op == "constant" for one in formula.operands) == 1:
        operands = [
            _number(one.attribute[0]) if one.op == "constant" else text
            for one, text in zip(formula.operands, operands, strict=True)
        ]

    def part(number: int, level: int) -> str:
        text, own = operands[number]
        return text if own >= level else f"({text})"

    inside = ", ".join(text for text, _ in operands)
    match op:
        case "input":
            return attribute[0], _ATOM
        case "constant":
            if formula.shape == (1, 1):
                return _number(attribute[0])
            text, level = _number(attribute[0])
            number = text if level == _ATOM else f"({text})"
            return f"{number}_{{{attribute[1]}×{attribute[2]}}}", _ATOM
        case "identity":
            # With its order: σ(I)[0,0] is another number for each.
            return f"I_{attribute}", _ATOM
        case "entries":
            columns = attribute[1]
            rows = [operands[i : i + columns] for i in range(0, len(operands), columns)]
            return f"[{'; '.join(', '.join(text for text, _ in row) for row in rows)}]", _ATOM
        case "beside":
            return f"[{inside}]", _ATOM
        case "below":
            return f"[{'; '.join(text for text, _ in operands)}]", _ATOM
        case "entry":
            return f"{part(0, _ATOM)}[{attribute[0]},{attribute[1]}]", _ATOM
        case "transpose":
            return f"{part(0, _ATOM)}ᵀ", _ATOM
        case "inverse":
            return f"{part(0, _ATOM)}⁻¹", _ATOM
        case "matmul":
            left, right = part(0, _PRODUCT), part(1, _PRODUCT)
            # A dot where names, numbers or bars side by side could be misread; X[0, 1] is no entry.
            apart = "|" in (left[-1], right[0]) or right[0].isdigit() or right[0] == "["
            readable = (letters or left[-1] in "ᵀ)]¹") and not apart
            return left + ("" if readable else "·") + right, _PRODUCT
        case "add" | "subtract":
            return part(0, _SUM) + _INFIX[op] + part(1, _PRODUCT), _SUM
        case "multiply" | "divide":
            signs = ("·", "/") if formula.shape == (1, 1) else (" ⊙ ", " ⊘ ")
            return part(0, _ATOM) + signs[op == "divide"] + part(1, _ATOM), _SUM
        case "negate":
            return f"−{part(0, _PRODUCT)}", _SUM
        case "absolute":
            return f"abs({inside})" if "|" in inside else f"|{inside}|", _ATOM
        case "determinant" if formula.operands[0].op == "input":
            return f"det {inside}", _SUM
        case "softmax":
            return ("σ_causal" if attribute else "σ") + f"({inside})", _ATOM
        case "layer_norm":
            return f"norm({inside})", _ATOM
        case "sort":
            return f"sort_{attribute}({inside})", _ATOM
        case "match2":
            return f"Match_{attribute}({inside})", _ATOM
    return f"{FUNCTIONS[op]}({inside})", _ATOM


def _number(text: str) -> tuple[str, int]:
    """Return a number, and how tightly it binds."""
    return text, _ATOM if text.isdigit() else _SUM
