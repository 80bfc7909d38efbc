"""Write what a feed-forward computes as formulas over slots: s4 = round(1 / s3) − 1.

>>> import numpy as np
>>> from locum.transformer.functions import Functions, Instruction
>>> product = Functions(2, (Instruction("multiply", (0, 1)), Instruction("exp", (2,))), (3,))
>>> expressions(product, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.0, -1.0]))[0].text
'exp(s0·(2·s1 − 1))'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.execution.elementwise import LOOSE, MEANINGS, PRODUCT, SUM, TERM
from locum.graph import OPERATIONS
from locum.transformer.functions import Functions, Instruction

#: Formulas are cut here: repeated subexpressions could make them exponentially long.
LONGEST = 160


@dataclass(frozen=True)
class FormulaText:
    """A piece of a formula."""

    text: str
    holds: int = TERM

    def within(self, needed: int) -> str:
        """Return the text as an operand of an operator that binds this tightly."""
        return self.text if self.holds >= needed else f"({self.text})"


def expressions(functions: Functions, weights: Any, biases: Any) -> list[FormulaText]:
    """Return each output as a formula; ``weights`` and ``biases`` give its arguments from slots."""
    formulas = [combination(weights[:, i], float(biases[i])) for i in range(functions.arguments)]
    called = list(formulas)
    # The last instruction of a label computes what it names; those before it are steps towards it.
    last = {instruction.label: place for place, instruction in enumerate(functions.instructions)}
    for place, instruction in enumerate(functions.instructions):
        formula = _cut(_say(instruction, [called[i] for i in instruction.inputs]))
        formulas.append(formula)
        # What has a name in the program goes by it where it is used further.
        named = instruction.label.isidentifier() and last[instruction.label] == place
        called.append(FormulaText(instruction.label) if named else formula)
    return [formulas[place] for place in functions.outputs]


def combination(column: Any, constant: float) -> FormulaText:
    """Return an affine combination of slots.

    >>> combination(np.array([-1.0, 0.0, 0.5]), -1.0).text
    '0.5·s2 − s0 − 1'
    """
    parts: list[tuple[float, str]] = []
    for slot in np.flatnonzero(column):
        coefficient = float(column[slot])
        size = abs(coefficient)
        parts.append((coefficient, f"s{slot}" if size == 1 else f"{size:.4g}·s{slot}"))
    parts.sort(key=lambda part: part[0] < 0)  # what is added stands before what is subtracted
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
    """Return a sum of formulas."""
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
