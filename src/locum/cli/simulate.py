"""Run U, the universal simulator, as one program: T and X in, T(X) out.

T and X are drawn at random with --order, or read from FILE (.npz or .safetensors with arrays X, A,
V and, if you like, W_O, b_O, W1, W2, b1, b2, gain1, bias1, …; or what --save wrote), or from --x,
--a and --v. Each step is compared with direct computation. Without any of these, it is `locum
figure`.

`locum simulate --model FOLDER --text "…"` runs a pretrained model of the transformers library
(options: locum simulate --model FOLDER --help).
"""

from __future__ import annotations

from typing import Any

import click

from locum.cli.options import PATH, base_option, executor_option, integers, json_option
from locum.errors import InputError
from locum.files import check_target


class Simulate(click.Command):
    """The command, and the one that it hands over to where --model is among the arguments."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Let the command for trained models read its own options."""
        if any(argument.partition("=")[0] == "--model" for argument in args):
            from locum.cli.simulate_model import command as model

            return model.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("simulate", cls=Simulate, help=__doc__)
@click.argument("file", type=PATH, required=False)
@click.option("--order", callback=integers(3), metavar="n,d,d_v", help="A random T of this order.")
@click.option("--heads", type=int, help="So many heads (with --order).  [default: 1]")
@click.option("--ffn", callback=integers(2), metavar="d1,d2", help="A feed-forward (with --order).")
@click.option(
    "--seed", type=click.IntRange(0), help="Of the random numbers (with --order).  [default: 0]"
)
@click.option("--x", type=PATH, help="X, from a .npy file (or X, A and V from one .npz).")
@click.option("--a", type=PATH, help="A: d×d, or heads×d×d.")
@click.option("--v", type=PATH, help="V: d×d_v, or heads×d×d_v.")
@click.option("--kind", help="The kind of attention.  [default: softmax, or what FILE says]")
@click.option("--norm", help="none, post or pre.  [default: none, or what FILE says]")
@click.option("--mask", help="causal: queries do not attend to later rows.")
@click.option("--on", callback=integers(3), metavar="n,d,d_v", help="Run T on a larger U.")
@base_option
@click.option(
    "--recipe", help="paper, fetch, tiled, width-1 or inverse.  [default: fetch; the figure: paper]"
)
@executor_option
@click.option("--save", type=PATH, help="Write X, T, every step and the result to this .npz file.")
@json_option
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Run a T that is random or the user's, or else the paper's figure."""
    from locum.cli import figure, sources
    from locum.cli.simulations import report

    files = [options[name] for name in ("file", "x", "a", "v")]
    save = options["save"]
    if save is not None:
        if save.suffix != ".npz":
            raise InputError(f"--save: expected a .npz file, got {save}")
        check_target(save, *files)
    is_random, is_read = options["order"] is not None, any(path is not None for path in files)
    if is_random and is_read:
        raise InputError("--order draws T and X at random: expected it or files, got both")
    if not (is_random or is_read):
        of_t = (*sources.RANDOM, *sources.SAYING, "on")
        wrong = [f"--{name}" for name in of_t if options[name] is not None]
        if wrong:
            raise InputError(f"{', '.join(wrong)}: expected a T; try --order n,d,d_v or a file")
        shared = {name: options[name] for name in ("base", "executor", "save", "as_json")}
        context.invoke(figure.command, recipe=options["recipe"] or "paper", **shared)
        return
    make = sources.random_simulation if is_random else sources.read_simulation
    simulation = make(options)
    if options["on"] is not None:
        simulation = sources.on_a_larger_u(simulation, options["on"])
    report(simulation, options["executor"], save, options["as_json"])
