"""Programs to begin with: first steps, everyday programs, the surveys' cookbook, the paper's listings.

The files say their input by ``set example``; on the page it stands in the box for the input.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from locum.paper import listings

PROGRAMS = Path(__file__).with_name("programs")
_EXAMPLE = re.compile(r"^set example (.+)\n+", re.MULTILINE)
_ASSIGNED = re.compile(r"^(\w+) = ", re.MULTILINE)
#: ``Erratum E2: …`` in the comments of a listing as printed.
_ERRATUM = re.compile(r"^# Erratum (E\d+)", re.MULTILINE)
#: ``# Listing 5, MaxMinSort: …``, the first line of a listing.
_LISTING = re.compile(r"# (Listings? [\d and]+, \w+)")

#: Name → input and program.
FIRST_STEPS: dict[str, tuple[str, str]] = {
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
    "causal: seen so far": (
        "abaab",
        """# How often was my token here so far? It looks only back: try causal in the pane Weights.
past = select(indices, indices, <=);
seen = selector_width(select(tokens, tokens, ==) and past);
""",
    ),
}

#: Titles of everyday programs (``locum.rasp.everyday``), by file.
EVERYDAY = {
    "reverse": "reverse", "palindrome": "palindrome", "parity": "parity", "modsum": "sum modulo 5",
    "most_frequent": "most frequent token", "sort": "sort numbers", "sort_freq": "sort by frequency",
    "second_largest": "second largest", "run_length": "length of the run", "induction": "induction",
    "binary_addition": "binary addition", "dyck2": "brackets of two kinds",
}  # fmt: skip
#: Entries of the cookbook (``locum.languages.cookbook``) that are programs, by file.
COOKBOOK = {
    "predecessor": "predecessor", "n_grams": "n-grams", "induction": "induction head",
    "majority": "majority", "dyck1": "Dyck-1", "dyck2_top": "Dyck-2-3",
    "shuffle_dyck2": "shuffle-Dyck-2", "anbncn": "aⁿbⁿcⁿ", "parity": "parity by counting",
    "modulo": "MOD without positions", "regular": "C-RASP of a regular language",
    "star_free": "B-RASP of a star-free language",
}  # fmt: skip


def examples() -> list[dict[str, Any]]:
    """List the examples: name, group, source, input."""
    rows = [("first steps", name, source, typed) for name, (typed, source) in FIRST_STEPS.items()]
    for group, folder, titles in (
        ("everyday programs", "everyday", EVERYDAY),
        ("cookbook of the surveys", "cookbook", COOKBOOK),
    ):
        for file, title in titles.items():
            text = (PROGRAMS / folder / f"{file}.rasp").read_text(encoding="utf-8")
            rows.append((group, title, *without_example(text)))
    for name in listings.names():
        source, typed = without_example(listings.text(name))
        rows.append(("the paper's listings", _title(name, source), source, typed))
    return [
        {"name": name, "group": group, "source": source, "input": typed}
        for group, name, source, typed in rows
    ]


def program_names() -> list[str]:
    """List the names that :func:`program_text` takes.

    >>> "sort_freq" in program_names()
    True
    """
    return sorted({*EVERYDAY, *COOKBOOK})


def program_text(name: str) -> str:
    """Return an everyday program, or one of the cookbook; it ends by showing its last name.

    >>> program_text("reverse").splitlines()[-1]
    'reverse;'
    """
    folder = "everyday" if name in EVERYDAY else "cookbook"
    text = (PROGRAMS / folder / f"{name}.rasp").read_text(encoding="utf-8").rstrip()
    return f"{text}\n{_ASSIGNED.findall(text)[-1]};\n"


def without_example(text: str) -> tuple[str, str]:
    """Take ``set example …`` out of a program; return the rest, and the example as one types it.

    >>> without_example('# x\\nset example "abc"\\ntokens;')
    ('# x\\ntokens;', 'abc')
    """
    example = _EXAMPLE.search(text)
    if example is None:
        return text, "hello"
    value = json.loads(example[1])
    plain = isinstance(value, str) and value[:1] not in ("[", '"')
    return text[: example.start()] + text[example.end() :], value if plain else example[1]


def _title(name: str, source: str) -> str:
    """Name a listing by its number in the paper, with the erratum that it has as printed."""
    number = _LISTING.match(source)
    words = number[1] if number else name.replace("_corrected", ", mended")
    erratum = _ERRATUM.search(source)
    return f"{words} as printed (erratum {erratum[1]})" if erratum else words
