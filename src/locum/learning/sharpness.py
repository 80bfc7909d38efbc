"""How sharp the minimum at a construction is: the greatest curvature of the loss there.

Gradient descent near a minimum of curvature λ diverges at rates above 2/λ: so much for how large a rate
a construction survives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad

from locum.learning.constructions import construction
from locum.learning.network import Network
from locum.learning.training import mask_of


def sharpness(settings: Mapping[str, Any], batch: int = 256, steps: int = 40) -> float:
    """Return the greatest eigenvalue of the Hessian at the construction, by power iteration.

    >>> free, held = (
    ...     sharpness({"task": "U", "order": [1, 1, 1], "trainable": which}, batch=16, steps=5)
    ...     for which in ("all", "nonzeros")
    ... )
    >>> held < free
    True
    """
    built = construction(settings)
    network = Network.of(built.model)
    exact = network.vector(built.model)
    mask = mask_of(str(settings.get("trainable", "all")), exact)
    inputs = built.inputs(np.random.default_rng(0), batch)
    right = built.answers(inputs)
    tokens, targets = torch.tensor(inputs), torch.tensor(right)
    places = list(built.places)

    def loss(vector: Tensor) -> Tensor:
        return (network.forward(vector, tokens)[:, places] - targets).square().mean() / float(
            right.var()
        )

    direction = torch.randn(
        exact.numel(), generator=torch.Generator().manual_seed(0), dtype=exact.dtype
    )
    direction = direction * mask
    eigenvalue = 0.0
    for _ in range(steps):
        direction = direction / direction.norm()
        product = grad(lambda vector, along=direction: grad(loss)(vector) @ along)(exact) * mask
        eigenvalue = float(direction @ product)
        if not float(product.norm()):
            break
        direction = product
    return eigenvalue
