"""Cases on a Dask cluster (extra ``cluster``): the scheduler shares them out, workers of ours run them.

A task of Dask hands its case to a worker process of its own (``processes.py``), so that the time limit
and a case that kills its process mean the same as on one machine. When a machine of the cluster is
lost, the scheduler runs its cases elsewhere; what came of a case is taken once.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Generator
from typing import Any

from locum.errors import InputError, LocumError
from locum.experiments.sweeps.processes import Workers, failure
from locum.experiments.sweeps.sweep_case import Case, Result, read_line

#: Cases that are with the scheduler at one time, for each thread of the cluster and at least.
_AHEAD, _LEAST = 4, 64
#: Seconds after which it is asked how large the cluster has become.
_LOOK = 5.0
#: Seconds to wait for the scheduler.
_PATIENCE = 30.0

#: The workers of a process of the cluster.
_workers = Workers()


def task(kind: str, settings: str, key: str, limit: float | None) -> bytes:
    """Compute a case in a process of the cluster; returns its line of results."""
    case = Case(kind, json.loads(settings))
    if case.key != key:
        raise LocumError("the workers of the cluster have another version of Locum")
    return _workers.compute(case, limit).line()


def perform(cases: list[Case], scheduler: str, limit: float | None) -> Generator[Result]:
    """Compute the cases on the cluster of this scheduler and give each result as it comes."""
    client = _client(scheduler)
    try:
        waiting = iter(cases)
        with_whom: dict[Any, Case] = {}

        def submit() -> Any:
            case = next(waiting, None)
            if case is None:
                return None
            # Of tasks with one name Dask runs one: a case has as many names as limits.
            name = f"locum-{case.key}-{limit}"
            future = client.submit(
                task, case.kind, json.dumps(case.settings), case.key, limit, key=name
            )
            with_whom[future] = case
            return future

        window, looked = _window(client), time.monotonic()
        first = [submit() for _ in range(min(len(cases), window))]
        completed = importlib.import_module("distributed").as_completed(first, loop=client.loop)
        for future in completed:
            case = with_whom.pop(future)
            yield _result(future, case)
            future.release()
            if time.monotonic() - looked > _LOOK:
                window, looked = _window(client), time.monotonic()
            while len(with_whom) < window and (another := submit()) is not None:
                completed.add(another)
    finally:
        client.close()


def _window(client: Any) -> int:
    return max(_LEAST, _AHEAD * sum(map(int, client.nthreads().values())))


def _result(future: Any, case: Case) -> Result:
    """Take what came of a case, which may have to be computed anew if its worker was lost just now."""
    try:
        return read_line(future.result())
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return failure(case, "error", {"error": "the cluster lost every worker that it was run on"})
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise LocumError(
            f"the cluster could not compute {case.title}: {reason}; the results "
            "so far are kept, and the same command goes on from there"
        ) from None


def _client(scheduler: str) -> Any:
    """Connect to a scheduler."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            "a Dask cluster needs the package distributed: pip install 'locum[cluster]'"
        ) from None
    try:
        return distributed.Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"there is no Dask scheduler at {scheduler} ({error}); expected an address such as "
            "tcp://host:8786"
        ) from None
