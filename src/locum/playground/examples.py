"""Programs to begin with: a small cookbook, and the paper's listings with their errata."""

from __future__ import annotations

from typing import Any

from locum.paper import listings

#: Name → input and program.
COOKBOOK: dict[str, tuple[str, str]] = {
    "reverse": (
        "hello",
        """# Queries ask for the key that stands where they would stand backwards.
flip = select(indices, length - 1 - indices, ==);
reverse = aggregate(flip, tokens);
""",
    ),
    "histogram": (
        "hello",
        """# How often does my own token occur?
same = select(tokens, tokens, ==);
histogram = selector_width(same);
""",
    ),
    "sort": (
        "hello",
        """# A token's rank is the number of tokens that come before it.
smaller = select(tokens, tokens, <);
earlier = select(tokens, tokens, ==) and select(indices, indices, <);
rank = selector_width(smaller or earlier);
sorted = aggregate(select(rank, indices, ==), tokens);
""",
    ),
    "balanced brackets": (
        "(()())",
        """# The depth after each position; it must never be negative, and 0 at the end.
up_to_here = select(indices, indices, <=);
sign = indicator(tokens == "(") - indicator(tokens == ")");
depth = (indices + 1) * aggregate(up_to_here, sign);
depth = round(depth);
bad = aggregate(full_s, indicator(depth < 0)) > 0;
at_end = aggregate(select(indices, length - 1, ==), depth);
balanced = (at_end == 0) and not bad;
""",
    ),
    "induction head": (
        "abcab",
        """# What came after the last occurrence of my token? Two layers, as in induction heads.
before = shift(tokens, 1, "_");
same = select(before, tokens, ==) and select(indices, indices, <=);
next = aggregate(best(same, indices), tokens, "?");
""",
    ),
    "most frequent": (
        "mississippi",
        """# The token that occurs most often, the first of them where several do.
often = selector_width(select(tokens, tokens, ==));
most = aggregate(best(full_s, often * length - indices / length), tokens);
""",
    ),
}


def examples() -> list[dict[str, Any]]:
    """List the examples: name, group, source, input."""
    own = [
        {"name": name, "group": "cookbook", "source": source, "input": typed}
        for name, (typed, source) in COOKBOOK.items()
    ]
    printed = [
        {"name": name, "group": "the paper's listings", "source": listings.text(name), "input": "hello"}
        for name in listings.names()
    ]
    return own + printed
