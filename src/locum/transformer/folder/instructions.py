"""Reading the straight-line programs of exact feed-forwards: all that running relies on is checked."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

from locum.errors import InputError
from locum.transformer.folder.fields import fields, items, number, refuse, text, whole
from locum.transformer.functions import INSTRUCTIONS, MEANINGS, Functions, Instruction

#: How many numbers each operation takes (``table`` takes as many as it has lists of keys).
ARITIES = {
    name: len(inspect.signature(meaning).parameters) - 1 for name, meaning in MEANINGS.items()
} | {"constant": 0, "member": 1}


def read_functions(value: Any, where: str) -> Functions:
    """What :meth:`Functions.as_json` wrote."""
    row = fields(value, where, {"arguments", "instructions", "outputs"})
    arguments = whole(row["arguments"], f"{where}.arguments")
    instructions = items(row["instructions"], f"{where}.instructions", _instruction)
    if instructions and not arguments:
        raise InputError(f"{where} has instructions, but no argument that says for how many positions")
    for place, instruction in enumerate(instructions):
        for source in instruction.inputs:
            if source >= arguments + place:
                raise InputError(
                    f"{where}.instructions[{place}] reads number {source}, but only the "
                    f"{arguments + place} before it are known"
                )
    outputs = items(row["outputs"], f"{where}.outputs", whole)
    for source in outputs:
        if source >= arguments + len(instructions):
            raise InputError(
                f"{where} gives number {source}, but there are {arguments + len(instructions)}"
            )
    return Functions(arguments, instructions, outputs)


def _instruction(value: Any, where: str) -> Instruction:
    row = fields(value, where, {"op", "inputs"}, {"attributes", "label"})
    op = text(row["op"], f"{where}.op")
    if op not in INSTRUCTIONS:
        refuse(f"{where}.op", "an instruction", op)
    inputs = items(row["inputs"], f"{where}.inputs", whole)
    attributes = row.get("attributes", {})
    arity = ARITIES.get(op)
    match op:
        case "constant":
            given = fields(attributes, f"{where}.attributes", {"value"})
            attributes = {"value": number(given["value"], f"{where}.attributes.value")}
        case "member":
            given = fields(attributes, f"{where}.attributes", {"values"})
            attributes = {"values": items(given["values"], f"{where}.attributes.values", number)}
        case "table":
            attributes = _table(attributes, f"{where}.attributes")
            arity = len(attributes["keys"])
        case _:
            attributes = dict(fields(attributes, f"{where}.attributes", ()))
    if len(inputs) != arity:
        raise InputError(f"{where}: {op} takes {arity} numbers, not {len(inputs)}")
    return Instruction(op, inputs, attributes, text(row.get("label", ""), f"{where}.label"))


def _table(attributes: Any, where: str) -> dict[str, Any]:
    row = fields(attributes, where, {"keys", "values"})
    keys = items(row["keys"], f"{where}.keys", lambda one, place: items(one, place, number))
    if not keys or not all(keys):
        raise InputError(f"{where}.keys must be one list or more, none of them empty")
    for among in keys:
        if any(not a < b for a, b in itertools.pairwise(among)):
            raise InputError(f"{where}.keys must be in ascending order, each once")
    values = items(
        row["values"], f"{where}.values", lambda one, place: None if one is None else number(one, place)
    )
    if len(values) != math.prod(map(len, keys)):
        raise InputError(
            f"{where}.values must be one for each combination of keys, "
            f"{math.prod(map(len, keys))}, not {len(values)}"
        )
    return {"keys": keys, "values": values}
