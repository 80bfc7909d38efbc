"""Run U on a T and an X, step by step, and report what came of it: table, JSON, .npz file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np

from locum.cli import output
from locum.cli.archives import arrays_of, npz
from locum.cli.matrices import Numbers
from locum.cli.progress import progress
from locum.execution.arrays import numpy_of
from locum.files import write_file
from locum.shortening import at_most
from locum.simulators import Module, UniversalSimulator
from locum.simulators.explain import ExplainedStep, Explanation, explain

#: Results further off than this, relative to the result, are not rounding errors.
TOLERANCE = 1e-9
#: Matrices of more rows or columns are shown in part.
SHOWN = 6
#: Up to so many pairs of positions, over all heads and steps, U is run literally by default.
LITERAL = 5_000_000
#: How U was run, in words.
RUN_BY = {
    "dense": "Run by dense execution: every head, literally.",
    "heads": "Run by its heads: every row that is read, as attention over all keys.",
    "fast": "Run by the fast executor: the same program by products of matrices, not head by head.",
}


class Simulation:
    """A T, an X and the U that runs them; ``embedded``: T is smaller than U, and set into it."""

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
        """Count the steps to run."""
        return 1 if self.embedded else len(self.simulator.each_step())

    def run(self, executor: str | None, finished: Callable[[str], None]) -> None:
        """Run all steps, one after another; of an embedded T, the result alone."""
        U, T, X = self.simulator, self.T, self.X
        if executor is None:  # dense, which is the meaning, while that is quick
            pairs = self.count * sum(U.architecture.heads) * U.length**2
            executor = "dense" if pairs <= LITERAL else "auto"
        self.executor = executor
        if self.embedded:
            step = ExplainedStep("output", numpy_of(U.embed(T, X, executor=executor)), T(X))
            self.steps = Explanation((step,))
        else:
            self.steps = explain(U, T, X, executor=executor, finished=finished)

    @property
    def holds(self) -> bool:
        """Tell whether U gave T(X), which is claimed for base e alone."""
        if self.simulator.style.base is not None:
            return True
        size = max(1.0, float(np.abs(self.steps.steps[-1].direct).max()))
        return self.steps.error <= TOLERANCE * size

    def row(self, step: ExplainedStep) -> list[str]:
        """Write a step as a row of the table."""
        return [step.name, _shown(step.matrix), f"{step.error:.6e}"]

    @property
    def summary(self) -> str:
        """Say what U is, and how well it did."""
        U, style = self.simulator, self.simulator.style
        base = "e" if style.base is None else f"{style.base:g}"
        return (
            f"U of order {U.order}: {U.length} tokens, {U.architecture}; recipe {style.recipe}, base "
            f"{base}.\n{RUN_BY.get(self.executor, RUN_BY['fast'])}\n"
            f"U(⟨T, X⟩) differs from T(X) by at most {at_most(self.steps.error, '.6e')}."
        )

    def step_dict(self, step: ExplainedStep) -> dict[str, Any]:
        """Give a step as plain data."""
        return step.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain data, for scripts."""
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

    def to_npz(self) -> bytes:
        """Write X, T, every step and the result as a .npz file, which can be read again."""
        last = self.steps.steps[-1]
        arrays = {"X": numpy_of(self.X), **arrays_of(self.T)}
        arrays |= {"result": last.matrix, "direct": last.direct}
        arrays |= {f"step {step.name}": step.matrix for step in self.steps}
        return npz(arrays)


def report(simulation: Simulation, executor: str | None, save: Path | None, as_json: bool) -> None:
    """Run a simulation, save and print it; exit code 1 if U did not give T(X)."""
    bar = nullcontext(lambda name: None) if as_json else progress(simulation.count, "steps")
    with bar as advance:
        simulation.run(executor, advance)
    if save is not None:
        write_file(save, simulation.to_npz())
    if as_json:
        output.print_json(simulation.to_dict())
    else:
        _print(simulation)
        output.say_written("Saved in", save)
    if not simulation.holds:
        raise click.exceptions.Exit(1)


def _print(simulation: Simulation) -> None:
    """Print every step as a table, then what U is."""
    from rich.table import Table

    table = Table(show_lines=True)
    for title in simulation.titles:
        is_error = title.startswith("error")
        table.add_column(
            title,
            justify="right" if is_error else "left",
            no_wrap=is_error or title == "matrix",
            overflow="fold",
            min_width=max(map(len, title.split("\n"))),
        )
    output.print_title(simulation.title)
    output.show(output.add_rows(table, map(simulation.row, simulation.steps)))
    output.say(simulation.summary)


def _shown(entries: Numbers) -> str:
    """Write a matrix with three digits, in part if it is large."""
    rows, columns = entries.shape
    part = entries[:SHOWN, :SHOWN]
    width = max(len(f"{value:.3f}") for value in part.ravel())
    text = "\n".join(
        " ".join(f"{value:{width}.3f}" for value in row) + (" …" if columns > SHOWN else "")
        for row in part
    )
    return text + (f"\n… ({rows}×{columns})" if rows > SHOWN or columns > SHOWN else "")
