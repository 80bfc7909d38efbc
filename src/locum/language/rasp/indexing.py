"""Indexing: ``list[i]``, ``"string"[i]``, ``dict[key]``, ``s_op[i]``, by atoms and by s-ops."""

from __future__ import annotations

from typing import Any

from locum.graph import is_atom
from locum.language import python
from locum.language.handles import SOp
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.values import Value, operand, words_for


def indexed(base: Value, index: Value) -> Value:
    """``base[index]``; by an s-op, an s-op that looks each of its values up."""
    if isinstance(base, (list, str)):
        return _index_list(base, index)
    if isinstance(base, dict):
        return _index_dict(base, index)
    if isinstance(base, SOp):
        return _index_sop(base, index)
    raise RaspError(
        "type", f"only lists, dicts, strings and s-ops have an index, not {words_for(base)}"
    )


def _index_list(base: list[Value] | str, index: Value) -> Value:
    what = "string" if isinstance(base, str) else "list"
    if not base:
        raise RaspError("index", f"an empty {what} has nothing to index")
    if isinstance(index, SOp):
        places = {i: base[i] for i in range(-len(base), len(base))}
        return python.lookup(index, {i: operand(value, "indexing") for i, value in places.items()})
    if not isinstance(index, int):
        raise RaspError("type", f"index into list has to be s-op or integer, got: {words_for(index)}")
    if not -len(base) <= index < len(base):
        problem = f"index {words_for(index)} is outside a {what} of {len(base)}"
        raise RaspError("index", problem)
    return base[index]


def _index_dict(base: dict[Value, Value], index: Value) -> Value:
    if isinstance(index, SOp):
        return python.lookup(index, {key: operand(value, "indexing") for key, value in base.items()})
    if not is_atom(index):
        raise RaspError("type", f"index into dict has to be s-op or atom, got: {words_for(index)}")
    if index not in base:
        raise RaspError("index", f"index [ {words_for(index)} ] not in dict.")
    return base[index]


def _index_sop(base: SOp, index: Any) -> SOp:
    """Attention from one position, given to all."""
    if not isinstance(index, int):
        raise RaspError("index", f"index into an s-op has to be a whole number, not {words_for(index)}")
    place = int(index) if index >= 0 else python.length + index
    return python.aggregate(python.select(python.indices, place, "=="), base)
