"""Locks that survive a fork.

A forked child has one thread, and a lock that another thread of the parent held would stay locked in
it. All locks are therefore renewed in every child.
"""

from __future__ import annotations

import os
import threading
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
