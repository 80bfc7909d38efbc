"""Make the simulation that options of ``locum simulate`` ask for: a random T, or one from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from locum.cli.archives import known_arrays, module_of
from locum.cli.matrices import read_array, read_arrays
from locum.cli.simulations import Simulation
from locum.errors import InputError
from locum.simulators import Order, UniversalSimulator
from locum.simulators.attention_order import KINDS
from locum.simulators.hierarchy import require_smaller
from locum.simulators.matrices import matrix
from locum.simulators.modules.sampling import random_module

#: Options that belong to a random T, and options that say what a file may leave open.
RANDOM, SAYING = ("heads", "ffn", "seed"), ("kind", "mask", "norm")


def random_simulation(options: Mapping[str, Any]) -> Simulation:
    """Draw a T of the order asked for, and an X."""
    _require_mask(options["mask"])
    n, d, d_v = options["order"]
    order = Order.of(
        n,
        d,
        d_v,
        heads=1 if options["heads"] is None else options["heads"],
        feed_forward=options["ffn"],
        kind=options["kind"] or "softmax",
        norm=options["norm"] or "none",
        mask=options["mask"],
    )
    U = UniversalSimulator(order, recipe=options["recipe"] or "fetch", base=options["base"])
    U.require_length(options["executor"])  # before anything of that size is drawn
    seed = options["seed"] or 0
    generator = np.random.default_rng(seed)
    T, X = random_module(order, generator), generator.normal(size=(n, d))
    return Simulation(f"A random T of order {order}, seed {seed}", T, X, U)


def read_simulation(options: Mapping[str, Any]) -> Simulation:
    """Read T and X from files."""
    _require_mask(options["mask"])
    wrong = [f"--{name}" for name in RANDOM if options[name] is not None]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: only a random T (--order) takes this; leave it out")
    arrays = _arrays(options)
    X, T = matrix(arrays["X"], "X"), module_of(arrays)
    U = UniversalSimulator.of(T, len(X), recipe=options["recipe"] or "fetch", base=options["base"])
    U.check(T, X)
    return Simulation(f"Your T of order {U.order}", T, X, U)


def on_a_larger_u(simulation: Simulation, sizes: tuple[int, int, int]) -> Simulation:
    """Run the same T on a U of other n, d and d_v; what must be as wide as X grows with it."""
    small, style = simulation.simulator.order, simulation.simulator.style
    n, d, d_v = sizes
    feed_forward = small.feed_forward
    if feed_forward is not None and small.feed_forward_residual:
        feed_forward = (feed_forward[0], d)
    projection = d if small.attention.projection and small.residual else small.attention.projection
    attention = replace(small.attention, d=d, d_v=d_v, projection=projection)
    order = replace(small, n=n, attention=attention, feed_forward=feed_forward)
    U = UniversalSimulator(order, recipe=style.recipe, stable=style.stable, base=style.base)
    require_smaller(small, order)
    title = f"{simulation.title}, on a U of order {order}"
    return Simulation(title, simulation.T, simulation.X, U, embedded=True)


def _require_mask(mask: str | None) -> None:
    if mask not in (None, "causal"):
        raise InputError(f"--mask: expected causal, got {mask!r}; a matrix is given in a file")


def _arrays(options: Mapping[str, Any]) -> dict[str, Any]:
    """Collect X, the matrices of T and its settings, from files and options."""
    file, single = options["file"], [options[name] for name in ("x", "a", "v")]
    if file is None and single[0] is not None and single[1:] == [None, None]:
        file, single = single[0], [None] * 3  # --x all.npz
    arrays: dict[str, Any] = {} if file is None else known_arrays(read_arrays(file), str(file))
    for name, path in zip(("X", "A", "V"), single, strict=True):
        if path is not None:
            arrays[name] = read_array(path)
    for name in SAYING:
        value = options[name]
        if value is None:
            continue
        if name in arrays and (not isinstance(arrays[name], str) or arrays[name] != value):
            raise InputError(
                f"--{name} {value}, but the file has another {name}: leave one of them out"
            )
        arrays[name] = value
    kind = arrays.get("kind", "softmax")
    matrices = KINDS.get(kind, KINDS["softmax"]).matrices
    missing = [name for name in ("X", *matrices) if name not in arrays]
    if missing:
        where = f"{file}: " if file is not None else ""
        raise InputError(
            f"{where}a T of kind {kind} needs X, {' and '.join(matrices)}, but there is no "
            f"{' and no '.join(missing)}; try --x, --a, --v, or one file with arrays of these names"
        )
    return arrays
