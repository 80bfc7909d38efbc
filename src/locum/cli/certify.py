"""Enclose U's result on a random T and X, and certify what floating point can lose.

Prints the width of the enclosure of the true result, the certified error of dense execution, and
the error seen in one such execution. Exit code 1 if that exceeds the certificate.
"""

from __future__ import annotations

from typing import Any

import click

from locum.cli import output
from locum.cli.options import integers, json_option
from locum.shortening import at_most


@click.command("certify", help=__doc__)
@click.option("--order", callback=integers(3), metavar="n,d,d_v", required=True, help="The order of T.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random numbers."
)
@click.option("--dtype", default="float64", show_default=True, help="float64 or float32.")
@click.option("--recipe", default="fetch", show_default=True, help="paper, fetch, tiled or width-1.")
@json_option
def command(order: tuple[int, int, int], seed: int, dtype: str, recipe: str, as_json: bool) -> None:
    """Run U in ball arithmetic and compare one execution with the certificate."""
    import numpy as np

    from locum.simulators import Attention, UniversalSimulator
    from locum.verification import certify

    n, d, d_v = order
    generator = np.random.default_rng(seed)
    number: Any = {"float32": np.float32}.get(dtype, np.float64)

    def draw(*shape: int) -> Any:
        return generator.normal(size=shape).astype(number).astype(np.float64)

    T, X = Attention(draw(d, d), draw(d, d_v)), draw(n, d)
    U = UniversalSimulator(n, d, d_v, recipe=recipe)
    certified = certify(U, T, X, dtype=dtype)
    seen = certified.seen(U(T, X, executor="dense")) if dtype == "float64" else None
    if as_json:
        settings = {"order": list(order), "seed": seed, "observed_error": seen}
        output.print_json(settings | certified.to_dict())
    else:
        error = at_most(certified.error, ".1e")
        output.say(f"U⟨T, X⟩ = T(X) ± {error}, certified ({dtype}, dense execution)")
        output.say(f"the true result is enclosed within {at_most(certified.width, '.1e')}")
        if seen is not None:
            output.say(f"the error of one execution is {seen:.1e}")
    if seen is not None and seen > certified.error:
        raise click.exceptions.Exit(1)
