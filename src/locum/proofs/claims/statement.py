"""Write claims as sentences that are generated from the content of the claim only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from locum.errors import InputError
from locum.graph.traversal import walk

#: Placeholders for the classes ``Formula`` and ``Claim``, whose modules import this module.
Formula: TypeAlias = Any
Claim: TypeAlias = Any
#: A token: the entry (matrix, row, column) of an input, or an integer.
Token: TypeAlias = "tuple[int, int, int] | int"
#: The text of an expression and its precedence.
Text: TypeAlias = tuple[str, int]

_LONGEST = 100_000
_SUM, _PRODUCT, _ATOM = range(3)
#: Operations for which a statement shows a number in place of one constant matrix.
ENTRY_BY_ENTRY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
#: Names of functions in statements, if they differ from the names in formulas.
FUNCTIONS = {
    "maximum": "max",
    "minimum": "min",
    "permanent": "per",
    "cofactors": "cof",
    "determinant": "det",
    "layer_norm": "norm",
    "sort": "sort_{}",
    "match2": "Match_{}",
}
#: Explanations that are appended to a statement, by operation or mask; ``{0}`` is the attribute.
_LEGEND = {
    "layer_norm": "norm(x, ε) is (x − mean)/√(variance + ε) in each row",
    "sort": "sort_{0} sorts every {0} consecutive entries of a row, greatest first",
    "match2": "Match_{0}(s)[i] is 1 if s[i] + s[j] is a multiple of {0} for some j, else 0",
    "hardmax": "hardmax is 1/k at the k maxima of each row, 0 elsewhere",
    "cofactors": "cof is the matrix of cofactors",
    "permanent": "per is the permanent",
    "causal": "σ_causal is the softmax of each row over columns j ≤ row i, 0 elsewhere",
}


def list_parts(*roots: Formula) -> Iterator[Formula]:
    """Yield ``roots`` and all formulas that they contain, each once, operands first."""
    return walk(roots, attrgetter("operands"))


def write_statement(claim: Claim) -> str:
    """Write a claim as a sentence, with an explanation of less common operations."""
    inputs, tokens, conditions = claim.inputs, claim.layout, claim.conditions
    domain = "ℤ" if claim.integer else "ℝ"
    quantified = ", ".join(f"{x.attribute[0]} ∈ {domain}^{{{x.rows}×{x.columns}}}" for x in inputs)
    relations = {"!=": "≠", ">": ">"}
    assumed = " and ".join(f"{write_formula(value)} {relations[sign]} 0" for value, sign in conditions)
    where = f" with {assumed}" if assumed else ""
    sequence = f"P⟨{_write_tokens(tokens, inputs)}⟩{_write_places(claim.places, len(tokens))}"
    sentence = (
        f"for all {quantified}{where}: {sequence} = {write_formula(claim.reference)}, "
        f"where P is the program {claim.hash[:16]}…"
    )
    legend: dict[str, None] = {}
    for part in list_parts(claim.reference, *(value for value, _ in conditions)):
        name = part.attribute if part.op == "softmax" else part.op
        if name in _LEGEND:
            legend[_LEGEND[name].format(part.attribute)] = None
    return _limit("; ".join([sentence, *legend]))


def write_formula(formula: Formula) -> str:
    """Write a formula as one line of text."""
    texts: dict[int, Text] = {}
    names = [part.attribute[0] for part in list_parts(formula) if part.op == "input"]
    # Products of single capital letters need no dot. With other names, e·x·p(A + B) could be read as
    # exp(A + B).
    letters = all(len(name) == 1 and name.isupper() for name in names)
    for part in list_parts(formula):
        text, level = _write(part, [texts[id(operand)] for operand in part.operands], letters)
        texts[id(part)] = _limit(text), level
    return texts[id(formula)][0]


def _limit(text: str) -> str:
    if len(text) > _LONGEST:
        raise InputError(f"statement: expected at most {_LONGEST:,} characters, got more")
    return text


def _write(formula: Formula, operands: Sequence[Text], letters: bool) -> Text:
    op, attribute = formula.op, formula.attribute
    if op in ENTRY_BY_ENTRY and sum(one.op == "constant" for one in formula.operands) == 1:
        operands = [
            _write_number(one.attribute[0]) if one.op == "constant" else text
            for one, text in zip(formula.operands, operands, strict=True)
        ]

    def part(number: int, level: int) -> str:
        text, own = operands[number]
        return text if own >= level else f"({text})"

    texts = [text for text, _ in operands]
    inside = ", ".join(texts)
    match op:
        case "input":
            return attribute[0], _ATOM
        case "constant":
            text, level = _write_number(attribute[0])
            if formula.shape == (1, 1):
                return text, level
            number = text if level == _ATOM else f"({text})"
            return f"{number}_{{{attribute[1]}×{attribute[2]}}}", _ATOM
        case "identity":
            return f"I_{attribute}", _ATOM
        case "entries":
            rows = [texts[i : i + attribute[1]] for i in range(0, len(texts), attribute[1])]
            return f"[{'; '.join(', '.join(row) for row in rows)}]", _ATOM
        case "beside":
            return f"[{inside}]", _ATOM
        case "below":
            return f"[{'; '.join(texts)}]", _ATOM
        case "entry":
            return f"{part(0, _ATOM)}[{attribute[0]},{attribute[1]}]", _ATOM
        case "transpose":
            return f"{part(0, _ATOM)}ᵀ", _ATOM
        case "inverse":
            return f"{part(0, _ATOM)}⁻¹", _ATOM
        case "matmul":
            left, right = part(0, _PRODUCT), part(1, _PRODUCT)
            # Write a dot where adjacent names, numbers or bars could be misread.
            apart = "|" in (left[-1], right[0]) or right[0].isdigit() or right[0] == "["
            readable = (letters or left[-1] in "ᵀ)]¹") and not apart
            return left + ("" if readable else "·") + right, _PRODUCT
        case "add" | "subtract":
            return part(0, _SUM) + (" + " if op == "add" else " − ") + part(1, _PRODUCT), _SUM
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
    return f"{FUNCTIONS.get(op, op).format(attribute)}({inside})", _ATOM


def _write_number(text: str) -> Text:
    return text, _ATOM if text.isdigit() else _SUM


def _write_tokens(tokens: Sequence[Token], inputs: Sequence[Formula]) -> str:
    """Write the tokens of a claim, with names for whole matrices and powers for repeated integers."""
    parts, position = [], 0
    while position < len(tokens):
        token, start = tokens[position], position
        if isinstance(token, int):
            while position < len(tokens) and tokens[position] == token:
                position += 1
            count = position - start
            parts.append(str(token) if count == 1 else f"{token}^{{{count}}}")
            continue
        name, matrix = inputs[token[0]].attribute[0], inputs[token[0]]
        whole = [(token[0], i, j) for i in range(matrix.rows) for j in range(matrix.columns)]
        is_whole = list(tokens[start : start + len(whole)]) == whole
        parts.append(name if is_whole else f"{name}[{token[1]},{token[2]}]")
        position += len(whole) if is_whole else 1
    return ", ".join(parts)


def _write_places(places: Sequence[Sequence[int]], length: int) -> str:
    """Write the positions of the result, or an empty string for the whole sequence.

    Consecutive positions are written as one run, other positions row by row.
    """
    flat = [place for row in places for place in row]
    if flat == list(range(length)):
        return ""
    return f"[{_write_run(flat)}]" if _is_run(flat) else f"[{'; '.join(map(_write_run, places))}]"


def _is_run(row: Sequence[int]) -> bool:
    return list(row) == list(range(row[0], row[0] + len(row)))


def _write_run(row: Sequence[int]) -> str:
    return f"{row[0]}…{row[-1]}" if len(row) > 1 and _is_run(row) else ", ".join(map(str, row))
