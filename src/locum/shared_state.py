"""Provide locks and bounded caches that are safe with threads and forked processes.

A forked child process has only one thread, so a lock that another thread of the parent holds would
remain locked forever. In every child, the locks of this module are therefore replaced by unlocked ones.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakSet


class Lock:
    """A lock for ``with`` statements that is always unlocked in a newly forked child process."""

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
    """A cache of the ``size`` most recently used values, safe with threads and forks.

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
        """Return the cached value of a key, or None if there is no such value."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> Value:
        """Store and return the value of a key, and drop the least recently used value if the cache is
        full.
        """
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the cached value of a key, or compute it with ``make`` and store it.

        ``make`` runs outside the lock, so two threads may both call it.
        """
        value = self.get(key)
        return value if value is not None else self.put(key, make())

    def clear(self) -> None:
        """Remove all values from the cache."""
        with self._lock:
            self._values.clear()
