"""Print the program of a construction as a Coq term: locum export --coq matmul_fetch 3 3 4.

The term is of the type sop that proofs/Rasp.v defines; `make coq` checks that it is the definition that
the theorem for all shapes speaks about. Without NAME, the constructions are listed.
"""

from __future__ import annotations

import click

from locum.cli import output
from locum.cli.options import json_option
from locum.errors import InputError


@click.command("export", help=__doc__)
@click.option("--coq", is_flag=True, required=True, help="As a term of proofs/Rasp.v.")
@click.argument("name", required=False)
@click.argument("shape", nargs=-1, type=int)
@json_option
def command(coq: bool, name: str | None, shape: tuple[int, ...], as_json: bool) -> None:
    """Print one term, or the list of constructions."""
    from locum.verification.coq.terms import coq_term
    from locum.verification.coq.tie_table import BY_NAME, TIES

    if name is None:
        rows = [
            {"name": tie.name, "shape": list(tie.arguments), "theorem": tie.theorem} for tie in TIES
        ]
        if as_json:
            output.print_json({"constructions": rows})
        else:
            for tie in TIES:
                output.say(f"{tie.name} {' '.join(tie.arguments)}: {tie.theorem} in proofs/{tie.file}")
        return
    if name not in BY_NAME:
        raise InputError(f"expected one of {', '.join(BY_NAME)}, got {name!r}")
    tie = BY_NAME[name]
    if len(shape) != len(tie.arguments) or min(shape) < 1:
        sizes = " ".join(tie.arguments)
        raise InputError(f"{name}: expected the sizes {sizes}, integers ≥ 1, got {shape}")
    term = coq_term(tie.program(*shape))
    if as_json:
        output.print_json({"name": name, "shape": list(shape), "theorem": tie.theorem, "term": term})
    else:
        output.say(term)
