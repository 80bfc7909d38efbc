"""What was run: heads, rows, pairs, and the time it took."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Sums over all heads that were run."""

    #: Heads with a live row, each member of a family counted.
    heads: int = 0
    #: Queries that were run.
    rows: int = 0
    #: Pairs of a query and a key that were scored: again by every further product of the selector (an
    #: ``or``, a ``!=`` or a long order has one of its own) and for the maximum of ``best``; not at all
    #: where no comparison depends on the key.
    pairs: int = 0
    #: Coordinates of the widest vectors that were multiplied.
    width: int = 0
    seconds: float = 0.0
    #: The same for each family of heads, in the order in which they were run.
    families: list[dict[str, int | str]] = field(default_factory=list)

    def add(self, name: str, heads: int, rows: int, pairs: int, width: int) -> None:
        """Add one more family of heads."""
        self.heads += heads
        self.rows += rows
        self.pairs += pairs
        self.width = max(self.width, width)
        self.families.append(
            {"name": name, "heads": heads, "rows": rows, "pairs": pairs, "width": width}
        )
