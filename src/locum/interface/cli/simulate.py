"""Run U, the universal simulator, as one program: T and X in, T(X) out.

T and X are drawn at random with --order, or read from FILE (.npz or .safetensors with arrays X, A,
V and, if you like, W_O, b_O, W1, W2, b1, b2, gain1, bias1, …; or what -o wrote), or from --x,
--a and --v. Each step is compared with direct computation. Without any of these, T and X are those of
the paper's Figure 2, and every printed digit is compared; --base 2.718 gives its printed errors.

`locum simulate --model FOLDER --text "…"` runs a pretrained model of the transformers library
(options: locum simulate --model FOLDER --help). Exit code 1 if a result differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli.options import (
    DTYPES,
    EXECUTORS,
    KINDS,
    NORMS,
    PATH,
    RECIPES,
    choice,
    integers,
    order_option,
    output_option,
    read_base,
    seed_option,
)
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.text import at_most

if TYPE_CHECKING:
    from locum.interface.cli.simulations import Simulation


class Simulate(click.Command):
    """The command, and the one for pretrained models if --model is among the arguments."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Let the command for pretrained models read its own options."""
        if any(argument.partition("=")[0] == "--model" for argument in args):
            from locum.interface.cli.simulate_model import command as model

            return model.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@make_command("simulate", __doc__, cls=Simulate)
@click.argument("file", type=PATH, required=False)
@order_option("Order of a random T.")
@click.option("--heads", type=int, help="Number of heads (with --order).  [default: 1]")
@click.option("--ffn", callback=integers(2), metavar="d1,d2", help="A feed-forward (with --order).")
@seed_option
@click.option("--x", type=PATH, help="X, from a .npy file (or X, A and V from one .npz).")
@click.option("--a", type=PATH, help="A: d×d, or heads×d×d.")
@click.option("--v", type=PATH, help="V: d×d_v, or heads×d×d_v.")
@choice("--kind", KINDS, "Kind of attention.  [default: softmax, or FILE's]")
@choice("--norm", NORMS, "Normalisation.  [default: none, or FILE's]")
@choice("--mask", ["causal"], "Queries do not attend to later rows.")
@order_option("Order of a larger U that runs T.", "--on")
@click.option(
    "--base", callback=read_base, metavar="NUMBER", help="Base of the exponential.  [default: e]"
)
@choice("--recipe", RECIPES, "Form of U.  [default: fetch; Figure 2: paper]")
@choice("--executor", EXECUTORS, "Executor.  [default: dense while that is quick, else auto]")
@click.option("--certify", is_flag=True, help="Enclose T(X), and bound the rounding errors of U.")
@choice("--dtype", DTYPES, "Type of --certify.  [default: float64]")
@output_option(".npz", text="File for X, T, every step and the result.")
def command(output: Path | None, certify: bool, dtype: str | None, **options: Any) -> Report:
    """Run a T that is random or the user's, or else the paper's figure."""
    from locum.interface.cli.simulations import make_simulation

    if certify:
        given = {"--on": options["on"], "--executor": options["executor"], "--output": output}
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise InputError(f"--certify: expected no {', '.join(wrong)} with it")
        return _certify(make_simulation(options), dtype or "float64")
    if dtype is not None:
        raise InputError("--dtype: expected --certify with it")
    simulation = make_simulation(options)
    simulation.run(options["executor"])
    files = {output: simulation.save}
    return Report(simulation.to_dict(), simulation.text, holds=simulation.holds, files=files)


def _certify(simulation: Simulation, dtype: str) -> Report:
    """Run U in ball arithmetic and compare one execution with the certificate."""
    import numpy as np

    from locum.interface.cli.archives import arrays_of, known_arrays, module_of
    from locum.proofs import certify

    U, T, X = simulation.simulator, simulation.T, simulation.X
    if dtype == "float32":
        rounded = {
            name: array.astype(np.float32).astype(np.float64) if array.dtype.kind == "f" else array
            for name, array in arrays_of(T).items()
        }
        T = module_of(known_arrays(rounded, "T"))
        X = X.astype(np.float32).astype(np.float64)
    certified = certify(U, T, X, dtype=dtype)
    error = certified.seen(U(T, X, executor="dense")) if dtype == "float64" else None
    order = U.order

    def text() -> Iterator[str]:
        bound = at_most(certified.error, ".1e")
        yield f"U⟨T, X⟩ = T(X) ± {bound}, certified ({dtype}, dense execution)"
        yield f"the true result is enclosed within {at_most(certified.width, '.1e')}"
        if error is not None:
            yield f"the error of one execution is {error:.1e}"

    data = {"order": [order.n, order.attention.d, order.attention.d_v], "error": error}
    holds = error is None or error <= certified.error
    return Report(data | certified.to_dict(), text, holds=holds)
