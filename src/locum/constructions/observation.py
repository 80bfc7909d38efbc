"""Name tensors inside constructions, so that a program can also return them.

>>> from locum import tokens
>>> from locum.constructions.tensor import Tensor
>>> seen = {}
>>> with observing(seen.__setitem__):
...     pattern = observe("pattern", Tensor(tokens, (2,), (1,)))
>>> seen["pattern"] is pattern
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from locum.constructions.tensor import Tensor

Observer = Callable[[str, Tensor], None]
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


def observe(name: str, tensor: Tensor) -> Tensor:
    """Pass a name and a tensor of a construction to the current observer, if there is one, and return
    the tensor unchanged.
    """
    observer = _observer.get()
    if observer is not None:
        observer(name, tensor)
    return tensor


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Call ``observer`` with each name and tensor that :func:`observe` receives inside the ``with``
    block.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)
