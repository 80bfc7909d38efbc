"""Look activations up by name, as ``run_with_cache`` returns them.

Names are TransformerLens's hooks, in full (``blocks.0.attn.hook_pattern``) or short (``"pattern", 0``;
a negative layer counts from the last). Every array has a batch axis first. An absent half of a layer
has no activations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from locum.transformer.weights import Array

#: Short names of hooks inside an attention or a feed-forward, and aliases of some of them.
_ATTENTION = frozenset({"q", "k", "v", "z", "attn_scores", "pattern"})
_FEED_FORWARD = frozenset({"pre", "post"})
_ALSO = {
    "attn": "pattern",
    "attn_logits": "attn_scores",
    "query": "q",
    "key": "k",
    "value": "v",
    "mlp_pre": "pre",
    "mlp_post": "post",
}


class ActivationCache(Mapping[Any, Array]):
    """A mapping from hook names to activations.

    >>> import numpy as np
    >>> cache = ActivationCache({"blocks.0.attn.hook_pattern": np.eye(2)[None, None]}, 1)
    >>> cache["pattern", -1].shape
    (1, 1, 2, 2)
    """

    def __init__(self, activations: Mapping[str, Array], layers: int) -> None:
        self._activations = dict(activations)
        self._layers = layers

    def __getitem__(self, key: Any) -> Array:
        name = key if key in self._activations else self._full(key)
        if name not in self._activations:
            raise KeyError(
                f"expected the name of an activation, got {key!r}; try {', '.join(self._activations)}"
            )
        return self._activations[name]

    def __contains__(self, key: object) -> bool:
        return key in self._activations or self._full(key) in self._activations

    def __iter__(self) -> Iterator[str]:
        return iter(self._activations)

    def __len__(self) -> int:
        return len(self._activations)

    def __repr__(self) -> str:
        return f"<ActivationCache: {len(self)} activations of {self._layers} layers>"

    def _full(self, key: object) -> str:
        match key:
            case str(name):
                return f"hook_{name}"
            case (str(name), int(layer)):
                name = _ALSO.get(name, name)
                part = "attn." if name in _ATTENTION else "mlp." if name in _FEED_FORWARD else ""
                return f"blocks.{layer + self._layers if layer < 0 else layer}.{part}hook_{name}"
        return ""
