"""Keep what is expensive to make: plans and lowered buffers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from locum.locks import Lock

Value = TypeVar("Value")
_stores: list[Store[Any]] = []


class Store(Generic[Value]):
    """Values by their keys, at most ``limit``; the least recently used one is dropped first.

    >>> squares = Store[int](2)
    >>> [squares.get(n, lambda: n * n) for n in (1, 2, 3)], len(squares)
    ([1, 4, 9], 2)
    """

    def __init__(self, limit: int = 1_024) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()
        _stores.append(self)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, or make it: outside of the lock, perhaps twice."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()


def clear_stores() -> None:
    """Drop the values of all stores."""
    for store in _stores:
        store.clear()
