"""A compiled U with symbolic feed-forwards runs encoder layers of torch that are made after it.

U is compiled from the order alone (three rows of four numbers, two heads, six hidden units). Then an
encoder layer of torch is made, with norms, biases and GELU; its matrices and its input become U's
tokens, and the network computes the output of the layer. The attention heads are weights. The
feed-forwards are symbolic: norms, GELU and products are executed as instructions, not by an MLP.
stock_encoder.py runs a plain attention by hidden units instead. Needs torch.
"""

import numpy as np
import torch

from locum.simulators import UniversalSimulator, from_torch


def new_layer(seed: int) -> torch.nn.TransformerEncoderLayer:
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 6, activation="gelu", batch_first=True, dtype=torch.float64
    )
    return layer.eval()


# The simulator: it sees the shape of a layer, none of its numbers.
U = UniversalSimulator.of(from_torch(new_layer(0)), 3)
weights = U.compile(feed_forward="exact")
print(weights)
before = weights.hash

# Layers that did not exist when the weights were made.
for seed in range(1, 4):
    layer = new_layer(seed)
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
