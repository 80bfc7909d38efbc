"""A pool of worker processes for programs of strangers: bounded in time, memory and number.

Each request has a worker to itself. One that takes too long, or dies, is killed and replaced; only its
own request is lost, and its answer says why. Clients are served in turn (``line.py``); more requests
than can wait are refused at once.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from locum.locks import Lock
from locum.playground.line import BusyError, Line, Ticket
from locum.playground.worker import Limits
from locum.worker_process import WorkerEndedError, WorkerProcess


class Pool:
    """So many workers, and so many requests that may wait for one, clients in turn."""

    def __init__(
        self,
        workers: int = 2,
        waiting: int = 32,
        limits: Limits | None = None,
        share: int | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.size = workers
        #: Workers that were replaced because they broke a limit or died.
        self.replaced = 0
        self._line = Line(self.size, waiting, share)
        self._lock = Lock()
        self._closed = False
        self._free = [self._start() for _ in range(self.size)]

    def _start(self) -> WorkerProcess:
        return WorkerProcess("locum.playground.worker", json.dumps(asdict(self.limits)))

    def answer(self, request: Mapping[str, Any], client: str = "") -> bytes:
        """Answer a request as JSON in bytes; raises :class:`BusyError` if too many are waiting."""
        ticket = self.enter(client)
        ticket.turn.result()
        return self.work(ticket, request)

    def enter(self, client: str) -> Ticket:
        """Take a place in the line; its ``turn`` comes when a worker is free."""
        with self._lock:
            ticket = self._line.enter(client)
            self._serve()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give up waiting; whose turn it is already has to :meth:`work`."""
        with self._lock:
            if not ticket.turn.done():
                self._line.leave(ticket)
                ticket.turn.cancel()

    def work(self, ticket: Ticket, request: Mapping[str, Any]) -> bytes:
        """Answer the request whose turn it is, and let the next one have the worker."""
        worker: WorkerProcess = ticket.turn.result()
        try:
            return self._ask(worker, json.dumps(request).encode())
        finally:
            if not worker.is_alive or worker.answered >= self.limits.requests:
                worker.end()
                worker = self._start()
            with self._lock:
                self._line.leave(ticket)
                if self._closed:
                    worker.end()
                else:
                    self._free.append(worker)
                    self._serve()

    def _serve(self) -> None:
        """Give free workers to those whose turn it is."""
        while self._free and (ticket := self._line.next()) is not None:
            ticket.turn.set_result(self._free.pop(0))

    def _ask(self, worker: WorkerProcess, request: bytes) -> bytes:
        limits = self.limits
        try:
            return worker.ask(request, limits.wall)
        except WorkerEndedError as error:
            if error.expired:
                why = f"this takes longer than {limits.wall:g} seconds, the limit"
            elif error.code == -signal.SIGXCPU:
                why = f"this takes more than {limits.cpu} seconds of work, the limit"
            else:
                why = "the process that worked on this was ended; try again, or a smaller program"
        self.replaced += 1
        return json.dumps({"ok": False, "error": why}).encode()

    def close(self) -> None:
        """End all workers that are free, and the others when they come back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for worker in free:
            worker.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


__all__ = ["BusyError", "Pool", "Ticket"]
