"""Each test starts without compiled code and with the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
