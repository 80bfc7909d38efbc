"""Run U as a stock ``torch.nn.TransformerEncoder``, which is loaded from a file without Locum.

U(3, 3, 3) is compiled to softmax heads and GELU units (recipe native), in float64 and in float32. Each
network is written to a file. About twenty lines of PyTorch load a file into an encoder of PyTorch's own
layers, whose norms are replaced by identities. The encoder receives ⟨T, X⟩ as its sequence and returns
T(X), for attention layers T that are drawn after the file was written. The certified error bounds of
the two networks are much larger than the observed errors.
"""

import tempfile
from pathlib import Path

from safetensors.torch import load_file, save_file

from locum.simulators import UniversalSimulator

U = UniversalSimulator(3, 3, 3)
folder = Path(tempfile.mkdtemp())
for dtype, tolerance in (("float64", 1e-9), ("float32", 1e-2)):
    model = U.compile(
        "native",
        attention="softmax",
        feed_forward="gelu",
        dtype=dtype,
        tolerance=tolerance,
        ranges=(-1, 1),
    )
    save_file(model.to_encoder().state_dict(), folder / f"{dtype}.safetensors")

# The code below uses PyTorch only. ----------------------------------------------------------------
import torch  # noqa: E402
from torch import nn  # noqa: E402

for name, allowed in (("float64", 1e-11), ("float32", 1e-4)):
    dtype, tensors = getattr(torch, name), load_file(folder / f"{name}.safetensors")
    around = {name: tensors.pop(name) for name in ("W_E", "W_pos", "W_U", "b_U")}
    d_model, hidden = around["W_E"].shape[1], len(tensors["encoder.layers.0.linear1.bias"])
    layer = nn.TransformerEncoderLayer(
        d_model, 9, hidden, dropout=0.0, activation="gelu", batch_first=True, dtype=dtype
    )
    encoder = nn.TransformerEncoder(layer, num_layers=3, enable_nested_tensor=False)
    for layer in encoder.layers:
        layer.norm1, layer.norm2 = nn.Identity(), nn.Identity()
    encoder.load_state_dict({name.removeprefix("encoder."): t for name, t in tensors.items()})
    errors = []
    for _ in range(100):
        X, A, V = torch.empty(3, 3, 3, dtype=torch.float64).uniform_(-1, 1)
        tokens = torch.cat([X.flatten(), A.flatten(), V.flatten()]).to(dtype)
        with torch.no_grad():
            stream = encoder((tokens[:, None] * around["W_E"] + around["W_pos"])[None])[0]
        Y = (stream @ around["W_U"] + around["b_U"])[:9, 0].reshape(3, 3)
        errors.append((Y - torch.softmax(X @ A @ X.T, -1) @ X @ V).abs().max().item())
    print(f"{type(encoder).__name__}, {name}: largest error on 100 attention layers {max(errors):.1e}")
    assert all(error <= allowed for error in errors)
