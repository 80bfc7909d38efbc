"""Write a trained model on U as one page: attention maps, their difference, similarities.

The page is a single file without any address in it: numbers stand in it as base64, and its script
(``model_page.html``) draws them. It holds the maps of all layers and heads if they are small, else
those of the chosen layer, else that of the chosen head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locum.display.html import filled, packed
from locum.simulators.models.results import ModelRun

#: The most numbers of maps in a page (one head is always there).
NUMBERS = 600_000
TEMPLATE = Path(__file__).with_name("model_page.html")


def model_page(run: ModelRun, layer: int = 0, head: int = 0) -> str:
    """Return the page; ``layer`` and ``head``, counted from 0, are those that it shows first."""
    data = {
        "title": f"{run.name} on U",
        "facts": _facts(run),
        "texts": [
            {"text": text.text, "tokens": text.tokens, "length": len(text.numbers)}
            for text in run.batch.texts
        ],
        "where": [list(part) for part in run.where],
        "errors": None if run.comparison is None else run.errors,
        "cosines": None if run.comparison is None else run.cosines,
        "similarities": packed(run.similarities),
        "directSimilarities": None if run.comparison is None else packed(run.direct_similarities),
        "first": {"layer": layer, "head": head},
        "maps": _maps(run, layer, head),
    }
    return filled(TEMPLATE, data)


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


def _maps(run: ModelRun, layer: int, head: int) -> list[dict[str, Any]]:
    """Return the attention maps that the page holds, U's and the model's own."""
    layers, heads = range(run.model.count), range(run.model.checkpoint.heads)
    cells = 2 * sum(length**2 for length in run.batch.lengths)
    if cells * len(layers) * len(heads) > NUMBERS:
        layers = range(layer, layer + 1)
    if cells * len(layers) * len(heads) > NUMBERS:
        heads = range(head, head + 1)
    maps = []
    for text in range(len(run.batch.texts)):
        for number in layers:
            for h in heads:
                ours, theirs = run.attention(text, number, h)
                direct = None if theirs is None else packed(theirs)
                maps.append(
                    {"text": text, "layer": number, "head": h, "ours": packed(ours), "theirs": direct}
                )
    return maps
