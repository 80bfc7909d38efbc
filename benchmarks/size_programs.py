"""Provide programs whose networks are compared with Tracr's: everyday tasks, Weiss's files,
InterpBench.

The everyday programs are defined in this repository. The other programs are read from checkouts of
their repositories (``tech-srl/RASP``, ``FlyingPumba/InterpBench`` and ``google-deepmind/tracr``).
Functions of Weiss's library are the exception: Locum's library defines them.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.cases import sort

from locum import (
    SOp,
    aggregate,
    best,
    full,
    indicator,
    indices,
    length,
    lookup,
    member,
    select,
    selector_width,
    tokens,
    where,
)
from locum.graph import Atom
from locum.rasp import Session, from_tracr
from locum.rasp.programs import EVERYDAY, load_everyday


@dataclass(frozen=True)
class Case:
    """A program for each maximum length, and its vocabulary."""

    suite: str
    name: str
    vocabulary: tuple[Atom, ...]
    #: A function that returns the program for inputs of up to a length.
    make: Callable[[int], SOp]
    #: A function that returns Tracr's program, if the case was written for Tracr.
    tracr: Callable[[], Any] | None = None


_LETTERS, _DIGITS = tuple("abcd"), tuple(range(10))

_before = select(indices, indices, "<")
_after = select(indices, indices, ">")
_up_to_here = select(indices, indices, "<=")
_same = select(tokens, tokens, "==")
_count = selector_width(_same)
_first = selector_width(_same & _before) == 0
_sorted = sort(tokens, tokens)
_previous = aggregate(select(indices, indices - 1, "=="), tokens, -1)
_depth = selector_width(select(tokens, "(", "==") & _up_to_here) - selector_width(
    select(tokens, ")", "==") & _up_to_here
)
_negative = aggregate(full, indicator(_depth < 0)) > 0
_open = selector_width(select(tokens, "(", "==")) == selector_width(select(tokens, ")", "=="))
_total = round(length * aggregate(full, tokens))
_weighted = round(length * aggregate(full, tokens * (1 + 2 * (indices % 2))))
_starts_word = (tokens != " ") & (aggregate(select(indices, indices - 1, "=="), tokens, " ") == " ")
_run_length = load_everyday("run_length").program

_MORE: dict[str, tuple[SOp, tuple[Atom, ...]]] = {
    "count_a": (selector_width(select(tokens, "a", "==")), _LETTERS),
    "histogram": (_count, _LETTERS),
    "distinct": (selector_width(select(_first, True, "==")), _LETTERS),
    "sum": (_total, _DIGITS),
    "checksum": (_weighted % 10, _DIGITS),
    "mean": (aggregate(full, tokens), _DIGITS),
    "maximum": (aggregate(select(indices, length - 1, "=="), _sorted), _DIGITS),
    "median": (aggregate(select(indices, length // 2, "=="), _sorted), _DIGITS),
    "running_maximum": (aggregate(best(_up_to_here, tokens), tokens), _DIGITS),
    "first_occurrence": (_first, _LETTERS),
    "last_occurrence": (aggregate(best(_same, indices), indices), _LETTERS),
    "unique": (where(_count == 1, tokens, "-"), _LETTERS),
    "rotate": (aggregate(select(indices, (indices - 1) % length, "=="), tokens), _LETTERS),
    "increment": (
        where(
            selector_width(select(tokens, 9, "!=") & _after) == 0,
            where(tokens == 9, 0, tokens + 1),
            tokens,
        ),
        _DIGITS,
    ),
    "brackets": (~_negative & _open, tuple("()")),
    "is_sorted": (aggregate(full, indicator(_previous > tokens)) == 0, _DIGITS),
    "vowels": (aggregate(full, indicator(member(tokens, "ae"))), tuple("abcde")),
    "caesar": (lookup(tokens, dict(zip("abcd", "bcda", strict=True))), _LETTERS),
    "words": (selector_width(select(_starts_word, True, "==")), tuple("ab ")),
}


def everyday() -> Iterator[Case]:
    """Yield 31 everyday programs, such as sorting, counting and checking brackets."""
    tasks = {name: (load_everyday(name).program, tokens) for name, tokens in EVERYDAY.items()}
    programs = tasks | _MORE
    for name, (program, vocabulary) in programs.items():
        yield Case("everyday", name, vocabulary, lambda _, program=program: program)  # type: ignore[misc]


#: The file of each s-op, the s-op as an expression over the names of the file, and the tokens.
_WEISS: dict[str, tuple[str, str, str]] = {
    "hist_bos": ("paper_examples.rasp", "hist_bos", "abc"),
    "hist_nobos": ("paper_examples.rasp", "hist_nobos", "abc"),
    "reverse": ("paper_examples.rasp", "reverse", "abc"),
    "sort_bos": ("paper_examples.rasp", "sort_bos", "abc"),
    "hist2_bos": ("paper_examples.rasp", "hist2_bos", "abc"),
    "sort_by_most_freq": ("paper_examples.rasp", "sort_by_most_freq", "abc"),
    "dyck1_ptf": ("paper_examples.rasp", "dyck1_ptf", "()"),
    "dyck2_ptf": ("paper_examples.rasp", "dyck2_ptf", "(){}"),
    "dyck3_ptf": ("paper_examples.rasp", "dyck3_ptf", "(){}[]"),
    "length": ("RASP_support/rasplib.rasp", "length", "abc"),
    "selector_width": ("RASP_support/rasplib.rasp", "selector_width(select(tokens,tokens,==))", "abc"),
    "has_focus": ("RASP_support/rasplib.rasp", 'has_focus(select(tokens,"a",==))', "abc"),
    "count": ("RASP_support/rasplib.rasp", 'count(tokens,"a")', "abc"),
    "contains": ("RASP_support/rasplib.rasp", 'contains(tokens,"a")', "abc"),
    "average": ("RASP_support/rasplib.rasp", 'average(indicator(tokens=="a"))', "abc"),
    "load_from_location": ("RASP_support/rasplib.rasp", "load_from_location(tokens,0)", "abc"),
    "shift": ("RASP_support/rasplib.rasp", 'shift(tokens,1,"-")', "abc"),
    "mark_last_instance": ("RASP_support/rasplib.rasp", 'mark_last_instance(tokens,"a")', "abc"),
    "mark_first_instance": ("RASP_support/rasplib.rasp", 'mark_first_instance(tokens,"a")', "abc"),
    "sort": ("RASP_support/rasplib.rasp", "sort(tokens,tokens)", "abc"),
    "select_next_identical": (
        "RASP_support/rasplib.rasp",
        "aggregate(select_next_identical(tokens),indices,-1)",
        "abc",
    ),
    "long_addition": ("long_addition.rasp", "longsum", "0123456789+"),
    "rover": ("rover.rasp", "res", "abcABCxX,<:#?"),
}


def weiss(checkout: Path) -> Iterator[Case]:
    """Yield s-ops of Weiss's files in a checkout of tech-srl/RASP, and library programs in Locum."""
    for name, (file, expression, vocabulary) in _WEISS.items():
        program = _weiss_program(checkout / file, expression)
        yield Case("weiss", name, tuple(vocabulary), lambda _, program=program: program)  # type: ignore[misc]


def _weiss_program(path: Path, expression: str) -> SOp:
    session = Session(folders=(path.parent,))
    if path.name != "rasplib.rasp":  # A session already contains the library.
        session.script(path.read_text())
    program = session.script(f"{expression};")[-1][1]
    if not isinstance(program, SOp):
        raise TypeError(f"expected an s-op, got {program!r}")
    return program


def interpbench(checkout: Path, tracr: Path) -> Iterator[Case]:
    """Yield the programs of InterpBench, from checkouts of InterpBench and Tracr."""
    make_importable(checkout, tracr)
    # Modules for training are replaced, because they are not needed and import many packages.
    _replace("circuits_benchmark.benchmark.tracr_benchmark_case", TracrBenchmarkCase=object)
    _replace(
        "circuits_benchmark.transformers.hooked_tracr_transformer",
        HookedTracrTransformerBatchInput=list,
    )
    folder = checkout / "circuits_benchmark" / "benchmark" / "cases"
    numbers = [re.fullmatch(r"case_(\d+)", path.stem) for path in folder.glob("case_*.py")]
    for number in sorted(int(found[1]) for found in numbers if found):
        module = importlib.import_module(f"circuits_benchmark.benchmark.cases.case_{number}")
        case = getattr(module, f"Case{number}")()
        vocabulary = tuple(sorted(case.get_vocab()))
        yield Case(
            "interpbench",
            str(number),
            vocabulary,
            lambda size, case=case, words=vocabulary: from_tracr(  # type: ignore[misc]
                case.get_program(), vocabulary=words, length=size
            ),
            case.get_program,
        )


def make_importable(*checkouts: Path) -> None:
    """Add checkouts to the import path, and replace packages that cannot be imported.

    If absl is not installed, it is replaced by ``logging``. If JAX is not installed, the package
    ``tracr.compiler``, which imports JAX, is replaced.
    """
    for folder in checkouts:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    if "tracr.compiler" in sys.modules:
        return
    logging.disable(logging.WARNING)  # Tracr logs each input for which a function is undefined.
    if importlib.util.find_spec("absl") is None:
        _replace("absl", logging=logging)
        _replace("absl.logging")
    if importlib.util.find_spec("jax") is None:  # The package tracr.compiler imports JAX.
        import tracr  # type: ignore[import-not-found]

        _replace("tracr.compiler", __path__=[f"{folder}/compiler" for folder in tracr.__path__])


def _replace(name: str, **content: Any) -> None:
    module = ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module
