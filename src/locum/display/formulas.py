"""Reference formulas as MathML, made from the formula itself and not from its text."""

from __future__ import annotations

import html
from collections.abc import Sequence

from locum.verification.claims.formula import Formula
from locum.verification.claims.statement import ENTRY_BY_ENTRY, FUNCTIONS, list_parts

_SUM, _PRODUCT, _ATOM = range(3)
#: Letters that names of inputs spell out.
_GREEK = {"epsilon": "ε", "omega": "ω", "phi": "φ"}
_WORDS = FUNCTIONS


def mathml(formula: Formula) -> str:
    """Return a formula as MathML.

    >>> mathml(Formula.input("X", 2, 3).T)
    '<math><msup><mi>X</mi><mi>T</mi></msup></math>'
    """
    parts: dict[int, tuple[str, int]] = {}
    for part in list_parts(formula):
        parts[id(part)] = _set(part, [parts[id(operand)] for operand in part.operands])
    return f"<math>{parts[id(formula)][0]}</math>"


def name(text: str) -> str:
    """Set the name of a matrix: digits and what follows an underscore are subscripts.

    >>> name("W_Q"), name("A0"), name("epsilon")
    ('<msub><mi>W</mi><mi>Q</mi></msub>', '<msub><mi>A</mi><mn>0</mn></msub>', '<mi>ε</mi>')
    """
    letter, _, index = text.partition("_")
    if index:
        return f"<msub><mi>{_letter(letter)}</mi><mi>{_letter(index)}</mi></msub>"
    stem = text.rstrip("0123456789")
    digits = text[len(stem) :]
    base = _letter(stem)
    return f"<msub><mi>{base}</mi><mn>{digits}</mn></msub>" if digits else f"<mi>{base}</mi>"


def _letter(text: str) -> str:
    return html.escape(_GREEK.get(text, text))


def _sign(text: str) -> str:
    return f'<mo stretchy="false">{html.escape(text)}</mo>'


def _call(word: str, inside: str) -> tuple[str, int]:
    return f"<mi>{word}</mi>{_sign('(')}{inside}{_sign(')')}", _ATOM


def _set(formula: Formula, operands: Sequence[tuple[str, int]]) -> tuple[str, int]:
    def part(number: int, level: int) -> str:
        text, own = operands[number]
        return text if own >= level else f"{_sign('(')}{text}{_sign(')')}"

    op, attribute = formula.op, formula.attribute
    if op in ENTRY_BY_ENTRY and sum(one.op == "constant" for one in formula.operands) == 1:
        operands = [
            (_number(one.attribute[0]), _ATOM) if one.op == "constant" else text
            for one, text in zip(formula.operands, operands, strict=True)
        ]
    inside = _sign(",").join(text for text, _ in operands)
    match op:
        case "input":
            return name(attribute[0]), _ATOM
        case "constant":
            number = _number(attribute[0])
            if formula.shape == (1, 1):
                return number, _ATOM
            shape = f"<mrow><mn>{attribute[1]}</mn>{_sign('×')}<mn>{attribute[2]}</mn></mrow>"
            return f"<msub>{number}{shape}</msub>", _ATOM
        case "identity":
            return f"<msub><mi>I</mi><mn>{attribute}</mn></msub>", _ATOM
        case "entries" | "below" | "beside":
            columns = {"entries": attribute and attribute[1], "below": 1}.get(op, len(operands))
            rows = [operands[i : i + columns] for i in range(0, len(operands), columns)]
            cells = "".join(
                f"<mtr>{''.join(f'<mtd>{text}</mtd>' for text, _ in row)}</mtr>" for row in rows
            )
            return f"{_sign('[')}<mtable>{cells}</mtable>{_sign(']')}", _ATOM
        case "entry":
            i, j = attribute
            place = f"<mrow><mn>{i}</mn>{_sign(',')}<mn>{j}</mn></mrow>"
            return f"<msub>{_grouped(part(0, _ATOM))}{place}</msub>", _ATOM
        case "transpose":
            return f"<msup>{_grouped(part(0, _ATOM))}<mi>T</mi></msup>", _ATOM
        case "inverse":
            return f"<msup>{_grouped(part(0, _ATOM))}<mn>−1</mn></msup>", _ATOM
        case "matmul":
            return part(0, _PRODUCT) + part(1, _PRODUCT), _PRODUCT
        case "add" | "subtract":
            return part(0, _SUM) + _sign("+" if op == "add" else "−") + part(1, _PRODUCT), _SUM
        case "multiply":
            symbol = _sign("·" if formula.shape == (1, 1) else "⊙")
            return part(0, _ATOM) + symbol + part(1, _ATOM), _SUM
        case "divide":
            return f"<mfrac><mrow>{operands[0][0]}</mrow><mrow>{operands[1][0]}</mrow></mfrac>", _ATOM
        case "negate":
            return _sign("−") + part(0, _PRODUCT), _SUM
        case "absolute":
            return f"{_sign('|')}{inside}{_sign('|')}", _ATOM
        case "softmax":
            symbol = "<msub><mi>σ</mi><mtext>causal</mtext></msub>" if attribute else "<mi>σ</mi>"
            return f"{symbol}{_sign('(')}{inside}{_sign(')')}", _ATOM
        case "sort" | "match2":
            word = "sort" if op == "sort" else "Match"
            symbol = f"<msub><mi>{word}</mi><mn>{attribute}</mn></msub>"
            return f"{symbol}{_sign('(')}{inside}{_sign(')')}", _ATOM
    return _call(_WORDS.get(op, op), inside)


def _number(text: str) -> str:
    top, _, bottom = text.partition("/")
    return f"<mfrac><mn>{top}</mn><mn>{bottom}</mn></mfrac>" if bottom else f"<mn>{top}</mn>"


def _grouped(text: str) -> str:
    return text if text.startswith("<mi>") and text.count("<mi>") == 1 else f"<mrow>{text}</mrow>"
