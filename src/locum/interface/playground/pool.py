"""Run untrusted programs in a pool of worker processes, with limits on time and memory.

Each request runs in one worker. If a worker exceeds a limit or ends, only its request is lost, and the
answer states the reason. ``line.py`` selects the next request. Background workers have the lowest
priority of the operating system.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from locum.errors import LocumError
from locum.experiments.sweeps.worker_process import WorkerEndedError, WorkerProcess
from locum.interface.playground.line import BUSY, BusyError, Line, Ticket
from locum.interface.playground.playground_worker import Limits
from locum.shared_state import Lock

#: CPU seconds after which a request moves to the background if requests of other clients wait.
LONG = 0.25
ENDING = "the playground is ending"
#: Lowest priority of a process.
_LOWEST = 19


class Pool:
    """A pool of worker processes with a queue of requests.

    ``workers`` is the number of foreground workers. ``spare`` is the number of additional processes,
    which replace workers that end or are moved to the background.
    """

    def __init__(
        self,
        workers: int = 2,
        waiting: int = 400,
        limits: Limits | None = None,
        share: int | None = None,
        spare: int = 0,
    ) -> None:
        self.limits = limits or Limits()
        self.size = workers
        #: Number of workers that were replaced because they exceeded a limit or ended.
        self.replaced = 0
        self._line = Line(self.size, waiting, share)
        #: Maximum number of requests that are answered at the same time.
        self.most = self.size + self._line.background
        self._lock = Lock()
        self._closed = False
        self._free: list[WorkerProcess] = []
        self._background: list[WorkerProcess] = []
        self._busy: dict[Ticket, tuple[WorkerProcess, float]] = {}
        #: Processes that are starting.
        self._starting: set[WorkerProcess] = set()
        #: Requests whose workers were terminated because other requests waited or the pool is closed.
        self._ended: set[Ticket] = set()
        self._closing = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        for _ in range(self.size + spare):
            self._start()

    def _start(self, ticket: Ticket | None = None) -> None:
        """Start a process for the background request ``ticket``; if it is None, for the foreground."""
        module = "locum.interface.playground.playground_worker"

        def begin() -> None:
            worker = WorkerProcess(module, json.dumps(asdict(self.limits)))
            with self._lock:
                self._starting.add(worker)
            if ticket is not None:
                _lower(worker)
            try:
                worker.wait()
            except LocumError:  # a new process may start later, when more memory is free
                if not self._closing.wait(1.0):
                    self._start(ticket)
            with self._lock:
                self._starting.discard(worker)
                if self._closed or not worker.is_alive:
                    worker.end()
                    if ticket is not None and self._closed and not ticket.turn.done():
                        ticket.turn.set_exception(BusyError(ENDING))
                elif ticket is not None and not ticket.turn.done():
                    self._assign(ticket, worker)
                else:  # the request was cancelled, so other requests can use the worker
                    (self._free if ticket is None else self._background).append(worker)
                    self._serve()

        threading.Thread(target=begin, daemon=True).start()

    def answer(self, request: Mapping[str, Any], client: str = "") -> bytes:
        """Wait for a worker, and return the answer to a request as JSON in bytes.

        Raise :class:`BusyError` if the playground is busy or ending.
        """
        ticket = self.enter(client)
        ticket.turn.result()
        return self.work(ticket, request)

    def enter(self, client: str) -> Ticket:
        """Add a request of ``client`` to the queue, and return its ticket.

        The future ``turn`` of the ticket contains the worker when it is the turn of the request.
        """
        with self._lock:
            if self._closed:
                raise BusyError(ENDING)
            ticket = self._line.enter(client)
            self._serve()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Remove a waiting request from the queue.

        If the request already has a worker, this has no effect, and :meth:`work` must be called.
        """
        with self._lock:
            if not ticket.turn.done():
                self._line.leave(ticket)
                ticket.turn.cancel()

    def work(self, ticket: Ticket, request: Mapping[str, Any]) -> bytes:
        """Answer a request that has a worker, and release the worker."""
        worker: WorkerProcess = ticket.turn.result()
        cost, is_broken = 0.0, False
        with self._lock:
            # The limit is lower for a client with requests that recently exceeded a limit.
            broken, most = self._line.broken(ticket.client), self.limits.cpu
            cpu = max(1, most >> broken) if broken else most
        try:
            body = json.dumps(request).encode()
            wall = self.limits.wall - (most - cpu)
            spent, _, reply = worker.ask(b"%d " % cpu + body, wall).partition(b" ")
            cost = float(spent)
        except WorkerEndedError as error:
            self.replaced += 1
            is_ended = ticket in self._ended
            is_broken = is_ended or error.expired or error.code == -signal.SIGXCPU
            cost = float(cpu) if is_broken else 0.0
            if is_ended:
                raise BusyError(BUSY) from None
            reply = _failure(error, cpu, wall)
        finally:
            self._give_back(ticket, worker, cost, is_broken)
        return reply

    def _give_back(self, ticket: Ticket, worker: WorkerProcess, cost: float, is_broken: bool) -> None:
        """Release the worker of a finished request, or end it and replace a foreground worker by a new
        process.
        """
        with self._lock:
            self._busy.pop(ticket, None)
            self._ended.discard(ticket)
        is_over = not worker.is_alive or worker.answered >= self.limits.requests
        if is_over or self._closed:
            worker.end()
        with self._lock:
            self._line.leave(ticket, cost, is_broken=is_broken)
            if self._closed:
                worker.end()
            elif is_over:
                if not ticket.in_background:
                    self._start()
            else:
                (self._background if ticket.in_background else self._free).append(worker)
            self._serve()

    def _serve(self) -> None:
        """Assign free workers to the next requests, and start background workers if necessary."""
        while not self._closed and (ticket := self._line.next(is_free=bool(self._free))) is not None:
            if not ticket.in_background:
                self._assign(ticket, self._free.pop(0))
            elif self._background:
                self._assign(ticket, self._background.pop())
            else:
                self._start(ticket)

    def _assign(self, ticket: Ticket, worker: WorkerProcess) -> None:
        self._busy[ticket] = worker, _seconds(worker)
        ticket.turn.set_result(worker)

    def _watch(self) -> None:
        """Move long requests to the background while requests of other clients wait.

        If the background is full, the worker of the long request is terminated. The method returns when
        the pool is closed.
        """
        while not self._closing.wait(LONG):
            with self._lock:
                if self._closed:
                    return
                for ticket, (worker, started) in list(self._busy.items()):
                    has_room = None
                    if _seconds(worker) - started > LONG:
                        has_room = self._line.move(ticket)
                    if has_room:
                        _lower(worker)
                        self._start()
                    elif has_room is False:
                        self._ended.add(ticket)
                        worker.process.kill()

    def close(self) -> None:
        """End all workers; waiting and running requests raise :class:`BusyError`."""
        with self._lock:
            self._closed = True
            self._closing.set()
            idle, self._free, self._background = self._free + self._background, [], []
            self._ended |= self._busy.keys()
            for worker in self._starting:  # its thread closes the pipes
                worker.process.kill()
            for worker, _ in self._busy.values():  # the thread of the request closes the pipes
                worker.process.kill()
            self._line.clear(BusyError(ENDING))
        for worker in idle:
            worker.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _lower(worker: WorkerProcess) -> None:
    """Set the lowest priority for a worker process, unless the process has ended."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, worker.process.pid, _LOWEST)


def _seconds(worker: WorkerProcess) -> float:
    """Return the CPU seconds of a worker process, or the wall time if CPU time is not available."""
    try:
        with open(f"/proc/{worker.process.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return time.monotonic()


def _failure(error: WorkerEndedError, cpu: int, wall: float) -> bytes:
    if error.expired:
        why = f"this takes longer than the limit of {wall:g} seconds"
    elif error.code == -signal.SIGXCPU:
        why = f"this takes more CPU time than the limit of {cpu} seconds"
    else:
        why = "the worker process was ended; try again, or a smaller program"
    return json.dumps({"ok": False, "error": why}).encode()


__all__ = ["BusyError", "Pool", "Ticket"]
