"""Run the worker process of a sweep, which reads cases as JSON and writes their results.

``processes.py`` starts this process, on this machine or, for ``cluster.py``, on the machines of a
cluster.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locum import __version__
from locum.errors import LocumError
from locum.experiments.sweeps.sweep_case import MOST_LINE, Case, canonical, problem_of, versions_of
from locum.experiments.sweeps.sweep_kinds import Kind, kind_named, resolve
from locum.experiments.sweeps.worker_process import serve

#: Maximum size of a result in bytes, and maximum length of an error message in characters.
MOST_RESULT, MOST_REPORT = MOST_LINE // 4, 4_000


def compute(kind: Kind, settings: dict[str, Any]) -> dict[str, Any]:
    """Run the function of a kind with ``settings``, and return outcome, result and seconds.

    Unless an error occurred, also return hashes and timings.
    """
    started = time.perf_counter()

    def answer(outcome: str, result: dict[str, Any], **beside: dict[str, Any]) -> dict[str, Any]:
        seconds = round(time.perf_counter() - started, 6)
        return {"outcome": outcome, "result": result, "seconds": seconds, **beside}

    try:
        value = resolve(kind.function)(**settings)
        problem = problem_of(value)
        if problem is None and not isinstance(value, dict):
            problem = f"the result is a {type(value).__name__}, not a dictionary"
        size = 0 if problem else len(canonical(value))
        if size > MOST_RESULT:
            problem = f"the result has {size:,} bytes, and the limit is {MOST_RESULT:,}"
        if problem is not None:
            return answer("error", {"error": problem})
        beside = {name: value.pop(name, {}) for name in ("hashes", "timings")}
        return answer("done" if value.get("holds", True) else "failed", value, **beside)
    except LocumError as error:
        return answer("error", {"error": f"{type(error).__name__}: {error}"[:MOST_REPORT]})
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:MOST_REPORT]
        return answer("error", {"error": text, "where": _where(error)})


def _where(error: Exception) -> list[str]:
    """Return the functions and lines in the last 20 or fewer entries of the traceback of an error,
    without folder names.
    """
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-20:]]


def prepare(line: bytes) -> Callable[[], bytes]:
    """Load the function of the case in a request, and return a function that computes the answer.

    If loading fails, the answer has the outcome "error".
    """
    request = json.loads(line)
    versions: dict[str, Any] = {"locum": __version__, "revision": 0}
    try:
        kind = kind_named(request["kind"])
        versions["revision"] = kind.revision
        case = Case(request["kind"], request["settings"])
        versions = versions_of(kind)
        if case.key != request["key"]:
            raise LocumError(f"the worker has another version of Locum: {versions}")
        resolve(kind.function)
    except Exception as error:
        problem = {"error": f"{type(error).__name__}: {error}"}
        failed = {"outcome": "error", "result": problem, "seconds": 0.0, "versions": versions}
        return lambda: json.dumps(failed).encode()

    def answer() -> bytes:
        result = compute(kind, case.settings) | {"versions": versions}
        return json.dumps(result, allow_nan=False).encode()

    return answer


def main() -> None:
    """Answer requests until the input ends."""
    serve(prepare)
