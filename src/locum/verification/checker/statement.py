"""Sentences made from claims: what a certificate proves, in words that cannot say anything else.

A sentence is generated from the inputs, their domain, the conditions, the tokens, the positions read,
the reference formula and the program's hash. There is no free text in it: input names are checked
(``formula_table.py``), and operations that not every reader knows are explained at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from locum.verification.checker.formulas import Formula
from locum.verification.checker.writing import limited, nodes, written

#: A token: an entry (matrix, row, column), or an integer.
Token: TypeAlias = "tuple[int, int, int] | int"

_RELATIONS = {"!=": "≠", ">": ">"}


def statement(
    inputs: Sequence[Formula],
    integer: bool,
    conditions: Sequence[tuple[Formula, str]],
    tokens: Sequence[Token],
    places: Sequence[Sequence[int]],
    reference: Formula,
    program: str,
) -> str:
    """Say what is claimed, for a program with the hash ``program``."""
    domain = "ℤ" if integer else "ℝ"
    quantified = ", ".join(f"{x.attribute[0]} ∈ {domain}^{{{x.rows}×{x.columns}}}" for x in inputs)
    assumed = " and ".join(f"{written(value)} {_RELATIONS[sign]} 0" for value, sign in conditions)
    where = f" with {assumed}" if assumed else ""
    read = _positions(places, len(tokens))
    sentence = (
        f"for all {quantified}{where}: P⟨{_sequence(tokens, inputs)}⟩{read} = {written(reference)}, "
        f"where P is the program {program[:16]}…"
    )
    legend = _legend(reference, *(value for value, _ in conditions))
    return limited("; ".join([sentence, *legend]))


def _legend(*formulas: Formula) -> list[str]:
    """Explain operations that the sentence uses."""
    lines = {}
    for formula in nodes(*formulas):
        match formula.op:
            case "softmax" if formula.attribute:
                lines["causal"] = (
                    "σ_causal is the softmax of each row over columns j ≤ row i, 0 elsewhere"
                )
            case "layer_norm":
                lines["norm"] = "norm(x, ε) is (x − mean)/√(variance + ε) in each row"
            case "sort":
                size = formula.attribute
                lines[f"sort{size}"] = (
                    f"sort_{size} sorts every {size} consecutive entries of a row, greatest first"
                )
            case "match2":
                p = formula.attribute
                lines[f"match{p}"] = (
                    f"Match_{p}(s)[i] is 1 if s[i] + s[j] is a multiple of {p} for some j, else 0"
                )
            case "hardmax":
                lines["hardmax"] = "hardmax is 1/k at the k greatest entries of each row, 0 elsewhere"
            case "cofactors":
                lines["cof"] = "cof is the matrix of cofactors"
            case "permanent":
                lines["per"] = "per is the permanent"
    return list(lines.values())


def _sequence(tokens: Sequence[Token], inputs: Sequence[Formula]) -> str:
    """Write the tokens: whole matrices by their names, runs of one integer as a power."""
    parts, position = [], 0
    while position < len(tokens):
        token = tokens[position]
        if isinstance(token, int):
            end = position
            while end < len(tokens) and tokens[end] == token:
                end += 1
            parts.append(str(token) if end == position + 1 else f"{token}^{{{end - position}}}")
            position = end
            continue
        matrix = inputs[token[0]]
        whole = [(token[0], i, j) for i in range(matrix.rows) for j in range(matrix.columns)]
        if list(tokens[position : position + len(whole)]) == whole:
            parts.append(matrix.attribute[0])
            position += len(whole)
        else:
            parts.append(f"{matrix.attribute[0]}[{token[1]},{token[2]}]")
            position += 1
    return ", ".join(parts)


def _positions(places: Sequence[Sequence[int]], length: int) -> str:
    """Write which positions are read, row by row; nothing if it is the whole sequence."""
    flat = [place for row in places for place in row]
    if flat == list(range(length)):
        return ""
    return f"[{'; '.join(_run(row) for row in places)}]" if flat != _range(flat) else f"[{_run(flat)}]"


def _range(flat: Sequence[int]) -> list[int]:
    return list(range(flat[0], flat[0] + len(flat)))


def _run(row: Sequence[int]) -> str:
    if len(row) > 1 and list(row) == _range(row):
        return f"{row[0]}…{row[-1]}"
    return ", ".join(map(str, row))
