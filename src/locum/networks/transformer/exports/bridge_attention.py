"""Add per-head hooks to the attention of the native bridge of TransformerLens 4.

The native bridge computes attention in one module, without ``hook_q_input``, ``hook_k_input``,
``hook_v_input`` and ``hook_result``. Methods such as edge attribution patching need these hooks. If
``use_split_qkv_input``, ``use_attn_in`` or ``use_attn_result`` is enabled, :class:`SplitAttention`
computes the same attention with the hooks of the option. Import this module only with TransformerLens
4.

``hook_mlp_in`` of the bridge is the residual stream itself, so its gradient would include all later
readers of the stream. :class:`CopyingHookPoint` passes a copy, whose gradient flows only through the
feed-forward, as in ``HookedTransformer``.
"""

from __future__ import annotations

import importlib
from typing import Any

_components: Any = importlib.import_module("transformer_lens.model_bridge.generalized_components")
_hook_points: Any = importlib.import_module("transformer_lens.hook_points")
_torch: Any = importlib.import_module("torch")


class CopyingHookPoint(_hook_points.HookPoint):  # type: ignore[misc]
    """A hook point that passes on a copy of its input."""

    def forward(self, stream: Any) -> Any:
        """Return a copy of the residual stream."""
        return super().forward(stream.clone())


class SplitAttention(_components.PositionEmbeddingsAttentionBridge):  # type: ignore[misc]
    """Attention of the native bridge with an optional separate input and output for each head.

    TransformerLens reads the attribute ``supports_attn_result``, which states that heads can have
    separate outputs.
    """

    supports_attn_result = True

    def forward(self, hidden_states: Any, attention_mask: Any = None, **options: Any) -> Any:
        """Return the output of the attention layer and the attention patterns of its heads."""
        config = self.config
        if not (config.use_split_qkv_input or config.use_attn_in or config.use_attn_result):
            plain = _components.AttentionBridge.forward
            return plain(self, hidden_states, attention_mask=attention_mask, **options)
        try:
            q, k, v = self._inputs(self.hook_in(hidden_states))
        finally:
            self._captured_pre_ln_residual = None
        own = self.original_component
        scores = _torch.einsum("bqhe,bkhe->bhqk", q, k) / own.scale
        size = scores.shape[-1]
        hidden = own.causal_mask[:size, :size] if own.causal else _torch.zeros_like(scores[0, 0]).bool()
        if attention_mask is not None:
            hidden = own._combine_attention_mask(hidden, attention_mask, batch=len(scores))
        scores = self.hook_attn_scores(scores.masked_fill(hidden, -_torch.inf))
        pattern = self.hook_pattern(scores.softmax(dim=-1).masked_fill(hidden, 0.0))
        z = _torch.einsum("bhqk,bkhe->bqhe", pattern, v)
        if config.use_attn_result:
            flat = self.o.hook_in(z.flatten(2))
            out = self._compute_per_head_result(flat.view(z.shape), config.n_heads, config.d_head)
        else:
            out = self.o(z.flatten(2))
        return self.hook_out(out), pattern

    def _inputs(self, hidden_states: Any) -> list[Any]:
        """Return queries, keys and values, each [batch, position, head, d_head]."""
        config, projections = self.config, (self.q, self.k, self.v)
        heads, width = config.n_heads, config.d_head
        if not (config.use_split_qkv_input or config.use_attn_in):
            shape = (*hidden_states.shape[:2], heads, width)
            return [project(hidden_states).view(shape) for project in projections]
        captured = self._captured_pre_ln_residual
        source = hidden_states if captured is None else captured
        if config.use_attn_in:
            read = [self._fork_and_norm_per_head(source.clone(), self.hook_attn_in, heads)] * 3
        else:
            hooks = (self.hook_q_input, self.hook_k_input, self.hook_v_input)
            # With one head, the fork is not a copy, and a hook could modify the shared tensor.
            read = [self._fork_and_norm_per_head(source.clone(), hook, heads) for hook in hooks]
        return [
            self._project_per_head_qkv(project, own, heads, width)
            for project, own in zip(projections, read, strict=True)
        ]
