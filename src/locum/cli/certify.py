"""``locum certify``: an enclosure of U's result, and a bound on what floating point loses."""

from __future__ import annotations

from typing import Any

import click

from locum.cli.programs import json_option, print_json
from locum.cli.simulate import numbers


@click.command("certify")
@click.option("--order", callback=numbers((3,)), metavar="n,d,d_v", required=True, help="Of T.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the random numbers.  [default: 0]")
@click.option("--dtype", "kind", default="float64", show_default=True, help="float64 or float32.")
@click.option("--recipe", default="fetch", show_default=True, help="paper, fetch, tiled or width-1.")
@json_option
def command(order: tuple[int, int, int], seed: int, kind: str, recipe: str, as_json: bool) -> None:
    """U on a random T and X, in ball arithmetic: what is certain about the result.

    Prints the width of the enclosure of the true result, the certified error of dense execution, and
    the error seen in one such execution. Exit code 1 if that exceeds the certificate.
    """
    import numpy as np

    from locum.simulators import Attention, UniversalSimulator
    from locum.verification import certify

    n, d, d_v = order
    generator = np.random.default_rng(seed)
    dtype: Any = {"float32": np.float32}.get(kind, np.float64)

    def draw(*shape: int) -> Any:
        return generator.normal(size=shape).astype(dtype).astype(np.float64)

    T, X, U = (
        Attention(draw(d, d), draw(d, d_v)),
        draw(n, d),
        UniversalSimulator(n, d, d_v, recipe=recipe),
    )
    certified = certify(U, T, X, dtype=kind)
    found = U(T, X, executor="dense") if kind == "float64" else None
    seen = None if found is None else certified.seen(found)
    holds = seen is None or seen <= certified.error
    if as_json:
        print_json({"order": list(order), "seed": seed, "observed_error": seen, **certified.to_dict()})
    else:
        click.echo(f"U⟨T, X⟩ = T(X) ± {certified.error:.1e}, certified ({kind}, dense execution)")
        click.echo(f"the true result is enclosed within {certified.width:.1e}")
        if seen is not None:
            click.echo(f"the error of one execution is {seen:.1e}")
    if not holds:
        raise click.exceptions.Exit(1)
