"""Run a folder of any family but BERT on U, and compare its states with transformers' own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.cli import output
from locum.cli.archives import npz
from locum.cli.progress import loading, progress
from locum.cli.simulations import LONGEST
from locum.errors import InputError
from locum.files import write_file

if TYPE_CHECKING:
    from locum.simulators.models.families.comparing import ComparedRun
    from locum.simulators.models.families.running import Model

#: How far a state of a BERT may be from the model's own, in each dtype; of other families, an output,
#: relative to its greatest number.
TOLERANCES = {"float32": 1e-4, "float64": 1e-9}


def simulate_family(
    folder: str,
    texts: tuple[str, ...],
    *,
    layers: int | None,
    form: str,
    dtype: str | None,
    executor: str | None,
    head: tuple[int, int] | None,
    compare: bool,
    html: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Run the texts through the model, print what came of it, and exit with 1 if it is not right."""
    from locum.simulators.models.families.comparing import compared_run
    from locum.simulators.models.families.running import Model

    with loading(quiet=as_json):
        model = Model(folder, form=form, dtype=dtype, layers=layers)
    if model.description.encoder is not None:
        raise InputError(
            f"{folder} has an encoder and a decoder, which needs tokens of its own: try locum "
            "generate, or locum.simulate with decoder_input_ids"
        )
    stack = model.description.stack
    count = len(stack.layers)
    require_head(head, count, stack.heads)
    if head is not None and html is None:
        raise InputError("--head chooses what the page shows first: expected --html beside it")
    if executor in ("heads", "dense"):
        _require_short(model, texts)
    with progress(count, "layers", quiet=as_json) as advance:
        run = compared_run(
            model,
            texts,
            executor=executor,
            compare=compare,
            attentions=html is not None,
            finished=advance,
        )
    kind = str(model.kind.dtype).removeprefix("torch.")
    if html is not None:
        from locum.display.model_page import family_page

        write_file(html, family_page(run, *(head or (0, 0))))
    if save is not None:
        write_file(save, npz(dict(run.outputs)))
    errors, of_states = run.errors, run.state_errors
    summary: dict[str, Any] = {
        "model": folder,
        "family": model.description.family,
        "dtype": kind,
        "layers": count,
        "texts": [{"text": text.text, "tokens": len(text.numbers)} for text in run.texts],
        "outputs": {name: list(array.shape) for name, array in run.outputs.items()},
        "compared_with": run.compared_with,
        "errors": errors,
        "state_errors": of_states,
        "where": [list(part) for part in model.where],
    }
    if as_json:
        output.print_json(summary)
    else:
        _print(summary, run)
        output.say_written("Saved in", html, save)
    if errors and max(*errors.values(), *(of_states or ())) > TOLERANCES[kind]:
        raise click.exceptions.Exit(1)


def require_head(head: tuple[int, int] | None, layers: int, heads: int) -> None:
    """Refuse a head that the model does not have."""
    if head is not None and (head[0] >= layers or head[1] >= heads):
        raise InputError(
            f"--head: expected LAYER < {layers} and HEAD < {heads}, got {head[0]},{head[1]}"
        )


def _require_short(model: Model, texts: Sequence[str]) -> None:
    """Refuse to run layers head by head that are too long for it."""
    from locum.simulators.models.batch import simulator_of

    stack = model.description.stack
    longest = max(len(text.numbers) for text in model.texts(texts))
    length = simulator_of(stack.layers[0].order(longest)).length
    if length > LONGEST:
        raise InputError(
            f"a layer of this model is a sequence of {length:,} tokens, too long to be run head by "
            "head: expected --executor fast (of BERT and DistilBERT, --head runs one head)"
        )


def _print(summary: dict[str, Any], run: ComparedRun) -> None:
    from rich.table import Table

    output.print_title(
        f"{summary['model']}: {summary['family']}, {summary['layers']} layers, on U; {summary['dtype']}"
    )
    rows = [[text["text"], str(text["tokens"])] for text in summary["texts"]]
    output.show(output.add_rows(Table("text", "tokens"), rows))
    errors = summary["errors"] or {}
    rows = [
        [name, "×".join(map(str, shape)), f"{errors[name]:.2e}" if name in errors else ""]
        for name, shape in summary["outputs"].items()
    ]
    output.show(output.add_rows(Table("output", "shape", "greatest relative error"), rows))
    if summary["state_errors"] is not None:
        places = ["embeddings", *(f"layer {number}" for number in range(summary["layers"]))]
        pairs = zip(places, summary["state_errors"], strict=False)
        rows = [[place, f"{error:.2e}"] for place, error in pairs]
        output.show(output.add_rows(Table("after", "greatest relative error of a state"), rows))
    if summary["compared_with"]:
        output.say(f"Compared with {summary['compared_with']}.")
    output.say_where(summary["where"])
