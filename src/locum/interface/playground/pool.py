"""A pool of worker processes for programs of strangers: bounded in time, memory and number.

Each request has a worker to itself. One that takes too long, or dies, is killed and replaced; only its
own request is lost, and its answer says why. Clients are served in turn; more requests than can wait
are refused at once.

The line is bounded. Where it is full, a newcomer of a client that has fewer waiting than another takes
the place of the last that waits for the greediest client; a client that has as many waiting as any is
refused. What waits, and for whom, is forgotten with the request.

>>> line = Line(workers=1, waiting=2)
>>> first = line.enter("a")
>>> [line.enter(client).client for client in ("a", "b")]
['a', 'b']
>>> line.next() is first, line.next()
(True, None)
>>> line.leave(first)
>>> line.next().client
'b'
"""

from __future__ import annotations

import json
import signal
from collections import Counter, deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from locum.experiments.sweeps.worker_process import WorkerEndedError, WorkerProcess
from locum.interface.playground.playground_worker import Limits
from locum.shared_state import Lock


class BusyError(Exception):
    """More requests are waiting than the line keeps."""


BUSY = "the playground is busy; try again in a moment"
YIELDED = "the playground is busy, and others have waited for less; try again in a moment"


@dataclass(eq=False)
class Ticket:
    """A place in the line: ``turn`` is done when a worker is there, or raises :class:`BusyError`."""

    client: str
    turn: Future[Any] = field(default_factory=Future)


class Line:
    """So many workers, so many that may wait; not safe for threads by itself."""

    def __init__(self, workers: int, waiting: int, share: int | None = None) -> None:
        self.workers = workers
        self.waiting = waiting
        #: The most workers that one client has at a time.
        self.share = share or workers
        self._running: set[Ticket] = set()
        #: Clients with requests that wait; the first is served next.
        self._queues: dict[str, deque[Ticket]] = {}

    def enter(self, client: str) -> Ticket:
        """Take a place behind one's own others; :class:`BusyError` where there is none."""
        ticket = Ticket(client)
        # Free workers are places, too: who can be served at once need not wait.
        free = max(0, self.workers - len(self._running))
        if sum(map(len, self._queues.values())) >= self.waiting + free:
            greediest = max(self._queues, key=lambda name: len(self._queues[name]), default=client)
            own = len(self._queues.get(client, ()))
            if len(self._queues.get(greediest, ())) <= own + 1:
                raise BusyError(BUSY)
            last = self._queues[greediest][-1]
            self.leave(last)
            last.turn.set_exception(BusyError(YIELDED))
        self._queues.setdefault(client, deque()).append(ticket)
        return ticket

    def next(self) -> Ticket | None:
        """Return who is served next, if a worker is free and somebody may have it."""
        if len(self._running) >= self.workers:
            return None
        held = Counter(ticket.client for ticket in self._running)
        # In turn, and those first who hold the fewest workers.
        for client in sorted(self._queues, key=lambda name: held[name]):
            if held[client] < self.share:
                ticket = self._queues[client].popleft()
                queue = self._queues.pop(client)
                if queue:  # to the end of the turn
                    self._queues[client] = queue
                self._running.add(ticket)
                return ticket
        return None

    def leave(self, ticket: Ticket) -> None:
        """Give a place back: that of a request that is answered, or that is not wanted any more."""
        self._running.discard(ticket)
        queue = self._queues.get(ticket.client)
        if queue and ticket in queue:
            queue.remove(ticket)
            if not queue:
                del self._queues[ticket.client]


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
        self._busy: set[WorkerProcess] = set()

    def _start(self) -> WorkerProcess:
        return WorkerProcess(
            "locum.interface.playground.playground_worker", json.dumps(asdict(self.limits))
        )

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
            with self._lock:
                self._busy.discard(worker)
            is_over = not worker.is_alive or worker.answered >= self.limits.requests
            if is_over and not self._closed:
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
            worker = self._free.pop(0)
            self._busy.add(worker)
            ticket.turn.set_result(worker)

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
        """End all workers; requests that are being answered fail."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
            busy = list(self._busy)
        for worker in free:
            worker.end()
        for worker in busy:  # the thread of the request closes the pipes
            worker.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


__all__ = ["BusyError", "Pool", "Ticket"]
