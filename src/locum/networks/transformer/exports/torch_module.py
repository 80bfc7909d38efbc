"""Export a compiled transformer as a PyTorch module, parameter by parameter.

The ``state_dict`` has the names and shapes of :meth:`Weights.named`. The module maps token ids or
numbers [batch, position], as returned by ``model.encode``, to logits [batch, position, d_vocab_out],
which ``model.decode`` accepts. Undefined operations, such as a division by zero in a symbolic
feed-forward, return NaN.

Activations pass through identity modules with the names of hooks, such as ``blocks.0.attn.hook_z``.
PyTorch forward hooks and ``run_with_hooks`` can read and change activations there. As in
TransformerLens, ``set_use_split_qkv_input``, ``set_use_attn_result`` and ``set_use_hook_mlp_in`` enable
further hooks: ``blocks.0.hook_q_input``, ``hook_k_input``, ``hook_v_input``,
``blocks.0.attn.hook_result`` [batch, position, head, d_model] and ``blocks.0.hook_mlp_in``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import InputError
from locum.networks.transformer.config import Config
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.interventions import ForwardHook, Interventions, tap_of
from locum.networks.transformer.weights import (
    HARD,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)


class TorchTransformer(Interventions, nn.Module):
    """A PyTorch module with trainable parameters and the forward pass of ``transformer/forward.py``."""

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        self.config = config
        self.embed = _parameters(W_E=weights.W_E)
        self.pos_embed = _parameters(W_pos=weights.W_pos)
        self.blocks = nn.ModuleList(
            _Block(layer, sink=config.sink, causal=config.causal) for layer in weights.layers
        )
        self.unembed = _parameters(W_U=weights.W_U, b_U=weights.b_U)
        self.unembed.hook_in = nn.Identity()
        self.hook_embed, self.hook_pos_embed = nn.Identity(), nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits [batch, position, d_vocab_out] for token ids or numbers [batch, position]."""
        words, places = embeddings(inputs, self.embed.W_E, self.pos_embed.W_pos, self.config)
        # A copy, so that a hook that modifies its input does not modify W_pos.
        stream: Tensor = self.hook_embed(words) + self.hook_pos_embed(places.clone())
        for block in self.blocks:
            stream = block(stream)
        stream = self.unembed.hook_in(stream)
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.unembed.W_U + self.unembed.b_U
        return logits

    def set_use_split_qkv_input(self, use: bool) -> None:
        """Set whether each head reads separate copies of the residual stream for queries, keys and
        values.
        """
        for block in self.blocks:
            setattr(block, "use_split_qkv_input", use)  # noqa: B010

    def set_use_attn_result(self, use: bool) -> None:
        """Set whether each head computes a separate output [batch, position, head, d_model]."""
        for block in self.blocks:
            if block.attn is not None:
                setattr(block.attn, "use_attn_result", use)  # noqa: B010

    def set_use_hook_mlp_in(self, use: bool) -> None:
        """Set whether ``hook_mlp_in`` exposes the input of each feed-forward."""
        for block in self.blocks:
            setattr(block, "use_hook_mlp_in", use)  # noqa: B010

    def _tensors(self) -> dict[str, Tensor]:
        return dict(self.named_parameters())

    def _functions(self, layer: int) -> Functions | None:
        mlp: Any = self.blocks[layer].mlp
        functions: Functions | None = None if mlp is None else mlp.functions
        return functions

    def run_with_hooks(self, inputs: Tensor, fwd_hooks: Sequence[ForwardHook]) -> Tensor:
        """Return the logits of a run with hooks.

        Each hook is a pair: a hook name or a predicate on names, and a function of an activation and
        ``hook``.
        """
        tap, check = tap_of(fwd_hooks)
        logits = self._tapped(inputs, tap)
        check()
        return logits

    def run_with_cache(self, inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the logits, and the activations by the names of their hooks."""
        cache: dict[str, Tensor] = {}
        return self._tapped(inputs, cache.__setitem__), cache

    def _tapped(self, inputs: Tensor, tap: Any) -> Tensor:
        handles = [
            module.register_forward_hook(lambda _, __, output, name=name: tap(name, output))
            for name, module in self.named_modules()
            if isinstance(module, nn.Identity)
        ]
        try:
            answer: Tensor = self(inputs)
        finally:
            for handle in handles:
                handle.remove()
        return answer


def embeddings(inputs: Tensor, W_E: Tensor, W_pos: Tensor, config: Config) -> tuple[Tensor, Tensor]:
    """Return the token embeddings and the position embeddings, each [batch, position, slot].

    The token embedding of the sink is 0.
    """
    if not isinstance(inputs, Tensor):
        raise InputError(
            f"expected a tensor of shape [batch, position], got {type(inputs).__name__}; "
            "try torch.as_tensor(model.encode(inputs))"
        )
    if inputs.ndim != 2:
        raise InputError(f"expected inputs of shape [batch, position], got {list(inputs.shape)}")
    sink = int(config.sink)
    size = inputs.shape[1] + sink
    shortest, longest = config.lengths
    if not shortest <= inputs.shape[1] <= longest:
        raise InputError(f"expected {shortest} to {longest} tokens, got {inputs.shape[1]}")
    words = (
        inputs.to(W_E.dtype)[..., None] * W_E[0] if config.vocabulary is None else _rows(W_E, inputs)
    )
    if sink:
        words = torch.cat([torch.zeros_like(words[:, :1]), words], dim=1)
    return words, W_pos[:size].expand_as(words)


def _rows(W_E: Tensor, ids: Tensor) -> Tensor:
    """Return the rows of W_E for these token ids; an error is raised for invalid ids, such as −1."""
    problem = f"expected ids of tokens from 0 to {len(W_E) - 1} (torch.int64), as model.encode returns"
    if ids.dtype not in (torch.int64, torch.int32):
        raise InputError(f"{problem}, got {ids.dtype}; try torch.as_tensor(model.encode(inputs))")
    try:
        # Indexing would accept −1 as the last row.
        return nn.functional.embedding(ids, W_E)
    except IndexError:
        raise InputError(f"{problem}, got {sorted(set(ids.flatten().tolist()))[:8]}") from None


def _parameters(**arrays: Any) -> Any:
    """Return a module that contains only these arrays as parameters."""
    module = nn.Module()
    for name, array in arrays.items():
        # A copy, so that training the module does not change the model.
        module.register_parameter(name, nn.Parameter(torch.tensor(array)))
    return module


class _Block(nn.Module):
    def __init__(self, layer: LayerWeights, *, sink: bool, causal: bool) -> None:
        super().__init__()
        attention, feed = layer.attention, layer.feed_forward
        self.use_split_qkv_input = self.use_hook_mlp_in = False
        self.attn = None if attention is None else _Attention(attention, causal=causal)
        self.mlp = None if feed is None else _FeedForward(feed, sink=sink)
        self.hook_resid_pre, self.hook_resid_mid = nn.Identity(), nn.Identity()
        self.hook_resid_post = nn.Identity()
        self.hook_attn_out, self.hook_mlp_out = nn.Identity(), nn.Identity()
        for name in ("q", "k", "v"):
            self.add_module(f"hook_{name}_input", nn.Identity())
        self.hook_mlp_in = nn.Identity()

    def forward(self, stream: Tensor) -> Tensor:
        stream = self.hook_resid_pre(stream)
        if self.attn is not None:
            stream = stream + self.hook_attn_out(self.attn(*self._read(stream, self.attn.heads)))
        stream = self.hook_resid_mid(stream)
        if self.mlp is not None:
            # A copy, so that its gradient flows only through the feed-forward.
            read = self.hook_mlp_in(stream.clone()) if self.use_hook_mlp_in else stream
            stream = stream + self.hook_mlp_out(self.mlp(read))
        after: Tensor = self.hook_resid_post(stream)
        return after

    def _read(self, stream: Tensor, heads: int) -> list[Tensor]:
        """Return the inputs of queries, keys and values, each [batch, head or 1, position, d_model]."""
        if not self.use_split_qkv_input:
            return [stream[:, None]] * 3
        copies = stream[:, :, None].expand(-1, -1, heads, -1)
        # One copy per hook, so that its gradient flows through one reader only.
        read = (self.get_submodule(f"hook_{name}_input")(copies.clone()) for name in "qkv")
        return [own.transpose(1, 2) for own in read]


class _Attention(nn.Module):
    hard: Tensor
    W_O: Tensor
    b_O: Tensor

    def __init__(self, weights: AttentionWeights, *, causal: bool) -> None:
        super().__init__()
        self.causal, self.heads, self.use_attn_result = causal, weights.heads, False
        for name, array in vars(weights).items():
            if name != "kinds":
                self.register_parameter(name, nn.Parameter(torch.tensor(array)))
        hard = torch.tensor([kind == HARD for kind in weights.kinds])
        self.register_buffer("hard", hard[:, None, None], persistent=False)
        for name in ("q", "k", "v", "attn_scores", "pattern", "z", "result"):
            self.add_module(f"hook_{name}", nn.Identity())

    def _shown(self, name: str, value: Tensor) -> Tensor:
        """Pass an activation [batch, head, position, …] through its hook and return the result.

        The hook receives the axes of TransformerLens: [batch, position, head, …].
        """
        shown: Tensor = getattr(self, f"hook_{name}")(value.transpose(1, 2))
        return shown.transpose(1, 2)

    def forward(self, *read: Tensor) -> Tensor:
        q, k, v = (  # each [batch, head, position, d_head]
            self._shown(
                name.lower(), own @ getattr(self, f"W_{name}") + getattr(self, f"b_{name}")[:, None]
            )
            for name, own in zip("QKV", read, strict=True)
        )
        scores = q @ k.transpose(-1, -2)
        if self.causal:
            ahead = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, -torch.inf)
        scores = self.get_submodule("hook_attn_scores")(scores)
        top = scores.amax(dim=-1, keepdim=True)
        chosen = torch.where(self.hard, (scores == top).to(scores.dtype), torch.exp(scores - top))
        counts = chosen.sum(dim=-1, keepdim=True)
        pattern = chosen / counts
        other, same = _passed(self.get_submodule("hook_pattern"), pattern)
        # Sum first and divide afterwards, unless a hook has replaced the pattern.
        z = self._shown("z", chosen @ v / counts if same else other @ v)
        written = z @ self.W_O
        if self.use_attn_result:
            written = self._shown("result", written)
        out: Tensor = written.sum(dim=1) + self.b_O
        return out


def _passed(hook: nn.Module, value: Tensor) -> tuple[Tensor, bool]:
    """Return the result of ``hook``, and whether the tensor was neither replaced nor modified."""
    if not (hook._forward_hooks or hook._forward_pre_hooks):
        passed: Tensor = hook(value)
        return passed, passed is value
    # Version counters do not count writes through .data or NumPy, so values are compared as well.
    # Comparing values alone would miss an added zero whose gradient is needed.
    kept, version = value.detach().clone(), None if value.is_inference() else value._version
    other: Tensor = hook(value)
    if other is not value or (version is not None and value._version != version):
        return other, False
    return other, value.is_meta or torch.allclose(kept, value, rtol=0, atol=0, equal_nan=True)


class _FeedForward(nn.Module):
    W_in: Tensor
    b_in: Tensor
    W_out: Tensor
    b_out: Tensor
    W_gate: Tensor

    def __init__(self, weights: FeedForwardWeights, *, sink: bool) -> None:
        super().__init__()
        self.kind, self.functions, self.sink = weights.kind, weights.functions, int(sink)
        for name in ("W_in", "b_in", "W_out", "b_out", "W_gate"):
            if (array := getattr(weights, name)) is not None:
                self.register_parameter(name, nn.Parameter(torch.tensor(array)))
        self.hook_pre, self.hook_post = nn.Identity(), nn.Identity()
        if self.kind == "glu":
            self.hook_gate = nn.Identity()

    def forward(self, stream: Tensor) -> Tensor:
        before = self.hook_pre(stream @ self.W_in + self.b_in)
        if self.functions is not None:
            after = self._exact(before)
        elif self.kind == "glu":
            after = torch.relu(self.hook_gate(stream @ self.W_gate)) * before
        else:
            after = nn.functional.gelu(before) if self.kind == "gelu" else torch.relu(before)
        out: Tensor = self.hook_post(after) @ self.W_out + self.b_out
        return out

    def _exact(self, before: Tensor) -> Tensor:
        assert self.functions is not None
        real = before[:, self.sink :]
        arguments = [real[..., i].contiguous() for i in range(self.functions.arguments)]
        outputs = torch.stack(self.functions(arguments), dim=-1)
        # Functions are not evaluated at the sink; their outputs there are 0.
        return nn.functional.pad(outputs, (0, 0, self.sink, 0))
