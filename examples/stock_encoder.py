"""Copy the weights of U into a stock ``torch.nn.TransformerEncoder``, and run U there.

U(3, 3, 3) is compiled to softmax heads and GELU units (recipe native), in float64 and in float32. The
encoder receives ⟨T, X⟩ as its sequence and returns T(X), for attention layers T with random matrices.
"""

import torch
from torch import nn

from locum.simulators import UniversalSimulator


def run_on_encoder(model, numbers):
    """Return the logits [batch, position, output] of a stock encoder with the weights of a network."""
    size, weights, dtype = model.architecture, model.weights, getattr(torch, model.config.dtype)
    heads, hidden = max(size.heads), size.d_mlp
    d_head = max(size.d_head, -(-size.d_model // heads))
    width = heads * d_head  # PyTorch requires d_model = heads × d_head, so smaller arrays are padded

    def padded(array, *shape):
        tensor = torch.zeros(shape, dtype=dtype)
        tensor[tuple(map(slice, array.shape))] = torch.tensor(array)
        return tensor

    layer = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, "gelu", batch_first=True, dtype=dtype)
    encoder = nn.TransformerEncoder(layer, len(weights.layers), enable_nested_tensor=False)
    for block, own in zip(encoder.layers, weights.layers, strict=True):
        block.norm1, block.norm2 = nn.Identity(), nn.Identity()
        state = {name: torch.zeros_like(tensor) for name, tensor in block.state_dict().items()}
        if (part := own.attention) is not None:
            W = [padded(W, heads, width, d_head) for W in (part.W_Q, part.W_K, part.W_V)]
            b = [padded(b, heads, d_head) for b in (part.b_Q, part.b_K, part.b_V)]
            W[0], b[0] = d_head**0.5 * W[0], d_head**0.5 * b[0]  # PyTorch divides scores by √d_head
            state["self_attn.in_proj_weight"] = torch.cat(W).mT.reshape(3 * width, width)
            state["self_attn.in_proj_bias"] = torch.cat(b).flatten()
            W_O = padded(part.W_O, heads, d_head, width).reshape(width, width)
            state["self_attn.out_proj.weight"] = W_O.T
            state["self_attn.out_proj.bias"] = padded(part.b_O, width)
        if (part := own.feed_forward) is not None:
            W_in, W_out = padded(part.W_in, width, hidden), padded(part.W_out, hidden, width)
            state |= {"linear1.weight": W_in.T, "linear1.bias": padded(part.b_in, hidden)}
            state |= {"linear2.weight": W_out.T, "linear2.bias": padded(part.b_out, width)}
        block.load_state_dict(state)
    W_pos = padded(weights.W_pos, size.n_ctx, width)
    stream = encoder(numbers[..., None] * padded(weights.W_E, 1, width) + W_pos)
    return stream @ padded(weights.W_U, width, 1) + torch.tensor(weights.b_U)


if __name__ == "__main__":
    U, X, A, V = UniversalSimulator(3, 3, 3), *torch.rand(3, 100, 3, 3, dtype=torch.float64) * 2 - 1
    expected = torch.softmax(X @ A @ X.mT, -1) @ X @ V
    for name, tolerance, allowed in (("float64", 1e-9, 1e-11), ("float32", 1e-2, 1e-4)):
        units = {"attention": "softmax", "feed_forward": "gelu", "ranges": (-1, 1)}
        model = U.compile("native", **units, dtype=name, tolerance=tolerance)
        tokens = torch.cat([part.flatten(1) for part in (X, A, V)], dim=1).to(getattr(torch, name))
        Y = run_on_encoder(model, tokens)[:, :9, 0].reshape(-1, 3, 3)
        error = (Y - expected).abs().max().item()
        print(f"TransformerEncoder, {name}: largest error on 100 attention layers {error:.1e}")
        assert error <= allowed
