"""The table of operations: each ATen overload that U computes, and the construction that it is.

A construction takes the layout of the result, then the operation's own arguments, with tensors of the
program in place of PyTorch's. It returns one tensor of the program, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

#: A function that makes the result of an operation.
Construction = TypeVar("Construction", bound=Callable[..., Any])

#: The kinds of operations, in the order of the documentation.
KINDS = (
    "views",
    "creation",
    "casts",
    "elementwise",
    "products",
    "reductions",
    "normalisation",
    "attention",
    "indexing",
    "losses",
)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    overload: Any
    kind: str
    construct: Callable[..., Any]

    @property
    def name(self) -> str:
        """The overload's name, such as ``aten.mm.default``."""
        return str(self.overload)


#: Overload → row. The modules of ``operations/`` fill it. Operations that another library registers
#: have their names as keys, such as ``library.product.default``: the library may not be imported.
TABLE: dict[Any, Row] = {}


def find_row(target: Any) -> Row | None:
    """Return the row of the target of a graph's node, or None."""
    row = TABLE.get(target)
    if row is None and isinstance(target, torch._ops.OpOverload) and target.namespace != "aten":
        row = TABLE.get(str(target))
    return row


def find_overload(name: str) -> Any:
    """Return the ATen overload of a name such as ``"mm"`` or ``"add.Tensor"``."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def operation(kind: str, *names: str) -> Callable[[Construction], Construction]:
    """Enter a construction into the table under names such as ``"mm"`` or ``"add.Tensor"``.

    ``"library::product"`` is an operation that another library registers.
    """

    def register(construct: Construction) -> Construction:
        for name in names:
            library = name.replace("::", ".") + ".default"
            target = library if "::" in name else find_overload(name)
            TABLE[target] = Row(target, kind, construct)
        return construct

    return register
