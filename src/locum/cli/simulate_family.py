"""Run a folder of any family but BERT on U, and compare its states with transformers' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from locum.cli import output
from locum.cli.archives import npz
from locum.cli.progress import progress
from locum.files import write_file

#: How far an output may be from the model's own, relative to its greatest number, in each dtype.
TOLERANCES = {"float32": 1e-4, "float64": 1e-9}


def simulate_family(
    folder: str,
    texts: tuple[str, ...],
    *,
    form: str,
    dtype: str | None,
    executor: str | None,
    compare: bool,
    save: Path | None,
    as_json: bool,
) -> None:
    """Run the texts through the model, print what came of it, and exit with 1 if it is not right."""
    from locum.execution.arrays import numpy_of
    from locum.simulators.models.families.running import Model
    from locum.simulators.models.reference import TRANSFORMERS, reference_outputs

    with progress(1, "models loaded", "loading the model", quiet=as_json) as advance:
        model = Model(folder, form=form, dtype=dtype)
        advance("the model")
    layers = len(model.description.stack.layers)
    with progress(layers, "layers", quiet=as_json) as advance:
        given = model.tokenised(list(texts))
        outputs = model.run(given, executor=executor, finished=advance)
    arrays = {
        name: numpy_of(getattr(outputs, name))
        for name in ("last_hidden_state", "logits", "pooler_output")
        if getattr(outputs, name) is not None
    }
    kind = str(model.kind.dtype).removeprefix("torch.")
    theirs = (
        reference_outputs(Path(folder), kind, given, model.source.architecture) if compare else None
    )
    errors: dict[str, float] | None = None
    if theirs is not None:
        errors = {
            name: _error(arrays[name], its, given) for name, its in theirs.items() if name in arrays
        }
    if save is not None:
        write_file(save, npz(arrays))
    lengths = np.asarray(given.get("attention_mask", np.ones_like(given["input_ids"]))).sum(axis=1)
    found: dict[str, Any] = {
        "model": folder,
        "family": model.description.family,
        "dtype": kind,
        "layers": layers,
        "texts": [
            {"text": text, "tokens": int(length)} for text, length in zip(texts, lengths, strict=True)
        ],
        "outputs": {name: list(array.shape) for name, array in arrays.items()},
        "compared_with": None if errors is None else TRANSFORMERS,
        "errors": errors,
        "where": [list(part) for part in model.where],
    }
    if as_json:
        output.print_json(found)
    else:
        _print(found)
        if save is not None:
            output.say(f"Saved in {save}.")
    if errors and max(errors.values()) > TOLERANCES[kind]:
        raise click.exceptions.Exit(1)


def _error(ours: Any, theirs: Any, given: dict[str, Any]) -> float:
    """The greatest difference over the tokens that count, relative to the greatest number."""
    difference, scale = np.abs(ours - theirs), 1 + np.abs(theirs).max()
    if difference.ndim == 3 and "attention_mask" in given:
        difference = difference[np.asarray(given["attention_mask"]) != 0]
    return float(difference.max() / scale)


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table

    output.print_title(
        f"{found['model']}: {found['family']}, {found['layers']} layers, on U; {found['dtype']}"
    )
    rows = [[text["text"], str(text["tokens"])] for text in found["texts"]]
    output.show(output.add_rows(Table("text", "tokens"), rows))
    errors = found["errors"] or {}
    rows = [
        [name, "×".join(map(str, shape)), f"{errors[name]:.2e}" if name in errors else ""]
        for name, shape in found["outputs"].items()
    ]
    output.show(output.add_rows(Table("output", "shape", "greatest relative error"), rows))
    if found["compared_with"]:
        output.say(f"Compared with {found['compared_with']}.")
    for where, what in found["where"]:
        output.say(f"  {where + ':':6} {what}")
