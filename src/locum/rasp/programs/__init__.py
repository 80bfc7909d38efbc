"""Provide small everyday programs as RASP text, such as sorting, parity and bracket matching.

Each file of this folder contains a program. Tests and benchmarks of the compiler use the programs, and
datasets of circuits and the playground contain them.

>>> load_everyday("parity").program("10110")
[1, 1, 1, 1, 1]
>>> load_everyday("dyck2").program("([])[")
['P', 'P', 'P', 'T', 'P']
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from locum.graph import Atom
from locum.rasp.handles import SOp
from locum.rasp.program_files import load_program

_LETTERS, _NUMBERS = tuple("abcd"), tuple(range(8))

#: The vocabulary of each program, by the name of its file.
EVERYDAY: dict[str, tuple[Atom, ...]] = {
    "most_frequent": _LETTERS,
    "induction": _LETTERS,
    "binary_addition": ("00", "01", "10", "11"),
    "dyck2": tuple("()[]"),
    "palindrome": _LETTERS,
    "run_length": _LETTERS,
    "second_largest": _NUMBERS,
    "parity": tuple("01"),
    "modsum": tuple(range(5)),
    "sort": _NUMBERS,
    "sort_freq": _LETTERS,
    "reverse": _LETTERS,
}


@dataclass(frozen=True)
class Task:
    """A program and the vocabulary of its input tokens."""

    program: SOp
    vocabulary: tuple[Atom, ...]


def everyday_file(name: str) -> Path:
    """Return the path of the file of an everyday program."""
    return Path(__file__).with_name(f"{name}.rasp")


def load_everyday(name: str) -> Task:
    """Return an everyday program with its vocabulary."""
    program = load_program(everyday_file(name))
    assert isinstance(program, SOp)
    return Task(program, EVERYDAY[name])
