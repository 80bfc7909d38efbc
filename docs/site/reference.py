"""Write the reference: the public names from their docstrings, the names of RASP, the limits from their constants."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import fields

import locum
from locum.interface.playground.playground_worker import Limits as WorkerLimits
from locum.rasp.text.builtins import EXTENSIONS
from locum.rasp.text.describing import library_texts, meanings, reserved
from locum.rasp.text.limits import Limits

#: Sections of the page on the API: title, and the rooms whose names stand there.
SECTIONS = {
    "Programs": ("locum.rasp",),
    "What a program is": ("locum.graph.architecture",),
    "Weights": ("locum.networks.compiler", "locum.networks.transformer"),
    "Simulation": ("locum.simulators",),
    "Proofs": ("locum.proofs",),
    "Languages": ("locum.languages",),
    "Errors": ("locum.errors",),
}
#: Values, not functions: what each is, and an example.
VALUES = {
    "tokens": (
        "The input as it is given (RASP text calls it `tokens_asis`).",
        'tokens("abc")',
        "['a', 'b', 'c']",
    ),
    "tokens_str": (
        "The input as strings: what RASP text calls `tokens`.",
        "tokens_str([10, 9])",
        "['10', '9']",
    ),
    "tokens_int": ("The input as integers.", 'tokens_int("12")', "[1, 2]"),
    "tokens_float": ("The input as floats.", 'tokens_float("12")', "[1.0, 2.0]"),
    "tokens_bool": ("The input as booleans.", "tokens_bool([0, 3])", "[False, True]"),
    "indices": ("The position of each token, from 0.", 'indices("abc")', "[0, 1, 2]"),
    "length": ("The number of tokens, at every position.", 'length("abc")', "[3, 3, 3]"),
    "full": (
        "Every query attends to every key.",
        'full("ab").tolist()',
        "[[True, True], [True, True]]",
    ),
}
#: Above blocks of the library.
NOT_RUN = "<!-- not run: every session runs it at its start -->"
#: Classes whose inherited members a user calls.
WHOLE = {"UniversalSimulator", "CompiledTransformer"}
#: Limits that are constants of modules: what each limits, and where it is.
CONSTANTS = (
    ("bits of an integer in a session", "locum.budget", "MAX_BITS"),
    ("characters of a string in a session", "locum.budget", "MAX_STRING"),
    ("nodes of a graph that is read from JSON", "locum.graph.serialize", "MAX_NODES"),
    ("members of one family", "locum.graph.operations", "LARGEST_FAMILY"),
    ("tokens of U", "locum.simulators.simulator", "MAX_TOKENS"),
    (
        "order of a matrix that `inverse` inverts by cofactors unless told otherwise",
        "locum.constructions.inverse",
        "LARGEST_COFACTOR_ORDER",
    ),
    ("tokens that `locum run --draw` draws", "locum.rasp.drawing.flow", "MAX_LENGTH"),
    (
        "values of which the compiler lists combinations",
        "locum.networks.compiler.program.sources",
        "MAX_COMBINATIONS",
    ),
    ("states of an automaton", "locum.languages.automata", "MAX_STATES"),
    ("elements of a syntactic monoid", "locum.languages.monoid", "MAX_ELEMENTS"),
    ("degree of a polynomial in a proof", "locum.proofs.checker.quotients", "MAX_DEGREE"),
    ("characters of a program in the playground", "locum.interface.playground.requests", "MAX_SOURCE"),
    ("tokens of an input in the playground", "locum.interface.playground.requests", "MAX_TOKENS"),
    (
        "rows and columns of U's matrices in the playground",
        "locum.interface.playground.requests",
        "MAX_SIDE",
    ),
    ("bytes of a request to the playground", "locum.interface.playground.server", "MAX_BODY"),
)


def pages() -> dict[str, str]:
    """Return the pages of the reference, by their path in docs/."""
    return {
        "reference/api.md": api(),
        "reference/library.md": library(),
        "reference/limits.md": limits(),
    }


def without_example() -> list[str]:
    """List the public names that have no runnable example."""
    return [
        name
        for name in locum.__all__
        if name not in VALUES and ">>>" not in (inspect.getdoc(getattr(locum, name)) or "")
    ]


def api() -> str:
    """Write the page of the public names."""
    modules = {name: getattr(locum, name).__module__ for name in locum.__all__}
    parts = [
        "# API reference",
        "Every public name of `locum`, with an example that the tests run. The pages of the entries say more of each.",
    ]
    left = set(locum.__all__)
    for title, rooms in SECTIONS.items():
        names = [name for name in locum.__all__ if modules[name].startswith(rooms)]
        left -= set(names)
        parts += [f"## {title}", *(_entry(name) for name in names)]
    if left:
        raise ValueError(f"in no section of the API: {sorted(left)}")
    return "\n\n".join(parts) + "\n"


def _entry(name: str) -> str:
    """Write one name: what Sphinx makes of its docstring, or a value with its example."""
    value = getattr(locum, name)
    if name in VALUES:
        text, code, printed = VALUES[name]
        kind = type(value).__name__
        head = f"````{{py:data}} {name}\n:type: {kind}\n:canonical: locum.{name}\n"
        return f"{head}\n{text}\n\n```python\nfrom locum import {name}\n\nprint({code})\n```\n```output\n{printed}\n```\n````"
    lines = [f".. autofunction:: locum.{name}"]
    if inspect.isclass(value):
        lines = [f".. autoclass:: locum.{name}"]
        if not issubclass(value, Exception):
            lines += ["   :members:", *(["   :inherited-members:"] if name in WHOLE else [])]
    body = "\n".join(lines)
    return f"```{{eval-rst}}\n{body}\n```"


def library() -> str:
    """Write the page of the names that RASP text has from the start."""
    words = meanings()
    own = sorted(reserved() - library_texts().keys())
    grammar = sorted(words.keys() - reserved() - {"tokens", *EXTENSIONS})
    functions = "\n\n".join(
        f"### {name}\n\n{NOT_RUN}\n```rasp\n{text}\n```"
        for name, text in sorted(library_texts().items())
    )
    return f"""# The names of RASP text

What a RASP program finds when it begins. `locum repl` says the same: `help names`, and `?name`.

## Reserved

No program may set these.

{_table(own)}

## Words of the grammar

{_table(grammar)}

## What programs may set

`tokens` is `tokens_str` at first; `tokens = tokens_int;` makes sorting and sums of numbers mean what one expects. The
others are extensions of Locum, whose names a program may use for its own ends.

{_table(["tokens", *sorted(EXTENSIONS)])}

## The library

Functions written in RASP; their names are reserved, too.

{functions}
"""


def _table(names: Iterable[str]) -> str:
    words = meanings()
    rows = "\n".join(
        f"| `{words[name][0]}` | {words[name][1].replace('|', chr(92) + '|')} |" for name in names
    )
    return f"| name | meaning |\n|---|---|\n{rows}"


def limits() -> str:
    """Write the page of the limits."""
    text = inspect.getsource(Limits)
    session = "\n".join(
        f"| `{field.name}` | {field.default:,} | {_comment(text, field.name)} |"
        for field in fields(Limits)
    )
    worker = "\n".join(
        f"| `{field.name}` | {field.default:,} | {_comment(inspect.getsource(WorkerLimits), field.name)} |"
        for field in fields(WorkerLimits)
    )
    constants = "\n".join(
        f"| {what} | {getattr(importlib.import_module(module), name):,} | `{module}.{name}` |"
        for what, module, name in CONSTANTS
    )
    return f"""# Limits

What is refused, and where the bound is. Every one is refused with a message that names it; nothing is cut silently.
The numbers on this page are read from the code.

## A RASP text

A session, `locum run` and `locum repl` have these ([how they are counted](../language.md#limits)). They are fields of
`locum.rasp.Limits` and can be raised: `Session(limits=Limits(steps=10_000_000))`.

| field | default | what it limits |
|---|---|---|
{session}

## The playground's workers

| field | default | what it limits |
|---|---|---|
{worker}

## Sizes

| what | at most | where |
|---|---|---|
{constants}

## What is not done

- **U** needs room: where a product has more entries than there are tokens, the sequence is padded ([errata](../errata.md), E17).
- **The compiler** refuses what a network cannot hold ([what compiles](../compiler.md#what-compiles)), and says where its numbers
  may differ from the program's ([differences](../compiler.md#differences)).
- **Fast execution** leaves to dense execution what it has no plan for, and says so ([execution](../execution.md)).
- **Proofs** are for all inputs at the shapes named; for all shapes, only what [Coq](../proofs.md) proves.
- **The limits of processes** in the playground need Linux or macOS.
- **Python** 3.11 or newer.
"""


def _comment(source: str, name: str) -> str:
    """Return the comment above a field; fields that share one have it both."""
    lines: list[str] = []
    fresh = True
    for line in map(str.strip, source.splitlines()):
        if line.startswith("#:"):
            lines = [*([] if fresh else lines), line.removeprefix("#:").strip()]
            fresh = False
        elif line.startswith(f"{name}:"):
            return " ".join(lines)
        else:
            fresh = True
    raise ValueError(f"there is no field {name}")
