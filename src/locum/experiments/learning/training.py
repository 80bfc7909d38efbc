"""Train networks with many seeds and noise levels in one batch: ``train(settings)``.

Only the settings ``task`` and, for U, ``order`` are required:

- ``task``, ``order``, ``units``, ``tolerance``, ``soften``, ``balanced``, ``keys``, ``positions``,
  ``inverse_temperature``, ``size``: the construction;
- ``start``: start from the ``construction``, with noise on its non-zero weights, or from ``random``
  weights;
- ``sigmas``: the noise levels σ, where a weight w of the construction becomes w·(1 + σ·N(0, 1));
- ``trainable``: train ``all`` weights, or only the ``nonzeros`` or ``zeros`` of the construction;
- ``optimiser``, and the learning rate ``rate``, which decays linearly to 0 unless ``decay`` is False;
- ``relative``: make learning rates proportional to the absolute weights of the construction;
- ``anneal``: the initial factor of the scores of heads that approximate hard heads, which grows to 1
  during the first half of the steps;
- ``inputs``: ``whole`` for inputs of the full order, or ``smaller`` for inputs of a smaller order that
  are padded with zeros;
- ``steps`` and ``batch``: the number of training steps, and the batch size;
- ``seeds`` and ``first_seed``: the number of networks for each noise level, and the first seed;
- ``curve`` and ``device``: the steps after which errors are recorded, and the PyTorch device.

The optimisers SGD, Adam and Muon operate on stacked vectors of parameters [network, parameter].

Gradient descent at curvature λ diverges for learning rates above 2/λ. :func:`sharpness` estimates the
largest curvature of the loss at a construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from locum.errors import InputError
from locum.experiments.learning.constructions import Construction, Network, Numbers, construction
from locum.experiments.sweeps.sweep_kinds import complete

#: Largest normalised RMS error of a network that counts as recovered.
RECOVERED = 1e-2
#: Number of held-out inputs on which errors are measured.
_HELD_OUT = 256
#: Maximum number of elements of an activation tensor; if there are more, networks are trained in turn.
_MOST_NUMBERS = {"cpu": 2**25, "cuda": 2**27}


def learn(**settings: Any) -> dict[str, Any]:
    """Return the results of :func:`train` with hashes of the network, in the format of a sweep."""
    built = construction(settings)
    trained = train(settings)
    hashes = {"weights": built.model.hash, "program": built.model.config.program_hash}
    return {**trained, "hashes": hashes}


def train(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train one network for each noise level and seed, and return the errors before and after training.

    The result contains one row for each network, and training curves if ``curve`` requests them.

    >>> found = train({"task": "fetch", "positions": 4, "sigmas": [0.0], "seeds": 1, "steps": 1})
    >>> found["rows"][0]["error_before"] < 1e-3
    True
    """
    chosen = complete("learning", settings)
    device = device_named(str(chosen["device"]))
    built = construction(chosen)
    if chosen["inputs"] == "smaller" and built.smaller is None:
        raise InputError(
            "inputs: expected 'whole' for a task without a smaller order, got 'smaller'; try a U of an "
            "order such as (2, 2, 2)"
        )
    network = Network.of(built.model)
    exact = network.vector(built.model).to(device)
    cells = [
        (float(sigma), int(chosen["first_seed"]) + seed)
        for sigma in chosen["sigmas"]
        for seed in range(int(chosen["seeds"]))
    ]
    start = torch.stack([_start(chosen, network, exact, *cell) for cell in cells])
    measure = _Measure(built, network, device)
    rows = [
        {"sigma": sigma, "seed": seed, **before}
        for (sigma, seed), before in zip(cells, measure(start, "_before"), strict=True)
    ]
    trained, curves = _descend(
        chosen, built, network, exact, start, [seed for _, seed in cells], measure
    )
    kept = exact != 0
    away = (trained - exact).norm(dim=-1) / exact.norm()
    grown = (trained * ~kept).square().sum(dim=-1).div(max(1, int((~kept).sum()))).sqrt()
    for number, (row, after) in enumerate(zip(rows, measure(trained, ""), strict=True)):
        row |= after
        row["distance"] = _plain(away[number])
        row["zeros_rms"] = _plain(grown[number])
        row["recovered"] = row["error"] is not None and row["error"] <= RECOVERED
    return {
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "parameters": exact.numel(),
        "nonzeros": int(kept.sum()),
        "largest": float(exact.abs().max()),
        "rows": rows,
        "curves": curves,
    }


def device_named(name: str) -> torch.device:
    """Return the PyTorch device with this name; raise ``InputError`` unless it is the CPU or an
    available CUDA GPU.

    >>> device_named("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    count = torch.cuda.device_count() if device.type == "cuda" else 1
    if device.type not in _MOST_NUMBERS or (device.index or 0) >= count:
        raise InputError(
            f"expected the device cpu, or cuda where torch finds a GPU (it finds "
            f"{torch.cuda.device_count()}), got {name!r}"
        )
    return device


def _together(network: Network, device: torch.device, positions: int, batch: int) -> int:
    """Return the number of networks to run at the same time, so that activations fit in memory."""
    return max(1, _MOST_NUMBERS[device.type] // (batch * network.numbers(positions)))


def _start(
    chosen: Mapping[str, Any], network: Network, exact: Tensor, sigma: float, seed: int
) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(exact.numel(), generator=draw, dtype=exact.dtype).to(exact.device)
    if chosen["start"] == "construction":
        return exact * (1 + sigma * noise)
    parts = []
    for name, part in network.tensors(noise).items():
        shape = network.shapes[name]
        # Tensors with two or more axes have Xavier's scale, including the biases of queries, keys and
        # values. Embeddings have standard deviation 1, and other biases are 0.
        fan = shape[-2] + shape[-1] if len(shape) > 1 else 0
        embedding = name in ("embed.W_E", "pos_embed.W_pos")
        scale = 1.0 if embedding else math.sqrt(2 / fan) if fan else 0.0
        parts.append(part.reshape(-1) * scale)
    return torch.cat(parts)


def mask_of(trainable: str, exact: Tensor) -> Tensor:
    """Return a vector that is 1 for trainable weights and 0 for frozen weights."""
    masks = {"all": torch.ones_like(exact), "nonzeros": (exact != 0), "zeros": (exact == 0)}
    return masks[trainable].to(exact.dtype)


def _descend(
    chosen: Mapping[str, Any],
    built: Construction,
    network: Network,
    exact: Tensor,
    start: Tensor,
    seeds: list[int],
    measure: _Measure,
) -> tuple[Tensor, list[dict[str, Any]]]:
    """Return the parameters after the last step, and the errors after the requested steps."""
    places = torch.tensor(built.places, device=exact.device)
    mask = mask_of(str(chosen["trainable"]), exact)
    if chosen["relative"]:
        mask = mask * exact.abs()
    step_of = optimiser(str(chosen["optimiser"]), network)
    narrow = built.smaller if chosen["inputs"] == "smaller" and built.smaller else _as_they_are
    steps, batch, anneal = int(chosen["steps"]), int(chosen["batch"]), float(chosen["anneal"])
    spread = float(built.answers(built.inputs(np.random.default_rng(0), 4096)).var())

    def loss(vector: Tensor, inputs: Tensor, right: Tensor, warmth: Tensor) -> Tensor:
        apart = network.forward(vector, inputs, warmth)[:, places] - right
        return apart.square().mean() / spread

    together = _together(network, exact.device, built.length, batch)
    gradients = vmap(grad(loss), in_dims=(0, 0, 0, None), chunk_size=together)
    # Networks with the same seed receive the same inputs, for all noise levels.
    draws = {seed: np.random.default_rng([seed, 1]) for seed in seeds}
    vectors, curves = start, []
    for step in range(steps):
        if step in chosen["curve"]:
            curves += _curve(step, seeds, measure(vectors, ""))
        drawn = {seed: narrow(built.inputs(draw, batch)) for seed, draw in draws.items()}
        inputs = np.stack([drawn[seed] for seed in seeds])
        right = np.stack([built.answers(drawn[seed]) for seed in seeds])
        warmth = torch.tensor(min(1.0, anneal ** (1 - 2 * step / steps)), dtype=exact.dtype)
        tokens, targets = (torch.tensor(part, device=exact.device) for part in (inputs, right))
        slope = gradients(vectors, tokens, targets, warmth.to(exact.device))
        rate = float(chosen["rate"]) * (1 - step / steps if chosen["decay"] else 1.0)
        # The mask is applied before and after the step, so that the optimiser neither reads nor changes
        # frozen weights.
        vectors = vectors - rate * mask * step_of(slope * (mask != 0))
    if steps in chosen["curve"]:
        curves += _curve(steps, seeds, measure(vectors, ""))
    return vectors, curves


def _as_they_are(inputs: Numbers) -> Numbers:
    return inputs


def _curve(step: int, seeds: list[int], errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"step": step, "seed": seed, "error": row["error"]}
        for seed, row in zip(seeds, errors, strict=True)
    ]


class _Measure:
    """The errors of many networks on held-out inputs."""

    def __init__(self, built: Construction, network: Network, device: torch.device) -> None:
        self.network, self.places = network, list(built.places)
        self.together = _together(network, device, built.length, _HELD_OUT)
        draw = np.random.default_rng(12345)
        near, far = (built.inputs(draw, _HELD_OUT, reach) for reach in (1.0, 2.0))
        sets = {"error": near, "error_wide": far}
        if built.smaller is not None:
            sets["error_smaller"] = built.smaller(near)
        self.sets: dict[str, tuple[Tensor, Tensor, float]] = {}
        for name, inputs in sets.items():
            right = built.answers(inputs)
            tokens, targets = (torch.tensor(part, device=device) for part in (inputs, right))
            self.sets[name] = (tokens, targets, float(right.std()))

    def __call__(self, vectors: Tensor, suffix: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{} for _ in vectors]
        for name, (inputs, right, spread) in self.sets.items():
            with torch.no_grad():
                outputs = vmap(
                    lambda vector, tokens=inputs: self.network.forward(vector, tokens),
                    chunk_size=self.together,
                )(vectors)
            apart = (outputs[:, :, self.places] - right).square().mean(dim=(1, 2)).sqrt() / spread
            for row, error in zip(rows, apart, strict=True):
                row[name + suffix] = _plain(error)
        return rows


def _plain(number: Tensor) -> float | None:
    """Return a number as a float for JSON, or None if the number is not finite."""
    return float(number) if bool(torch.isfinite(number)) else None


#: Optimiser step that maps a gradient to the update of the parameters, before the learning rate.
Step = Callable[[Tensor], Tensor]

OPTIMISERS = ("sgd", "adam", "muon")


def optimiser(name: str, network: Network) -> Step:
    """Return the step function of the optimiser ``name``, with an initial state."""
    if name == "sgd":
        return _sgd()
    if name == "adam":
        return _adam()
    if name == "muon":
        return _muon(network)
    raise InputError(f"expected one of {', '.join(OPTIMISERS)}, got {name!r}")


def _sgd(momentum: float = 0.9) -> Step:
    """Return SGD with momentum; the gradient of each network is clipped to norm 1."""
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
    """Return Muon for the matrices of layers, combined with Adam for all other tensors."""
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
                # Updates have about the same size as the updates of Adam.
                part = orthogonalised(mine[name]) * 0.2 * max(rows, columns) ** 0.5
            parts.append(part.reshape(len(gradient), -1))
        return torch.cat(parts, dim=-1)

    return step


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """Return matrices with the same singular vectors and, unless they were very small, singular values
    near 1.

    The method is the Newton–Schulz iteration.

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


def sharpness(settings: Mapping[str, Any], batch: int = 256, steps: int = 40) -> float:
    """Estimate the largest eigenvalue of the Hessian of the loss at a construction, by power iteration.

    The Hessian is restricted to the weights selected by ``trainable``.

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
