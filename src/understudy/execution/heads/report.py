"""What was run: heads, rows, pairs, and the time it took."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Sums over all heads that were run."""

    #: Heads, each member of a family counted.
    heads: int = 0
    #: Queries that were run, each against all keys.
    rows: int = 0
    #: Pairs of a query and a key that were scored; ``best`` scores them again for its maximum.
    pairs: int = 0
    #: Coordinates of the widest vectors that were multiplied.
    width: int = 0
    seconds: float = 0.0
    #: The same for each family of heads, in the order in which they were run.
    families: list[dict[str, int | str]] = field(default_factory=list)

    def add(self, name: str, heads: int, rows: int, keys: int, width: int) -> None:
        """One more family of heads."""
        self.heads += heads
        self.rows += rows
        self.pairs += rows * keys
        self.width = max(self.width, width)
        self.families.append(
            {"name": name, "heads": heads, "rows": rows, "pairs": rows * keys, "width": width}
        )
