"""Map each overload that U computes, such as ``aten.mm.default``, to its construction.

The arguments of a construction are the layout of the result and the arguments of the operation. Tensors
of the program replace the PyTorch tensors. A construction returns one tensor of the program, or a tuple
of tensors, in which None stands for a result that is not requested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

#: A function that constructs the result of an operation.
Construction = TypeVar("Construction", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """A row of the table: an overload, its kind and its construction."""

    overload: Any
    kind: str
    construct: Callable[..., Any]

    @property
    def name(self) -> str:
        """Name of the overload, such as ``aten.mm.default``."""
        return str(self.overload)


#: Map from overloads to rows, which the modules in ``operations/`` fill. The key of an operation that
#: another library registers is its name, such as ``library.product.default``, since the library may not
#: be imported.
TABLE: dict[Any, Row] = {}


def find_row(target: Any) -> Row | None:
    """Return the row for the ``target`` of a graph node, or None if the table does not contain it."""
    row = TABLE.get(target)
    if row is None and isinstance(target, torch._ops.OpOverload) and target.namespace != "aten":
        row = TABLE.get(str(target))
    return row


def find_overload(name: str) -> Any:
    """Return the ATen overload with a name such as ``"mm"`` or ``"add.Tensor"``."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def operation(kind: str, *names: str) -> Callable[[Construction], Construction]:
    """Return a decorator that adds a construction to the table under names such as ``"mm"`` or
    ``"add.Tensor"``.

    The name ``"library::product"`` refers to an operation registered by another library.
    """

    def register(construct: Construction) -> Construction:
        for name in names:
            library = name.replace("::", ".") + ".default"
            target = library if "::" in name else find_overload(name)
            TABLE[target] = Row(target, kind, construct)
        return construct

    return register
