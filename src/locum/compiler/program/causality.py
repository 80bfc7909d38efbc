"""Check that a program is causal: what stands at a position depends on nothing behind it.

Every head of a decoder has the causal mask, so each selector must leave out, by positions alone, the
keys behind the query; and the best of some keys is known only if none of them is behind the query. The
length of the input is known to no prefix of it, unless all inputs have one length.
"""

from __future__ import annotations

import numpy as np

from locum.compiler.program.patterns import Patterns
from locum.errors import CompileError
from locum.graph import Node, abbreviate, postorder


def require_causal(root: Node, patterns: Patterns) -> None:
    """Refuse a program that looks ahead, by the selector that does; ``patterns`` are its selectors'."""
    ahead = ~np.tri(patterns.target.longest, dtype=bool)
    for node in postorder(root):
        if node.op == "length" and not patterns.target.fixed:
            raise CompileError(
                "a causal network does not know the length of its input, which no prefix tells; try "
                "indices + 1 for the length of the prefix, or fixed=True for inputs of one length",
                _reader_of_length(root),
            )
        if node.op in ("aggregate", "selector_width", "best"):
            selector = node.inputs[0]
            seen = np.argwhere(patterns.possible(selector) & ahead)
            if len(seen):
                query, key = seen[0]
                raise CompileError(
                    f"this selector looks ahead: from position {query} it may select position {key}, "
                    "which the causal mask of a decoder hides; try (selector) and "
                    "select(indices, indices, <=), or compile without causal",
                    abbreviate(selector),
                )


def _reader_of_length(root: Node) -> str:
    """Return the selector that reads the length; without one, what else does."""
    readers = [node for node in postorder(root) if any(i.op == "length" for i in node.inputs)]
    selectors = [
        node
        for node in postorder(root)
        if node.op == "select"
        and any(i.op == "length" for part in node.inputs for i in postorder(part))
    ]
    return abbreviate(next(iter((*selectors, *readers)), root))
