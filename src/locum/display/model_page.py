"""Write a trained model on U as one page: attention maps, their difference, similarities.

The page is a single file without any address in it: numbers stand in it as base64, and its script
(``model_page.html``) draws them. It holds the maps of all layers and heads if they are small, else
those of the chosen layer, else that of the chosen head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from locum.display.html import filled, packed
from locum.simulators.models.families.comparing import ComparedRun
from locum.simulators.models.results import ModelRun
from locum.simulators.models.tokenising import Text
from locum.simulators.modules.module import Numbers

#: The most numbers of maps in a page (one head is always there).
NUMBERS = 600_000
TEMPLATE = Path(__file__).with_name("model_page.html")


def model_page(run: ModelRun, layer: int = 0, head: int = 0) -> str:
    """Return the page; ``layer`` and ``head``, counted from 0, are those that it shows first."""
    is_compared = run.comparison is not None
    sizes = range(run.model.count), range(run.model.checkpoint.heads)
    data = {
        "title": f"{run.name} on U",
        "facts": _facts(run),
        "texts": _texts(run.batch.texts),
        "where": [list(part) for part in run.where],
        "errors": run.errors if is_compared else None,
        "cosines": run.cosines if is_compared else None,
        "similarities": packed(run.similarities),
        "directSimilarities": packed(run.direct_similarities) if is_compared else None,
        "first": {"layer": layer, "head": head},
        "maps": _maps(run.attention, run.batch.lengths, *sizes, layer, head),
    }
    return filled(TEMPLATE, data)


def _texts(texts: Sequence[Text]) -> list[dict[str, Any]]:
    return [{"text": t.text, "tokens": t.tokens, "length": len(t.numbers)} for t in texts]


def _facts(run: ModelRun) -> list[list[str]]:
    U, checkpoint = run.batch.U, run.model.checkpoint
    facts = [
        ["model", f"{run.model.count} layers of {checkpoint.heads} heads, d = {checkpoint.d}"],
        [
            "U",
            f"{U.length:,} tokens, {U.architecture.layers} layers, {sum(U.architecture.heads):,} heads",
        ],
        ["form", run.model.form],
        ["numbers", run.dtype],
        ["time", f"{run.simulated.seconds * 1e3:.0f} ms"],
        ["program", run.batch.U.hash[:12]],
    ]
    if run.comparison is not None:
        facts.insert(4, ["largest error", f"{max(run.errors):.1e}"])
        facts.insert(5, ["smallest cosine", f"{min(run.cosines):.9f}"])
    return facts


def _maps(
    attention: Callable[[int, int, int], tuple[Numbers, Numbers | None]],
    lengths: Sequence[int],
    layers: range,
    heads: range,
    layer: int,
    head: int,
) -> list[dict[str, Any]]:
    """Return maps, U's and the model's own: all if they are small, else the layer's or the head's."""
    cells = 2 * sum(length**2 for length in lengths)
    if cells * len(layers) * len(heads) > NUMBERS:
        layers = range(layer, layer + 1)
    if cells * len(layers) * len(heads) > NUMBERS:
        heads = range(head, head + 1)
    maps = []
    for text in range(len(lengths)):
        for number in layers:
            for h in heads:
                ours, theirs = attention(text, number, h)
                direct = None if theirs is None else packed(theirs)
                maps.append(
                    {"text": text, "layer": number, "head": h, "ours": packed(ours), "theirs": direct}
                )
    return maps


def family_page(run: ComparedRun, layer: int = 0, head: int = 0) -> str:
    """Return the page of a model of any family; ``layer`` and ``head`` are those shown first."""
    model, stack, errors = run.model, run.model.description.stack, run.state_errors
    facts = [
        ["model", f"{model.description.family}, {len(stack.layers)} layers of {stack.heads} heads"],
        ["form", model.source.form],
        ["numbers", str(model.kind.dtype).removeprefix("torch.")],
    ]
    if errors is not None:
        facts.append(["largest relative error", f"{max(errors):.1e}"])
    lengths = [len(text.numbers) for text in run.texts]
    sizes = range(len(stack.layers)), range(stack.heads)
    folder = model.source.folder
    data = {
        "title": f"{'a model' if folder is None else folder.name} on U",
        "facts": facts,
        "texts": _texts(run.texts),
        "where": [list(part) for part in model.where],
        "errors": errors,
        "cosines": None,
        "similarities": None,
        "directSimilarities": None,
        "first": {"layer": layer, "head": head},
        "maps": _maps(run.attention, lengths, *sizes, layer, head),
    }
    return filled(TEMPLATE, data)
