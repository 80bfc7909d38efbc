"""Describe the names of the language in words: what ``help`` and ``?name`` say in the REPL.

Names that no program may set are listed with the reason, so that nobody has to meet them one by one.

>>> print(describe("indicator"))
indicator(a)
  1 where a holds, else 0
>>> print(describe("contains"))
def contains(seq, atom) {
    return count(seq, atom) > 0;
}
  a function of the standard library; programs cannot set the name
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from locum.graph import OPERATIONS
from locum.rasp.text.builtins import BASE, EXTENSIONS, base_scope
from locum.rasp.text.machine import Builtin, Function, Value

OVERVIEW = """\
A statement ends with ; and its value is shown on the running example.

  x = indices + 1;                     an s-op: a value at each position
  s = select(indices, indices, <=);    a selector: which keys each query attends to
  aggregate(s, x);                     the mean of what each query attends to
  def f(a) { return a + 1; }           a function
  set example "hello"                  the running example
  load "file";                         the names of a program in file.rasp
  draw(x, "abc");                      the heads that compute x, as an SVG file
  exit                                 the way out, as is Ctrl-D

help NAME or ?NAME describes a name; help names lists the names of the language."""

#: How the words of the language are used, and what they mean, where the table of operations has no row
#: that says so.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "tokens": ("tokens", "the input as strings (tokens_str); a program may set the name"),
        "tokens_asis": ("tokens_asis", "the input as it was given: strings, numbers or booleans"),
        "tokens_str": ("tokens_str", 'the input as strings: 10 becomes "10", which is below "9"'),
        "tokens_int": ("tokens_int", "the input as integers"),
        "tokens_float": ("tokens_float", "the input as real numbers"),
        "tokens_bool": ("tokens_bool", "the input as booleans"),
        "full_s": ("full_s", "the selector with which every query attends to every key"),
        "True": ("True", "the boolean that is true"),
        "False": ("False", "the boolean that is false"),
        "out": ("out", "the value of the last statement"),
        "select": (
            "select(keys, queries, ==)",
            "each query attends to the keys that equal it; or != < <= > >=",
        ),
        "aggregate": (
            "aggregate(selector, values, default)",
            "the mean of the values at the selected keys; the default (or 0) where none is selected",
        ),
        "sum": ("sum(selector, values)", "the sum of the values at the selected keys"),
        "range": ("range(start, end, step)", "a list of integers, as in Python"),
        "zip": ("zip(a, b)", "a list of pairs, as in Python"),
        "len": ("len(a)", "the number of members of a list or dict (length is that of the input)"),
        "get": ("get", "a name that RASP keeps for itself"),
        "load": ('load "file";', "run file.rasp and take over the names that it defines"),
        "draw": ('draw(x, "abc");', "draw the heads that compute an s-op, as an SVG file"),
        "set": ('set example "hello"', "set the running example, on which values are shown"),
        "show": ("show example", "show the running example"),
        "examples": ("examples off", "show values on the running example, or (off) do not"),
        "full": ("full seq display on", "show all positions of long sequences, or (off) do not"),
        "exit": ("exit", "leave; so do quit and Ctrl-D"),
    }
)
#: What RASP text writes as a function, by the name of its operation.
_CALLS: Mapping[str, str] = MappingProxyType(
    {
        "indices": "indices",
        "length": "length",
        "constant": "constant(value)",
        "selector_width": "selector_width(selector)",
        "best": "best(selector, score)",
        "indicator": "indicator(a)",
        **{
            name: f"{row.called}({', '.join('ab'[: len(row.takes)])})"
            for name, row in OPERATIONS.items()
            if row.group == "function"
        },
    }
)


@cache
def meanings() -> Mapping[str, tuple[str, str]]:
    """Return how each word of the language that is not written in RASP is used, and its meaning.

    >>> meanings()["abs"]
    ('abs(a)', '|a|')
    """
    functions = {call.partition("(")[0]: (call, OPERATIONS[op].meaning) for op, call in _CALLS.items()}
    return MappingProxyType(dict(_WORDS) | functions)


@cache
def library_texts() -> Mapping[str, str]:
    """Return each function of the standard library as it is written, with the comment above it.

    >>> print(library_texts()["average"])
    def average(a) {
        return aggregate(full_s, a);
    }
    """
    text = resources.files("locum.rasp.text").joinpath("library.rasp").read_text(encoding="utf-8")
    functions = re.finditer(r"(?:^#.*\n)*^def (\w+)\((?:.*\n)*?^\}", text, re.MULTILINE)
    return MappingProxyType({match.group(1): match.group() for match in functions})


@cache
def reserved() -> frozenset[str]:
    """Return the names that no program may set.

    >>> "sort" in reserved(), "tokens" in reserved(), "exp" in reserved()
    (True, False, False)
    """
    return frozenset(({*base_scope().names, *library_texts()} | BASE) - {"tokens", *EXTENSIONS})


def why_reserved(name: str) -> str:
    """Say what a reserved name belongs to.

    >>> why_reserved("sort"), why_reserved("indices")
    ('a function of the standard library', 'a name of the language')
    """
    return "a function of the standard library" if name in library_texts() else "a name of the language"


def describe(name: str, names: Mapping[str, Value] | None = None) -> str:
    """Describe a name: the program's own (``names`` has its value), the library's or the language's.

    >>> print(describe("nothing"))
    nothing is not a name of the language; help names lists them
    """
    own = None if name in reserved() else (names or {}).get(name)
    if isinstance(own, Function):
        origin = "this session" if own.origin == "console" else f"{own.origin}.rasp"
        return f"{own.name}({', '.join(own.parameters)})\n  a function of {origin}"
    if own is not None and not isinstance(own, Builtin) and name not in ("tokens", *EXTENSIONS):
        return f"{name}\n  a name of this session; {name}; shows its value"
    if name in library_texts():
        return f"{library_texts()[name]}\n  {why_reserved(name)}; programs cannot set the name"
    if name not in meanings():
        return f"{name} is not a name of the language; help names lists them"
    usage, meaning = meanings()[name]
    return f"{usage}\n  {meaning}"


def list_names() -> str:
    """List the names of the language, those that programs cannot set apart from the others.

    >>> print(list_names().splitlines()[0])
    Reserved, so that programs cannot set them:
    """
    language = sorted(reserved() - library_texts().keys())
    return "\n".join(
        (
            "Reserved, so that programs cannot set them:",
            _wrapped(language),
            "Functions of the standard library, reserved too:",
            _wrapped(sorted(library_texts())),
            "Extensions of Locum, which programs may set, and tokens:",
            _wrapped(sorted(("tokens", *EXTENSIONS))),
            "Words of the grammar:",
            _wrapped(sorted(meanings().keys() - reserved() - {"tokens", *EXTENSIONS})),
        )
    )


def _wrapped(names: list[str]) -> str:
    return textwrap.fill(" ".join(names), 96, initial_indent="  ", subsequent_indent="  ")


def asked(line: str, names: Mapping[str, Value]) -> str | None:
    """Return what ``help``, ``help name`` or ``?name`` asks for ("" for help itself), or None.

    A program that has a name ``help`` of its own keeps it.
    """
    match = re.fullmatch(r"\s*(\?|help\b)\s*(\w*)\s*;?\s*", line)
    if match is None or (match.group(1) == "help" and "help" in names):
        return None
    return match.group(2)


def answer(question: str, names: Mapping[str, Value]) -> str:
    """Describe the name asked for, or say how to begin."""
    if not question:
        return OVERVIEW
    if question == "names":
        return list_names()
    return describe(question, names)
