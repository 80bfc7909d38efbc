"""U in a stock encoder of torch: softmax attention and gelu, nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from locum.simulators import UniversalSimulator

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "stock_encoder.py"
SIMULATOR = UniversalSimulator(3, 3, 3)
GIVEN = np.random.default_rng(11).uniform(-1, 1, (200, SIMULATOR.length))


@pytest.mark.parametrize(
    ("dtype", "tolerance", "allowed"), [("float64", 1e-9, 1e-11), ("float32", 1e-2, 1e-4)]
)
def test_u_in_a_stock_encoder(dtype: str, tolerance: float, allowed: float) -> None:
    model = SIMULATOR.compile(
        "native", attention="softmax", feed_forward="gelu", ranges=(-1, 1), tolerance=tolerance,
        dtype=dtype,
    )  # fmt: skip
    true = np.array(SIMULATOR.compile("native", feed_forward="exact")(GIVEN.tolist()))[:, :9]
    run_on_encoder = runpy.run_path(str(EXAMPLE))["run_on_encoder"]
    with torch.no_grad():
        logits = run_on_encoder(model, torch.tensor(GIVEN, dtype=getattr(torch, dtype)))
    assert np.abs(logits[:, :9, 0].numpy() - true).max() <= min(allowed, model.error_bound)
