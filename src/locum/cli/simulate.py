"""``locum simulate``: U at work, on the paper's figure, on a random T or on yours."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.cli.programs import json_option, print_json
from locum.cli.progress import progress
from locum.errors import InputError
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.cli.simulations import Simulation

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
@click.option("--heads", type=int, help="So many heads (with --order).  [default: 1]")
@click.option("--ffn", callback=numbers((2,)), metavar="d1,d2", help="With a feed-forward.")
@click.option("--norm", help="none, post or pre.  [default: none, or what FILE says]")
@click.option("--mask", help="causal: no row sees those after it.")
@click.option("--seed", type=click.IntRange(0), help="Of the random numbers.  [default: 0]")
@click.option("--x", type=FILE, help="X, from a .npy file (or X, A and V from one .npz).")
@click.option("--a", type=FILE, help="A: d×d, or heads×d×d.")
@click.option("--v", type=FILE, help="V: d×d_v, or heads×d×d_v.")
@click.option("--kind", help="The kind of attention.  [default: softmax, or what FILE says]")
@click.option(
    "--recipe", help="paper, fetch, tiled, width-1 or inverse.  [default: fetch; the figure: paper]"
)
@click.option(
    "--executor", help="dense, fast, heads or auto.  [default: dense while that is quick, else auto]"
)
@click.option(
    "--model", help="A trained encoder: a folder of the BERT family, or minilm (with --text)."
)
@click.option("--text", "texts", multiple=True, help="A text for the model; may be repeated.")
@click.option("--layers", type=int, help="Only so many of the model's first layers.")
@click.option("--form", help="How heads are parametrised: factored or paper.  [default: factored]")
@click.option("--dtype", help="float32 or float64.  [default: float32 with torch, else float64]")
@click.option(
    "--head", callback=numbers((2,)), metavar="LAYER,HEAD", help="The head to look at, from 1."
)
@click.option("--compare/--no-compare", default=True, help="With the model's own forward pass, or not.")
@click.option("--html", type=FILE, help="Write a page: attention maps, errors, similarities.")
@click.option("--save", type=FILE, help="Write X, T, every step and the result to this .npz file.")
@json_option
def command(**options: Any) -> None:
    """U, the universal simulator, as one program: T and X in, T(X) out.

    Without arguments it runs the paper's Figure 2. With --order it draws T and X at random; with
    FILE (.npz or .safetensors with arrays X, A, V and, if you like, W_O, b_O, W1, W2, b1, b2, gain1,
    bias1, …; or what --save wrote), or with --x, --a and --v, it takes yours. Each step is compared
    with direct computation.

    With --model and --text it runs every layer of a trained encoder, and compares its embeddings.
    """
    from locum.cli import models, simulations

    save, as_json = options["save"], options["as_json"]
    for path in (save, options["html"]):
        if path is not None:
            check_target(path)
    if options["model"] is not None:
        models.run(options)
        return
    models.refuse_without_model(options)
    try:
        simulation = simulations.chosen(options)
        bar = nullcontext(None) if as_json else progress(simulation.count, "steps")
        with _warnings_in_a_line(), bar as advance:
            simulation.run(options["executor"], advance or (lambda name: None))
    except MemoryError:
        raise InputError(
            "this T, or the U for it, does not fit into the memory: take a smaller order"
        ) from None
    if save is not None:
        buffer = io.BytesIO()
        simulation.save(buffer)
        write_file(save, buffer.getvalue())
    if as_json:
        print_json(simulation.to_dict())
    else:
        _show(simulation)
        if save is not None:
            click.echo(f"Saved in {save}.")
    if not simulation.holds(TOLERANCE):
        raise click.exceptions.Exit(1)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Warnings as the errors of the command look, without lines of source code."""

    def show(message: Warning | str, *rest: object, **named: object) -> None:
        click.echo(f"locum: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


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
