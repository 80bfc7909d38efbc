"""The parser of RASP, from tables that are kept beside the grammar.

Lark works out its tables from the grammar each time, which takes half as long as all the rest of a
short ``locum run``. ``tables.json`` has them as plain data, in Lark's own form. They are used only
where both the grammar and the version of Lark are those that they were made from; elsewhere Lark works
them out. ``python -m locum.language.rasp.tables`` makes them anew for another grammar or another Lark.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

_FOLDER = resources.files("locum.language.rasp")
#: Widths of patterns are capped, as their greatest differs between versions of Python.
_WIDEST = 2**16


@cache
def grammar() -> Lark:
    """Make the parser, once, from the tables that are kept if they are of this grammar and this Lark.

    It does not work out the position of every tree, which would double the time it takes; the few
    that an error needs are found by their tokens (``interpreter.py``).

    >>> grammar().parse("x = 1;").data == "start"
    True
    """
    kept = json.loads(_FOLDER.joinpath("tables.json").read_text(encoding="utf-8"))
    if kept["made_from"] != _made_from():
        return worked_out()
    return Lark.load(_as_lark_has_them(kept))


def worked_out() -> Lark:
    """Work out the parser from the grammar.

    >>> worked_out().parse("x = 1;").data == "start"
    True
    """
    return Lark(_text(), parser="lalr", lexer="basic", maybe_placeholders=True)


def tables(parser: Lark) -> dict[str, Any]:
    """Return the tables of a parser as plain data, the same for each run of Python.

    Lark numbers its states and tokens in an order that differs from run to run; here tokens are
    numbered by name, and states as they are met from the first on.

    >>> tables(grammar())["data"]["parser"]["parser"]["start_states"]
    {'start': 0}
    """
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    for entry in memo.values():
        if "_width" in entry.get("pattern", {}):
            least, most = entry["pattern"]["_width"]
            entry["pattern"]["_width"] = least, min(most, _WIDEST)
    table = data["parser"]["parser"]
    name_of: dict[int, str] = table["tokens"]
    names = sorted(name_of.values())
    actions = {
        state: sorted((names.index(name_of[token]), action) for token, action in row.items())
        for state, row in table["states"].items()
    }
    met = list(table["start_states"].values())
    for state in met:
        met += [to for _, (kind, to) in actions[state] if kind == 0 and to not in met]
    number = {state: k for k, state in enumerate(met)}
    states = {
        number[state]: {
            token: (kind, number[to] if kind == 0 else to) for token, (kind, to) in actions[state]
        }
        for state in met
    }
    data["parser"]["parser"] = {
        "tokens": dict(enumerate(names)),
        "states": states,
        **{
            key: {start: number[state] for start, state in table[key].items()}
            for key in ("start_states", "end_states")
        },
    }
    plain: dict[str, Any] = json.loads(json.dumps({"data": data, "memo": memo}))
    return {"made_from": _made_from(), **plain}


def _as_lark_has_them(kept: dict[str, Any]) -> Any:
    """Return the tables with the numbers as keys that JSON made strings of."""
    table = kept["data"]["parser"]["parser"]
    table["tokens"] = _numbered(table["tokens"])
    table["states"] = _numbered({state: _numbered(row) for state, row in table["states"].items()})
    return {"data": kept["data"], "memo": _numbered(kept["memo"])}


def _numbered(entries: dict[str, Any]) -> dict[int, Any]:
    return {int(key): value for key, value in entries.items()}


def _text() -> str:
    return _FOLDER.joinpath("rasp.lark").read_text(encoding="utf-8")


def _made_from() -> dict[str, str]:
    """Name what tables are made from: the grammar, and the version of Lark."""
    return {"lark": lark.__version__, "grammar": hashlib.sha256(_text().encode()).hexdigest()}


if __name__ == "__main__":
    made = json.dumps(tables(worked_out()), separators=(",", ":"))
    Path(__file__).with_name("tables.json").write_text(f"{made}\n", encoding="utf-8")
