"""The kinds of cases: what each computes, where its function is, and which settings it takes.

The table is closed: a spec names a kind, never a module. A function is imported where it is run, in a
worker, so that the table itself costs nothing and knows no other room of the house. It takes the
settings of a case by name and returns a dictionary of plain JSON. Three names in it are special: a case
whose ``holds`` is false has *failed*; ``hashes`` (of programs, weights, data) and ``timings`` (seconds,
which differ from run to run) stand by themselves in the line of results.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from locum.errors import InputError
from locum.settings import Setting, read_settings


@dataclass(frozen=True)
class Kind:
    """A kind of case; ``function`` and ``lists`` are given as "module:name"."""

    summary: str
    function: str
    settings: Mapping[str, Setting]
    #: Counted up when the same settings begin to mean something else, so that old results stay apart.
    revision: int = 1
    #: Packages whose versions a result depends on.
    uses: tuple[str, ...] = ()
    #: Lists of settings that a spec asks for by ``cases = "…"``: functions without arguments.
    lists: Mapping[str, str] = field(default_factory=dict)
    #: Looks settings of a spec up: a function that returns the setting that is wrong, and why, or None.
    check: str | None = None
    #: Tells whether what a case wrote beside its result is still there, by its settings and its result.
    kept: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give what a spec can say of the kind as plain data."""
        settings = {
            name: {"meaning": setting.help, "expected": setting.expected}
            | ({} if setting.is_required else {"default": setting.default})
            for name, setting in self.settings.items()
        }
        return {"summary": self.summary, "settings": settings, "cases": list(self.lists)}


KINDS: dict[str, Kind] = {
    "trial": Kind(
        "a rehearsal: waits, and ends as it is told",
        "locum.experiments.sweeps.sweep_case:trial",
        {
            "seed": Setting("an integer", "the result is drawn from it", least=0),
            "seconds": Setting("a number", "how long it takes", 0.0, least=0),
            "ends": Setting(
                "a text",
                "how it ends",
                "done",
                ("done", "failed", "error", "not JSON", "killed", "too long", "talking"),
            ),
        },
    ),
    "circuit": Kind(
        "an item of a dataset of compiled circuits, in some tiers",
        "locum.experiments.dataset.making:make",
        {
            "folder": Setting("a text", "where the dataset is"),
            "source": Setting("a text", "a named program, or random"),
            "attention": Setting("a text", "the kind of heads", "softmax", ("softmax", "hard")),
            "tiers": Setting("a list of texts", "plain, rotated, superposed, …", ("plain",)),
            "length": Setting("an integer", "the longest input of a named program", None),
            "tokens": Setting("an integer", "how many tokens a named program has", None),
            "layers": Setting("an integer", "the layers of a random program", None),
            "seed": Setting("an integer", "what a random program is drawn from", 0, least=0),
        },
        uses=("numpy",),
        check="locum.experiments.dataset.making:problem_of_circuit",
        kept="locum.experiments.dataset.making:items_exist",
    ),
    "proof": Kind(
        "a claim of the paper, proven for all inputs of a shape",
        "locum.paper.proving:prove_and_check",
        {
            "claim": Setting("a text", "its name, as locum prove claim takes it"),
            "shape": Setting("a list of integers", "of the matrices"),
            "recipe": Setting("a text", "which form of the construction", None),
        },
        uses=("numpy", "flint"),
        lists={"all": "locum.paper.proving:proofs", "quick": "locum.paper.proving:quick_proofs"},
        check="locum.paper.asked:problem_of_proof",
    ),
    "refutation": Kind(
        "a wrong statement of the paper, refuted by numbers",
        "locum.paper.proving:refute",
        {"erratum": Setting("a text", "its number, such as E2")},
        uses=("numpy", "flint"),
        lists={"all": "locum.paper.proving:refutations"},
        check="locum.paper.asked:problem_of_refutation",
    ),
    "certificate": Kind(
        "the certified error of U on random inputs, against the error that is seen",
        "locum.paper.proving:measure",
        {
            "first": Setting("an integer", "the first seed", least=0),
            "count": Setting("an integer", "how many seeds", least=1),
        },
        uses=("numpy", "flint"),
        lists={"all": "locum.paper.proving:certificates"},
    ),
    "fuzz": Kind(
        "a random program, every executor against dense execution",
        "locum.execution.fuzzing:compare",
        {
            "seed": Setting("an integer", "of the program and its input", least=0),
            "size": Setting("an integer", "the most operations of the program", 12, least=1),
            "length": Setting("an integer", "the most tokens of the input", 8, least=1),
        },
        uses=("numpy",),
    ),
    "learning": Kind(
        "networks that are trained from a construction with noise, or from random weights",
        "locum.experiments.learning.training:learn",
        {
            "task": Setting("a text", "the construction", choices=("U", "fetch", "matmul")),
            "order": Setting("a list of integers", "n, d and d_v of U", None),
            "units": Setting("a text", "feed-forwards of U", "glu", ("glu", "gelu", "relu")),
            "tolerance": Setting("a number", "what U and matmul are compiled for", 1e-3),
            "soften": Setting("a number", "factor of inverse temperatures", 1.0),
            "balanced": Setting("true or false", "whether weights are of one size", False),
            "keys": Setting("a text", "of fetch", "squares", ("squares", "one-hot", "bits")),
            "positions": Setting("an integer", "of fetch", 8, least=2),
            "inverse_temperature": Setting("a number", "of fetch", 16.0, least=0),
            "size": Setting("an integer", "rows of the matrices of matmul", 2, least=1),
            "start": Setting("a text", "where it begins", "construction", ("construction", "random")),
            "sigmas": Setting("a list of numbers", "scales of noise on weights", [1e-2]),
            "trainable": Setting("a text", "what may move", "all", ("all", "nonzeros", "zeros")),
            "optimiser": Setting("a text", "how it moves", "adam", ("sgd", "adam", "muon")),
            "rate": Setting("a number", "of learning", 1e-3),
            "decay": Setting("true or false", "whether the rate falls to 0", True),
            "relative": Setting("true or false", "rates times the size of each weight", False),
            "anneal": Setting("a number", "fraction of scores to begin with", 1.0),
            "inputs": Setting("a text", "of U's order, or smaller", "whole", ("whole", "smaller")),
            "steps": Setting("an integer", "of the optimiser", 200, least=0),
            "batch": Setting("an integer", "inputs in a step", 32, least=1),
            "seeds": Setting("an integer", "networks for each scale of noise", 8, least=1),
            "first_seed": Setting("an integer", "the seed of the first", 0, least=0),
            "curve": Setting("a list of integers", "steps after which errors are kept", []),
            "device": Setting("a text", "cpu, or cuda where there is one", "cpu"),
        },
        uses=("torch", "numpy"),
        check="locum.experiments.learning.grid:problem_of",
        lists={
            name: f"locum.experiments.learning.grid:{name}"
            for name in (
                "zeros",
                "basin",
                "positions",
                "softness",
                "annealing",
                "larger",
                "slow",
                "random",
                "orders",
                "orders_all",
                "orders_optimisers",
                "orders_inputs",
                "orders_random",
                "orders_positions",
            )
        },
    ),
}


def kind_named(name: object) -> Kind:
    """Return the kind of that name.

    >>> kind_named("prayer")
    Traceback (most recent call last):
    locum.errors.InputError: there is no kind of case 'prayer': expected one of ...
    """
    if not isinstance(name, str) or name not in KINDS:
        shown = repr(name)[:60]
        raise InputError(f"there is no kind of case {shown}: expected one of {', '.join(KINDS)}")
    return KINDS[name]


def resolve(target: str) -> Callable[..., Any]:
    """Import what a "module:name" of the table means."""
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    assert callable(function)
    return function  # type: ignore[no-any-return]


def complete(name: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of a case and fill in the defaults.

    >>> complete("trial", {"seed": 3})
    {'seed': 3, 'seconds': 0.0, 'ends': 'done'}
    """
    kind = kind_named(name)
    if not isinstance(settings, Mapping):
        raise InputError(f"settings of a case: expected a table, got {type(settings).__name__}")
    return read_settings(settings, kind.settings, f"settings of kind {name}")
