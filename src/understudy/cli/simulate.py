"""``understudy simulate``: U at work, on the paper's figure, on a random T or on yours."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from understudy.cli.programs import json_option, print_json
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.cli.simulations import Simulation

#: Results this far off, relative to the result, are no rounding errors.
TOLERANCE = 1e-9
FILE = click.Path(path_type=Path)


def numbers(count: tuple[int, ...]) -> Callable[..., tuple[int, ...] | None]:
    """A callback that reads whole numbers separated by commas."""

    def read(context: click.Context, option: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            found = tuple(int(part) for part in text.split(","))
        except ValueError:
            found = ()
        if len(found) not in count or min(found, default=0) < 1:
            wanted = " or ".join(map(str, count))
            raise InputError(
                f"--{option.name} takes {wanted} positive whole numbers separated by commas, "
                f"but got {text!r}"
            )
        return found

    return read


def _base(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """The base of the exponential: a number, or e."""
    if text is None or text == "e":
        return None
    try:
        base = float(text)
    except ValueError:
        base = 0.0
    if not (base > 0 and math.isfinite(base)):
        raise InputError(f"--base is a positive number, or e, but got {text!r}")
    return base


@click.command("simulate")
@click.argument("file", type=FILE, required=False)
@click.option("--base", callback=_base, metavar="NUMBER", help="Base of the exponential.  [default: e]")
@click.option("--order", callback=numbers((3,)), metavar="n,d,d_v", help="A random T of this order.")
@click.option(
    "--on", callback=numbers((3,)), metavar="n,d,d_v", help="Run T on a larger U of this order."
)
@click.option("--heads", default=1, show_default=True, help="So many heads (with --order).")
@click.option("--ffn", callback=numbers((2,)), metavar="d1,d2", help="With a feed-forward.")
@click.option("--norm", default="none", show_default=True, help="none, post or pre.")
@click.option("--mask", help="causal: no row sees those after it.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the random numbers.  [default: 0]")
@click.option("--x", type=FILE, help="X, from a .npy file (or X, A and V from one .npz).")
@click.option("--a", type=FILE, help="A: d×d, or heads×d×d.")
@click.option("--v", type=FILE, help="V: d×d_v, or heads×d×d_v.")
@click.option("--kind", default="softmax", show_default=True, help="The kind of attention.")
@click.option("--recipe", help="paper, fetch, tiled or inverse.  [default: fetch; the figure: paper]")
@click.option(
    "--executor", help="dense, fast, heads or auto.  [default: dense while that is quick, else auto]"
)
@click.option("--save", type=FILE, help="Write X, T, every step and the result to this .npz file.")
@json_option
def command(**options: Any) -> None:
    """U, the universal simulator, as one program: T and X in, T(X) out.

    Without arguments it runs the paper's Figure 2. With --order it draws T and X at random; with
    FILE (.npz or .safetensors with arrays X, A, V and, if you like, W_O, b_O, W1, W2, b1, b2), or with
    --x, --a and --v, it takes yours. Each step is compared with direct computation.
    """
    from understudy.cli import simulations

    save, as_json = options["save"], options["as_json"]
    if save is not None and not save.resolve().parent.is_dir():
        raise InputError(f"cannot write {save}: there is no folder {save.resolve().parent}")
    simulation = simulations.chosen(options)
    with nullcontext(None) if as_json else _progress(simulation.count) as advance:
        simulation.run(options["executor"], advance or (lambda name: None))
    if save is not None:
        from understudy.display.files import write_whole

        buffer = io.BytesIO()
        simulation.save(buffer)
        write_whole(save, buffer.getvalue())
    if as_json:
        print_json(simulation.to_dict())
    else:
        _show(simulation)
        if save is not None:
            click.echo(f"Saved in {save}.")
    if not simulation.holds(TOLERANCE):
        raise click.exceptions.Exit(1)


def _progress(steps: int) -> AbstractContextManager[Any]:
    """A bar of the steps on the terminal, once they have taken a second."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    class Late:
        """Starts to show when a second has passed."""

        def __enter__(self) -> Callable[[str], None]:
            self.console = Console(stderr=True)
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} steps"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task("running U", total=steps)
            self.timer = threading.Timer(1.0, self.show)
            self.shown = False
            if self.console.is_terminal:
                self.timer.start()
            return self.advance

        def show(self) -> None:
            self.shown = True
            self.bar.start()

        def advance(self, name: str) -> None:
            self.bar.update(self.task, advance=1, description=f"running U, {name} done")

        def __exit__(self, *problem: object) -> None:
            self.timer.cancel()
            if self.timer.is_alive():
                self.timer.join()  # it may be starting the bar at this very moment
            if self.shown:
                self.bar.stop()

    return Late()


def _show(simulation: Simulation) -> None:
    """Every step as a table, then what U is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(show_lines=True)
    table.add_column("step", overflow="fold")
    table.add_column("matrix", no_wrap=True)
    table.add_column("error against\nNumPy", justify="right", no_wrap=True)
    if simulation.figure is not None:
        table.add_column("error in the\nfigure", justify="right", no_wrap=True)
        table.add_column("printed\ndigits")
    for row in simulation.rows():
        table.add_row(*(escape(cell) for cell in row))
    console.print(simulation.title, style="bold", highlight=False, markup=False)
    console.print(table)
    console.print(simulation.summary, highlight=False, markup=False, soft_wrap=True)
