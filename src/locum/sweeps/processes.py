"""Worker processes of this machine: one case at a time each, ended and replaced at the time limit."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any

import locum
from locum.locks import Lock
from locum.sweeps.case import Case
from locum.sweeps.kinds import kind_named
from locum.sweeps.result import Result
from locum.sweeps.versions import code_hash
from locum.worker_process import WorkerEndedError, WorkerProcess, hold_interrupts

#: How often a case is given to a worker if one ends before it has begun: it may have been killed.
ATTEMPTS = 2
NEVER_BEGAN = "the worker process ended before it began with the case"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def failure(case: Case, outcome: str, result: dict[str, Any], seconds: float = 0.0) -> Result:
    """Make the result of a case that no worker has one of."""
    revision = kind_named(case.kind).revision
    versions = {"locum": locum.__version__, "revision": revision, "code": code_hash()}
    return Result(case.key, case.kind, case.settings, outcome, result, seconds, versions)


class Worker(WorkerProcess):
    """A process that computes cases."""

    def __init__(self) -> None:
        super().__init__("locum.sweeps.worker")

    def compute(self, case: Case, limit: float | None = None) -> Result | None:
        """Compute a case within ``limit`` seconds; None if the process ended before it started."""
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


class _Crew:
    """Threads that each drive one worker, and hand over what comes of the cases in a queue."""

    def __init__(self, cases: Iterable[Case], limit: float | None) -> None:
        self._cases = iter(cases)
        self._limit = limit
        self._lock = Lock()
        self._workers = set[Worker]()
        self._is_stopped = False
        self.results: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()

    def drive(self) -> None:
        """Compute one case after another on a worker, which is replaced when it has ended."""
        worker = result = None
        try:
            while (case := self._next()) is not None:
                for _ in range(ATTEMPTS):
                    if worker is None and (worker := self._engage()) is None:
                        return
                    result = worker.compute(case, self._limit)
                    if not worker.is_alive:
                        self._dismiss(worker)
                        worker = None
                    if result is not None:
                        break
                if not self._is_stopped:
                    self.results.put(result or failure(case, "error", {"error": NEVER_BEGAN}))
        except BaseException as error:
            self.results.put(error)
        finally:
            if worker is not None:
                self._dismiss(worker)
            self.results.put(None)

    def _next(self) -> Case | None:
        with self._lock:
            return None if self._is_stopped else next(self._cases, None)

    def _engage(self) -> Worker | None:
        with self._lock:
            if self._is_stopped:
                return None
            worker = Worker()
            self._workers.add(worker)
            return worker

    def _dismiss(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.end()

    def stop(self) -> None:
        """End every worker at once; no new one is started."""
        with self._lock:
            self._is_stopped = True
            for worker in self._workers:
                worker.process.kill()


def perform(cases: list[Case], workers: int, limit: float | None) -> Generator[Result]:
    """Compute the cases on so many processes and give each result as it comes.

    Closing the iterator, or an exception such as Ctrl-C, ends all of the processes at once.
    """
    crew = _Crew(cases, limit)
    threads = [
        threading.Thread(target=crew.drive, daemon=True) for _ in range(min(workers, len(cases)))
    ]
    try:
        with hold_interrupts():  # threads inherit this: Ctrl-C is for the one that waits for results
            for thread in threads:
                thread.start()
        driving = len(threads)
        while driving:
            result = crew.results.get()
            if result is None:
                driving -= 1
            elif isinstance(result, BaseException):
                raise result
            else:
                yield result
    finally:
        with hold_interrupts():  # a second Ctrl-C waits until every process is gone
            crew.stop()
            for thread in threads:
                thread.join()
