"""Define the kinds of cases that a sweep can run: their functions and settings.

The table is closed: a specification contains the name of a kind, never the name of a module. The
functions of a kind are imported when they are needed (:func:`resolve`). A function receives the
settings of a case as keyword arguments and returns a JSON-compatible dictionary. Three keys of this
dictionary have a special meaning. A case whose ``holds`` is false has *failed*. The ``hashes`` of
programs, weights and data, and the ``timings`` in seconds, become separate fields of the result.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError
from locum.settings import Setting, read_settings


@dataclass(frozen=True)
class Kind:
    """A kind of case; its functions are given in the form "module:name"."""

    summary: str
    function: str
    settings: Mapping[str, Setting]
    #: Number that is incremented when the meaning of settings changes, so that old results are not
    #: reused.
    revision: int = 1
    #: Packages on whose versions a result depends.
    uses: tuple[str, ...] = ()
    #: Function that raises ``InputError`` for settings that do not fit together.
    check: str | None = None


KINDS: dict[str, Kind] = {
    "trial": Kind(
        "a test case that waits, and then ends in a given way",
        "locum.experiments.sweeps.sweep_case:trial",
        {
            "seed": Setting("an integer", "random seed of the result", least=0),
            "seconds": Setting("a number", "duration in seconds", 0.0, least=0),
            "ends": Setting(
                "a text",
                "outcome of the case",
                "done",
                ("done", "failed", "error", "not JSON", "killed", "too long", "talking"),
            ),
        },
    ),
    "circuit": Kind(
        "an item of a dataset of circuits",
        "locum.experiments.dataset.making:make",
        {
            "folder": Setting("a text", "folder of the dataset"),
            "source": Setting("a text", "name of a program, or random for a random program"),
            "attention": Setting("a text", "kind of attention heads", "softmax", ("softmax", "hard")),
            "tier": Setting("a text", "tier of the item", "plain", ("plain", "trained")),
            "length": Setting(
                "an integer", "number of tokens of the longest input (named program)", None
            ),
            "tokens": Setting("an integer", "size of the vocabulary (named program)", None),
            "layers": Setting("an integer", "number of layers (random program)", None),
            "seed": Setting("an integer", "random seed (random program)", 0, least=0),
        },
        uses=("numpy",),
        check="locum.experiments.dataset.making:check_settings",
    ),
    "fuzz": Kind(
        "a random program: every executor is compared with dense execution",
        "locum.execution.fuzzing:compare",
        {
            "seed": Setting("an integer", "random seed of the program and its input", least=0),
            "size": Setting("an integer", "maximum number of operations of the program", 12, least=1),
            "length": Setting("an integer", "maximum number of tokens of the input", 8, least=1),
        },
        uses=("numpy",),
    ),
}


def kind_named(name: object) -> Kind:
    """Return the kind with this name; raise ``InputError`` for unknown names.

    >>> kind_named("prayer")
    Traceback (most recent call last):
    locum.errors.InputError: there is no kind of case 'prayer': expected one of ...
    """
    if not isinstance(name, str) or name not in KINDS:
        shown = repr(name)[:60]
        raise InputError(f"there is no kind of case {shown}: expected one of {', '.join(KINDS)}")
    return KINDS[name]


def resolve(target: str) -> Callable[..., Any]:
    """Import and return the function that is given as "module:name"."""
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    assert callable(function)
    return function  # type: ignore[no-any-return]


def complete(name: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a case, checked and with default values filled in.

    >>> complete("trial", {"seed": 3})
    {'seed': 3, 'seconds': 0.0, 'ends': 'done'}
    """
    kind = kind_named(name)
    if not isinstance(settings, Mapping):
        raise InputError(f"settings of a case: expected a table, got {type(settings).__name__}")
    return read_settings(settings, kind.settings, f"settings of kind {name}")
