"""Run your own attention matrices on U: one U returns T(X) for several layers T of one order.

If PyTorch is installed, a second U runs an ``nn.MultiheadAttention``.
"""

from __future__ import annotations

import importlib.util

import numpy as np

import locum

chance = np.random.default_rng(0)
n, d, d_v = 4, 3, 2
U = locum.UniversalSimulator(n, d, d_v)
print(U.describe())

for number in range(3):
    T = locum.Attention(A=chance.normal(size=(d, d)), V=chance.normal(size=(d, d_v)))
    X = chance.normal(size=(n, d))
    error = np.abs(U(T, X) - T(X)).max()
    print(f"T number {number}: U(⟨T, X⟩) differs from T(X) by {error:.1e}; program {U.hash[:12]}")
    assert error < 1e-13

print("\nThe steps for the last T:")
print(U.explain(T, X))

if importlib.util.find_spec("torch"):
    import torch

    module = torch.nn.MultiheadAttention(4, 2, dtype=torch.float64)
    tensor = torch.randn(3, 4, dtype=torch.float64)
    read = locum.torch.from_torch(module)
    found = locum.UniversalSimulator.of(read, n=3)(read, tensor)
    wanted = module(tensor, tensor, tensor, need_weights=False)[0]
    print("\nnn.MultiheadAttention on U: largest error", f"{(found - wanted).abs().max().item():.1e}")
    assert torch.allclose(found, wanted, rtol=0, atol=1e-12)
