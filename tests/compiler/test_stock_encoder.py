"""U in a stock encoder of torch: softmax attention and gelu, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.simulators import UniversalSimulator

torch = pytest.importorskip("torch")

SIMULATOR = UniversalSimulator(3, 3, 3)
GIVEN = np.random.default_rng(11).uniform(-1, 1, (200, SIMULATOR.length))


def answers(encoder: Any, dtype: str) -> Any:
    """T(X), nine numbers for each input."""
    with torch.no_grad():
        return encoder(torch.tensor(GIVEN, dtype=getattr(torch, dtype))).double().numpy()[:, :9, 0]


@pytest.mark.parametrize(
    ("dtype", "tolerance", "allowed"), [("float64", 1e-9, 1e-11), ("float32", 1e-2, 1e-4)]
)
def test_u_in_a_stock_encoder(dtype: str, tolerance: float, allowed: float) -> None:
    model = SIMULATOR.compile(
        "native", attention="softmax", feed_forward="gelu", ranges=(-1, 1), tolerance=tolerance,
        dtype=dtype,
    )  # fmt: skip
    true = np.array(SIMULATOR.compile("native", feed_forward="exact")(GIVEN.tolist()))[:, :9]
    encoder = model.to_encoder()
    assert isinstance(encoder.encoder, torch.nn.TransformerEncoder)
    assert np.abs(answers(encoder, dtype) - true).max() <= min(allowed, model.error_bound)
    if dtype == "float64":
        # Its numbers are numbers in single precision, too, if not those one would choose for it.
        assert np.abs(answers(encoder.float(), "float32") - true).max() < 1e-2
