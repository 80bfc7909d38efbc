"""Define the groups of training runs, where one run can cover several noise levels and seeds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Settings = dict[str, Any]


def problem_of(settings: Settings) -> tuple[str, str] | None:
    """Return the name of an invalid setting with a description of the problem, or None.

    >>> problem_of({"task": "U", "order": [2, 2], "device": "cpu", "sigmas": [0.1], "curve": []})
    ('order', 'expected n, d and d_v of U, such as [2, 1, 1], got [2, 2]')
    """
    order = settings["order"]
    if settings["task"] == "U" and (
        order is None or len(order) != 3 or any(number < 1 for number in order)
    ):
        return "order", f"expected n, d and d_v of U, such as [2, 1, 1], got {order}"
    if settings["device"] != "cpu" and not re.fullmatch(r"cuda(:[0-9]+)?", settings["device"]):
        return "device", f"expected cpu or cuda, got {settings['device']!r}"
    if not settings["sigmas"]:
        return "sigmas", "expected at least one scale of noise, got []"
    if settings.get("inputs") == "smaller" and (settings["task"] != "U" or max(order[1:]) < 2):
        return "inputs", "expected a U with a smaller order inside, such as [2, 2, 2]"
    return None


#: Settings for the smallest order of U whose softmax has more than one key.
SMALL: Settings = {"task": "U", "order": [2, 1, 1], "steps": 150, "batch": 16}
SIGMAS = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
LARGE_SIGMAS = [1e-2, 3e-2, 1e-1, 3e-1]
BOTH = (False, True)


def zeros() -> list[Settings]:
    """Return runs that start at the exact weights and train all, only non-zero, or only zero weights.

    All runs record the error after several numbers of steps.
    """
    moments = {"steps": 100, "curve": [0, 1, 2, 5, 10, 20, 50, 100], "decay": False, "sigmas": [0.0]}
    return [
        {**SMALL, **moments, "trainable": which, "balanced": balanced, "optimiser": "adam"}
        for which in ("all", "nonzeros", "zeros")
        for balanced in BOTH
    ]


def basin() -> list[Settings]:
    """Return runs that train U from noisy weights, with several optimisers and sets of trainable
    weights.

    Each run is repeated with balanced weights.
    """
    ways: list[Settings] = [
        {"optimiser": "adam", "rate": 1e-3},
        {"optimiser": "adam", "rate": 1e-4},
        {"optimiser": "adam", "rate": 1e-5},
        {"optimiser": "adam", "rate": 1e-3, "trainable": "nonzeros"},
        {"optimiser": "adam", "rate": 1e-3, "relative": True},
        {"optimiser": "sgd", "rate": 1e-3, "trainable": "nonzeros"},
        {"optimiser": "muon", "rate": 1e-3},
        {"optimiser": "muon", "rate": 1e-3, "trainable": "nonzeros"},
    ]
    return [{**SMALL, "sigmas": SIGMAS, "balanced": b, **way} for way in ways for b in BOTH]


def positions() -> list[Settings]:
    """Return runs that train the ``fetch`` head for several numbers of positions and kinds of keys."""
    sigmas = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
    shared: Settings = {"sigmas": sigmas, "trainable": "nonzeros", "batch": 8, "steps": 100, "seeds": 6}
    return [
        {"task": "fetch", "keys": keys, "positions": count, **shared}
        for count in (4, 8, 16, 32)
        for keys in ("squares", "one-hot", "bits")
    ]


def annealing() -> list[Settings]:
    """Return runs that start with the scores of some heads at a fraction of their values."""
    return [
        {**SMALL, "sigmas": LARGE_SIGMAS, "trainable": which, "rate": rate, "anneal": anneal}
        for which, rate in (("nonzeros", 1e-3), ("all", 1e-4))
        for anneal in (1 / 4, 1 / 16)
    ]


def softness() -> list[Settings]:
    """Return runs for U compiled at several tolerances, and with smaller inverse temperatures."""
    tolerances: list[Settings] = [{"tolerance": 10.0**-k} for k in range(1, 7)]
    factors: list[Settings] = [{"soften": 2.0**-k} for k in (2, 3, 4, 5)]
    shared: Settings = {**SMALL, "sigmas": LARGE_SIGMAS, "trainable": "nonzeros"}
    return [{**shared, **how} for how in [*tolerances, *factors]]


def larger() -> list[Settings]:
    """Return runs that train U of order (2, 2, 2) and a product of matrices."""
    shared: Settings = {"sigmas": [1e-3, 1e-2, 3e-2, 1e-1], "seeds": 4, "steps": 100, "batch": 16}
    ways: list[Settings] = [{"rate": 1e-4}, {"rate": 1e-3, "trainable": "nonzeros"}]
    tasks: list[Settings] = [{"task": "U", "order": [2, 2, 2]}, {"task": "matmul", "size": 2}]
    return [{**t, **shared, **way, "balanced": b} for t in tasks for way in ways for b in BOTH]


def random() -> list[Settings]:
    """Return runs that train ``fetch`` and U from random weights."""
    start: Settings = {"start": "random", "sigmas": [1.0], "seeds": 8, "batch": 16}
    ways: list[Settings] = [
        {"optimiser": "adam", "rate": 1e-2},
        {"optimiser": "muon", "rate": 1e-2},
        {"optimiser": "sgd", "rate": 1e-1},
    ]
    fetch: Settings = {"task": "fetch", "positions": 8, **start, "steps": 500, **ways[0]}
    return [
        *({**fetch, "keys": keys} for keys in ("squares", "one-hot", "bits")),
        *({**SMALL, **start, "steps": 1000, **way} for way in ways),
    ]


def slow() -> list[Settings]:
    """Return runs that train all weights by SGD, with learning rates above and below 2/λ.

    λ is the largest curvature of the loss. Above 2/λ, gradient descent diverges.
    """
    shared: Settings = {**SMALL, "sigmas": SIGMAS, "optimiser": "sgd"}
    return [
        {**shared, "rate": 1e-3},
        {**shared, "rate": 5e-8},
        {**shared, "rate": 1e-6, "balanced": True},
    ]


#: Larger orders for a GPU, with 12 to 192 tokens.
ORDERS = ([2, 2, 2], [3, 2, 2], [4, 4, 4], [8, 4, 4], [8, 8, 8])
WIDE_SIGMAS = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
ON_GPU: Settings = {"task": "U", "sigmas": WIDE_SIGMAS, "seeds": 4, "batch": 16, "device": "cuda"}


def orders() -> list[Settings]:
    """Return runs that train the non-zero weights of U for several orders.

    The runs measure how the largest noise from which training recovers depends on the order.
    """
    absolute: list[Settings] = [{"rate": 10.0**-k, "trainable": "nonzeros"} for k in (3, 4, 5, 6)]
    relative: list[Settings] = [{"rate": 10.0**-k, "relative": True} for k in (3, 4, 5)]
    return [
        {**ON_GPU, "order": order, **way}
        for order in ([2, 1, 1], *ORDERS)
        for way in [*absolute, *relative]
    ]


def orders_all() -> list[Settings]:
    """Return runs that train all weights of U for several orders, balanced or not.

    Orders (4, 4, 4) and (8, 4, 4) have no balanced runs, because balancing does not change the weights
    of these networks.
    """
    return [
        {**ON_GPU, "order": order, "rate": rate, "balanced": balanced}
        for order, ways in zip(ORDERS[:-1], (BOTH, BOTH, (False,), (False,)), strict=True)
        for rate in (1e-4, 1e-5, 1e-6)
        for balanced in ways
    ]


def orders_optimisers() -> list[Settings]:
    """Return runs that train the non-zero weights of U for several orders, with Muon and SGD."""
    shared: Settings = {**ON_GPU, "trainable": "nonzeros"}
    return [
        {**shared, "order": order, "optimiser": name, "rate": rate}
        for order in ([2, 2, 2], [4, 4, 4], [8, 4, 4])
        for name, rate in (("muon", 1e-4), ("muon", 1e-5), ("sgd", 1e-4), ("sgd", 1e-5))
    ]


def orders_inputs() -> list[Settings]:
    """Return runs that train U on inputs of a smaller order or of its full order."""
    shared: Settings = {**ON_GPU, "trainable": "nonzeros", "rate": 1e-5, "steps": 400}
    return [
        {**shared, "order": order, "inputs": inputs}
        for order in ([2, 2, 2], [4, 4, 4])
        for inputs in ("whole", "smaller")
    ]


def orders_positions() -> list[Settings]:
    """Return runs that train the ``fetch`` head for larger numbers of positions and several kinds of
    keys.
    """
    sigmas = [1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
    shared: Settings = {"sigmas": sigmas, "trainable": "nonzeros", "batch": 8, "steps": 100, "seeds": 4}
    return [
        {"task": "fetch", "keys": keys, "positions": count, **shared, "device": "cuda"}
        for count in (64, 128, 256)
        for keys in ("squares", "one-hot", "bits")
    ]


def orders_random() -> list[Settings]:
    """Return runs that train U of larger orders from random weights."""
    start: Settings = {**ON_GPU, "start": "random", "sigmas": [1.0], "seeds": 8}
    return [
        {**start, "order": order, "optimiser": name, "rate": rate, "batch": 64, "steps": 2000}
        for order in ([2, 2, 2], [4, 4, 4])
        for name, rate in (("adam", 1e-2), ("adam", 1e-3), ("muon", 1e-2), ("sgd", 1e-1))
    ]


#: All groups of runs by name. The groups whose names start with "orders" require a GPU.
GROUPS: dict[str, Callable[[], list[Settings]]] = {
    group.__name__: group
    for group in (
        *(zeros, basin, positions, softness, annealing, larger, slow, random),
        *(orders, orders_all, orders_optimisers, orders_inputs, orders_positions, orders_random),
    )
}
