"""Worker processes of this machine: one case at a time each, ended and replaced at the time limit."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import locum
from locum.errors import LocumError
from locum.locks import Lock
from locum.sweeps.case import Case
from locum.sweeps.kinds import kind_named
from locum.sweeps.result import Result
from locum.sweeps.versions import code_hash

#: One thread of linear algebra in each worker: the workers share the cores already.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: How often a case is given to a worker if one ends before it has begun: it may have been killed.
ATTEMPTS = 2
NEVER_BEGAN = "the worker process ended before it began with the case"
_PROGRAM = "from locum.sweeps.worker import main; main()"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _environment() -> dict[str, str]:
    """Let a worker find the same Locum that is running here."""
    paths = [str(Path(locum.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    once = {name: "1" for name in _ONE_THREAD if name not in os.environ}
    return os.environ | once | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back: a process that is started meanwhile never sees one, and none is lost here."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def failure(case: Case, outcome: str, result: dict[str, Any], seconds: float = 0.0) -> Result:
    """Make the result of a case that no worker has one of."""
    revision = kind_named(case.kind).revision
    versions = {"locum": locum.__version__, "revision": revision, "code": code_hash()}
    return Result(case.key, case.kind, case.settings, outcome, result, seconds, versions)


class Worker:
    """A process that computes cases, and the pipes to it."""

    def __init__(self) -> None:
        with _interrupts_held():
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(),
            )
        self._is_ready = self._has_ended = False

    def ask(self, case: Case, limit: float | None = None) -> Result | None:
        """Compute a case, which may take ``limit`` seconds; None if the process ended before it began.

        Afterwards the worker may have ended: ask :attr:`is_alive`.
        """
        if not self._is_ready and not self._receive():
            raise LocumError("a worker process does not start; its error, if it has one, is above")
        self._is_ready = True
        self._send({"key": case.key, "kind": case.kind, "settings": case.settings})
        if not self._receive():
            return None
        started = time.perf_counter()
        expired = threading.Event()
        timer = None
        if limit is not None:
            timer = threading.Timer(min(limit, threading.TIMEOUT_MAX), self._expire, (expired,))
            timer.start()
        answer = self._receive()
        if timer is not None:
            timer.cancel()
            timer.join()
        self._has_ended |= expired.is_set()  # an answer that came at the last moment counts
        if not answer:
            seconds = round(time.perf_counter() - started, 6)
            outcome = "time limit" if expired.is_set() else "error"
            result = {"limit": limit} if expired.is_set() else {"error": self._death()}
            return failure(case, outcome, result, seconds)
        return Result(key=case.key, kind=case.kind, settings=case.settings, **answer)

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has died: there will be no answer
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        """Return the next message; an empty one if the process has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self._has_ended = True  # the system may take a moment longer to say so
            return {}
        message: dict[str, Any] = json.loads(line)
        return message

    def _expire(self, expired: threading.Event) -> None:
        expired.set()
        self._process.kill()

    def _death(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"the worker process ended with exit code {code}"
        return f"the worker process was ended by {signal.Signals(-code).name}"

    @property
    def is_alive(self) -> bool:
        """Tell whether it can be asked again."""
        return not self._has_ended and self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        self._process.kill()

    def end(self) -> None:
        """End the process and wait until it is gone."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


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
                    result = worker.ask(case, self._limit)
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
                worker.kill()


def perform(cases: list[Case], workers: int, limit: float | None) -> Generator[Result]:
    """Compute the cases on so many processes and give each result as it comes.

    Closing the iterator, or an exception such as Ctrl-C, ends all of the processes at once.
    """
    crew = _Crew(cases, limit)
    threads = [
        threading.Thread(target=crew.drive, daemon=True) for _ in range(min(workers, len(cases)))
    ]
    try:
        with _interrupts_held():  # threads inherit this: Ctrl-C is for the one that waits for results
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
        with _interrupts_held():  # a second Ctrl-C waits until every process is gone
            crew.stop()
            for thread in threads:
                thread.join()
