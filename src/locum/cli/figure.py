"""Reproduce the paper's Figure 2 by U, digit by digit.

The figure was made with 2.718 for e: --base 2.718 gives its printed errors, too. Exit code 1 if a
printed digit does not come out with base e.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from locum.cli.options import PATH, base_option, executor_option, json_option
from locum.cli.simulations import Simulation, report
from locum.files import check_target
from locum.paper.figure2 import PRINTED, Demonstration, T, X
from locum.simulators import UniversalSimulator
from locum.simulators.explain import ExplainedStep


@click.command("figure", help=__doc__)
@base_option
@click.option("--recipe", default="paper", show_default=True, help="paper, fetch, tiled or width-1.")
@executor_option
@click.option("--save", type=PATH, help="Write X, T, every step and the result to this .npz file.")
@json_option
def command(
    base: float | None, recipe: str, executor: str | None, save: Path | None, as_json: bool
) -> None:
    """Run the figure's T and X."""
    check_target(save)
    report(FigureSimulation(recipe, base), executor, save, as_json)


class FigureSimulation(Simulation):
    """The figure's T and X on U, with what the figure prints beside it."""

    titles = (*Simulation.titles, "error in the\nfigure", "printed\ndigits")

    def __init__(self, recipe: str, base: float | None) -> None:
        U = UniversalSimulator(3, 3, 3, recipe=recipe, base=base)
        super().__init__("Figure 2 of the paper, by U", T, X, U)

    @property
    def figure(self) -> Demonstration:
        """Compare what was computed with what is printed."""
        return Demonstration(self.simulator, self.steps)

    @property
    def holds(self) -> bool:
        """Tell whether U gave T(X) and every printed digit, which is claimed for base e alone."""
        return super().holds and (self.simulator.style.base is not None or self.figure.reproduced)

    def row(self, step: ExplainedStep) -> list[str]:
        """Write a step, its error in the figure, and whether its digits agree."""
        printed = PRINTED[step.name]
        agree = "all equal" if self.figure.agrees(step.name) else "not all equal"
        error = f"{printed.error:.6e}" if printed.error else "≈ 0"
        return [f"{printed.name} = {printed.formula}", *super().row(step)[1:], error, agree]

    def step_dict(self, step: ExplainedStep) -> dict[str, Any]:
        """Give a step and what the figure prints of it."""
        printed = PRINTED[step.name]
        return super().step_dict(step) | {
            "paper": printed.name,
            "figure_error": printed.error,
            "digits_agree": self.figure.agrees(step.name),
        }

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain data, for scripts."""
        return super().to_dict() | {"figure": {"reproduced": self.figure.reproduced}}
