"""Answer one request of the page, as a function from JSON to JSON without state.

>>> reply = answer({"action": "run", "source": "x = indices + 1;", "input": "abc"})
>>> reply["statements"][0]["values"]
['1', '2', '3']
>>> answer({"action": "run", "source": "x = ;", "input": "abc"})["errors"]
[{'line': 1, 'column': 5, 'message': "expected an expression, but found ';'"}]
>>> answer({"action": "run", "path": "/etc/passwd"})["error"]
"fields of run: expected source, input, got 'path'"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from locum.errors import InputError, LocumError
from locum.interface.playground import (
    custom_exercises,
    exercises,
    network_actions,
    panes,
    universal_pane,
    weights_pane,
)
from locum.interface.playground.custom_exercises import EXERCISE
from locum.interface.playground.example_programs import examples
from locum.interface.playground.requests import (
    INPUT,
    INTERNAL,
    MATRIX,
    MEMORY,
    SOURCE,
    TEMPERATURE,
    decimal,
)
from locum.rasp.text.session import Session
from locum.settings import Setting, read_settings

#: Maximum length of an error message.
MAX_ERROR = 2_000


class Action(NamedTuple):
    """A kind of request: the function that answers it, and the settings of its fields."""

    function: Callable[..., dict[str, Any]]
    settings: dict[str, Setting]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request of the page.

    For an invalid request, ``ok`` is false in the answer, and ``error`` is the error message.
    """
    try:
        if not isinstance(request, Mapping):
            raise LocumError(f"expected a JSON object as the request, got {type(request).__name__}")
        fields = dict(request)
        name = fields.pop("action", None)
        if not isinstance(name, str) or name not in ACTIONS:
            raise LocumError(f"action: expected one of {', '.join(ACTIONS)}, got {name!r:.60}")
        action = ACTIONS[name]
        values = read_settings(fields, action.settings, f"fields of {name}")
        typed = values.pop("input", None)
        return {"ok": True, **action.function(**values, **({} if typed is None else {"typed": typed}))}
    except LocumError as error:
        return {"ok": False, "error": str(error)[:MAX_ERROR]}


def answer_text(text: str | bytes) -> str:
    """Return the answer to a request; the request and the answer are JSON texts.

    >>> answer_text('{"action": "run", "source": "", "input": 1.00000000000000001}')[:12]
    '{"ok": false'
    """
    try:
        request = json.loads(text, parse_float=decimal)
    except (InputError, ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, InputError) else "expected a JSON object"
        return json.dumps({"ok": False, "error": problem})
    try:
        return json.dumps(answer(request), ensure_ascii=False, allow_nan=False)
    except MemoryError:
        return json.dumps({"ok": False, "error": MEMORY})
    except Exception:
        return json.dumps({"ok": False, "error": INTERNAL})


def catalogue() -> dict[str, Any]:
    """Return the examples, exercises, choices and defaults of forms, and names for completion."""
    session = Session("a", folders=())
    return {
        "examples": examples(),
        "exercises": [exercise.described() for exercise in exercises.EXERCISES.values()],
        "attentions": weights_pane.SETTINGS["attention"].choices,
        "feedForwards": weights_pane.SETTINGS["feed_forward"].choices,
        "recipes": list(universal_pane.RECIPES),
        "presets": universal_pane.PRESETS,
        "defaults": {"network": weights_pane.DEFAULTS, "universal": universal_pane.DEFAULTS},
        "names": sorted(name for name in session.names() if not name.startswith("_")),
    }


_PROGRAM = {"source": SOURCE, "input": INPUT}
_SOLVED = {"exercise": EXERCISE, "source": SOURCE}
_NAMED = {**_PROGRAM, "name": Setting("a text", default=None, longest=100)}
_NETWORK = {**_NAMED, **weights_pane.SETTINGS}
_UNIVERSAL = {
    **dict.fromkeys(("X", "A", "V"), MATRIX),
    "recipe": Setting(
        "a text", default=universal_pane.DEFAULTS["recipe"], choices=universal_pane.RECIPES
    ),
    "base": Setting("a number", default=universal_pane.DEFAULTS["base"], least=1e-3, most=1e3),
    "temperature": replace(TEMPERATURE, default=universal_pane.DEFAULTS["temperature"]),
}

ACTIONS: dict[str, Action] = {
    "catalogue": Action(catalogue, {}),
    "run": Action(panes.run, _PROGRAM),
    "analyse": Action(panes.analyse, _PROGRAM),
    "draw": Action(panes.draw, _NAMED),
    "compile": Action(weights_pane.compile, _NETWORK),
    "apply": Action(
        weights_pane.apply,
        {
            **_NETWORK,
            "inputs": Setting("a list of texts", default=[], longest=50),
            "others": Setting("an integer", default=0, least=0, most=50),
            "seed": Setting("an integer", default=0, least=0, most=2**32),
        },
    ),
    "intervene": Action(
        network_actions.intervene,
        {
            **_NETWORK,
            "ablated": Setting("a list of texts", default=[], longest=64),
            "temperature": Setting("a number", default=1.0, least=1e-3, most=1e6),
        },
    ),
    "explain": Action(universal_pane.explain, _UNIVERSAL),
    "exercise": Action(exercises.check, _SOLVED),
    "describe": Action(custom_exercises.describe, {"exercise": EXERCISE}),
    "solution": Action(exercises.show_solution, _SOLVED),
}
