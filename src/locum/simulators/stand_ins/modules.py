"""Stand-ins for torch's own layers: nn.Modules with their parameters and signatures that compute by U.

A stand-in holds the parts of the module that it stands in for, under their names, so that state dicts
fit both; it never calls them. Parameters become tokens at every call, by views and the scale of the
scores alone, so gradients reach them and nothing is out of date.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from locum.errors import InputError
from locum.simulators.cuda_graphs import replayed
from locum.simulators.models.torch_layers import from_torch, torch_layers
from locum.simulators.models.torch_matrices import (
    attention_matrices,
    layer_matrices,
    norm_matrices,
    number_token,
)
from locum.simulators.order import Order
from locum.simulators.stand_ins.arguments import (
    Masks,
    added,
    in_one_dtype,
    require_no_dropout,
    require_same_axes,
    require_same_batch,
)
from locum.simulators.stand_ins.running import (
    autocast_dtype,
    layer_weights,
    number_of,
    run_layer,
    run_norm,
)
from locum.simulators.stand_ins.unchanged import Parts


class StandIn(nn.Module):
    """A module that computes by U what another would; it has that one's parts and parameters."""

    #: Its number in recordings: ``blocks.N``.
    block: int = 0
    #: The order of T on one row; the order of a call has its shapes and masks.
    order: Order

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        if is_parametrized(module):
            raise InputError("its own parameters are parametrised: try remove_parametrizations first")
        for name, parameter in module._parameters.items():
            self.register_parameter(name, parameter)
        for name, buffer in module._buffers.items():
            self.register_buffer(name, buffer, name not in module._non_persistent_buffers_set)
        for name, child in module._modules.items():  # one part may have several names
            self.add_module(name, child)
        self.train(module.training)
        self._parts = Parts(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ABSENT and value is not None:
            raise InputError(
                f"a stand-in has no {name}, since it computes by U: change the original, and make "
                "another by locum.stand_in"
            )
        if name in _FIXED and name in self.__dict__:
            raise InputError(
                f"{name} was read when the stand-in was made: change the original, and make another"
            )
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if "order" in state:
            self._set_order(state["order"])

    def _set_order(self, order: Order) -> None:
        self.__dict__["order"], self.number = order, number_of(order)

    def _rows(self, X: Tensor, name: str, columns: int, batch_first: bool) -> Tensor:
        """Check an input, rows or items of rows, and return it as [item, row, column]."""
        if not isinstance(X, Tensor):
            raise InputError(f"expected {name} as a torch tensor, got {type(X).__name__}")
        if X.is_nested:
            raise InputError(
                f"expected {name} as a dense tensor, got a nested one: pad it, with a mask"
            )
        if X.dim() not in (2, 3) or X.shape[-1] != columns or X.numel() == 0:
            raise InputError(
                f"expected {name} of shape [item, row, {columns}] or [row, {columns}], with one row or "
                f"more, got {tuple(X.shape)}"
            )
        weights = next(self.parameters())
        if X.dtype is not weights.dtype and autocast_dtype(X) is None:
            raise InputError(f"expected {name} in {weights.dtype}, as the module is, got {X.dtype}")
        if X.device != weights.device:
            raise InputError(f"expected {name} on {weights.device}, as the module is, got {X.device}")
        if X.dim() == 2:
            return X[None]
        return X if batch_first else X.transpose(0, 1)


class StandInAttention(StandIn):
    """Stands in for an nn.MultiheadAttention."""

    #: Keeps layers of torch that hold it from computing it themselves, by their fast path.
    _qkv_same_embed_dim = False

    def __init__(self, module: nn.MultiheadAttention) -> None:
        T = from_torch(module, form="factored")
        super().__init__(module)
        self.embed_dim, self.num_heads = module.embed_dim, module.num_heads
        self.kdim, self.vdim = module.kdim, module.vdim
        self.head_dim, self.dropout, self.batch_first = (
            module.head_dim,
            module.dropout,
            module.batch_first,
        )
        self._set_order(T.order(1, 1))

    def _set_order(self, order: Order) -> None:
        super()._set_order(order)
        # Keys and values of two tensors are read from one memory that has both, side by side.
        both = replace(order.attention, d_keys=2 * (order.attention.d_keys or order.attention.d))
        self.number_of_both = number_of(replace(order, attention=both))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as nn.MultiheadAttention does; its documentation says what the arguments are."""
        self._parts.require_unchanged(self)
        require_no_dropout(self, self.dropout, "dropout")
        X = self._rows(query, "query", self.embed_dim, self.batch_first)
        require_same_axes(query, key, value)
        inputs = {"X": X.reshape(-1, X.shape[-1])}
        matrices, number, m = attention_matrices(self), self.number, X.shape[1]
        if not (query is key and key is value):
            M = self._rows(key, "key", self.kdim, self.batch_first)
            if key is not value:
                values = self._rows(value, "value", self.kdim, self.batch_first)
                if values.shape != M.shape:
                    raise InputError(f"expected values of shape {M.shape}, as keys, got {values.shape}")
                M, number = torch.cat([M, values], -1), self.number_of_both
                keys, nothing = matrices["W_K"], torch.zeros_like(matrices["W_K"])
                matrices["W_K"] = torch.cat([keys, nothing])
                matrices["V"] = torch.cat([nothing, matrices["V"]])
            require_same_batch(X, M)
            inputs["M"], m = M.reshape(-1, M.shape[-1]), M.shape[1]
        batched, sizes = query.dim() == 3, (X.shape[0], self.num_heads, X.shape[1], m)
        inputs |= added(Masks(attn_mask, key_padding_mask, is_causal), sizes, X, batched)
        inputs, matrices = in_one_dtype(inputs, matrices)
        batch = X.shape[0]
        rows = run_layer(number, self.block, batch, inputs, matrices)
        result = rows.reshape(batch, -1, self.embed_dim).to(autocast_dtype(X) or X.dtype)
        weights = None
        if need_weights:
            weights = layer_weights(number, batch, inputs, matrices).to(result.dtype)
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return result[0], None if weights is None else weights[0]
        return result if self.batch_first else result.transpose(0, 1), weights


class StandInLayer(StandIn):
    """Stands in for a layer of torch: what those of encoders and of decoders have in common."""

    def __init__(self, module: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
        T = from_torch(module, form="factored")
        self_attention = module.self_attn
        super().__init__(module)
        self.norm_first, self.batch_first = module.norm_first, self_attention.batch_first
        self.activation = module.activation
        self._set_order(T.order(1, int(isinstance(module, nn.TransformerDecoderLayer))))

    def _run(
        self,
        X: Tensor,
        memory: Tensor | None,
        masks: Masks,
        memory_masks: Masks,
    ) -> Tensor:
        self._parts.require_unchanged(self)
        for name, part in self.named_children():
            require_no_dropout(part, getattr(part, "p", getattr(part, "dropout", 0.0)), name)
        attention: Any = self.self_attn
        d, heads = attention.embed_dim, attention.num_heads
        rows = self._rows(X, "the input", d, self.batch_first)
        batch, n, batched = rows.shape[0], rows.shape[1], X.dim() == 3
        inputs = {"X": rows.reshape(-1, d)}
        inputs |= added(masks, (batch, heads, n, n), rows, batched)
        if memory is not None:
            M = self._rows(memory, "the memory", d, self.batch_first)
            require_same_axes(X, memory)
            require_same_batch(rows, M)
            inputs["M"] = M.reshape(-1, d)
            of_memory = added(memory_masks, (batch, heads, n, M.shape[1]), rows, batched)
            inputs |= {f"cross {name}": mask for name, mask in of_memory.items()}
        inputs, matrices = in_one_dtype(inputs, layer_matrices(self, self.order))
        result: Tensor = run_layer(self.number, self.block, batch, inputs, matrices)
        result, kept = result.reshape(batch, n, -1), autocast_dtype(X)
        if kept is None:
            result = result.to(X.dtype)
        elif self.norm_first or not X.is_cuda:  # torch's norms give float32 there, on a GPU
            result = result.to(torch.promote_types(X.dtype, kept))
        if not batched:
            return result[0]
        return result if self.batch_first else result.transpose(0, 1)


class StandInEncoderLayer(StandInLayer):
    """Stands in for an nn.TransformerEncoderLayer."""

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Compute the layer."""
        return self._run(src, None, Masks(src_mask, src_key_padding_mask, is_causal), Masks())


class StandInDecoderLayer(StandInLayer):
    """Stands in for an nn.TransformerDecoderLayer."""

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Compute the layer."""
        masks = Masks(tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        return self._run(
            tgt, memory, masks, Masks(memory_mask, memory_key_padding_mask, memory_is_causal)
        )


class StandInEncoder(nn.Module):
    """Stands in for an nn.TransformerEncoder: its layers and its last norm."""

    def __init__(self, module: nn.TransformerEncoder) -> None:
        torch_layers(module)  # refuses what is not known of it
        super().__init__()
        made: dict[nn.Module, StandInEncoderLayer] = {}  # a layer may be used several times
        for layer in module.layers:
            if layer not in made:
                made[layer] = StandInEncoderLayer(layer)
        self.layers = nn.ModuleList(made[layer] for layer in module.layers)
        self.norm = None if module.norm is None else StandInNorm(module.norm)  # type: ignore[arg-type]
        self.train(module.training)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Compute all layers, one after another, then the norm."""
        plain = mask is None and src_key_padding_mask is None and not is_causal
        if plain and not torch.compiler.is_compiling():
            result = replayed(self, src, self._run, differentiable=True)
            if result is not None:
                return result
        return self._run(src, mask, src_key_padding_mask, bool(is_causal))

    def _run(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, padding, is_causal)
        return src if self.norm is None else self.norm(src)


class StandInNorm(StandIn):
    """Stands in for the nn.LayerNorm behind an encoder."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(self, module: nn.LayerNorm) -> None:
        super().__init__(module)
        self.eps: float = module.eps
        self.normalized_shape = module.normalized_shape

    def forward(self, X: Tensor) -> Tensor:
        """Norm each row."""
        self._parts.require_unchanged(self)
        rows = X.reshape(-1, X.shape[-1])
        matrices = norm_matrices(self, rows)
        epsilon = number_token(self.eps, rows)
        tensors, _ = in_one_dtype({"X": rows, **matrices, "epsilon": epsilon}, {})
        result: Tensor = run_norm(**tensors)
        single = X.is_cuda and autocast_dtype(X) is not None
        return result.reshape(X.shape).to(torch.float32 if single else X.dtype)


#: What a stand-in is made from, and does not look at again.
_FIXED = (
    *("activation", "norm_first", "batch_first", "num_heads", "head_dim", "embed_dim", "kdim", "vdim"),
    "normalized_shape",
)
#: What torch's modules would compute by, and stand-ins have not.
_ABSENT = (
    *("_sa_block", "_ff_block", "_mha_block", "activation_relu_or_gelu"),
    *("bias_k", "bias_v", "add_zero_attn"),
)
