"""When a network agrees with dense execution, and which inputs it is asked about."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from locum.networks.transformer import CompiledTransformer


def is_close(actual: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-12) -> bool:
    """Equal, numbers up to the tolerance relative to the largest of the answers (or to 1)."""
    if len(actual) != len(expected):
        return False
    numbers = [abs(w) for w in expected if not isinstance(w, str)]
    allowed = tolerance * max([1, *numbers])
    return all(_is_close_number(f, w, allowed) for f, w in zip(actual, expected, strict=True))


def _is_close_number(actual: Any, expected: Any, allowed: float) -> bool:
    if isinstance(actual, str) or isinstance(expected, str):
        return bool(actual == expected)
    return actual == expected or bool(abs(actual - expected) <= allowed)


def others(
    tokens: Sequence[Any], chance: random.Random, count: int, *, shortest: int = 1
) -> Iterator[list[Any]]:
    """Other inputs of the same tokens, of every length from the longest down, and then again."""
    lengths = list(range(len(tokens), shortest - 1, -1))
    for i in range(count):
        yield chance.choices(tokens, k=lengths[i % len(lengths)])


def logits(model: CompiledTransformer, inputs: Sequence[Any]) -> Any:
    """Return what the network says of an input before answers are read off, [1, position, output]."""
    _, cache = model.run_with_cache(inputs)
    last = len(model.weights.layers) - 1
    stream = cache[f"blocks.{last}.hook_resid_post"] if last >= 0 else model.embed([inputs])
    return stream[:, model.config.sink :] @ model.weights.W_U + model.weights.b_U


def fingerprint(model: CompiledTransformer) -> str:
    """A hash of every number of the network."""
    digest = hashlib.sha256()
    for name, array in model.weights.named():
        digest.update(f"{name} {array.dtype.char} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
