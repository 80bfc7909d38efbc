"""Run U on T and X step by step, and format the reports of ``locum simulate``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import numpy_of
from locum.interface.cli import output
from locum.interface.cli.progress import progress
from locum.interface.cli.runner import Part
from locum.paper.figure2 import PRINTED, Demonstration
from locum.paper.figure2 import T as FIGURE_T
from locum.paper.figure2 import X as FIGURE_X
from locum.simulators import Module, Order, UniversalSimulator
from locum.simulators.hierarchy import require_smaller
from locum.simulators.layer_simulator import ExplainedStep, Explanation, explain
from locum.simulators.modules.module import Numbers
from locum.simulators.modules.sampling import random_module
from locum.text import at_most

#: Largest relative error that counts as a rounding error.
TOLERANCE = 1e-9
#: Maximum number of displayed rows and columns of a matrix.
SHOWN = 6
#: Maximum number of heads of a random T. The steps of the heads are run in sequence.
MAX_HEADS = 128
#: Maximum number of pairs of positions, over all heads and steps, for dense execution by default.
LITERAL = 5_000_000
#: Descriptions of the executors of U.
RUN_BY = {
    "dense": "Executor: dense execution, which runs every head by its definition.",
    "heads": "Executor: heads, which computes each used query row as attention over all keys.",
    "fast": "Executor: fast, which computes the program with matrix products instead of single heads.",
}


class Simulation:
    """A simulated layer T, its input X, and the universal simulator U that runs them.

    If ``embedded`` is true, T runs on a U whose order may be larger.
    """

    #: Titles of the table.
    titles: tuple[str, ...] = ("step", "matrix", "error against\nNumPy")

    def __init__(
        self, title: str, T: Module, X: Numbers, simulator: UniversalSimulator, embedded: bool = False
    ) -> None:
        self.title = title
        self.T = T
        self.X = X
        self.simulator = simulator
        self.embedded = embedded
        self.steps = Explanation(())
        self.executor = ""

    @property
    def count(self) -> int:
        """Number of steps to run."""
        return 1 if self.embedded else len(self.simulator.each_step())

    def run(self, executor: str | None) -> None:
        """Run all steps in sequence, or only the last step for an embedded T."""
        with progress(self.count) as advance:
            self._run(executor, advance)

    def _run(self, executor: str | None, finished: Callable[[str], None]) -> None:
        U, T, X = self.simulator, self.T, self.X
        if (
            executor is None
        ):  # dense execution defines the meaning of U, so it is used if it is fast enough
            pairs = self.count * sum(U.architecture.heads) * U.length**2
            executor = "dense" if pairs <= LITERAL else "auto"
        self.executor = executor
        if self.embedded:
            step = ExplainedStep("output", numpy_of(U.embed(T, X, executor=executor)), T(X))
            self.steps = Explanation((step,))
        else:
            self.steps = explain(U, T, X, executor=executor, finished=finished)

    def round_to_float32(self) -> None:
        """Replace every number of T and X by the nearest number that float32 represents."""
        self.T, self.X = copy.deepcopy((self.T, self.X))
        matrices = [matrix for copies in self.T.matrices().values() for matrix in copies]
        for matrix in (self.X, *matrices):
            matrix[...] = matrix.astype(np.float32)

    @property
    def holds(self) -> bool:
        """Whether U computed T(X) up to rounding errors.

        For a base other than e, nothing is claimed, and the value is true.
        """
        if self.simulator.style.base is not None:
            return True
        size = max(1.0, float(np.abs(self.steps.steps[-1].direct).max()))
        return self.steps.error <= TOLERANCE * size

    def row(self, step: ExplainedStep) -> list[str]:
        """Return the name, the matrix and the error of a step as a row of the table."""
        return [step.name, _shown(step.matrix), f"{step.error:.6e}"]

    @property
    def summary(self) -> str:
        """Description of U and of the error of the result."""
        U, style = self.simulator, self.simulator.style
        base = "e" if style.base is None else f"{style.base:g}"
        return (
            f"U of order {U.order}: {U.length} tokens, {U.architecture}; recipe {style.recipe}, base "
            f"{base}.\n{RUN_BY.get(self.executor, RUN_BY['fast'])}\n"
            f"U(⟨T, X⟩) differs from T(X) by at most {at_most(self.steps.error, '.6e')}."
        )

    def text(self) -> Iterator[Part]:
        """Yield a table of all steps, followed by a description of U."""
        table = output.table(*self.titles, rows=map(self.row, self.steps), lines=True, fold=True)
        for title, column in zip(self.titles, table.columns, strict=True):
            is_error = title.startswith("error")
            column.justify = "right" if is_error else "left"
            column.no_wrap = is_error or title == "matrix"
            column.min_width = max(map(len, title.split("\n")))
        yield output.title(self.title)
        yield table
        yield self.summary

    def step_dict(self, step: ExplainedStep) -> dict[str, Any]:
        """Return a step as a JSON-compatible dictionary."""
        return step.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes, steps, result and errors of the simulation as a dictionary for JSON."""
        U, order = self.simulator, self.simulator.order
        return {
            "order": [order.n, order.attention.d, order.attention.d_v],
            "number_of_heads": order.attention.heads,
            "feed_forward": order.feed_forward,
            "kind": order.attention.kind,
            "recipe": U.style.recipe,
            "executor": self.executor,
            "base": np.e if U.style.base is None else U.style.base,
            "figure": None,
            "steps": [self.step_dict(step) for step in self.steps],
            "result": self.steps.steps[-1].matrix.tolist(),
            "error": self.steps.error,
            "tokens": U.length,
            "layers": U.architecture.layers,
            "heads": U.architecture.heads,
            "program": U.hash,
        }


class FigureSimulation(Simulation):
    """The simulation in Figure 2 of the paper, compared with the printed numbers."""

    titles = (*Simulation.titles, "error in the\nfigure", "printed\ndigits")

    def __init__(self, recipe: str, base: float | None) -> None:
        U = UniversalSimulator(3, 3, 3, recipe=recipe, base=base)
        super().__init__("Figure 2 of the paper, by U", FIGURE_T, FIGURE_X, U)

    @property
    def figure(self) -> Demonstration:
        """Comparison of the computed numbers with the numbers printed in the figure."""
        return Demonstration(self.simulator, self.steps)

    @property
    def holds(self) -> bool:
        """Whether U computed T(X) and reproduced every printed digit.

        For a base other than e, nothing is claimed, and the value is true.
        """
        return super().holds and (self.simulator.style.base is not None or self.figure.reproduced)

    def row(self, step: ExplainedStep) -> list[str]:
        """Return a step with its printed error, and whether all printed digits agree."""
        printed = PRINTED[step.name]
        agree = "all equal" if self.figure.agrees(step.name) else "not all equal"
        error = f"{printed.error:.6e}" if printed.error else "≈ 0"
        return [f"{printed.name} = {printed.formula}", *super().row(step)[1:], error, agree]

    def step_dict(self, step: ExplainedStep) -> dict[str, Any]:
        """Return a step and the corresponding content of the figure as a dictionary for JSON."""
        printed = PRINTED[step.name]
        return super().step_dict(step) | {
            "paper": printed.name,
            "figure_error": printed.error,
            "digits_agree": self.figure.agrees(step.name),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the data of the simulation, and whether every printed digit is reproduced."""
        return super().to_dict() | {"figure": {"reproduced": self.figure.reproduced}}


def _shown(entries: Numbers) -> str:
    """Format a matrix with three decimal places; of a large matrix, only its first rows and columns."""
    rows, columns = entries.shape
    part = entries[:SHOWN, :SHOWN]
    width = max(len(f"{value:.3f}") for value in part.ravel())
    text = "\n".join(
        " ".join(f"{value:{width}.3f}" for value in row) + (" …" if columns > SHOWN else "")
        for row in part
    )
    return text + (f"\n… ({rows}×{columns})" if rows > SHOWN or columns > SHOWN else "")


# T and X --------------------------------------------------------------------------------------------


def make_simulation(options: Mapping[str, Any]) -> Simulation:
    """Return the simulation that ``options`` specify: a random T, or Figure 2."""
    if options["order"] is None:
        of_random = ("heads", "ffn", "seed", "kind", "mask", "norm", "on")
        wrong = [f"--{name}" for name in of_random if options[name] is not None]
        if wrong:
            raise InputError(f"{', '.join(wrong)}: expected a T; try --order n,d,d_v")
        return FigureSimulation(options["recipe"] or "paper", options["base"])
    simulation = random_simulation(options)
    return simulation if options["on"] is None else on_a_larger_u(simulation, options["on"])


def random_simulation(options: Mapping[str, Any]) -> Simulation:
    """Return the simulation of a random T of the given order on a random X."""
    n, d, d_v = options["order"]
    heads = 1 if options["heads"] is None else options["heads"]
    if heads > MAX_HEADS:
        raise InputError(
            f"--heads: expected at most {MAX_HEADS}, since each has its own steps, got {heads:,}; "
            "try UniversalSimulator(order)(T, X) in Python, which shows no steps"
        )
    order = Order.of(
        n,
        d,
        d_v,
        heads=heads,
        feed_forward=options["ffn"],
        kind=options["kind"] or "softmax",
        norm=options["norm"] or "none",
        mask=options["mask"],
    )
    U = UniversalSimulator(order, recipe=options["recipe"] or "fetch", base=options["base"])
    U.require_length(options["executor"])  # raises an error before large matrices are drawn
    seed = options["seed"] or 0
    generator = np.random.default_rng(seed)
    T, X = random_module(order, generator), generator.normal(size=(n, d))
    return Simulation(f"A random T of order {order}, seed {seed}", T, X, U)


def on_a_larger_u(simulation: Simulation, sizes: tuple[int, int, int]) -> Simulation:
    """Return the simulation of the same T on a U with other sizes n, d and d_v.

    Other sizes of U that must equal the width of X are changed to the new d.
    """
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
