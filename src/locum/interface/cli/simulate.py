"""Run the universal simulator U on a layer T and its input X.

--order draws T and X at random. Each step is compared with a direct computation.

Without --order, T and X are the example in Figure 2 of the paper, and every printed digit is compared.
--base 2.718 reproduces the printed errors. Without --base, the exit code is 1 if a result differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli.options import (
    DTYPES,
    EXECUTORS,
    KINDS,
    NORMS,
    RECIPES,
    choice,
    integers,
    order_option,
    read_base,
    seed_option,
)
from locum.interface.cli.runner import Report
from locum.interface.cli.runner import command as make_command
from locum.text import at_most

if TYPE_CHECKING:
    from locum.interface.cli.simulations import Simulation


@make_command("simulate", __doc__)
@order_option("Order of a random T and X.")
@click.option("--heads", type=int, help="Number of attention heads (with --order).  [default: 1]")
@click.option(
    "--ffn", callback=integers(2), metavar="d1,d2", help="Sizes of the feed-forward (with --order)."
)
@seed_option
@choice("--kind", KINDS, "Kind of attention.  [default: softmax]")
@choice("--norm", NORMS, "Position of layer norms.  [default: none]")
@choice("--mask", ["causal"], "Attention mask; causal: no attention to later rows.")
@order_option("Order of a larger U on which T runs.", "--on")
@click.option(
    "--base", callback=read_base, metavar="NUMBER", help="Base of the exponential.  [default: e]"
)
@choice("--recipe", RECIPES, "Recipe of U.  [default: fetch; for Figure 2, paper]")
@choice("--executor", EXECUTORS, "Executor that runs U.  [default: dense for small U, else auto]")
@click.option("--certify", is_flag=True, help="Certify bounds on T(X) and on rounding errors of U.")
@choice("--dtype", DTYPES, "Data type for --certify.  [default: float64]")
def command(certify: bool, dtype: str | None, **options: Any) -> Report:
    """Simulate a random T, or the T of the paper's Figure 2."""
    from locum.interface.cli.simulations import make_simulation

    if certify:
        wrong = [f"--{name}" for name in ("on", "executor") if options[name] is not None]
        if wrong:
            raise InputError(f"--certify: expected no {', '.join(wrong)} with it")
        return _certify(make_simulation(options), dtype or "float64")
    if dtype is not None:
        raise InputError("--dtype: expected --certify with it")
    simulation = make_simulation(options)
    simulation.run(options["executor"])
    return Report(simulation.to_dict(), simulation.text, holds=simulation.holds)


def _certify(simulation: Simulation, dtype: str) -> Report:
    """Certify error bounds by ball arithmetic; for float64, compare them with the error of one
    execution.
    """
    from locum.proofs import certify

    if dtype == "float32":
        simulation.round_to_float32()
    U, T, X = simulation.simulator, simulation.T, simulation.X
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
