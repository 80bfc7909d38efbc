"""Run PyTorch encoder layers on a compiled U with symbolic feed-forwards.

U is compiled from the order alone: three rows of four numbers, two heads, six hidden units. Then
PyTorch encoder layers with norms, biases and GELU are created. The matrices of a layer and its input
become the tokens of U, and the network computes the output of the layer. The attention heads of U are
weights. Its feed-forwards are symbolic: norms, GELU and products are executed as instructions, not by
an MLP. The example stock_encoder.py runs plain attention with hidden units instead. This example
requires PyTorch.
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


# U is built from the sizes of a layer, and does not depend on its weights.
U = UniversalSimulator.of(from_torch(new_layer(0)), 3)
weights = U.compile(feed_forward="exact")
print(weights)
before = weights.hash

# The layers are created after the weights of U.
for seed in range(1, 4):
    layer = new_layer(seed)
    X = torch.randn(3, 4, dtype=torch.float64)
    with torch.no_grad():
        direct = layer(X[None])[0].numpy()
    tokens = U.encode(from_torch(layer), X.numpy())
    simulated = U.decode(weights(tokens))
    error = np.abs(simulated - direct).max()
    print(f"layer {seed}: {len(tokens)} tokens, largest error {error:.1e}")
    assert error < 1e-12

assert weights.hash == before
print("hash of the unchanged weights:", before[:16])
