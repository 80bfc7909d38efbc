"""Queue requests, and select the next request by the work that each client has caused recently.

The client that has recently used the least CPU time is served first. If a request of a client exceeds a
limit, the client is penalised for a while. Its requests then run one at a time on background workers,
with a lower limit, and foreground workers serve only other clients.

If requests of other clients wait for foreground workers, a long request is moved to the background, and
another worker replaces its worker. For the next minute, all requests of this client start in the
background. If the background is full, the long request is ended.

The queue is bounded. If it is full, a new request replaces the last request of another client. Clients
whose requests start in the background come first, and then clients with the most waiting requests. The
new request is rejected if its own client would then come first or equal to the first client.

>>> line = Line(workers=1, waiting=2)
>>> first = line.enter("a")
>>> [line.enter(client).client for client in ("a", "b")]
['a', 'b']
>>> line.next() is first, line.next()
(True, None)
>>> line.leave(first, seconds=0.5)
>>> line.next().client
'b'
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


class BusyError(Exception):
    """An error that is raised for a request that is not answered: the playground is busy or ending."""


BUSY = "the playground is busy; try again in a moment"
YIELDED = "the playground is busy with requests of other clients; try again in a moment"

#: Seconds after which recorded CPU time counts half, and after which an exceeded limit is forgotten.
HALF_LIFE, FORGIVEN = 60.0, 120.0
#: Maximum number of clients whose use is recorded.
MOST_CLIENTS = 10_000


@dataclass(eq=False)
class Ticket:
    """A request in the queue.

    ``turn`` is a future that contains the worker, or raises :class:`BusyError`.
    """

    client: str
    turn: Future[Any] = field(default_factory=Future)
    in_background: bool = False


@dataclass
class Record:
    """The recent use of the server by a client: CPU seconds, and requests that exceeded a limit."""

    time: float
    seconds: float = 0.0
    broken: list[float] = field(default_factory=list)
    #: Time until which requests start in the background, after a request was moved there.
    slow_until: float = 0.0

    def age(self, now: float) -> None:
        """Reduce the recorded use according to the time since the last update."""
        self.seconds *= 0.5 ** ((now - self.time) / HALF_LIFE)
        self.broken = [moment for moment in self.broken if now - moment < FORGIVEN]
        self.time = now


class Line:
    """A queue of requests and the requests that are running; it is not thread-safe.

    ``share`` is the maximum number of foreground workers of one client at a time. ``background`` is the
    maximum number of requests in the background.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        share: int | None = None,
        background: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.workers, self.waiting = workers, waiting
        self.share = share or workers
        self.background = background or workers
        self._clock = clock
        self._running: set[Ticket] = set()
        #: Waiting requests by client. Of clients with equal use, the first client is served first.
        self._queues: dict[str, deque[Ticket]] = {}
        self._records: dict[str, Record] = {}

    def enter(self, client: str) -> Ticket:
        """Add a request to the queue of its client; raise :class:`BusyError` if it is rejected."""
        ticket = Ticket(client)
        # Requests that a free worker serves at once do not count as waiting.
        free = max(0, self.workers - self._count(in_background=False))
        if sum(map(len, self._queues.values())) >= self.waiting + free:
            own = (self.is_slow(client), len(self._queues.get(client, ())) + 1)
            sizes = {name: (self.is_slow(name), len(queue)) for name, queue in self._queues.items()}
            greediest = max(sizes, key=lambda name: sizes[name], default=client)
            if sizes.get(greediest, own) <= own:
                raise BusyError(BUSY)
            last = self._queues[greediest][-1]
            self._remove(last)
            last.turn.set_exception(BusyError(YIELDED))
        self._queues.setdefault(client, deque()).append(ticket)
        return ticket

    def next(self, *, is_free: bool = True) -> Ticket | None:
        """Remove and return the next request, or return None if no request can start.

        ``is_free`` states whether a foreground worker is free.
        """
        held = Counter(ticket.client for ticket in self._running)
        is_free = is_free and self._count(in_background=False) < self.workers
        has_background = self._count(in_background=True) < self.background
        best: tuple[tuple[float, int], str] | None = None
        for client in self._queues:
            is_slow = self.is_slow(client)
            if is_slow and (held[client] or not has_background):
                continue
            if not is_slow and (not is_free or held[client] >= self.share):
                continue
            record = self._records.get(client)
            key = (record.seconds if record else 0.0, held[client])
            if best is None or key < best[0]:
                best = key, client
        if best is None:
            return None
        ticket = self._queues[best[1]].popleft()
        ticket.in_background = self.is_slow(ticket.client)
        queue = self._queues.pop(ticket.client)
        if queue:  # the client moves to the end of the order
            self._queues[ticket.client] = queue
        self._running.add(ticket)
        return ticket

    def move(self, ticket: Ticket) -> bool | None:
        """Move a running request to the background if another client waits for a foreground worker.

        Return True if the request was moved, False if the background is full, and None if the request
        need not move.
        """
        is_wanted = any(c != ticket.client and not self.is_slow(c) for c in self._queues)
        if not is_wanted or ticket not in self._running or ticket.in_background:
            return None
        ticket.in_background = self._count(in_background=True) < self.background
        self._record(ticket.client).slow_until = self._clock() + HALF_LIFE
        return ticket.in_background

    def leave(self, ticket: Ticket, seconds: float = 0.0, *, is_broken: bool = False) -> None:
        """Remove a request that is finished or cancelled, and record its cost for its client.

        ``seconds`` is the CPU time of the request. ``is_broken`` states whether the request exceeded a
        limit.
        """
        self._running.discard(ticket)
        self._remove(ticket)
        if not seconds and not is_broken:
            return
        record = self._record(ticket.client)
        record.seconds += seconds
        if is_broken:
            record.broken.append(record.time)

    def _record(self, client: str) -> Record:
        """Return the current record of a client; if there are too many records, delete the oldest."""
        now = self._clock()
        record = self._records.pop(client, None) or Record(now)
        record.age(now)
        self._records[client] = record  # the most recent record is the last
        while len(self._records) > MOST_CLIENTS:
            del self._records[next(iter(self._records))]
        return record

    def is_slow(self, client: str) -> bool:
        """Return whether the requests of a client start in the background."""
        record = self._records.get(client)
        return record is not None and (self.broken(client) > 0 or record.time < record.slow_until)

    def clear(self, error: BusyError) -> None:
        """Remove all waiting requests; their futures raise ``error``."""
        for queue in self._queues.values():
            for ticket in queue:
                ticket.turn.set_exception(error)
        self._queues.clear()

    def broken(self, client: str) -> int:
        """Return the number of recent requests of a client that exceeded a limit."""
        record = self._records.get(client)
        if record is None:
            return 0
        record.age(self._clock())
        return len(record.broken)

    def _remove(self, ticket: Ticket) -> None:
        queue = self._queues.get(ticket.client)
        if queue and ticket in queue:
            queue.remove(ticket)
            if not queue:
                del self._queues[ticket.client]

    def _count(self, *, in_background: bool) -> int:
        return sum(ticket.in_background is in_background for ticket in self._running)
