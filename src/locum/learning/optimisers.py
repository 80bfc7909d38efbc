"""Optimisers on stacked vectors of parameters [network, parameter]: SGD, Adam and Muon."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from locum.errors import InputError
from locum.learning.network import Network

#: A step: gradient in, what is subtracted from the parameters (before the rate) out.
Step = Callable[[Tensor], Tensor]

OPTIMISERS = ("sgd", "adam", "muon")


def optimiser(name: str, network: Network) -> Step:
    """Return the step of an optimiser, with its own memory of earlier gradients."""
    if name == "sgd":
        return _sgd()
    if name == "adam":
        return _adam()
    if name == "muon":
        return _muon(network)
    raise InputError(f"expected one of {', '.join(OPTIMISERS)}, got {name!r}")


def _sgd(momentum: float = 0.9) -> Step:
    """Step along gradients cut to norm 1 in each network: some weights are next to numbers of 10⁴."""
    memory: list[Tensor] = []

    def step(gradient: Tensor) -> Tensor:
        norm = gradient.norm(dim=-1, keepdim=True)
        gradient = gradient / norm.clamp(min=1.0)
        memory[:] = [gradient + momentum * memory[0] if memory else gradient]
        return memory[0]

    return step


def _adam(first: float = 0.9, second: float = 0.999, least: float = 1e-8) -> Step:
    state: list[Tensor] = []
    count = 0

    def step(gradient: Tensor) -> Tensor:
        nonlocal count
        count += 1
        if not state:
            state[:] = [torch.zeros_like(gradient), torch.zeros_like(gradient)]
        state[0] = first * state[0] + (1 - first) * gradient
        state[1] = second * state[1] + (1 - second) * gradient * gradient
        mean, square = state[0] / (1 - first**count), state[1] / (1 - second**count)
        return mean / (square.sqrt() + least)

    return step


def _muon(network: Network, momentum: float = 0.95) -> Step:
    """Step by orthogonalised momentum for the matrices of layers, by Adam for embeddings and biases."""
    memory: list[Tensor] = []
    adam = _adam()

    def step(gradient: Tensor) -> Tensor:
        others = adam(gradient)
        memory[:] = [gradient + momentum * memory[0] if memory else gradient]
        looking_ahead = gradient + momentum * memory[0]
        mine, plain = network.tensors(looking_ahead), network.tensors(others)
        parts = []
        for name in network.shapes:
            part = plain[name]
            if name.startswith("blocks") and ".W_" in name:
                rows, columns = mine[name].shape[-2:]
                # Steps of the size of Adam's.
                part = orthogonalised(mine[name]) * 0.2 * max(rows, columns) ** 0.5
            parts.append(part.reshape(len(gradient), -1))
        return torch.cat(parts, dim=-1)

    return step


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """Return matrices with all singular values near 1, by Newton and Schulz's iteration.

    >>> values = torch.linalg.svdvals(orthogonalised(torch.tensor([[3.0, 1.0], [1.0, 0.5]])))
    >>> bool(((values > 0.6) & (values < 1.3)).all())
    True
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    matrix = matrices.transpose(-1, -2) if tall else matrices
    matrix = matrix / (torch.linalg.matrix_norm(matrix)[..., None, None] + 1e-12)
    for _ in range(steps):
        square = matrix @ matrix.transpose(-1, -2)
        matrix = 3.4445 * matrix + (-4.7750 * square + 2.0315 * square @ square) @ matrix
    result: Tensor = matrix.transpose(-1, -2) if tall else matrix
    return result
