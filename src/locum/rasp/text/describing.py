"""Describe names for ``help`` and ``?name`` in the REPL.

The description of a library function that is written in RASP contains its definition.

>>> print(describe("indicator"))
indicator(a)
  1 where a is true, otherwise 0
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
Most statements end with ; and values are shown on the running example.

  x = indices + 1;                     an s-op: a value at each position
  s = select(indices, indices, <=);    a selector: which keys each query attends to
  aggregate(s, x);                     the mean of x at the selected keys
  def f(a) { return a + 1; }           a function
  set example "hello"                  the running example
  load "file";                         the names of a program in file.rasp
  draw(x, "abc");                      the heads that compute x, as an SVG file
  exit                                 end the session, like Ctrl-D

help NAME or ?NAME describes a name; help names lists the names of the language."""

#: Usage and meaning of words of the language whose description is not from the table of operations.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "tokens": ("tokens", "the input as strings (tokens_str); a program may set the name"),
        "tokens_asis": ("tokens_asis", "the unchanged input: strings, numbers or booleans"),
        "tokens_str": ("tokens_str", 'the input as strings: 10 becomes "10", which is below "9"'),
        "tokens_int": ("tokens_int", "the input as integers"),
        "tokens_float": ("tokens_float", "the input as real numbers"),
        "tokens_bool": ("tokens_bool", "the input as booleans"),
        "full_s": ("full_s", "the selector with which every query attends to every key"),
        "True": ("True", "the boolean that is true"),
        "False": ("False", "the boolean that is false"),
        "out": ("out", "the last value that was shown or assigned"),
        "select": (
            "select(keys, queries, ==)",
            "each query attends to the keys that equal it; or != < <= > >=",
        ),
        "aggregate": (
            "aggregate(selector, values, default)",
            "the mean of the values at the selected keys; the default (or 0) if no key is selected",
        ),
        "sum": ("sum(selector, values)", "the sum of the values at the selected keys"),
        "range": ("range(start, end, step)", "a list of integers, as in Python"),
        "zip": ("zip(a, b)", "a list of the pairs of members of two lists of equal length"),
        "len": ("len(a)", "the number of members of a list; length is the length of the input"),
        "get": ("get", "a reserved name without a meaning"),
        "load": ('load "file";', "run file.rasp, and define its names in this session"),
        "draw": ('draw(x, "abc");', "draw the heads that compute an s-op, as an SVG file"),
        "set": ('set example "hello"', "set the running example, on which values are shown"),
        "show": ("show example", "show the running example"),
        "examples": ("examples off", "show (on) or hide (off) values on the running example"),
        "full": ("full seq display on", "show sequences as aligned rows (on) or on one line (off)"),
        "exit": ("exit", "end the session; quit and Ctrl-D do the same"),
    }
)
#: Usage in RASP text, by the name of the operation.
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
    """Return the usage and the meaning of names and commands that are not functions written in RASP.

    >>> meanings()["abs"]
    ('abs(a)', '|a|')
    """
    functions = {call.partition("(")[0]: (call, OPERATIONS[op].meaning) for op, call in _CALLS.items()}
    return MappingProxyType(dict(_WORDS) | functions)


@cache
def library_texts() -> Mapping[str, str]:
    """Return the source of each function in ``library.rasp``, with the comment above it.

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
    """Return the reserved names, which no program may assign at top level.

    >>> "sort" in reserved(), "tokens" in reserved(), "exp" in reserved()
    (True, False, False)
    """
    return frozenset(({*base_scope().names, *library_texts()} | BASE) - {"tokens", *EXTENSIONS})


def why_reserved(name: str) -> str:
    """Return the reason why ``name`` is reserved: it belongs to the standard library or to the
    language.

    >>> why_reserved("sort"), why_reserved("indices")
    ('a function of the standard library', 'a name of the language')
    """
    return "a function of the standard library" if name in library_texts() else "a name of the language"


def describe(name: str, names: Mapping[str, Value] | None = None) -> str:
    """Return a description of a name of the program, the standard library or the language.

    ``names`` maps the names of the program to their values.

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
    """Return the names of the language as text, with the reserved names first.

    >>> print(list_names().splitlines()[0])
    Reserved, so that programs cannot set them:
    """
    language = sorted(reserved() - library_texts().keys())
    return "\n".join(
        (
            "Reserved, so that programs cannot set them:",
            _wrapped(language),
            "Functions of the standard library, also reserved:",
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
    """Return the name in a help request such as ``help name`` or ``?name``, or None for any other line.

    The result is "" for ``help`` or ``?`` alone. If the program contains a variable named ``help``, a
    line that begins with ``help`` is not a help request.
    """
    match = re.fullmatch(r"\s*(\?|help\b)\s*(\w*)\s*;?\s*", line)
    if match is None or (match.group(1) == "help" and "help" in names):
        return None
    return match.group(2)


def answer(question: str, names: Mapping[str, Value]) -> str:
    """Return the description of a name, the list of names for "names", or the introduction for ""."""
    if not question:
        return OVERVIEW
    if question == "names":
        return list_names()
    return describe(question, names)
