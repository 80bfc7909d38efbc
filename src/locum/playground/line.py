"""Who is served next: clients in turn, none of whom can starve the others.

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

from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


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
