"""Configure the tests: the same Hypothesis examples in every run, seeds, and which tests run.

Without ``--all``, tests marked ``slow`` do not run, and of each file in ``tests/old`` every fourth test
runs, and those marked ``always``. ``-m fuzz --hypothesis-profile fuzz`` draws many more examples, other
ones each time.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

# Before NumPy and torch are loaded, here and in the processes that tests start: each has one core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# No deadlines, and nothing is "too slow": machines differ, and may be busy.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=75,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=2000, derandomize=False)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--all``."""
    parser.addoption("--all", action="store_true", help="run slow tests and all of tests/old as well")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules without examples, and all examples if torch is not installed."""
    if collection_path.suffix != ".py" or "src" not in collection_path.parts:
        return None
    has_examples = ">>>" in collection_path.read_text(encoding="utf-8")
    return None if has_examples and importlib.util.find_spec("torch") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect slow tests, and three of four tests of each file in ``tests/old`` unless always run."""
    if config.getoption("--all"):
        return
    old: dict[Path, list[str]] = defaultdict(list)
    for item in items:
        if "tests/old/" in item.path.as_posix():
            old[item.path].append(item.nodeid)
    kept = {name for names in old.values() for name in sorted(names)[::4]}
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow")
        or (item.path in old and item.nodeid not in kept and not item.get_closest_marker("always"))
    ]
    config.hook.pytest_deselected(items=left_out)
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed the random number generators that a test may use without a seed."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:  # torch.manual_seed would look for devices that are not here
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_of_one_test() -> Generator[None]:
    """Remove names that a test gives with ``.named()``, since equal programs share their nodes."""
    from locum.graph.labels import _given

    before = dict(_given)
    yield
    _given.clear()
    _given.update(before)
