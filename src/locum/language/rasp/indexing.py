"""Indexing: ``list[i]``, ``"string"[i]``, ``dict[key]``, ``s_op[i]``, by atoms and by s-ops."""

from __future__ import annotations

from typing import Any

from locum.budget import Budget
from locum.graph import is_atom
from locum.language import python
from locum.language.handles import SOp
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.values import Value, words_for

#: Steps and bytes that an entry of a lookup table takes.
_ENTRY_STEPS, _ENTRY_BYTES = 1, 250


def indexed(base: Value, index: Value, budget: Budget) -> Value:
    """Return ``base[index]``; by an s-op, an s-op that looks each of its values up."""
    if isinstance(base, (list, str)):
        return _index_list(base, index, budget)
    if isinstance(base, dict):
        return _index_dict(base, index, budget)
    if isinstance(base, SOp):
        return _index_sop(base, index)
    raise RaspError(
        "type", f"only lists, dicts, strings and s-ops have an index, not {words_for(base)}"
    )


def _index_list(base: list[Value] | str, index: Value, budget: Budget) -> Value:
    what = "string" if isinstance(base, str) else "list"
    if not base:
        raise RaspError("index", f"an empty {what} has nothing to index")
    if isinstance(index, SOp):
        _charge(2 * len(base), budget)
        return _lookup(index, {i: base[i] for i in range(-len(base), len(base))})
    if not isinstance(index, int):
        raise RaspError("type", f"index into list has to be s-op or integer, got: {words_for(index)}")
    if not -len(base) <= index < len(base):
        problem = f"index {words_for(index)} is outside a {what} of {len(base)}"
        raise RaspError("index", problem)
    return base[index]


def _index_dict(base: dict[Value, Value], index: Value, budget: Budget) -> Value:
    if isinstance(index, SOp):
        _charge(len(base), budget)
        return _lookup(index, base)
    if not is_atom(index):
        raise RaspError("type", f"index into dict has to be s-op or atom, got: {words_for(index)}")
    if index not in base:
        raise RaspError("index", f"index [ {words_for(index)} ] not in dict.")
    return base[index]


def _charge(entries: int, budget: Budget) -> None:
    budget.spend(_ENTRY_STEPS * entries)
    budget.reserve(_ENTRY_BYTES * entries)


def _lookup(index: SOp, table: dict[Value, Value]) -> SOp:
    """Look values up; a member that cannot stand in a sequence matters only where it is met."""
    atoms = {key: value for key, value in table.items() if is_atom(value)}
    if not table:
        raise RaspError("index", "an empty dict has nothing to index")
    if not atoms:
        member = words_for(next(iter(table.values())))
        raise RaspError("type", f"an s-op indexes lists and dicts of atoms, but got one of {member}")
    return python.lookup(index, atoms)


def _index_sop(base: SOp, index: Any) -> SOp:
    """Attend to one position, from everywhere."""
    if not isinstance(index, int):
        raise RaspError("index", f"index into an s-op has to be an integer, not {words_for(index)}")
    place = int(index) if index >= 0 else python.length + index
    return python.aggregate(python.select(python.indices, place, "=="), base)
