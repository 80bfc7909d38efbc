"""Run every layer of a trained model on U, and compare what it gives with the model's own.

The model is a folder of any family of docs/models.md, or minilm; those of the BERT family give
embeddings, too. Layers and heads are counted from 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from locum.cli import output
from locum.cli.archives import npz
from locum.cli.options import PATH, integers, json_option
from locum.cli.progress import loading, progress
from locum.cli.simulate_family import TOLERANCES, require_head, simulate_family
from locum.cli.simulations import LONGEST, RUN_BY
from locum.errors import InputError
from locum.files import check_target, write_file
from locum.simulators.models.reference import TRANSFORMERS

if TYPE_CHECKING:
    from locum.simulators.models.network import HeadRun
    from locum.simulators.models.results import ModelRun

#: How close the cosine of an embedding and the model's own must be to 1.
COSINE = 0.999999
#: Texts are shown up to this many letters.
SHOWN = 44


@click.command("simulate", help=__doc__)
@click.option("--model", "folder", required=True, metavar="FOLDER", help="The folder, or minilm.")
@click.option("--text", "texts", multiple=True, required=True, help="A text; may be repeated.")
@click.option("--layers", type=int, help="Only so many of the model's first layers.")
@click.option(
    "--form",
    default="factored",
    show_default=True,
    help="How heads are parametrised: factored or paper.",
)
@click.option("--dtype", help="float32 or float64.  [default: float32 with torch, else float64]")
@click.option(
    "--executor",
    help="fast, heads or dense.  [default: fast; heads with --head: that head alone, of a BERT]",
)
@click.option("--head", callback=integers(2, 0), metavar="LAYER,HEAD", help="The head to look at.")
@click.option("--compare/--no-compare", default=True, help="With the model's own forward pass, or not.")
@click.option("--html", type=PATH, help="Write a page: attention maps, errors, similarities.")
@click.option("--save", type=PATH, help="Write embeddings and all states to this .npz file.")
@json_option
def command(**options: Any) -> None:
    """Run a model on texts."""
    from locum.simulators.models.checkpoint import is_of_bert

    check_target(options["html"])
    check_target(options["save"])
    simulate = _simulate_bert if is_of_bert(options["folder"]) else simulate_family
    simulate(**options)


def _simulate_bert(
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
    """Run a model of the BERT family, print what came of it, and exit with 1 if it is not right."""
    from locum.simulators.models.batch import Batch
    from locum.simulators.models.model import EncoderModel

    with loading(quiet=as_json):
        model = EncoderModel(folder, form=form, dtype=dtype, layers=layers)
    require_head(head, model.count, model.checkpoint.heads)
    one_head = False
    if executor in ("heads", "dense"):
        length = Batch(model, model.texts(texts), executor).U.length
        if length > LONGEST:
            if executor == "dense" or head is None:
                raise InputError(
                    f"a layer of this model is a sequence of {length:,} tokens, too long to be run "
                    "head by head; try --executor heads --head LAYER,HEAD for one of its heads"
                )
            executor, one_head = "fast", True
    with progress(model.count + 1, "layers", quiet=as_json) as advance:
        run = model.run(texts, executor=executor, compare=compare, finished=advance)
    alone = None
    if one_head and head is not None:
        from locum.simulators.models.network import run_head

        alone = run_head(run, *head)
    if html is not None:
        from locum.display.model_page import model_page

        write_file(html, model_page(run, *(head or (0, 0))))
    if save is not None:
        write_file(save, _npz(run))
    if as_json:
        output.print_json(run.to_dict() | ({} if alone is None else {"head": _head_dict(alone)}))
    else:
        _print(run)
        if alone is not None:
            _print_head(alone)
        output.say_written("Saved in", html, save)
    if not _holds(run, alone):
        raise click.exceptions.Exit(1)


def _holds(run: ModelRun, alone: HeadRun | None) -> bool:
    """Tell whether U gave what the model gives, as far as the two were compared."""
    if alone is not None and alone.error > TOLERANCES["float64"]:
        return False
    if run.comparison is None:
        return True
    tolerance = TOLERANCES[run.dtype.split(",")[0]]
    return max(run.errors) <= tolerance and min(run.cosines) >= COSINE


def _print(run: ModelRun) -> None:
    """Print what was run, how far it is from the model, and what ran where."""
    from rich.table import Table

    checkpoint, U, compared = run.model.checkpoint, run.batch.U, run.comparison
    output.print_title(
        f"{run.name}: {run.model.count} layers of {checkpoint.heads} heads, d = {checkpoint.d}, "
        f"on U; {run.dtype}"
    )
    whose = "the model" if run.compared_with == TRANSFORMERS else "our formula"
    cosine = [f"cosine of U's embedding\nto {whose}'s"] if compared else []
    rows = []
    for number, text in enumerate(run.batch.texts):
        shown = _short(text.text or " ".join(text.tokens))
        cosines = [f"{run.cosines[number]:.9f}"] if compared else []
        rows.append([str(number + 1), shown, str(len(text.numbers)), *cosines])
    output.show(output.add_rows(Table("", "text", "tokens", *cosine), rows))
    if compared is not None:
        places = ["embeddings", *(f"layer {number}" for number in range(run.model.count))]
        errors = [(place, f"{e:.2e}") for place, e in zip(places, run.errors, strict=True)]
        output.show(output.add_rows(Table("after", "greatest error of a state"), errors))
    if len(run.batch.texts) > 1:
        _print_similarities(run)
    output.say(
        f"U of order {U.order}, for every layer: {U.length:,} tokens, {U.architecture.layers} layers, "
        f"{sum(U.architecture.heads):,} heads; program {U.hash[:12]}."
    )
    if run.compared_with is not None:
        output.say(f"Compared with {run.compared_with}.")
    direct = (
        "" if compared is None else f"; {whose} itself, {compared.seconds * 1e3:.1f} ms as one batch"
    )
    groups = len(run.batch.groups)
    output.say(
        f"Time: U {run.simulated.seconds * 1e3:.1f} ms, {groups} run{'s'[: groups > 1]} a layer, "
        f"plans {run.planning * 1e3:.0f} ms{direct}."
    )
    output.say(RUN_BY.get(run.batch.executor or "fast", RUN_BY["fast"]))
    output.say_where(run.where)


def _print_similarities(run: ModelRun) -> None:
    """Print the cosine of each text to each other, by the model and by U side by side."""
    from rich.columns import Columns
    from rich.table import Table

    matrices = [("by U", run.similarities)]
    if run.comparison is not None:
        whose = "the model" if run.compared_with == TRANSFORMERS else "our formula"
        matrices.insert(0, (f"by {whose}", run.direct_similarities))
    tables = []
    for title, matrix in matrices:
        numbers = [str(number + 1) for number in range(len(matrix))]
        table = Table("", *numbers, title=f"similarity, {title}", min_width=26)
        rows = ([n, *(f"{value:.4f}" for value in row)] for n, row in zip(numbers, matrix, strict=True))
        tables.append(output.add_rows(table, rows))
    output.show(Columns(tables, padding=(0, 3)))


def _print_head(alone: HeadRun) -> None:
    report, U = alone.report, alone.simulator
    output.say(
        f"Head {alone.layer}.{alone.head} on the first text, by the heads of U themselves: "
        f"{U.length:,} tokens, {report.heads:,} heads, {report.rows:,} rows, {report.pairs:,} pairs "
        f"scored in {alone.seconds:.1f} s; it differs from direct computation by at most "
        f"{alone.error:.2e}."
    )


def _head_dict(alone: HeadRun) -> dict[str, Any]:
    report = alone.report
    return {
        "layer": alone.layer,
        "head": alone.head,
        "tokens": alone.simulator.length,
        "heads": report.heads,
        "rows": report.rows,
        "pairs": report.pairs,
        "seconds": alone.seconds,
        "error": alone.error,
    }


def _npz(run: ModelRun) -> bytes:
    """Write embeddings and all states as a .npz file."""
    arrays = {"embeddings": run.embeddings, "similarities": run.similarities}
    for number, states in enumerate(run.states):
        place = "embeddings" if number == 0 else f"layer {number - 1}"
        for text, state in enumerate(states, start=1):
            arrays[f"text {text}, {place}"] = state
    if run.comparison is not None:
        arrays |= {"direct_embeddings": run.comparison.embeddings, "errors": np.array(run.errors)}
    return npz(arrays)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
