"""``locum simulate --model``: a trained encoder on U, layer by layer, and what came of it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from locum.cli.programs import print_json
from locum.cli.progress import progress
from locum.cli.simulations import RUN_BY
from locum.errors import InputError
from locum.files import write_file

if TYPE_CHECKING:
    from rich.console import Console

    from locum.simulators.models.network import HeadRun
    from locum.simulators.models.results import ModelRun

#: Options that belong to a model, with their defaults, and options that do not.
OWN = {
    "texts": (),
    "layers": None,
    "form": None,
    "dtype": None,
    "head": None,
    "html": None,
    "compare": True,
}
OTHERS = {
    "file": None, "base": None, "order": None, "on": None, "heads": None, "ffn": None, "norm": None,
    "mask": None, "seed": None, "x": None, "a": None, "v": None, "kind": None, "recipe": None,
}  # fmt: skip
#: How far a state may be from the model's own, in each kind of number; and how close embeddings must
#: be.
TOLERANCES = {"float32": 1e-4, "float64": 1e-9}
COSINE = 0.999999
#: Longer sequences are not run head by head: one layer would take hours.
LONGEST = 30_000
#: Texts are shown up to this many letters.
SHOWN = 44


def refuse_without_model(options: Mapping[str, Any]) -> None:
    """Options of a model make no sense without one."""
    wrong = [_option(name) for name, default in OWN.items() if options[name] != default]
    if wrong:
        raise InputError(f"{', '.join(wrong)} needs --model: a folder of the BERT family, or minilm")


def run(options: Mapping[str, Any]) -> None:
    """Everything that ``--model`` asks for."""
    from locum.simulators.models.batch import Batch
    from locum.simulators.models.model import EncoderModel

    wrong = [_option(name) for name, default in OTHERS.items() if options[name] != default]
    if wrong:
        raise InputError(f"--model is run on texts: {', '.join(wrong)} does not go with it")
    if not options["texts"]:
        raise InputError("--model is run on texts: give one or more, --text '…'")
    model = EncoderModel(
        options["model"],
        form=options["form"] or "factored",
        dtype=options["dtype"],
        layers=options["layers"],
    )
    head = _head(options["head"], model.count, model.checkpoint.heads)
    executor, literally = options["executor"], False
    if executor in ("heads", "dense"):
        batch = Batch(model, model.texts(options["texts"]), executor)
        if batch.U.length > LONGEST:
            if executor == "dense" or head is None:
                raise InputError(
                    f"a layer of this model is a sequence of {batch.U.length:,} tokens, too long to be "
                    "run head by head: --executor heads --head LAYER,HEAD runs one head of it so"
                )
            executor, literally = "fast", True
    with (
        nullcontext(lambda name: None)
        if options["as_json"]
        else progress(model.count + 1, "layers") as done
    ):
        found = model.run(
            options["texts"], executor=executor, compare=options["compare"], finished=done
        )
    alone = None
    if literally and head is not None:
        from locum.simulators.models.network import run_head

        alone = run_head(found, *head)
    _report(found, alone, options, head)
    if not _holds(found, alone):
        raise click.exceptions.Exit(1)


def _report(
    found: ModelRun, alone: HeadRun | None, options: Mapping[str, Any], head: tuple[int, int] | None
) -> None:
    """Files, then one JSON object or tables."""
    written = []
    if options["html"] is not None:
        from locum.display.model_page import model_page

        layer, number = head or (0, 0)
        write_file(options["html"], model_page(found, layer, number))
        written.append(options["html"])
    if options["save"] is not None:
        write_file(options["save"], _saved(found))
        written.append(options["save"])
    if options["as_json"]:
        print_json(found.to_dict() | ({} if alone is None else {"head": _head_dict(alone)}))
        return
    from rich.console import Console

    console = Console()
    _show(console, found)
    if alone is not None:
        _show_head(console, alone)
    for path in written:
        click.echo(f"Saved in {path}.")


def _holds(found: ModelRun, alone: HeadRun | None) -> bool:
    """Whether U gave what the model gives, as far as that was looked at."""
    if alone is not None and alone.error > TOLERANCES["float64"]:
        return False
    if found.comparison is None:
        return True
    tolerance = TOLERANCES[found.dtype.split(",")[0]]
    return max(found.errors) <= tolerance and min(found.cosines) >= COSINE


def _show(console: Console, found: ModelRun) -> None:
    """What was run, how far it is from the model, and what ran where."""
    from rich.markup import escape
    from rich.table import Table

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)

    checkpoint, U, compared = found.model.checkpoint, found.batch.U, found.comparison
    say(
        f"{found.name}: {found.model.count} layers of {checkpoint.heads} heads, d = {checkpoint.d}, "
        f"on U; {found.dtype}",
        "bold",
    )
    texts = Table(
        "", "text", "tokens", *(["cosine of U's embedding\nto the model's"] if compared else [])
    )
    for number, text in enumerate(found.batch.texts, start=1):
        row = [str(number), escape(_short(text.text or " ".join(text.tokens))), str(len(text.numbers))]
        texts.add_row(*row, *([f"{found.cosines[number - 1]:.9f}"] if compared else []))
    console.print(texts)
    if compared is not None:
        errors = Table("after", "greatest error of a state")
        for number, error in enumerate(found.errors):
            errors.add_row(f"layer {number}" if number else "embeddings", f"{error:.2e}")
        console.print(errors)
    if len(found.batch.texts) > 1:
        _show_similarities(console, found)
    say(
        f"U of order {U.order}, for every layer: {U.length:,} tokens, {U.architecture.layers} layers, "
        f"{sum(U.architecture.heads):,} heads; program {U.hash[:12]}."
    )
    direct = (
        "" if compared is None else f"; the model itself, {compared.seconds * 1e3:.1f} ms as one batch"
    )
    say(
        f"Time: U {found.simulated.seconds * 1e3:.1f} ms, text by text, plans "
        f"{found.planning * 1e3:.0f} ms{direct}."
    )
    say(RUN_BY.get(found.batch.executor or "fast", RUN_BY["fast"]))
    for where, what in found.where:
        say(f"  {where + ':':6} {what}")


def _show_similarities(console: Console, found: ModelRun) -> None:
    """The cosine of each text to each other, by the model and by U side by side."""
    from rich.columns import Columns
    from rich.table import Table

    tables = []
    both = [("by U", found.similarities)]
    if found.comparison is not None:
        both.insert(0, ("by the model", found.direct_similarities))
    for title, matrix in both:
        table = Table(
            "", *(str(k + 1) for k in range(len(matrix))), title=f"similarity, {title}", min_width=26
        )
        for number, row in enumerate(matrix, start=1):
            table.add_row(str(number), *(f"{value:.4f}" for value in row))
        tables.append(table)
    console.print(Columns(tables, padding=(0, 3)))


def _show_head(console: Console, alone: HeadRun) -> None:
    report, U = alone.report, alone.simulator
    console.print(
        f"Head {alone.head + 1} of layer {alone.layer + 1} on the first text, by the heads of U "
        f"themselves: {U.length:,} tokens, {report.heads:,} heads, {report.rows:,} rows, "
        f"{report.pairs:,} pairs scored in {alone.seconds:.1f} s; it differs from direct computation "
        f"by at most {alone.error:.2e}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _head_dict(alone: HeadRun) -> dict[str, Any]:
    report = alone.report
    return {
        "layer": alone.layer + 1,
        "head": alone.head + 1,
        "tokens": alone.simulator.length,
        "heads": report.heads,
        "rows": report.rows,
        "pairs": report.pairs,
        "seconds": alone.seconds,
        "error": alone.error,
    }


def _saved(found: ModelRun) -> bytes:
    """Embeddings and the states after every layer, as a .npz file."""
    arrays = {"embeddings": found.embeddings, "similarities": found.similarities}
    for layer, states in enumerate(found.states):
        for text, state in enumerate(states, start=1):
            arrays[f"text {text}, layer {layer}"] = state
    if found.comparison is not None:
        arrays |= {"direct_embeddings": found.comparison.embeddings, "errors": np.array(found.errors)}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _head(given: tuple[int, int] | None, layers: int, heads: int) -> tuple[int, int] | None:
    """The layer and head that were named, counted from 0."""
    if given is None:
        return None
    layer, head = given
    if layer > layers or head > heads:
        raise InputError(
            f"there are {layers} layers of {heads} heads: there is no --head {layer},{head}"
        )
    return layer - 1, head - 1


def _option(name: str) -> str:
    return {"texts": "--text", "file": "FILE", "compare": "--no-compare"}.get(name, f"--{name}")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
