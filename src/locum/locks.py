"""Locks that survive a fork.

A forked child has one thread, and a lock that another thread of the parent held stays locked in it
for ever. The locks of the pools of nodes, handles and plans are therefore renewed in every child.
"""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock for a ``with`` statement, free in a forked child whoever holds it in the parent."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
