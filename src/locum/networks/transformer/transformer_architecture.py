"""Count the layers, heads and parameters of a transformer, and list its widths."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum.networks.transformer.config import Config
from locum.networks.transformer.weights import Weights
from locum.text import text_rows


@dataclass(frozen=True)
class TransformerArchitecture:
    """The sizes and kinds of a transformer; ``heads`` contains the number of heads of each layer."""

    layers: int
    heads: tuple[int, ...]
    #: Widths of the residual stream, of the widest head and of the widest feed-forward (0 if absent).
    d_model: int
    d_head: int
    d_mlp: int
    n_ctx: int
    parameters: int
    nonzeros: int
    attention: str
    feed_forward: str

    @classmethod
    def of(cls, config: Config, weights: Weights) -> TransformerArchitecture:
        """Return the sizes of a transformer with these weights."""
        attentions = [layer.attention for layer in weights.layers]
        feeds = [layer.feed_forward for layer in weights.layers]
        tensors = [tensor for _, tensor in weights.named()]
        return cls(
            layers=len(weights.layers),
            heads=tuple(0 if part is None else part.heads for part in attentions),
            d_model=weights.W_E.shape[1],
            d_head=max((part.W_Q.shape[2] for part in attentions if part is not None), default=0),
            d_mlp=max((part.W_out.shape[0] for part in feeds if part is not None), default=0),
            n_ctx=weights.W_pos.shape[0],
            parameters=sum(tensor.size for tensor in tensors),
            nonzeros=sum(int(np.count_nonzero(tensor)) for tensor in tensors),
            attention=config.attention,
            feed_forward=config.feed_forward,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the sizes as a JSON-compatible dictionary."""
        return dataclasses.asdict(self) | {"heads": list(self.heads)}

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.as_json().items()]
        return text_rows("a compiled transformer", rows)

    def __str__(self) -> str:
        heads = ", ".join(map(str, self.heads)) or "none"
        feed_forward = "symbolic" if self.feed_forward == "exact" else self.feed_forward
        return (
            f"{self.layers} {'layer' if self.layers == 1 else 'layers'} (heads: {heads}; "
            f"{self.attention} attention, {feed_forward} feed-forward), "
            f"d_model {self.d_model}, d_head {self.d_head}, d_mlp {self.d_mlp}, n_ctx {self.n_ctx}, "
            f"{self.parameters:,} parameters, {self.nonzeros:,} of them not zero"
        )
