"""Run cases on worker processes of this machine, with a time limit; each worker runs one case at a
time.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Generator
from typing import Any

import locum
from locum.errors import LocumError
from locum.experiments.sweeps.sweep_case import Case, Result, code_hash
from locum.experiments.sweeps.sweep_kinds import kind_named
from locum.experiments.sweeps.worker_process import WorkerEndedError, WorkerProcess, hold_interrupts
from locum.shared_state import Lock

#: Maximum number of workers that a case is given to if they end before they start it.
ATTEMPTS = 2
NEVER_BEGAN = "the worker process ended before it began with the case"


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def failure(case: Case, outcome: str, result: dict[str, Any], seconds: float = 0.0) -> Result:
    """Return the result of a case for which no worker returned a result."""
    revision = kind_named(case.kind).revision
    versions = {"locum": locum.__version__, "revision": revision, "code": code_hash()}
    return Result(case.key, case.kind, case.settings, outcome, result, seconds, versions)


class Worker(WorkerProcess):
    """A worker process that computes cases of a sweep."""

    def __init__(self) -> None:
        super().__init__("locum.experiments.sweeps.sweep_worker")

    def compute(self, case: Case, limit: float | None = None) -> Result | None:
        """Return the result of a case; after ``limit`` seconds, its outcome is "time limit".

        Return None if the process ended after it was ready and before it started the case. Raise
        ``LocumError`` if the process does not start.
        """
        request = {"key": case.key, "kind": case.kind, "settings": case.settings}
        try:
            answer = json.loads(self.ask(json.dumps(request).encode(), limit))
        except WorkerEndedError as error:
            if not error.started:
                return None
            result = {"limit": limit} if error.expired else {"error": str(error)}
            outcome = "time limit" if error.expired else "error"
            return failure(case, outcome, result, error.seconds)
        return Result(key=case.key, kind=case.kind, settings=case.settings, **answer)


class Workers:
    """A pool of worker processes; idle workers are reused, and workers that ended are replaced."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Worker] = []
        self._all = set[Worker]()
        self._is_stopped = False

    def compute(self, case: Case, limit: float | None) -> Result:
        """Return the result of a case, computed by a worker of the pool; safe to call from several
        threads.
        """
        for _ in range(ATTEMPTS):
            worker = self._take()
            try:
                result = worker.compute(case, limit)
            finally:
                self._give_back(worker)
            if result is not None:
                return result
        return failure(case, "error", {"error": NEVER_BEGAN})

    def _take(self) -> Worker:
        with self._lock:
            if self._is_stopped:
                raise LocumError("the workers have been stopped")
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                self._all.discard(worker)
                worker.end()
            worker = Worker()
            self._all.add(worker)
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            if worker.is_alive and not self._is_stopped:
                self._idle.append(worker)
                return
            self._all.discard(worker)
        worker.end()

    def stop(self) -> None:
        """Kill all workers and prevent the start of new workers."""
        with self._lock:
            self._is_stopped = True
            for worker in self._all:
                worker.process.kill()
        for worker in self._idle:
            worker.end()


def perform(cases: list[Case], workers: int, limit: float | None) -> Generator[Result]:
    """Compute ``cases`` on ``workers`` processes, and yield each result when it is available.

    ``limit`` is the time limit of a case in seconds. Closing the iterator, or an exception such as
    KeyboardInterrupt, terminates all processes immediately.
    """
    crew, remaining = Workers(), queue.SimpleQueue[Case]()
    results: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
    for case in cases:
        remaining.put(case)

    def drive() -> None:
        try:
            while True:
                results.put(crew.compute(remaining.get_nowait(), limit))
        except queue.Empty:
            results.put(None)
        except BaseException as error:
            results.put(error)

    threads = [threading.Thread(target=drive, daemon=True) for _ in range(min(workers, len(cases)))]
    try:
        with hold_interrupts():  # threads inherit the mask, so only the main thread receives Ctrl-C
            for thread in threads:
                thread.start()
        driving = len(threads)
        while driving:
            result = results.get()
            if result is None:
                driving -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        with hold_interrupts():  # delay a second Ctrl-C until every process has ended
            crew.stop()
            for thread in threads:
                thread.join()
