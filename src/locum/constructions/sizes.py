"""Compute with sizes and positions of tensors, which are numbers or s-ops.

>>> plus(0, 3), times(1, 4), largest(5)
(3, 4, 5)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from locum.errors import GraphError
from locum.graph import build, members, postorder
from locum.graph.traversal import replace_families
from locum.rasp.handles import SOp
from locum.settings import require_integer

#: A size or a position: a number, or an s-op with the same value everywhere.
Size: TypeAlias = "int | SOp"

if TYPE_CHECKING:
    import typing_extensions

    #: The type of sizes: ``int`` if all sizes are numbers (the default), otherwise ``Size``.
    S = typing_extensions.TypeVar("S", int, Size, default=int)
else:  # typing.TypeVar has no default before Python 3.13
    S = TypeVar("S")


def whole(size: Any, what: str, least: int) -> Size:
    """Return a size as a Python int of at least ``least`` (NumPy integers are also accepted), or as an
    s-op.
    """
    if isinstance(size, SOp):
        return size
    return require_integer(size, what, least, GraphError)


def same_size(a: Size, b: Size) -> bool:
    """Return whether two sizes are known to be equal: the same s-op, or equal numbers."""
    return a is b or (type(a) is int and type(b) is int and a == b)


def require_same(a: Size, b: Size, problem: str) -> None:
    """Raise an error with the message ``problem`` if two sizes are different numbers."""
    if type(a) is int and type(b) is int and a != b:
        raise GraphError(problem)


def number_of(size: Size, what: str) -> int:
    """Return a size that must be a number; an s-op raises an error that names ``what``."""
    if isinstance(size, SOp):
        raise GraphError(
            f"{what}: expected a number, since it determines the number of heads, got an s-op"
        )
    return size


@overload
def plus(a: int, b: int) -> int: ...
@overload
def plus(a: Size, b: Size) -> Size: ...
def plus(a: Size, b: Size) -> Size:
    """Return a + b; if a or b is the number 0, no node is added to the program."""
    if type(a) is int and a == 0:
        return b
    if type(b) is int and b == 0:
        return a
    return a + b


@overload
def times(a: int, b: int) -> int: ...
@overload
def times(a: Size, b: Size) -> Size: ...
def times(a: Size, b: Size) -> Size:
    """Return a · b; if a or b is the number 0 or 1, no node is added to the program."""
    if type(a) is int and a == 1:
        return b
    if type(b) is int and b == 1:
        return a
    if (type(a) is int and a == 0) or (type(b) is int and b == 0):
        return 0
    return a * b


def product(sizes: Iterable[S]) -> S:
    """Return the product of sizes; the product of an empty list is 1."""
    result: S = 1
    for size in sizes:
        result = times(result, size)
    return result


def largest(size: Size) -> int | None:
    """Return the largest value of a size over all values of its families, or None if the size depends
    on the input.
    """
    if not isinstance(size, SOp):
        return size
    if any(node.op in ("tokens", "indices", "length") for node in postorder(size.node)):
        return None
    from locum.execution import run

    families = sorted(size.node.free, key=lambda f: f.name)
    values = []
    for member in members(families):
        fixed = {family: build("constant", value=value) for family, value in member.items()}
        values.append(int(run(replace_families(size.node, fixed), "x")[0]))
    return max(values)
