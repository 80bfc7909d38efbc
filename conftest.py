"""Every run of the tests is the same run: fixed seeds, and examples that do not depend on the clock.

``make fuzz`` draws other examples each time.
"""

from __future__ import annotations

import os
import random
import sys

# Before NumPy and torch are loaded, here and in the processes that tests start: each process has one
# core, and threads would reserve address space that tests of memory limits count.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# No deadlines, and nothing is "too slow": machines differ, and may be busy.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=150,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz", settings.get_profile("default"), max_examples=20_000, derandomize=False
)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed what a test may draw from without a seed of its own."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
