"""List the values that an s-op takes, where they are finitely many."""

from __future__ import annotations

from collections.abc import Iterable

from locum.compiler import program
from locum.compiler.scoring.selectors import Selectors
from locum.compiler.target import Target
from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.graph.node import HasNode, node_of


def values_of(source: Node | HasNode, *, vocabulary: Iterable[Atom], length: int) -> tuple[Atom, ...]:
    """List all that an s-op may be (and perhaps more) on inputs of up to ``length`` tokens.

    >>> from locum import indices, length, tokens
    >>> values_of(tokens * 2, vocabulary=[1, 2, 3], length=8)
    (2, 4, 6)
    >>> values_of(length - indices, vocabulary="ab", length=3)
    (1, 2, 3)
    """
    target = Target(length=length, vocabulary=tuple(vocabulary))
    root = program.normalise(node_of(source), numeric=False)
    values = Selectors(target).values.finite(root)
    if values is None:
        raise CompileError(
            "expected an s-op that takes finitely many values that can be listed, got real numbers, or "
            "too many; try a smaller vocabulary or length",
            abbreviate(root),
        )
    return values
