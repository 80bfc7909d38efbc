"""The examples: the same as the programs and entries that they are named for."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from locum.interface.playground import answer
from locum.interface.playground.example_programs import COOKBOOK, EVERYDAY, examples, without_example
from locum.interface.playground.example_programs import PROGRAMS as FOLDER
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.languages.cookbook import COOKBOOK as ENTRIES
from locum.languages.cookbook import Direct
from locum.paper import listings
from locum.rasp.handles import SOp
from locum.rasp.programs import EVERYDAY as VOCABULARIES

ROWS = {(row["group"], row["name"]): row for row in examples()}
#: Maximum number of words on which an entry is compared with plain Python.
MOST = 150


def built(row: dict[str, Any]) -> SOp:
    program = Program(row["source"], tokens(row["input"]))
    program.require_right()
    return program.sop(None)[1]


def test_every_example_runs_but_the_one_that_the_paper_printed_wrong() -> None:
    wrong = [
        name for (_, name), row in ROWS.items() if Program(row["source"], tokens(row["input"])).errors
    ]
    assert wrong == ["inverse as printed (erratum E4)"]
    assert "set example" not in "".join(row["source"] for row in ROWS.values())


def test_all_programs_of_the_house_are_there() -> None:
    assert EVERYDAY.keys() == VOCABULARIES.keys()
    programs = {name for name, entry in ENTRIES.items() if not isinstance(entry, Direct)}
    assert set(COOKBOOK.values()) == programs
    assert {path.stem for path in FOLDER.iterdir()} == COOKBOOK.keys()
    groups = [group for group, _ in ROWS]
    assert groups.count("the paper's listings") == len(listings.names())


@pytest.mark.parametrize("file", COOKBOOK)
def test_entries_of_the_cookbook_are_right(file: str) -> None:
    own = built(ROWS["cookbook of the surveys", COOKBOOK[file]])
    entry = ENTRIES[COOKBOOK[file]]
    words = (word for batch in entry.words() for word in batch if word)
    for word in itertools.islice(words, MOST):
        result, right = list(own(list(word))), entry.plain("".join(word))
        assert (result if isinstance(right, list) else result[-1]) == right, word


def test_listings_say_which_erratum_they_have() -> None:
    names = [name for group, name in ROWS if group == "the paper's listings"]
    printed = [name for name in names if "as printed" in name]
    assert "Listing 5, MaxMinSort as printed (erratum E2)" in printed
    assert len(printed) == len([name for name in names if "corrected" in name])


def test_an_example_that_looks_like_a_list_is_quoted() -> None:
    assert without_example('set example "[1]"\nx;') == ("x;", '"[1]"')
    assert tokens(without_example('set example "[1]"\nx;')[1]) == "[1]"
    assert without_example("x;") == ("x;", "hello")


#: What relu units cannot do, or not at this tolerance, and exact feed-forwards can.
NOT_BY_UNITS = {
    "Listing 2, softmaxrect_r as printed (erratum E1)",
    "Listing 5, MaxMinSort as printed (erratum E2)",
    "inverse, corrected",
    "softmax, corrected",
}


def test_every_example_compiles_to_what_it_says() -> None:
    refused = set()
    for (_, name), row in ROWS.items():
        request = {"action": "compile", "source": row["source"], "input": row["input"]}
        request["length"] = len(tokens(row["input"]))
        reply = answer(request | {"feed_forward": "relu"})
        if not reply["ok"]:
            refused.add(name)
            reply = answer(request | {"feed_forward": "exact"})
        json.dumps(reply, allow_nan=False)
        assert "as printed (erratum E4)" in name or reply["run"]["agrees"], name
    assert refused <= NOT_BY_UNITS | {"inverse as printed (erratum E4)"}
