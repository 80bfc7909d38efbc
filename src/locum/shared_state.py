"""State that threads and forked processes share: locks and bounded caches.

A forked child has one thread, and a lock that another thread of the parent held would stay locked in
it. All locks are therefore renewed in every child.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakSet


class Lock:
    """A lock for a ``with`` statement. It is free in a forked child."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


_locks: WeakSet[Lock] = WeakSet()


def _renew_locks() -> None:
    for lock in list(_locks):
        lock._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Keep the values that were used last, at most ``size``. Threads and forks may share it.

    >>> squares = BoundedCache[int](2)
    >>> [squares.get_or_make(n, lambda: n * n) for n in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> [squares.get(n) for n in (1, 2, 3)]
    [1, None, 9]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> Value:
        """Set the value of a key and return it. The value that was not used for longest is dropped."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, or make it outside of the lock: two threads may both make it."""
        value = self.get(key)
        return value if value is not None else self.put(key, make())

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
