"""What ``locum simulate`` runs: the figure, a random T or the user's, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np

from locum.cli.archives import KINDS, arrays_of, known_arrays, module_of
from locum.cli.matrices import Numbers, read_array, read_arrays
from locum.errors import InputError
from locum.execution.arrays import numpy_of
from locum.paper import figure2 as figure
from locum.simulators import Module, UniversalSimulator
from locum.simulators.explain import Explanation, Step, explain
from locum.simulators.hierarchy import require_smaller
from locum.simulators.matrices import matrix
from locum.simulators.modules.sampling import random_module
from locum.simulators.order import Order

#: Matrices of more rows or columns are shown in part.
SHOWN = 6
#: Up to so many pairs of positions, over all heads and steps, U is run literally unless one asks.
LITERAL = 5_000_000
#: How U was run, in words.
RUN_BY = {
    "dense": "Run by dense execution: every head, literally.",
    "heads": "Run by its heads: every row that is read, as attention over all keys.",
    "fast": "Run by the fast executor: the same program by products of matrices, not head by head.",
}
#: Options that draw a T at random; of files, --kind, --mask and --norm may say what they leave open.
DRAWING = ("heads", "ffn", "seed")
SAYING = ("kind", "mask", "norm")


class Simulation:
    """A T, an X and the U that runs them."""

    def __init__(
        self,
        title: str,
        T: Module,
        X: Numbers,
        simulator: UniversalSimulator,
        is_figure: bool = False,
        embedded: bool = False,
    ) -> None:
        self.title = title
        self.T = T
        self.X = X
        self.simulator = simulator
        self.is_figure = is_figure
        #: Whether T is smaller than U, and set into it.
        self.embedded = embedded
        self.explanation: Explanation | None = None
        #: What ran it.
        self.executor = ""

    @property
    def count(self) -> int:
        """How many steps there are to run."""
        return 1 if self.embedded else len(self.simulator.each_step())

    def executor_for(self, asked: str | None) -> str:
        """The executor that was asked for; else dense, which is the meaning, while that is quick."""
        if asked is not None:
            return asked
        pairs = self.count * sum(self.simulator.architecture.heads) * self.simulator.length**2
        return "dense" if pairs <= LITERAL else "auto"

    def run(self, asked: str | None, finished: Callable[[str], None]) -> None:
        """All steps, one after another; of an embedded T, the result alone."""
        U, T, X = self.simulator, self.T, self.X
        executor = self.executor = self.executor_for(asked)
        if self.embedded:
            step = Step("output", numpy_of(U.embed(T, X, executor=executor)), T(X))
            self.explanation = Explanation((step,))
        else:
            self.explanation = explain(U, T, X, executor=executor, finished=finished)

    @property
    def steps(self) -> Explanation:
        """What came of it."""
        assert self.explanation is not None
        return self.explanation

    @property
    def figure(self) -> figure.Demonstration | None:
        """The same as the paper's figure, if it is that."""
        return figure.Demonstration(self.simulator, self.steps) if self.is_figure else None

    def holds(self, tolerance: float) -> bool:
        """Whether U gave T(X); with another base than e that is not claimed."""
        if self.simulator.style.base is not None:
            return True
        size = max(1.0, float(np.abs(self.steps.steps[-1].direct).max()))
        agrees = self.figure is None or self.figure.reproduced
        return agrees and self.steps.error <= tolerance * size

    def rows(self) -> list[list[str]]:
        """The table: step, matrix, error, and what the figure has."""
        found = []
        for step in self.steps:
            row = [step.name, _shown(step.matrix), f"{step.error:.6e}"]
            printed = figure.PRINTED.get(step.name)
            if self.figure is not None and printed is not None:
                row[0] = f"{printed.name} = {printed.formula}"
                row += [f"{printed.error:.6e}" if printed.error else "≈ 0"]
                row += ["all equal" if self.figure.agrees(step.name) else "not all equal"]
            found.append(row)
        return found

    @property
    def summary(self) -> str:
        """What U is, and how well it did."""
        U, style = self.simulator, self.simulator.style
        base = "e" if style.base is None else f"{style.base:g}"
        return (
            f"U of order {U.order}: {U.length} tokens, {U.architecture}; recipe {style.recipe}, base "
            f"{base}.\n{RUN_BY.get(self.executor, RUN_BY['fast'])}\n"
            f"U(⟨T, X⟩) differs from T(X) by at most {self.steps.error:.6e}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        U, order = self.simulator, self.simulator.order
        steps = []
        for step in self.steps:
            entry = step.to_dict()
            printed = figure.PRINTED.get(step.name)
            if self.figure is not None and printed is not None:
                entry |= {
                    "paper": printed.name,
                    "figure_error": printed.error,
                    "digits_agree": self.figure.agrees(step.name),
                }
            steps.append(entry)
        return {
            "order": [order.n, order.attention.d, order.attention.d_v],
            "number_of_heads": order.attention.heads,
            "feed_forward": order.feed_forward,
            "kind": order.attention.kind,
            "recipe": U.style.recipe,
            "executor": self.executor,
            "base": np.e if U.style.base is None else U.style.base,
            "figure": None if self.figure is None else {"reproduced": self.figure.reproduced},
            "steps": steps,
            "result": self.steps.steps[-1].matrix.tolist(),
            "error": self.steps.error,
            "tokens": U.length,
            "layers": U.architecture.layers,
            "heads": U.architecture.heads,
            "program": U.hash,
        }

    def save(self, file: IO[bytes]) -> None:
        """X, T, the result, the direct one, and every step, as a .npz file that can be read again."""
        arrays = {"X": numpy_of(self.X), **arrays_of(self.T)}
        last = self.steps.steps[-1]
        arrays |= {"result": last.matrix, "direct": last.direct}
        arrays |= {f"step {step.name}": step.matrix for step in self.steps}
        np.savez(file, **arrays)  # type: ignore[arg-type]


def chosen(options: Mapping[str, Any]) -> Simulation:
    """The simulation that the options of the command ask for."""
    if options["mask"] not in (None, "causal"):
        raise InputError(
            f"there is no mask {options['mask']!r}: --mask takes causal (a matrix is given in FILE)"
        )
    from_files = [options[name] is not None for name in ("file", "x", "a", "v")]
    if options["order"] is not None and any(from_files):
        raise InputError("--order draws T and X at random: give it, or files, but not both")
    if options["order"] is not None:
        return _random(options)
    if any(from_files):
        return _given(options)
    wrong = [f"--{name}" for name in ("on", *DRAWING, *SAYING) if options[name] is not None]
    if wrong:
        raise InputError(f"{', '.join(wrong)} need --order n,d,d_v: without it, Figure 2 is run")
    recipe = options["recipe"] or "paper"
    U = UniversalSimulator(3, 3, 3, recipe=recipe, base=options["base"])
    return Simulation("Figure 2 of the paper, by U", figure.T, figure.X, U, is_figure=True)


def _random(options: Mapping[str, Any]) -> Simulation:
    n, d, d_v = options["order"]
    U = UniversalSimulator(
        Order.of(
            n,
            d,
            d_v,
            heads=1 if options["heads"] is None else options["heads"],
            feed_forward=options["ffn"],
            kind=options["kind"] or "softmax",
            norm=options["norm"] or "none",
            mask=options["mask"],
        ),
        recipe=options["recipe"] or "fetch",
        base=options["base"],
    )
    U.require_length(options["executor"])  # before anything of that size is drawn
    seed = options["seed"] or 0
    generator = np.random.default_rng(seed)
    T = random_module(U.order, generator)
    X = generator.normal(size=(U.order.n, U.order.attention.d))
    return _placed(Simulation(f"A random T of order {U.order}, seed {seed}", T, X, U), options)


def _placed(simulation: Simulation, options: Mapping[str, Any]) -> Simulation:
    """The simulation as it is, or on the larger U that --on names."""
    if options["on"] is None:
        return simulation
    small, style = simulation.simulator, simulation.simulator.style
    order = _larger(small.order, *options["on"])
    U = UniversalSimulator(order, recipe=style.recipe, stable=style.stable, base=style.base)
    require_smaller(small.order, order)
    title = f"{simulation.title}, on a U of order {order}"
    return Simulation(title, simulation.T, simulation.X, U, embedded=True)


def _larger(small: Order, n: int, d: int, d_v: int) -> Order:
    """The order with other sizes of X and V; what must be as wide as X grows with it."""
    attention, feed_forward = small.attention, small.feed_forward
    projection = d if attention.projection and small.residual else attention.projection
    if feed_forward is not None and small.feed_forward_residual:
        feed_forward = (feed_forward[0], d)
    attention = replace(attention, d=d, d_v=d_v, projection=projection)
    return replace(small, n=n, attention=attention, feed_forward=feed_forward)


def _given(options: Mapping[str, Any]) -> Simulation:
    wrong = [f"--{name}" for name in DRAWING if options[name] is not None]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: only a random T (--order) takes this; files say it all")
    arrays = _arrays(options)
    X = matrix(arrays["X"], "X")
    T = module_of(arrays)
    U = UniversalSimulator.of(T, len(X), recipe=options["recipe"] or "fetch", base=options["base"])
    U.check(T, X)
    return _placed(Simulation(f"Your T of order {U.order}", T, X, U), options)


def _arrays(options: Mapping[str, Any]) -> dict[str, Any]:
    """X, the matrices of T and what else it is, from one file or from several, and from options."""
    file, single = options["file"], [options[name] for name in ("x", "a", "v")]
    if file is None and single[0] is not None and single[1:] == [None, None]:
        file, single = single[0], [None] * 3  # --x all.npz
    found: dict[str, Any] = {} if file is None else known_arrays(read_arrays(file), str(file))
    for name, path in zip(("X", "A", "V"), single, strict=True):
        if path is not None:
            found[name] = read_array(path)
    for name in SAYING:
        said = options[name]
        if said is None:
            continue
        if name in found and (not isinstance(found[name], str) or found[name] != said):
            raise InputError(
                f"--{name} {said} is not what the file has as its {name}: leave one of them out"
            )
        found[name] = said
    kind = found.get("kind", "softmax")
    _, matrices, _ = KINDS.get(kind, KINDS["softmax"])
    wanted = ("X", *matrices)
    missing = [name for name in wanted if name not in found]
    if missing:
        where = f" in {file}" if file is not None else ""
        raise InputError(
            f"there is no {' and no '.join(missing)}{where}: a simulation of kind {kind} needs "
            f"{', '.join(wanted[:-1])} and {wanted[-1]} (--x, --a, --v, or one "
            "file with arrays of these names)"
        )
    return found


def _shown(entries: Numbers) -> str:
    """A matrix with three digits, in part if it is large."""
    rows, columns = entries.shape
    part = entries[:SHOWN, :SHOWN]
    width = max(len(f"{value:.3f}") for value in part.ravel())
    text = "\n".join(
        " ".join(f"{value:{width}.3f}" for value in row) + (" …" if columns > SHOWN else "")
        for row in part
    )
    return text + (f"\n… ({rows}×{columns})" if rows > SHOWN or columns > SHOWN else "")
