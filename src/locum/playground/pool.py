"""A pool of worker processes for programs of strangers: bounded in time, memory and number.

Each request has a worker to itself. One that takes too long, or dies, is killed and replaced; only its
own request is lost, and its answer says why. More requests than can wait are refused at once.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from locum.playground.worker import LAST, Limits, work

BUSY = "the playground is busy; try again in a moment"
#: Seconds that a new worker has to load the house.
_START = 60.0


class BusyError(Exception):
    """More requests are waiting than the pool keeps."""


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, limits: Limits) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, theirs = spawning.Pipe()
        self.process = spawning.Process(target=work, args=(theirs, limits), daemon=True)
        self.process.start()
        theirs.close()
        self.is_ready = False
        self.answered = 0
        #: Whether its last answer was the last one that it gives.
        self.has_ended = False

    def ask(self, request: bytes, wall: float) -> bytes | None:
        """Return the answer; None if it takes longer than ``wall`` seconds. EOFError: it has died."""
        if not self.is_ready:
            if not self.connection.poll(_START):
                return None
            self.connection.recv_bytes()
            self.is_ready = True
        self.connection.send_bytes(request)
        if not self.connection.poll(wall):
            return None
        self.answered += 1
        reply = self.connection.recv_bytes()
        self.has_ended = reply.startswith(LAST)
        return reply[1:]

    def end(self) -> None:
        """Kill it, whatever it is doing."""
        self.connection.close()
        self.process.kill()
        self.process.join()


class Pool:
    """So many workers, and so many requests that may wait for one."""

    def __init__(
        self, workers: int | None = None, waiting: int = 32, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.size = workers or max(2, (os.cpu_count() or 2))
        #: Requests that may be in the house at one time.
        self.capacity = self.size + waiting
        self._places = threading.BoundedSemaphore(self.capacity)
        self._free: queue.Queue[_Worker] = queue.Queue()
        #: Workers that were replaced because they broke a limit or died.
        self.replaced = 0
        self._closed = False
        for _ in range(self.size):
            self._free.put(_Worker(self.limits))

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """Answer a request as JSON in bytes; raises :class:`BusyError` if too many are waiting."""
        if not self._places.acquire(blocking=False):
            raise BusyError(BUSY)
        try:
            worker = self._free.get()
            try:
                return self._ask(worker, json.dumps(request).encode())
            finally:
                is_over = worker.has_ended or worker.answered >= self.limits.requests
                if is_over or not worker.process.is_alive():
                    worker.end()
                    worker = _Worker(self.limits)
                if self._closed:
                    worker.end()
                self._free.put(worker)
        finally:
            self._places.release()

    def _ask(self, worker: _Worker, request: bytes) -> bytes:
        limits = self.limits
        try:
            reply = worker.ask(request, limits.wall)
        except (EOFError, OSError):
            worker.process.join(10)  # its pipe is closed before the system knows its exit code
            code = worker.process.exitcode
            reply, why = None, f"this takes more than {limits.cpu} seconds of work, the limit"
            if code != -signal.SIGXCPU:
                why = "the process that worked on this was ended; try again, or a smaller program"
        else:
            why = f"this takes longer than {limits.wall:g} seconds, the limit"
        if reply is not None:
            return reply
        self.replaced += 1
        worker.end()
        return json.dumps({"ok": False, "error": why}).encode()

    def close(self) -> None:
        """End all workers that are free, and the others when they come back."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait().end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
