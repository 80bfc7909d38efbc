"""List what to make, in an order that depends on the seed alone.

Named programs come first, every one in its first size before any in its second; random programs go
through the layers from 1 to 8 over and over, so that a dataset of any size has as many of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from locum.dataset.families import SOURCES
from locum.dataset.making import LAYERS, RANDOM
from locum.transformer.weights import HARD, SOFTMAX

#: The share of a dataset that named programs have, as far as there are so many.
NAMED_SHARE = 0.4


def named_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield settings of named programs: sizes from the first on, softmax before hard."""
    draw = random.Random(f"named {seed}")
    names = sorted(SOURCES)
    for place in range(max(len(source.sizes) for source in SOURCES.values())):
        for attention in (SOFTMAX, HARD):
            draw.shuffle(names)
            for name in names:
                sizes = SOURCES[name].sizes
                if place < len(sizes):
                    size = {"length": sizes[place].length, "tokens": sizes[place].tokens}
                    yield {"source": name, "attention": attention, **size}


def random_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield settings of random programs, without end; one in three has hard attention."""
    number = 0
    while True:
        attention = HARD if number // len(LAYERS) % 3 == 2 else SOFTMAX
        layers = LAYERS[number % len(LAYERS)]
        yield {
            "source": RANDOM,
            "attention": attention,
            "layers": layers,
            "seed": seed * 1_000_000 + number,
        }
        number += 1
