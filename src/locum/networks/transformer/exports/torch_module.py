"""Export a compiled transformer as a PyTorch module, parameter by parameter.

The ``state_dict`` has the names and shapes of :meth:`Weights.named`. The module maps token ids or
numbers [batch, position], as returned by ``model.encode``, to logits [batch, position, d_vocab_out],
which ``model.decode`` accepts. Undefined operations, such as a division by zero in a symbolic
feed-forward, return NaN.

Activations pass through identity modules with the names of hooks, such as ``blocks.0.attn.hook_z``.
PyTorch forward hooks and ``run_with_hooks`` can read and change activations there. As in
TransformerLens, ``set_use_split_qkv_input``, ``set_use_attn_result`` and ``set_use_hook_mlp_in`` enable
further hooks: ``blocks.0.hook_q_input``, ``hook_k_input``, ``hook_v_input``,
``blocks.0.attn.hook_result`` [batch, position, head, d_model] and ``blocks.0.hook_mlp_in``. The input
hooks precede the layer norm.

:class:`StockEncoder` and :class:`StockDecoder` consist of stock PyTorch layers and compute the same
results up to rounding. Stock layers require the same number of heads in all layers, d_model = heads ×
head_dim, scores divided by √head_dim, and norms. Therefore d_model is padded, absent heads and
sublayers are zeros, W_Q and b_Q are multiplied by √head_dim, and each norm is replaced by an identity.

PyTorch's fast path for inference would read the weights of the norms. PyTorch uses this path only if
both norms of a layer have the same ``eps``, so the two identities have different values.
``examples/layer_norm.py`` shows how to keep the norms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from locum.errors import CompileError, InputError
from locum.networks.transformer.config import Config
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.interventions import ForwardHook, Interventions, tap_of
from locum.networks.transformer.weights import (
    HARD,
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    NormWeights,
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
        self.ln_final = _norm(weights.norm)
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
        read = _normalise(self.ln_final, stream[:, int(self.config.sink) :])
        logits: Tensor = read @ self.unembed.W_U + self.unembed.b_U
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
        """Set whether ``hook_mlp_in`` exposes the input of each feed-forward before its norm."""
        for block in self.blocks:
            setattr(block, "use_hook_mlp_in", use)  # noqa: B010

    def _tensors(self) -> dict[str, Tensor]:
        return dict(self.named_parameters())

    def _norm(self, hook: str, stream: Tensor) -> Tensor:
        block: Any = self.blocks[int(hook.split(".")[1])]
        return _normalise(block.ln1 if ".attn." in hook else block.ln2, stream)

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


def embedded(inputs: Tensor, W_E: Tensor, W_pos: Tensor, config: Config) -> Tensor:
    """Return the residual stream before the first layer; with a sink, position 0 is the sink."""
    words, places = embeddings(inputs, W_E, W_pos, config)
    return words + places


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


class _LayerNorm(nn.Module):
    w: Tensor
    b: Tensor

    def __init__(self, weights: NormWeights) -> None:
        super().__init__()
        for name in ("w", "b"):
            self.register_parameter(name, nn.Parameter(torch.tensor(getattr(weights, name))))
        self.epsilon = weights.epsilon
        self.hook_scale, self.hook_normalized = nn.Identity(), nn.Identity()

    def forward(self, stream: Tensor) -> Tensor:
        centred = stream - stream.mean(dim=-1, keepdim=True)
        scale = (centred.square().mean(dim=-1, keepdim=True) + self.epsilon).sqrt()
        normalised: Tensor = self.hook_normalized(centred / self.hook_scale(scale) * self.w + self.b)
        return normalised


def _norm(weights: NormWeights | None) -> _LayerNorm | None:
    return None if weights is None else _LayerNorm(weights)


def _normalise(norm: _LayerNorm | None, stream: Tensor) -> Tensor:
    """Return the normalised stream, or ``stream`` if ``norm`` is None."""
    if norm is None:
        return stream
    read: Tensor = norm(stream)
    return read


class _Block(nn.Module):
    def __init__(self, layer: LayerWeights, *, sink: bool, causal: bool) -> None:
        super().__init__()
        attention, feed = layer.attention, layer.feed_forward
        self.use_split_qkv_input = self.use_hook_mlp_in = False
        self.ln1, self.ln2 = _norm(layer.norm1), _norm(layer.norm2)
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
            stream = stream + self.hook_mlp_out(self.mlp(_normalise(self.ln2, read)))
        after: Tensor = self.hook_resid_post(stream)
        return after

    def _read(self, stream: Tensor, heads: int) -> list[Tensor]:
        """Return the inputs of queries, keys and values, each [batch, head or 1, position, d_model]."""
        if not self.use_split_qkv_input:
            return [_normalise(self.ln1, stream)[:, None]] * 3
        copies = stream[:, :, None].expand(-1, -1, heads, -1)
        # One copy per hook, so that its gradient flows through one reader only.
        read = (self.get_submodule(f"hook_{name}_input")(copies.clone()) for name in "qkv")
        return [_normalise(self.ln1, own).transpose(1, 2) for own in read]


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


class IdentityNorm(nn.Identity):
    """An identity that replaces a layer norm.

    PyTorch reads ``eps``, and skips the fast path if the two norms of a layer have different values.
    """

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps


class _Stock(nn.Module):
    """A module of stock layers between an embedding and an unembedding."""

    #: Name of the module in messages, and class of its stock layers.
    called: str
    layer: type[nn.TransformerEncoderLayer] | type[nn.TransformerDecoderLayer]

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        weights.require_no_norms(self.called)
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
        # PyTorch requires at least one layer; a layer of zeros adds nothing.
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
        """Return logits [batch, position, d_vocab_out] for token ids or numbers [batch, position]."""
        stream = self._run(embedded(inputs, self.W_E, self.W_pos, self.config))
        logits: Tensor = stream[:, int(self.config.sink) :] @ self.W_U + self.b_U
        return logits


class StockEncoder(_Stock):
    """A module that contains a stock ``nn.TransformerEncoder`` as ``encoder``."""

    called = "a stock encoder"
    layer = nn.TransformerEncoderLayer

    def _stacked(self, layer: Any, count: int) -> Any:
        self.encoder = nn.TransformerEncoder(layer, count, enable_nested_tensor=False)
        return self.encoder

    def _run(self, stream: Tensor) -> Tensor:
        stream_out: Tensor = self.encoder(stream, mask=_ahead(stream) if self.config.causal else None)
        return stream_out


class StockDecoder(_Stock):
    """A module that contains a stock ``nn.TransformerDecoder`` as ``decoder``.

    All weights of its cross-attention are 0.
    """

    called = "a stock decoder"
    layer = nn.TransformerDecoderLayer

    def __init__(self, config: Config, weights: Weights) -> None:
        if not config.causal:
            raise CompileError(
                "expected a network with causal masks, got one that attends to later positions; try "
                "to_encoder(), or causal=True in locum.compile"
            )
        super().__init__(config, weights)

    def _stacked(self, layer: Any, count: int) -> Any:
        self.decoder = nn.TransformerDecoder(layer, count)
        return self.decoder

    def _run(self, stream: Tensor) -> Tensor:
        # There is no encoder output, so the memory is one row of zeros.
        memory = torch.zeros_like(stream[:, :1])
        stream_out: Tensor = self.decoder(stream, memory, tgt_mask=_ahead(stream))
        return stream_out


def _ahead(stream: Tensor) -> Tensor:
    """Return a causal mask [query, key] that is True for the keys after each query."""
    size = stream.shape[1]
    return torch.ones(size, size, dtype=torch.bool, device=stream.device).triu(1)


def _activation(weights: Weights, host: str) -> str:
    """Return the activation of all feed-forwards: ``relu`` or ``gelu``.

    ``CompileError`` is raised if a head is hard, or if the feed-forwards are not all ReLU or all GELU.
    """
    weights.require_soft(host)
    kinds = weights.feed_forwards
    if kinds - {"gelu", "relu"} or len(kinds) > 1:
        raise CompileError(
            f"{host}: expected only gelu or only relu in all feed-forwards, got "
            f"{' and '.join(sorted(kinds))}; try feed_forward='gelu' or 'relu' in locum.compile"
        )
    return kinds.pop() if kinds else "relu"


def _padded(array: Any, width: int) -> Tensor:
    """Return ``array`` as a tensor whose last axis, d_model, is padded with zeros to ``width``."""
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
