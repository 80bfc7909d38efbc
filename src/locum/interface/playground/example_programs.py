"""Provide the example programs of the playground.

The examples are first steps, programs in C-RASP, B-RASP and LTL, everyday programs, the cookbook, and
the paper's listings. Program files set their input by ``set example``. On the page, this input is in
the input box instead.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from locum.paper import listings
from locum.rasp.programs import everyday_file

#: The folder of the cookbook.
PROGRAMS = Path(__file__).with_name("programs") / "cookbook"
_EXAMPLE = re.compile(r"^set example (.+)\n+", re.MULTILINE)
_ASSIGNED = re.compile(r"^(\w+) = ", re.MULTILINE)
#: ``Erratum E2: …`` in the comments of a listing that contains an error of the paper.
_ERRATUM = re.compile(r"^# Erratum (E\d+)", re.MULTILINE)
#: ``# Listing 5, MaxMinSort: …``, the first line of a listing.
_LISTING = re.compile(r"# (Listings? [\d and]+, \w+)")

#: Maps the names of first examples to their input and program.
FIRST_STEPS: dict[str, tuple[str, str]] = {
    "reverse": (
        "hello",
        """# Position i attends to position length-1-i.
flip = select(indices, length - 1 - indices, ==);
reverse = aggregate(flip, tokens);
""",
    ),
    "histogram": (
        "hello",
        """# The number of occurrences of the token at each position.
same = select(tokens, tokens, ==);
histogram = selector_width(same);
""",
    ),
    "sort": (
        "hello",
        """# The rank of a token is the number of tokens before it in the sorted sequence.
smaller = select(tokens, tokens, <);
earlier = select(tokens, tokens, ==) and select(indices, indices, <);
rank = selector_width(smaller or earlier);
sorted = aggregate(select(rank, indices, ==), tokens);
""",
    ),
    "balanced brackets": (
        "(()())",
        """# The depth after each position must never be negative, and must be 0 at the end.
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
        """# The number of equal tokens so far. Heads never read later positions: try causal in Weights.
past = select(indices, indices, <=);
seen = selector_width(select(tokens, tokens, ==) and past);
""",
    ),
}

#: Programs in other languages than RASP; the first line names the language.
DIALECTS: dict[str, tuple[str, str]] = {
    "C-RASP: majority": (
        "abaab",
        """// C-RASP
// Whether more a than b occur so far: # counts positions up to the current position.
more = #"a" > #"b"
""",
    ),
    "B-RASP: alternating": (
        "ababb",
        """// B-RASP
// Whether a and b alternate; each attention reads one position.
same = rightmost[j < i, true] ("a"(i) & "a"(j)) | ("b"(i) & "b"(j)) : false
alternating = rightmost[j <= i, same(j)] false : true
""",
    ),
    "LTL: every a is followed by b": (
        "abaab",
        """// LTL
// G: at this and all later positions; F: at this or a later position; X: at the next position.
G (a -> F b)
""",
    ),
}

#: Titles of everyday programs (``locum.rasp.programs``), by file.
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
    """Return the name, the group, the source and the input of each example."""
    rows = [("first steps", name, source, typed) for name, (typed, source) in FIRST_STEPS.items()]
    rows += [("C-RASP, B-RASP and LTL", name, text, typed) for name, (typed, text) in DIALECTS.items()]
    for group, titles, file_of in (
        ("everyday programs", EVERYDAY, everyday_file),
        ("cookbook of the surveys", COOKBOOK, _cookbook_file),
    ):
        for name, title in titles.items():
            text = file_of(name).read_text(encoding="utf-8")
            rows.append((group, title, *without_example(text)))
    for name in listings.names():
        source, typed = without_example(listings.text(name))
        rows.append(("the paper's listings", _title(name, source), source, typed))
    return [
        {"name": name, "group": group, "source": source, "input": typed}
        for group, name, source, typed in rows
    ]


def program_names() -> list[str]:
    """Return the names that :func:`program_text` accepts.

    >>> "sort_freq" in program_names()
    True
    """
    return sorted({*EVERYDAY, *COOKBOOK})


def program_text(name: str) -> str:
    """Return an everyday or cookbook program, with a final statement that shows its last name.

    >>> program_text("reverse").splitlines()[-1]
    'reverse;'
    """
    path = everyday_file(name) if name in EVERYDAY else _cookbook_file(name)
    text = path.read_text(encoding="utf-8").rstrip()
    return f"{text}\n{_ASSIGNED.findall(text)[-1]};\n"


def _cookbook_file(name: str) -> Path:
    return PROGRAMS / f"{name}.rasp"


def without_example(text: str) -> tuple[str, str]:
    r"""Remove ``set example …`` from a program, and return the program and the example as typed text.

    If the program sets no example, the example is hello.

    >>> without_example('# x\nset example "abc"\ntokens;')
    ('# x\ntokens;', 'abc')
    """
    example = _EXAMPLE.search(text)
    if example is None:
        return text, "hello"
    value = json.loads(example[1])
    plain = isinstance(value, str) and value[:1] not in ("[", '"')
    return text[: example.start()] + text[example.end() :], value if plain else example[1]


def _title(name: str, source: str) -> str:
    """Return the title of a listing: its number in the paper, and its erratum if it is incorrect."""
    number = _LISTING.match(source)
    words = number[1] if number else name.replace("_corrected", ", corrected")
    erratum = _ERRATUM.search(source)
    return f"{words} as printed (erratum {erratum[1]})" if erratum else words
