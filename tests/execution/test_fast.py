"""Fast execution against its meaning: random programs, every rule, plans, backends, bad input."""

from __future__ import annotations

import threading
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings

from tests.execution.positional import trial
from understudy import ExecutionError, InputError, UnderstudyError, tokens
from understudy.execution import dense, fast, run
from understudy.execution.fast import FallbackWarning
from understudy.execution.floats import FloatDomain

FUZZING = settings.default is not None and settings.default.max_examples >= 20_000
#: Programs per run: a few thousand among the tests, a hundred thousand in ``make fuzz``.
PROGRAMS = 104_000 if FUZZING else 4_000
CHUNKS = 16


def differs(seed: int) -> str | None:
    """How dense and fast execution differ on the program of a seed; None if they do not."""
    program, given, positions = trial(seed)
    try:
        wanted = dense.evaluate(program, [float(x) for x in given], FloatDomain(), max_heads=3_000)
    except UnderstudyError:
        return "no value"
    values = np.array(wanted, dtype=float)[positions.start : positions.stop]
    if not np.isfinite(values).all():
        return "no value"
    found = run(program, np.array(given, dtype=float), executor="fast", positions=positions)
    if found.shape == values.shape and np.allclose(found, values, rtol=1e-10, atol=1e-10):
        return None
    return f"seed {seed}: dense {values}, fast {found}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_agree_with_dense(chunk: int) -> None:
    seeds = range(chunk, PROGRAMS, CHUNKS)
    outcomes = Counter[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for seed in seeds:
            found = differs(seed)
            assert found in (None, "no value"), found
            outcomes["compared" if found is None else "skipped"] += 1
    assert outcomes["compared"] > 0.9 * len(seeds)
