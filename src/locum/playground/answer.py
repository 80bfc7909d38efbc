"""``answer``: one request of the page in, one answer out, both JSON; no state, no files.

>>> reply = answer({"action": "run", "source": "x = indices + 1;", "input": "abc"})
>>> reply["statements"][0]["values"]
['1', '2', '3']
>>> answer({"action": "run", "source": "x = ;", "input": "abc"})["errors"]
[{'line': 1, 'column': 5, 'message': "expected an expression, but found ';'"}]
>>> answer({"action": "run", "path": "/etc/passwd"})["error"]
'expected the fields source, input; got "path" beside them'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from locum.compiler.target import ATTENTIONS, FEED_FORWARDS
from locum.errors import LocumError
from locum.language.rasp.session import Session
from locum.playground import claims, exercises, panes, requests, saving, universal, weights
from locum.playground.examples import examples
from locum.playground.requests import Field, boolean, choice, integer, number, temperature, text
from locum.verification.claims.named import FAMILIES


class Action(NamedTuple):
    """What answers a request, and the fields that the request may have."""

    function: Callable[..., dict[str, Any]]
    fields: dict[str, Field]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request; ``ok`` is false, and ``error`` says why, where that is not possible."""
    try:
        if not isinstance(request, Mapping):
            raise LocumError(f"expected a JSON object as the request, got {type(request).__name__}")
        fields = dict(request)
        name = fields.pop("action", None)
        if not isinstance(name, str) or name not in ACTIONS:
            raise LocumError(f"action: expected one of {', '.join(ACTIONS)}, got {name!r:.60}")
        action = ACTIONS[name]
        values = requests.read(fields, action.fields)
        typed = values.pop("input", None)
        return {"ok": True, **action.function(**values, **({} if typed is None else {"typed": typed}))}
    except LocumError as error:
        return {"ok": False, "error": str(error)[: saving.MAX_ERROR]}


def catalogue() -> dict[str, Any]:
    """List what the page offers: examples, exercises, claims, recipes, names for completion."""
    session = Session("a", folders=())
    return {
        "examples": examples(),
        "exercises": [exercise.described() for exercise in exercises.EXERCISES.values()],
        "claims": claims.claims(),
        **saving.CHOICES,
        "presets": universal.PRESETS,
        "names": sorted(name for name in session.names() if not name.startswith("_")),
    }


_PROGRAM = {"source": text(requests.MAX_SOURCE), "input": text(requests.MAX_INPUT)}
_NAME = {"name": text(100).optional()}
_NETWORK = {
    name: field.optional(weights.DEFAULTS[name])
    for name, field in {
        "length": integer(1, requests.MAX_LENGTH),
        "vocabulary": text(requests.MAX_INPUT),
        "numeric": boolean(),
        "fixed": boolean(),
        "causal": boolean(),
        "attention": choice(*ATTENTIONS),
        "feed_forward": choice(*FEED_FORWARDS),
        "tolerance": number(1e-12, 1.0),
        "low": number(-1e6, 1e6),
        "high": number(-1e6, 1e6),
    }.items()
}
_UNIVERSAL = {name: requests.matrix() for name in ("X", "A", "V")} | {
    name: field.optional(universal.DEFAULTS[name])
    for name, field in {
        "recipe": choice(*universal.RECIPES),
        "base": number(1e-3, 1e3),
        # 0 is hard attention; below the least other one, scores would not be numbers any more.
        "temperature": temperature(),
    }.items()
}

ACTIONS: dict[str, Action] = {
    "catalogue": Action(catalogue, {}),
    "run": Action(panes.run, _PROGRAM),
    "analyse": Action(panes.analyse, _PROGRAM),
    "draw": Action(panes.draw, {**_PROGRAM, **_NAME, "svg": boolean().optional(False)}),
    "compile": Action(weights.compile, {**_PROGRAM, **_NAME, **_NETWORK}),
    "apply": Action(
        weights.apply,
        {
            **_PROGRAM,
            **_NAME,
            **_NETWORK,
            "inputs": requests.texts(50, requests.MAX_INPUT).optional([]),
            "others": integer(0, 50).optional(0),
            "seed": integer(0, 2**32).optional(0),
        },
    ),
    "explain": Action(universal.explain, _UNIVERSAL),
    "certify": Action(universal.certify, _UNIVERSAL),
    "prove": Action(
        claims.prove,
        {
            "name": choice(*FAMILIES),
            "shape": requests.integers(6, 12),
            "recipe": text(20).optional(),
            "certificate": boolean().optional(False),
        },
    ),
    "prove_universal": Action(
        universal.prove, {**_UNIVERSAL, "certificate": boolean().optional(False)}
    ),
    "classify": Action(claims.classify, {"regex": text(200)}),
    "exercise": Action(
        exercises.check, {"key": choice(*exercises.EXERCISES), "source": text(requests.MAX_SOURCE)}
    ),
    "save": Action(
        saving.save,
        {
            **_PROGRAM,
            **_NAME,
            **_NETWORK,
            "pane": choice("heads", "weights", "values", "counts").optional("heads"),
        },
    ),
    "save_universal": Action(saving.save_universal, _UNIVERSAL),
}
