"""A transformer that runs a transformer: U's weights, built first, and then a layer for them to run.

U is compiled from the order alone (three rows of four numbers, two heads, six hidden units). Only then is
an encoder layer of torch made, norms, biases and GELU included; its matrices and its input become U's
tokens, and U's weights compute what the layer computes. Needs torch.
"""

import numpy as np
import torch

from understudy.simulators import UniversalSimulator, from_torch

LAYER = {"d_model": 4, "nhead": 2, "dim_feedforward": 6, "activation": "gelu", "batch_first": True}

# The simulator: it sees the shape of a layer, none of its numbers.
shape_only = from_torch(torch.nn.TransformerEncoderLayer(**LAYER, dtype=torch.float64).eval())
U = UniversalSimulator.of(shape_only, 3)
weights = U.compile()
print(weights)
before = weights.hash

# Layers that did not exist when the weights were made.
for seed in range(3):
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(**LAYER, dtype=torch.float64).eval()
    X = torch.randn(3, 4, dtype=torch.float64)
    with torch.no_grad():
        direct = layer(X[None])[0].numpy()
    tokens = U.encode(from_torch(layer), X.numpy())
    simulated = U.decode(weights(tokens))
    error = np.abs(simulated - direct).max()
    print(f"layer {seed}: {len(tokens)} tokens in, largest error {error:.1e}")
    assert error < 1e-12

assert weights.hash == before
print("one set of weights, unchanged:", before[:16])
