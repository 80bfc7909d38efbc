"""A pool of worker processes for programs of strangers: bounded in time, memory and number.

Each request has a worker to itself. One that takes too long, or dies, is killed and replaced; only its
own request is lost, and its answer says why. Clients are served in turn (``line.py``); more requests
than can wait are refused at once.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Mapping
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Self

from locum.locks import Lock
from locum.playground.line import BusyError, Line, Ticket
from locum.playground.worker import LAST, Limits, work

#: Seconds that a new worker has to load the house.
_START = 120.0


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, limits: Limits) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, theirs = spawning.Pipe()
        self.process = spawning.Process(target=work, args=(theirs, limits), daemon=True)
        # A Ctrl-C is for the server, which ends its workers: they are deaf to it from the beginning.
        # The tracker is started first, since it lets signals through when it is.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
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
        self._free = [_Worker(self.limits) for _ in range(self.size)]
        self._busy: set[_Worker] = set()

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
        worker: _Worker = ticket.turn.result()
        try:
            return self._ask(worker, json.dumps(request).encode())
        finally:
            with self._lock:
                self._busy.discard(worker)
            is_over = worker.has_ended or worker.answered >= self.limits.requests
            if not self._closed and (is_over or not worker.process.is_alive()):
                worker.end()
                worker = _Worker(self.limits)
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
            worker = self._free.pop(0)
            self._busy.add(worker)
            ticket.turn.set_result(worker)

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
        """End all workers; requests that are being answered fail."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
            busy = list(self._busy)
        for worker in free:
            worker.end()
        for worker in busy:  # the thread of the request closes the pipe
            worker.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


__all__ = ["BusyError", "Pool", "Ticket"]
