"""What came of a statement: one :class:`Result`, for people (``printed``) and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from locum.graph import Node
from locum.rasp.text.mistakes import RaspError
from locum.text import text_rows


@dataclass(frozen=True)
class Result:
    """The outcome of one statement.

    ``kind`` is s-op, selector, atom, list, dict, multi (several names assigned), function, none, exit
    or error. What the other fields hold depends on it; those that do not apply are None.
    """

    kind: str
    #: What REPL would print, to the letter.
    printed: str = ""
    name: str | None = None
    #: Of an s-op or atom: int, float, bool or string.
    type: str | None = None
    #: Of an s-op: its values on the example (or the input it was applied to).
    values: list[Any] | None = None
    #: Of a selector: 0 and 1, [query][key].
    matrix: list[list[int]] | None = None
    #: Of an atom.
    value: Any = None
    #: Of list, dict ([key, member] pairs) and multi: members as dicts with these same fields.
    items: list[Any] | None = None
    #: Of a function: its parameters.
    args: list[str] | None = None
    #: Of an error.
    category: str | None = None
    message: str | None = None
    line: int | None = None
    column: int | None = None
    #: Of an s-op or selector: the graph, and the input that it was run on.
    node: Node | None = None
    tokens: Any = None

    def _repr_html_(self) -> str:
        """Return what the REPL would print, as it would print it."""
        return text_rows(self.kind, [("", self.printed.strip("\n"))])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that apply, without the text, the graph and its input."""
        present = {name: value for name, value in vars(self).items() if value is not None}
        for hidden in ("printed", "node", "tokens"):
            present.pop(hidden, None)
        if self.kind == "atom":
            present["value"] = self.value
        return present


def error_result(error: RaspError) -> Result:
    """Make the result of a statement that failed."""
    return Result(
        "error",
        printed=f"\t!! {error.pretty()}\n".replace("\n  ", "\n\t   "),
        category=error.category,
        message=error.message,
        line=error.line,
        column=error.column,
    )
