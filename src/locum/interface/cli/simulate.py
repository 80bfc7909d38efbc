"""Run the universal simulator U on a layer T and its input X.

--order draws T and X at random. Otherwise, FILE contains T and X: a file written with -o, or a .npz or
.safetensors file with arrays such as X, A, V and optionally W_O, b_O, W1, W2, b1, b2, gain1, bias1, ….
The options --x, --a and --v read separate files. Each step is compared with a direct computation.

Without these options, T and X are the example in Figure 2 of the paper, and every printed digit is
compared. --base 2.718 reproduces the printed errors.

`locum simulate --model FOLDER --text "…"` runs a pretrained model of the transformers library; `locum
simulate --model FOLDER --help` lists its options. Without --base, the exit code is 1 if a result
differs.
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
    """The command ``simulate``; with ``--model``, the command for pretrained models replaces it."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, with the command for pretrained models if ``--model`` is given."""
        if any(argument.partition("=")[0] == "--model" for argument in args):
            from locum.interface.cli.simulate_model import command as model

            return model.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@make_command("simulate", __doc__, cls=Simulate)
@click.argument("file", type=PATH, required=False)
@order_option("Order of a random T and X.")
@click.option("--heads", type=int, help="Number of attention heads (with --order).  [default: 1]")
@click.option(
    "--ffn", callback=integers(2), metavar="d1,d2", help="Sizes of the feed-forward (with --order)."
)
@seed_option
@click.option("--x", type=PATH, help="File of X: .npy, or .npz with X, A and V.")
@click.option("--a", type=PATH, help="File of A, of shape d×d or heads×d×d.")
@click.option("--v", type=PATH, help="File of V, of shape d×d_v or heads×d×d_v.")
@choice("--kind", KINDS, "Kind of attention.  [default: as in FILE, else softmax]")
@choice("--norm", NORMS, "Position of layer norms.  [default: as in FILE, else none]")
@choice("--mask", ["causal"], "Attention mask; causal: no attention to later rows.")
@order_option("Order of a larger U on which T runs.", "--on")
@click.option(
    "--base", callback=read_base, metavar="NUMBER", help="Base of the exponential.  [default: e]"
)
@choice("--recipe", RECIPES, "Recipe of U.  [default: fetch; for Figure 2, paper]")
@choice("--executor", EXECUTORS, "Executor that runs U.  [default: dense for small U, else auto]")
@click.option("--certify", is_flag=True, help="Certify bounds on T(X) and on rounding errors of U.")
@choice("--dtype", DTYPES, "Data type for --certify.  [default: float64]")
@output_option(".npz", text="File for X, T, all steps and the result (.npz).")
def command(output: Path | None, certify: bool, dtype: str | None, **options: Any) -> Report:
    """Simulate a random T, a T from files, or the T of the paper's Figure 2."""
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
    """Certify error bounds by ball arithmetic; for float64, compare them with the error of one
    execution.
    """
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
        yield f"the rounding error of U is at most {bound}, certified ({dtype}, dense execution)"
        yield f"the exact result is enclosed within {at_most(certified.width, '.1e')}"
        if error is not None:
            yield f"the error of one execution is {error:.1e}"

    data = {"order": [order.n, order.attention.d, order.attention.d_v], "error": error}
    holds = error is None or error <= certified.error
    return Report(data | certified.to_dict(), text, holds=holds)
