"""Run the cases of a sweep on a Dask cluster, which requires the extra ``cluster``.

A Dask task passes its case to a separate worker process (``processes.py``). Time limits and crashing
cases are therefore handled in the same way as on one machine. If a machine of the cluster is lost, the
scheduler runs its cases on another machine. Each result is used only once.
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

#: Maximum number of pending cases per thread of the cluster, and lower limit of this maximum for the
#: whole cluster.
_AHEAD, _LEAST = 4, 64
#: Minimum number of seconds between checks of the number of threads in the cluster.
_LOOK = 5.0
#: Timeout of the connection to the scheduler in seconds.
_PATIENCE = 30.0

#: Worker processes of this process of the cluster.
_workers = Workers()


def task(kind: str, settings: str, key: str, limit: float | None) -> bytes:
    """Compute a case in a process of the cluster, and return its result as a line.

    ``limit`` is the time limit in seconds.
    """
    case = Case(kind, json.loads(settings))
    if case.key != key:
        raise LocumError("the workers of the cluster have another version of Locum")
    return _workers.compute(case, limit).line()


def perform(cases: list[Case], scheduler: str, limit: float | None) -> Generator[Result]:
    """Compute ``cases`` on the cluster of a Dask scheduler, and yield each result when it is available.

    ``limit`` is the time limit of a case in seconds.
    """
    client = _client(scheduler)
    try:
        waiting = iter(cases)
        with_whom: dict[Any, Case] = {}

        def submit() -> Any:
            case = next(waiting, None)
            if case is None:
                return None
            # Dask runs only one of several tasks with the same name, so the name includes the limit.
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
    """Return the result of a Dask future for ``case``.

    If the cluster lost all workers that ran the case, the result has the outcome "error". Any other
    failure raises ``LocumError``.
    """
    try:
        return read_line(future.result())
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return failure(case, "error", {"error": "the cluster lost all workers that ran the case"})
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise LocumError(
            f"the cluster could not compute {case.title}: {reason}; the results "
            "so far are kept, and the same command continues"
        ) from None


def _client(scheduler: str) -> Any:
    """Return a Dask client connected to the scheduler at this address."""
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
