"""Torch's own layers as T's whose matrices are the module's tensors, where they are, as they are.

They are looked at as those that are copied (``torch_layers.py``), and refused for the same reasons; but
nothing is brought to the host. Parameters are detached: gradients reach X, and never the module.
"""

from __future__ import annotations

from typing import Any, Self

from torch import nn

from locum.errors import InputError
from locum.execution.arrays import Array
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.models.torch_layers import (
    from_torch,
    is_of,
    layer_activation,
    require_around,
    require_attention,
    require_numbers,
    require_untouched,
    unknown,
)
from locum.simulators.models.torch_matrices import attention_matrices, layer_matrices
from locum.simulators.modules.masks import KeptMask, Mask, mask_kind, mask_matrices
from locum.simulators.modules.module import MaskedAttention, Module, Numbers
from locum.simulators.order import Order


def live_layer(module: Any) -> Module:
    """Return the T that a torch module is, in the factored form."""
    if not isinstance(module, nn.Module):
        raise InputError(unknown(module))
    for name, parameter in module.named_parameters():
        require_numbers(parameter, name)
    if is_of(module, nn.MultiheadAttention):
        require_attention(module)
        return LiveAttention(module)
    for kind, norms in ((nn.TransformerEncoderLayer, 2), (nn.TransformerDecoderLayer, 3)):
        if is_of(module, kind):
            require_untouched(module, "the layer")
            require_attention(module.self_attn)
            if norms == 3:
                require_attention(module.multihead_attn)
            require_around(module, norms)
            return LiveLayer(module, layer_activation(module))
    raise InputError(unknown(module))


class LiveAttention(MaskedAttention):
    """An nn.MultiheadAttention as a T."""

    def __init__(self, module: Any, mask: KeptMask = None) -> None:
        self.module, self.mask = module, mask

    def attention_order(self) -> AttentionOrder:
        """Return its order but for the number of rows."""
        return attention_order(self.module, self.mask)

    def matrices(self) -> dict[str, list[Array]]:
        """Give the projections and biases of all heads, and the mask if it is an array."""
        return _detached(attention_matrices(self.module)) | mask_matrices(self.mask)

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Compute every intermediate result directly, on a copy of the numbers."""
        return from_torch(self.module, mask=self.mask, form="factored").steps(X, memory)

    @staticmethod
    def read_mask(mask: Mask) -> KeptMask:
        """Return a mask as it is: masks of a run were checked with its inputs."""
        kept: KeptMask = mask
        return kept


class LiveLayer(Module):
    """An nn.TransformerEncoderLayer or an nn.TransformerDecoderLayer as a T."""

    def __init__(
        self, module: Any, activation: str, mask: KeptMask = None, memory_mask: KeptMask = None
    ) -> None:
        self.module, self.activation = module, activation
        self.mask, self.memory_mask = mask, memory_mask

    def order(self, n: int, memory: int = 0) -> Order:
        """Return the order it has on n rows (and a memory of ``memory`` rows)."""
        layer, cross = self.module, None
        if self._reads_memory:
            cross = attention_order(layer.multihead_attn, self.memory_mask)
        return Order(
            n,
            attention_order(layer.self_attn, self.mask),
            memory,
            cross,
            residual=True,
            feed_forward=(layer.linear1.out_features, layer.linear2.out_features),
            feed_forward_bias=layer.linear1.bias is not None or layer.linear2.bias is not None,
            feed_forward_residual=True,
            activation=self.activation,
            norm="pre" if layer.norm_first else "post",
            affine=any(
                norm.weight is not None
                for norm in (layer.norm1, layer.norm2, *([layer.norm3] if cross else []))
            ),
        )

    def matrices(self) -> dict[str, list[Array]]:
        """Give all its matrices, and its masks if they are arrays."""
        matrices = _detached(layer_matrices(self.module, self.order(1, int(self._reads_memory))))
        matrices |= mask_matrices(self.mask)
        return matrices | mask_matrices(self.memory_mask, "cross ")

    @property
    def _reads_memory(self) -> bool:
        return hasattr(self.module, "multihead_attn")

    def steps(self, X: Array, memory: Array | None = None) -> dict[str, Numbers]:
        """Compute every intermediate result directly, on a copy of the numbers."""
        masks = {"mask": self.mask, "memory_mask": self.memory_mask}
        return from_torch(self.module, **masks, form="factored").steps(X, memory)

    @property
    def masks(self) -> tuple[KeptMask, KeptMask]:
        """The mask of its attention, and that of a decoder's cross-attention."""
        return self.mask, self.memory_mask

    def with_masks(self, mask: Mask, memory_mask: Mask = None) -> Self:
        """Give the same module with other masks."""
        return type(self)(self.module, self.activation, mask, memory_mask)


def attention_order(module: Any, mask: KeptMask = None) -> AttentionOrder:
    """Return the order of an nn.MultiheadAttention in the factored form."""
    d, heads = module.embed_dim, module.num_heads
    return AttentionOrder(
        "factored",
        d,
        d // heads,
        heads,
        projection=d,
        output_bias=module.out_proj.bias is not None,
        bias=module.in_proj_bias is not None,
        mask=mask_kind(mask),
        d_keys=0 if module.kdim == d else module.kdim,
        width=d // heads,
    )


def _detached(matrices: dict[str, Any]) -> dict[str, list[Array]]:
    return {name: [tensor.detach()] for name, tensor in matrices.items()}
