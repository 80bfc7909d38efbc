"""Load a compiled network into ``torch.nn.TransformerEncoder`` without removing its layer norms.

A layer norm divides the residual stream by its standard deviation, which would destroy the values in
the slots. Write the residual stream as [x, −x, C, −C] with a large constant C. The mean of this vector
is 0, and its variance is the variance of the constants up to a relative error of |x|²/C². The gain of
the norm is set to the constant standard deviation, so that the norm returns x. Each part of the network
reads (x − (−x))/2, in which the rounding error of the mean cancels, because it is the same in both
halves.

The relative error of x is proportional to |x|²/C².
"""

import dataclasses
import math
from typing import Any

import numpy as np
import torch

import locum
from locum.networks.transformer import LayerWeights, Weights


def mirrored(weights: Weights, constant: float) -> Weights:
    """Return weights of width 2·d_model + 2 for the residual stream [x, −x, C, −C]."""
    d = weights.W_E.shape[1]

    def written(array: Any) -> Any:  # The last axis is d_model.
        return np.concatenate([array, -array, np.zeros((*array.shape[:-1], 2))], axis=-1)

    def read(array: Any) -> Any:  # The second to last axis is d_model.
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
