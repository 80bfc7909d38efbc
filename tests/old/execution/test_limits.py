"""Programs that grow exponentially, or are large beyond reason, end soon: with a value or refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from locum import SOp, aggregate, indices, length, select, selector_width
from locum.execution.fast.symbolic.affine import Affine
from locum.execution.fast.symbolic.indexing import Lowered
from locum.execution.fast.symbolic.rerolling import Heads
from locum.execution.fast.symbolic.symbolic_lowering import Lowering
from locum.graph import Node

#: Each in seconds of processor time and bytes of memory: it is counted by the system, not by a clock.
_LIMITED = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
warnings.simplefilter("ignore")
from locum import constant, family, indices, minimum, sum_over, tanh, tokens, where
from locum.errors import LocumError

def repeated(x, times, change):
    for k in range(times):
        x = change(x, k)
    return x

def close(a, b):
    return all(x == y or abs(x - y) <= 1e-9 * abs(y) for x, y in zip(a, b, strict=True))

def outcome(compute):
    try:
        return compute()
    except LocumError as error:
        return error
"""

SQUARES = """
for start in (indices + 3, indices * 1.5 + 3.0, constant(3) + 0 * indices, tokens):
    for times in (8, 24, 60):
        x = repeated(start, times, lambda x, k: x * x)
        outcome(lambda: x.plan(5).explain())
        found, expected = (outcome(lambda: x([1.0, 0.5], executor=e)) for e in ("auto", "dense"))
        assert type(found) is type(expected), (found, expected)
        assert isinstance(found, LocumError) or close(found, expected), (found, expected)
"""

BRANCHES = """
doubled = [
    (indices * 0.5, lambda x, k: tanh(x) * x + x),
    (tokens * 0.5, lambda x, k: tanh(x) * x + x),
    (indices, lambda x, k: minimum(x * x, x + k)),
    (indices, lambda x, k: where(x % (k + 2) == 0, x + 1, x * 2)),
    (indices > 0, lambda x, k: x == (indices > k)),
    (tokens * 3 / 7, lambda x, k: x * x * (1000003 / 1000001)),
]
for start, change in doubled:
    x = repeated(start, 30, change)
    found, expected = (x([0.1, 0.5, 0.2], executor=e) for e in ("auto", "dense"))
    assert close(found, expected), (found, expected)
"""

FAMILIES = """
l, m, huge = family(30_000), family(30_000), family(10**9)
for program in (sum_over(huge, huge), sum_over(huge, huge * indices), sum_over(l, m, l * m)):
    for executor in ("auto", "fast", "heads", "dense"):
        error = outcome(lambda: program([1, 2, 3], executor=executor))
        assert isinstance(error, LocumError) and "heads" in str(error), error
"""


@pytest.mark.parametrize("script", [SQUARES, BRANCHES, FAMILIES])
def test_time_and_memory_are_bounded(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LIMITED + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]


@pytest.mark.parametrize(
    "change",
    [
        lambda x, k: selector_width(select(x, indices + k, "==")) + x,
        lambda x, k: aggregate(select(x, indices + k, "=="), x) + x,
        lambda x, k: (selector_width(select(x, indices + k, "==")) + x) % length,
    ],
)
def test_the_work_of_planning_is_polynomial(
    change: Callable[[SOp, int], SOp], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count what is lowered: each count was lowered at its own key and query, so 2ⁿ times."""
    most, lowered, lower_once = 50_000, 0, Lowering._lower

    def counted(self: Lowering, node: Node, p: Affine, heads: Heads, way: str) -> Lowered:
        nonlocal lowered
        lowered += 1
        assert lowered <= most
        return lower_once(self, node, p, heads, way)

    monkeypatch.setattr(Lowering, "_lower", counted)
    x: SOp = indices
    for k in range(20):
        x = change(x, k)
    assert x([5, 6, 7], executor="auto") == x([5, 6, 7], executor="dense")
