"""Export a compiled transformer as a torch module, parameter for parameter.

Its ``state_dict`` has the names and shapes of :meth:`Weights.named`. It takes token ids, or numbers,
[batch, position], as ``model.encode`` gives them, and gives logits [batch, position, d_vocab_out],
which ``model.decode`` reads. What has no value (a division by zero in an exact feed-forward) is NaN.

Activations pass through modules that do nothing, by TransformerLens's names (``blocks.0.attn.hook_z``):
forward hooks of torch, and ``run_with_hooks``, see them there and may change them.

:class:`StockEncoder` and :class:`StockDecoder` are stock layers of torch with the same results.
They have one number of heads for all layers, d_model = heads × head_dim, scores divided by
√head_dim, and norms. So d_model is padded, absent heads and halves are zeros, W_Q is multiplied by
√head_dim, and each norm is replaced by a module that returns its input. torch's fast path for
inference would read the weights of the norms. It is taken only if both norms of a layer have the
same ``eps``, so the two replacements have different ones. ``examples/layer_norm.py`` shows how the
norms can stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import CompileError, InputError
from locum.networks.transformer.config import Config
from locum.networks.transformer.interventions import ForwardHook, Interventions, tap_of
from locum.networks.transformer.weights import (
    HARD,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)


class TorchTransformer(Interventions, nn.Module):
    """The forward pass of ``transformer.forward``, with parameters that can be trained."""

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        self.config = config
        self.embed = _parameters(W_E=weights.W_E)
        self.pos_embed = _parameters(W_pos=weights.W_pos)
        self.blocks = nn.ModuleList(
            _Block(layer, sink=config.sink, causal=config.causal) for layer in weights.layers
        )
        self.unembed = _parameters(W_U=weights.W_U, b_U=weights.b_U)
        self.hook_embed, self.hook_pos_embed = nn.Identity(), nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits [batch, position, d_vocab_out] for ids or numbers [batch, position]."""
        words, places = embeddings(inputs, self.embed.W_E, self.pos_embed.W_pos, self.config)
        # A copy: a hook that writes into what it is shown must not write into W_pos.
        stream: Tensor = self.hook_embed(words) + self.hook_pos_embed(places.clone())
        for block in self.blocks:
            stream = block(stream)
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.unembed.W_U + self.unembed.b_U
        return logits

    def run_with_hooks(self, inputs: Tensor, fwd_hooks: Sequence[ForwardHook]) -> Tensor:
        """Return logits with hooks: (name, function of an activation and ``hook``) pairs."""
        tap, check = tap_of(fwd_hooks)
        logits = self._tapped(inputs, tap)
        check()
        return logits

    def run_with_cache(self, inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return logits, and every activation under the name of its TransformerLens hook."""
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


def embedded(inputs: Tensor, W_E: Tensor, W_pos: Tensor, config: Config) -> Tensor:
    """Return the residual stream before the first layer; a sink stands first."""
    words, places = embeddings(inputs, W_E, W_pos, config)
    return words + places


def embeddings(inputs: Tensor, W_E: Tensor, W_pos: Tensor, config: Config) -> tuple[Tensor, Tensor]:
    """Return what tokens, and what positions, add to the stream; no token stands at the sink."""
    if not isinstance(inputs, Tensor):
        raise InputError(f"expected a tensor of shape [batch, position], got {type(inputs).__name__}")
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
    """Return the rows of W_E of these tokens; an id that there is none for, −1 included, is refused."""
    problem = (
        f"expected ids of tokens from 0 to {len(W_E) - 1} (torch.int64), as model.encode gives them"
    )
    if ids.dtype not in (torch.int64, torch.int32):
        raise InputError(f"{problem}, got {ids.dtype}; try torch.as_tensor(model.encode(inputs))")
    try:
        # Indexing would count −1 from the end.
        return nn.functional.embedding(ids, W_E)
    except IndexError:
        raise InputError(f"{problem}, got {sorted(set(ids.flatten().tolist()))[:8]}") from None


def _parameters(**arrays: Any) -> Any:
    """Return a module that only holds parameters."""
    module = nn.Module()
    for name, array in arrays.items():
        # A copy, so that training the module does not change the model.
        module.register_parameter(name, nn.Parameter(torch.tensor(array)))
    return module


class _Block(nn.Module):
    def __init__(self, layer: LayerWeights, *, sink: bool, causal: bool) -> None:
        super().__init__()
        attention, feed = layer.attention, layer.feed_forward
        self.attn = None if attention is None else _Attention(attention, causal=causal)
        self.mlp = None if feed is None else _FeedForward(feed, sink=sink)
        self.hook_resid_pre, self.hook_resid_mid = nn.Identity(), nn.Identity()
        self.hook_resid_post = nn.Identity()
        self.hook_attn_out, self.hook_mlp_out = nn.Identity(), nn.Identity()

    def forward(self, stream: Tensor) -> Tensor:
        stream = self.hook_resid_pre(stream)
        if self.attn is not None:
            stream = stream + self.hook_attn_out(self.attn(stream))
        stream = self.hook_resid_mid(stream)
        if self.mlp is not None:
            stream = stream + self.hook_mlp_out(self.mlp(stream))
        after: Tensor = self.hook_resid_post(stream)
        return after


class _Attention(nn.Module):
    hard: Tensor
    W_O: Tensor
    b_O: Tensor

    def __init__(self, weights: AttentionWeights, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        for name, array in vars(weights).items():
            if name != "kinds":
                self.register_parameter(name, nn.Parameter(torch.tensor(array)))
        hard = torch.tensor([kind == HARD for kind in weights.kinds])
        self.register_buffer("hard", hard[:, None, None], persistent=False)
        for name in ("q", "k", "v", "attn_scores", "pattern", "z"):
            self.add_module(f"hook_{name}", nn.Identity())

    def _shown(self, name: str, value: Tensor) -> Tensor:
        """Show an activation with the axes of TransformerLens: [batch, position, head, d_head]."""
        shown: Tensor = getattr(self, f"hook_{name}")(value.transpose(1, 2))
        return shown.transpose(1, 2)

    def forward(self, stream: Tensor) -> Tensor:
        each = stream[:, None]  # [batch, 1, position, slot]
        q, k, v = (
            self._shown(
                name.lower(), each @ getattr(self, f"W_{name}") + getattr(self, f"b_{name}")[:, None]
            )
            for name in "QKV"
        )
        scores = q @ k.transpose(-1, -2)
        if self.causal:
            ahead = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, -torch.inf)
        scores = self.get_submodule("hook_attn_scores")(scores)
        top = scores.amax(dim=-1, keepdim=True)
        chosen = torch.where(self.hard, (scores == top).to(stream.dtype), torch.exp(scores - top))
        counts = chosen.sum(dim=-1, keepdim=True)
        pattern = chosen / counts
        other, same = _passed(self.get_submodule("hook_pattern"), pattern)
        # Summed first and divided after, unless somebody put another pattern in its place.
        z = self._shown("z", chosen @ v / counts if same else other @ v)
        out: Tensor = (z @ self.W_O).sum(dim=1) + self.b_O
        return out


def _passed(hook: nn.Module, value: Tensor) -> tuple[Tensor, bool]:
    """Return what a hook leaves of a tensor, and whether it is the same, not written into either."""
    if not (hook._forward_hooks or hook._forward_pre_hooks):
        passed: Tensor = hook(value)
        return passed, passed is value
    # Versions count no writes through .data or NumPy; numbers do not show that a zero was added whose
    # gradient is wanted.
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
        # At the sink, functions are not evaluated and are 0.
        return nn.functional.pad(outputs, (0, 0, self.sink, 0))


class IdentityNorm(nn.Identity):
    """Stand in for a norm; torch reads ``eps``, and takes no fast path if two of a layer differ."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps


class _Stock(nn.Module):
    """Wrap stock layers in the tables of embedding and unembedding."""

    #: How a stock layer is called in messages, and which layer it is.
    called: str
    layer: type[nn.TransformerEncoderLayer] | type[nn.TransformerDecoderLayer]

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        activation = _activation(weights, self.called)
        attentions = [layer.attention for layer in weights.layers if layer.attention is not None]
        feeds = [layer.feed_forward for layer in weights.layers if layer.feed_forward is not None]
        heads = max((part.heads for part in attentions), default=1)
        widest = max((part.W_Q.shape[2] for part in attentions), default=1)
        width = heads * max(widest, -(-weights.W_E.shape[1] // heads))
        self.config = config
        self.W_E = nn.Parameter(_padded(weights.W_E, width))
        self.W_pos = nn.Parameter(_padded(weights.W_pos, width))
        self.W_U = nn.Parameter(_padded(weights.W_U.T, width).T.contiguous())
        self.b_U = nn.Parameter(torch.tensor(weights.b_U))
        layer = self.layer(
            width,
            heads,
            max((feed.W_out.shape[0] for feed in feeds), default=1),
            dropout=0.0,
            activation=activation,
            batch_first=True,
            dtype=getattr(torch, config.dtype),
        )
        # torch has no stack without layers: one of zeros adds nothing.
        stack = self._stacked(layer, max(len(weights.layers), 1))
        with torch.no_grad():
            for block in stack.layers:
                for parameter in block.parameters():
                    parameter.zero_()
                block.norm1, block.norm2 = IdentityNorm(0.0), IdentityNorm(1.0)
                if hasattr(block, "norm3"):
                    block.norm3 = IdentityNorm(2.0)
            for block, own in zip(stack.layers, weights.layers, strict=False):
                if own.attention is not None:
                    _set_attention(block.self_attn, own.attention)
                if own.feed_forward is not None:
                    _set_feed_forward(block, own.feed_forward)
        self.eval()

    def _stacked(self, layer: Any, count: int) -> Any:
        raise NotImplementedError

    def _run(self, stream: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits [batch, position, d_vocab_out] for ids or numbers [batch, position]."""
        stream = self._run(embedded(inputs, self.W_E, self.W_pos, self.config))
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.W_U + self.b_U
        return logits


class StockEncoder(_Stock):
    """Hold a stock ``nn.TransformerEncoder`` as ``encoder``."""

    called = "a stock encoder"
    layer = nn.TransformerEncoderLayer

    def _stacked(self, layer: Any, count: int) -> Any:
        self.encoder = nn.TransformerEncoder(layer, count, enable_nested_tensor=False)
        return self.encoder

    def _run(self, stream: Tensor) -> Tensor:
        stream_out: Tensor = self.encoder(stream, mask=_ahead(stream) if self.config.causal else None)
        return stream_out


class StockDecoder(_Stock):
    """Hold a stock ``nn.TransformerDecoder`` as ``decoder``; its cross-attention is all zeros."""

    called = "a stock decoder"
    layer = nn.TransformerDecoderLayer

    def __init__(self, config: Config, weights: Weights) -> None:
        if not config.causal:
            raise CompileError(
                "a stock decoder has causal masks, but this network attends to later positions, too: "
                "try to_encoder(), or compile with causal=True"
            )
        super().__init__(config, weights)

    def _stacked(self, layer: Any, count: int) -> Any:
        self.decoder = nn.TransformerDecoder(layer, count)
        return self.decoder

    def _run(self, stream: Tensor) -> Tensor:
        # There is no encoder to read from: one row of zeros stands for its memory.
        memory = torch.zeros_like(stream[:, :1])
        stream_out: Tensor = self.decoder(stream, memory, tgt_mask=_ahead(stream))
        return stream_out


def _ahead(stream: Tensor) -> Tensor:
    """Return [query, key]: whether the key stands behind the query, which a causal mask hides."""
    size = stream.shape[1]
    return torch.ones(size, size, dtype=torch.bool, device=stream.device).triu(1)


def _activation(weights: Weights, host: str) -> str:
    """Return the one activation of all feed-forwards; refuse what a stock module cannot be."""
    weights.require_soft(host)
    kinds = weights.feed_forwards
    if kinds - {"gelu", "relu"} or len(kinds) > 1:
        raise CompileError(
            f"{host} has gelu or relu in all its feed-forwards, but these are "
            f"{' and '.join(sorted(kinds))}: compile with feed_forward='gelu' or 'relu'"
        )
    return kinds.pop() if kinds else "relu"


def _padded(array: Any, width: int) -> Tensor:
    """Pad the last axis, d_model, with zeros."""
    tensor = torch.tensor(array)
    return nn.functional.pad(tensor, (0, width - tensor.shape[-1]))


def _set_attention(module: Any, weights: AttentionWeights) -> None:
    slots, columns = weights.W_Q.shape[1:]
    width, head_dim = module.embed_dim, module.head_dim
    for place, name in enumerate("QKV"):
        scale = math.sqrt(head_dim) if name == "Q" else 1.0
        matrices = torch.tensor(getattr(weights, f"W_{name}")) * scale  # [head, d_model, d_head]
        biases = torch.tensor(getattr(weights, f"b_{name}")) * scale
        for head in range(weights.heads):
            rows = slice(start := place * width + head * head_dim, start + columns)
            module.in_proj_weight[rows, :slots] = matrices[head].T
            module.in_proj_bias[rows] = biases[head]
    for head, matrix in enumerate(torch.tensor(weights.W_O)):
        columns_of_head = slice(head * head_dim, head * head_dim + columns)
        module.out_proj.weight[:slots, columns_of_head] = matrix.T
    module.out_proj.bias[:slots] = torch.tensor(weights.b_O)


def _set_feed_forward(block: Any, weights: FeedForwardWeights) -> None:
    hidden, slots = weights.W_out.shape
    block.linear1.weight[:hidden, :slots] = torch.tensor(weights.W_in).T
    block.linear1.bias[:hidden] = torch.tensor(weights.b_in)
    block.linear2.weight[:slots, :hidden] = torch.tensor(weights.W_out).T
    block.linear2.bias[:slots] = torch.tensor(weights.b_out)
