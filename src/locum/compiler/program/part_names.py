"""Read the names that a user gives to the parts of a program (``locum.compile(…, names=…)``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locum.errors import CompileError
from locum.graph import Node, abbreviate, postorder


def read_names(names: Mapping[Any, str] | None, root: Node) -> dict[Node, str]:
    """Return the names by node; every key must be a part of the program, every name a new one.

    >>> from locum import indices, tokens
    >>> last = indices == 3
    >>> read_names({last: "last"}, (last & (tokens == "a")).node) == {last.node: "last"}
    True
    """
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise CompileError(
            "names: expected a dict from s-ops and selectors to their names, got "
            f"{type(names).__name__}; try names={{s_op: 'name'}}"
        )
    parts = set(postorder(root))
    read: dict[Node, str] = {}
    named: dict[str, Node] = {}
    for key, name in names.items():
        node = key if isinstance(key, Node) else getattr(key, "node", None)
        if not isinstance(node, Node):
            raise CompileError(
                f"names: expected an s-op or a selector as the key, got {key!r}; "
                f"try names={{s_op: {key if isinstance(key, str) else 'name'!r}}}"
            )
        if not (isinstance(name, str) and name.strip()):
            raise CompileError(
                f"names: expected a string that is not empty for {abbreviate(node)}, got {name!r}; "
                "try names={s_op: 'name'}"
            )
        if node not in parts:
            raise CompileError(
                f"names: expected parts of the program, got {abbreviate(node)} for {name!r}, which the "
                "program does not use; try without this key"
            )
        if read.setdefault(node, name) != name or named.setdefault(name, node) is not node:
            raise CompileError(
                f"names: expected one name for each part and one part for each name, got {name!r} for "
                f"{abbreviate(node)} and {read[node]!r} for {abbreviate(named.get(name, node))}; "
                "try a different name, or without one of the two keys"
            )
    return read
