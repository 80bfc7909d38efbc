"""Configure the tests: fixed seeds, and the same Hypothesis examples in every run.

``make fuzz`` draws other examples each time.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import random
import re
import sys
from collections.abc import Generator
from pathlib import Path

# Before NumPy and torch are loaded, here and in the processes that tests start: each process has one
# core, and threads would reserve address space that tests of memory limits count.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Modules are compiled once, not in each of the many processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False  # also for the rewritten tests

# No deadlines, and nothing is "too slow": machines differ, and may be busy.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=75,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz", settings.get_profile("default"), max_examples=20_000, derandomize=False
)
settings.load_profile("default")

#: Packages that examples in docstrings may need and a core installation has not.
OPTIONAL = ("torch", "transformers", "transformer_lens", "z3")

#: Files whose tests share what is costly to make: the report on the paper, a browser, models.
#: They come first, as workers take tests off the end of each other's queues: one worker has each file.
SHARING = (
    "tests/paper/test_report.py",
    "tests/playground/test_browser.py",
    "tests/torch/test_minilm.py",
)


@functools.cache
def not_installed() -> tuple[str, ...]:
    """Return what of the optional packages is missing."""
    return tuple(name for name in OPTIONAL if importlib.util.find_spec(name) is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage: all of what is made stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # a million objects, which no later search need look at
        gc.enable()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules without examples, and those that import at once what is not installed."""
    if collection_path.suffix != ".py" or "src" not in collection_path.parts:
        return None
    text = collection_path.read_text(encoding="utf-8")
    if ">>>" not in text:
        return True
    missing = not_installed()
    if not missing:
        return None
    pattern = rf"^(?:import|from) (?:{'|'.join(missing)})\b"
    return bool(re.search(pattern, text, re.MULTILINE)) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that share something first; skip examples that need what is not installed."""
    ranks = {name: rank for rank, name in enumerate(SHARING)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))
    missing = not_installed()
    for item in items:
        if missing and isinstance(item, pytest.DoctestItem) and item.dtest is not None:
            source = "".join(example.source for example in item.dtest.examples)
            for name in missing:
                if re.search(rf"\bimport {name}\b|\bfrom {name}\b", source):
                    item.add_marker(pytest.mark.skip(reason=f"{name} is not installed"))


def pytest_collection_finish() -> None:
    """Keep Python from looking at every module and test again, and from looking for garbage often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed the random number generators that a test may use without a seed."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        # Not torch.manual_seed, which writes down a traceback for each kind of device that is not here.
        torch = sys.modules["torch"]
        torch.default_generator.manual_seed(0)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(0)


@pytest.fixture(autouse=True)
def _names_of_one_test() -> Generator[None]:
    """Remove names that a test gives with ``.named()``, since equal programs share their nodes."""
    from locum.graph.labels import _given

    before = dict(_given)
    yield
    _given.clear()
    _given.update(before)
