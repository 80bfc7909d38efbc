"""Write a decoder's generation as one page: the text, and what each new token attended to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from locum.display.html import filled, packed
from locum.simulators.models.families.generating import Generation

TEMPLATE = Path(__file__).with_name("generation_page.html")
#: The most numbers in a page; beyond it only the mean over the heads of each layer is shown.
NUMBERS = 600_000


def generation_page(generation: Generation, prompt: str = "") -> str:
    """Return the page of a generation that kept its attentions."""
    if not generation.attentions:
        raise ValueError("this generation kept no attentions: generate(…, attentions=True) does")
    maps = generation.attentions
    by_head = sum(weights.size for weights in maps) <= NUMBERS
    if not by_head:
        maps = [weights.mean(axis=1, keepdims=True) for weights in maps]
    layers, heads = maps[0].shape[:2]
    return filled(TEMPLATE, _data(generation, prompt, maps, layers, heads if by_head else 0))


def _data(
    generation: Generation, prompt: str, maps: list[Any], layers: int, heads: int
) -> dict[str, Any]:
    U = generation.simulator
    assert U is not None
    return {
        "title": f"{generation.model} writes on U",
        "prompt": prompt,
        "written": generation.text,
        "tokens": [*generation.prompt_tokens, *generation.tokens],
        "given": len(generation.prompt),
        "layers": layers,
        "heads": heads,
        "weights": [packed(np.reshape(weights, (-1, weights.shape[-1]))) for weights in maps],
        "facts": [
            ["new tokens", str(len(generation.ids))],
            ["U", f"{U.length:,} tokens, {U.architecture.layers} layers"],
            ["program", U.hash[:12]],
        ],
        "where": [list(part) for part in generation.where],
    }
