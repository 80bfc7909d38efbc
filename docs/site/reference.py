"""Write the reference pages: the API from docstrings, commands, the library of RASP text, and limits."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from docs.site import command_pages

import locum
from locum.rasp.text.builtins import EXTENSIONS
from locum.rasp.text.describing import library_texts, meanings, reserved
from locum.rasp.text.limits import Limits

#: Sections of the page on the API for the names of ``locum``: titles, and the packages that define the
#: names of each section.
SECTIONS = {
    "Programs": ("locum.rasp",),
    "Compiled transformers": ("locum.networks.compiler", "locum.networks.transformer"),
    "Simulation": ("locum.simulators",),
    "Errors": ("locum.errors",),
}
#: Sections for the functions and classes of other packages: titles and packages.
PACKAGES = {
    "PyTorch models": "locum.torch",
    "Circuits": "locum.experiments.circuits",
    "Languages": "locum.languages",
    "Proofs": "locum.proofs",
}
#: Public values without a docstring, each with a description, an example and the output of the example.
VALUES = {
    "tokens": (
        "The unchanged input. In RASP text, this s-op is called `tokens_asis`.",
        'tokens("abc")',
        "['a', 'b', 'c']",
    ),
    "tokens_str": (
        "The input converted to strings. In RASP text, this s-op is called `tokens`.",
        "tokens_str([10, 9])",
        "['10', '9']",
    ),
    "tokens_int": ("The input converted to integers.", 'tokens_int("12")', "[1, 2]"),
    "tokens_float": ("The input converted to floats.", 'tokens_float("12")', "[1.0, 2.0]"),
    "tokens_bool": ("The input converted to booleans.", "tokens_bool([0, 3])", "[False, True]"),
    "indices": ("The position of each token, counted from 0.", 'indices("abc")', "[0, 1, 2]"),
    "length": ("The number of tokens of the input, at every position.", 'length("abc")', "[3, 3, 3]"),
    "full": (
        "The selector in which every query attends to every key.",
        'full("ab").tolist()',
        "[[True, True], [True, True]]",
    ),
}
#: Comment above the code blocks of the library, so that the tests of documents do not run them.
NOT_RUN = "<!-- not run: every session runs it at its start -->"
#: Classes whose inherited members are also listed on the page of the API.
WHOLE = {"UniversalSimulator", "CompiledTransformer"}
#: Limits that are constants of modules: the limited quantity, the module, and the name of the constant.
CONSTANTS = (
    ("bits of a product or a power of integers in a session", "locum.budget", "MAX_BITS"),
    ("characters of a string in a session", "locum.budget", "MAX_STRING"),
    ("nodes of a graph that is read from JSON", "locum.graph.serialize", "MAX_NODES"),
    ("heads of one family", "locum.graph.operations", "LARGEST_FAMILY"),
    ("tokens of U in a run without a plan", "locum.simulators.simulator", "MAX_TOKENS"),
    (
        "order of a matrix that `inverse` inverts by cofactors by default",
        "locum.constructions.inverse",
        "LARGEST_COFACTOR_ORDER",
    ),
    ("tokens that `locum run --draw` draws", "locum.rasp.drawing.flow", "MAX_LENGTH"),
    (
        "combinations of values that the compiler lists for an s-op that depends on tokens",
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
    ("bytes of a request to the playground", "locum.interface.playground.local_server", "MAX_REQUEST"),
)


def pages() -> dict[str, str]:
    """Return the Markdown texts of the reference pages, by their paths in docs/."""
    return {
        "reference/api.md": api(),
        "reference/commands.md": command_pages.page(),
        "reference/library.md": library(),
        "reference/limits.md": limits(),
    }


def public() -> list[str]:
    """Return the public names of ``locum``, including names of Python builtins such as ``compile``."""
    names = [name for name in dir(locum) if not name.startswith("_")]
    return [name for name in names if not inspect.ismodule(getattr(locum, name))]


def without_example() -> list[str]:
    """Return the public names, except for ``VALUES``, whose docstrings contain no runnable example."""
    return [
        name
        for name in public()
        if name not in VALUES and ">>>" not in (inspect.getdoc(getattr(locum, name)) or "")
    ]


def api() -> str:
    """Return the Markdown text of the page that documents every public name of ``locum``."""
    modules = {name: getattr(locum, name).__module__ for name in public()}
    parts = [
        "# API reference",
        (
            "Use this page to look up the public functions, classes and values of `locum`, and of its packages for PyTorch models, "
            "circuits, languages and proofs. The tests run all examples."
        ),
    ]
    left = set(modules)
    for title, packages in SECTIONS.items():
        names = [name for name in modules if modules[name].startswith(packages)]
        left -= set(names)
        parts += [f"## {title}", *(_entry(name) for name in names)]
    for title, package in PACKAGES.items():
        module = importlib.import_module(package)
        values = {name: getattr(module, name) for name in module.__all__}
        described = [name for name, value in values.items() if callable(value)]
        parts += [f"## {title}", *(_described(f"{package}.{name}", values[name]) for name in described)]
    if left:
        raise ValueError(
            f"SECTIONS: expected a section for every public name, got none for {sorted(left)}"
        )
    return "\n\n".join(parts) + "\n"


def _entry(name: str) -> str:
    """Return the entry of a public name: a directive for a docstring, or a description of a value."""
    value = getattr(locum, name)
    if name in VALUES:
        text, code, printed = VALUES[name]
        kind = type(value).__name__
        head = f"````{{py:data}} {name}\n:type: {kind}\n:canonical: locum.{name}\n"
        return f"{head}\n{text}\n\n```python\nfrom locum import {name}\n\nprint({code})\n```\n```output\n{printed}\n```\n````"
    return _described(f"locum.{name}", value)


def _described(path: str, value: Any) -> str:
    """Return the directive that shows the docstring of a function or a class."""
    lines = [f".. autofunction:: {path}"]
    if inspect.isclass(value):
        lines = [f".. autoclass:: {path}"]
        if not issubclass(value, Exception):
            is_whole = path.removeprefix("locum.") in WHOLE
            lines += ["   :members:", *(["   :inherited-members:"] if is_whole else [])]
    body = "\n".join(lines)
    return f"```{{eval-rst}}\n{body}\n```"


def library() -> str:
    """Return the Markdown text of the page on the names that every RASP program can use."""
    words = meanings()
    own = sorted(reserved() - library_texts().keys())
    grammar = sorted(words.keys() - reserved() - {"tokens", *EXTENSIONS})
    functions = "\n\n".join(
        f"### {name}\n\n{NOT_RUN}\n```rasp\n{text}\n```"
        for name, text in sorted(library_texts().items())
    )
    return f"""# Library of RASP text

Use this page to look up the names that every RASP program can use. In `locum repl`, `help names` lists the names, and `?sort` describes the
name `sort`.

## Reserved names

Programs cannot assign to these names.

{_table(own)}

## Keywords and commands

{_table(grammar)}

## Names that programs can redefine

`tokens` equals `tokens_str` by default. To sort and add numbers, write `tokens = tokens_int;`. The other names in this table are extensions
of Locum.

{_table(["tokens", *sorted(EXTENSIONS)])}

## Library functions

These functions are written in RASP. Their names are also reserved.

{functions}
"""


def _table(names: Iterable[str]) -> str:
    words = meanings()
    rows = "\n".join(
        f"| `{words[name][0]}` | {words[name][1].replace('|', chr(92) + '|')} |" for name in names
    )
    return f"| name | meaning |\n|---|---|\n{rows}"


def limits() -> str:
    """Return the Markdown text of the page on the limits of programs, sizes and requests."""
    text = inspect.getsource(Limits)
    session = "\n".join(
        f"| `{field.name}` | {field.default:,} | {_comment(text, field.name)} |"
        for field in fields(Limits)
    )
    constants = "\n".join(
        f"| {what} | {getattr(importlib.import_module(module), name):,} | `{module}.{name}` |"
        for what, module, name in CONSTANTS
    )
    return f"""# Limits

Use this page to look up the limits of Locum and their values. If RASP text exceeds a limit, Locum reports an error. An exception is the
limit `cells`: a larger selector is displayed in part. The values in the tables are read from the code.

## Limits on RASP text

These limits apply to sessions, `locum run` and `locum repl` ([language reference](../language.md#limits)). The limits are fields of
`locum.rasp.Limits`. To raise a limit in Python, pass it to the session: `Session(limits=Limits(steps=10_000_000))`.

| field | default | limited quantity |
|---|---|---|
{session}

## Limits on sizes

| limited quantity | maximum | constant |
|---|---|---|
{constants}

## Further limits

- **U.** If a matrix product has more entries than the sequence has tokens, U pads the sequence ([errata](../errata.md), E17).
- **Compiler.** `locum.compile` raises `CompileError` if a program does not fit into a network
  ([supported programs](../compiler.md#supported-programs)). The outputs of a network may
  [differ from dense execution](../compiler.md#differences-from-dense-execution).
- **Fast execution.** If neither a plan nor the structured tier supports a program, fast execution warns and uses dense execution, for up to
  4,096 tokens ([execution](../execution.md)).
- **Proofs.** A proof holds for all inputs of the given shapes. [Theorems in Coq](../proofs.md) hold for all shapes.
- **Playground.** The limits of worker processes require Linux or macOS.
- **Python.** Locum requires Python 3.11 or newer.
"""


def _comment(source: str, name: str) -> str:
    """Return the comment above a field of a class as Markdown.

    Consecutive fields may share a comment.
    """
    lines: list[str] = []
    fresh = True
    for line in map(str.strip, source.splitlines()):
        if line.startswith("#:"):
            lines = [*([] if fresh else lines), line.removeprefix("#:").strip()]
            fresh = False
        elif line.startswith(f"{name}:"):
            return " ".join(lines).replace("``", "`")
        else:
            fresh = True
    raise ValueError(f"expected a field {name} with a comment, got none")
