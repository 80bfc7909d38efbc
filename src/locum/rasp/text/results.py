"""Represent the result of a statement as text for users and as fields for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from locum.graph import Node
from locum.rasp.text.mistakes import RaspError
from locum.text import text_rows


@dataclass(frozen=True)
class Result:
    """The result of one statement.

    ``kind`` is s-op, selector, atom, list, dict, multi (several names assigned), function, none, exit
    or error. Which of the other fields are set depends on the kind.
    """

    kind: str
    #: The text that the REPL prints.
    printed: str = ""
    name: str | None = None
    #: Type of an s-op or atom: int, float, bool or string.
    type: str | None = None
    #: Values of an s-op on the example (or on the input it was applied to).
    values: list[Any] | None = None
    #: Pattern of a selector: 0 and 1, [query][key]. None if the pattern is too large to be displayed.
    matrix: list[list[int]] | None = None
    #: Value of an atom.
    value: Any = None
    #: Members of a list, dict ([key, member] pairs) or multi, as dicts with these same fields.
    items: list[Any] | None = None
    #: Parameters of a function.
    args: list[str] | None = None
    #: Category of an error.
    category: str | None = None
    message: str | None = None
    line: int | None = None
    column: int | None = None
    #: The graph of an s-op or selector, and the input that it was run on.
    node: Node | None = None
    tokens: Any = None

    def _repr_html_(self) -> str:
        """Return an HTML table that contains the text printed by the REPL."""
        return text_rows(self.kind, [("", self.printed.strip("\n"))])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, except the printed text, the graph and its input."""
        present = {name: value for name, value in vars(self).items() if value is not None}
        for hidden in ("printed", "node", "tokens"):
            present.pop(hidden, None)
        if self.kind == "atom":
            present["value"] = self.value
        return present


def error_result(error: RaspError) -> Result:
    """Return the result of a statement that failed with ``error``."""
    return Result(
        "error",
        printed=f"\t!! {error.pretty()}\n".replace("\n  ", "\n\t   "),
        category=error.category,
        message=error.message,
        line=error.line,
        column=error.column,
    )
