"""Keep the layer norms of ``torch.nn.TransformerEncoder``: a compiled network that survives them.

A norm divides the residual stream by its standard deviation, which would destroy what the slots hold.
Write the stream as [x, −x, C, −C] with a large constant C: its mean is 0, and its variance is that of
the constants but for a share of |x|²/C². A gain of that constant deviation then gives x back. Whatever
reads the stream takes (x − (−x))/2, in which the rounding of the mean, common to both halves, cancels.

The error grows with |x|²/C², so float32 keeps small numbers only.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import torch

import locum
from locum.networks.transformer import LayerWeights, Weights


def mirrored(weights: Weights, constant: float) -> Weights:
    """Return weights of twice the width that read and write [x, −x, C, −C]."""
    d = weights.W_E.shape[1]

    def written(array: Any) -> Any:  # its last axis is d_model
        return np.concatenate([array, -array, np.zeros((*array.shape[:-1], 2))], axis=-1)

    def read(array: Any) -> Any:  # its last axis but one is d_model
        nothing = np.zeros((*array.shape[:-2], 2, array.shape[-1]))
        return np.concatenate([array / 2, -array / 2, nothing], axis=-2)

    def changed(part: Any, writing: tuple[str, ...], reading: tuple[str, ...]) -> Any:
        if part is None:
            return None
        new = {name: written(getattr(part, name)) for name in writing}
        return dataclasses.replace(part, **new, **{name: read(getattr(part, name)) for name in reading})

    layers = tuple(
        LayerWeights(
            changed(layer.attention, ("W_O", "b_O"), ("W_Q", "W_K", "W_V")),
            changed(layer.feed_forward, ("W_out", "b_out"), ("W_in",)),
        )
        for layer in weights.layers
    )
    places = written(weights.W_pos)
    places[:, 2 * d :] = constant, -constant
    return dataclasses.replace(
        weights, W_E=written(weights.W_E), W_pos=places, layers=layers, W_U=read(weights.W_U)
    )


counts = locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))
model = locum.compile(counts, length=6, vocabulary="abc", attention="softmax", feed_forward="relu")
C = 2.0**40
wide = locum.CompiledTransformer(
    dataclasses.replace(model.config, slots=("",) * (2 * len(model.slots) + 2)),
    mirrored(model.weights, C),
)
module = wide.to_encoder()
for layer in module.encoder.layers:
    for name in ("norm1", "norm2"):
        norm = torch.nn.LayerNorm(layer.linear1.in_features, dtype=torch.float64)
        deviation = math.sqrt(2 * C**2 / layer.linear1.in_features + norm.eps)
        torch.nn.init.constant_(norm.weight, deviation)
        setattr(layer, name, norm)
for text in ("abacab", "ccc", "a"):
    with torch.no_grad():
        logits = module(torch.tensor(model.encode(text))).numpy()
    (answer,) = model.decode(logits, text)
    print(text, answer)
    assert np.allclose(answer, [text.count(token) for token in text], atol=1e-9)
