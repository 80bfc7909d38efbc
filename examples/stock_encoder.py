"""U in a stock ``torch.nn.TransformerEncoder``: from the file on, there is torch alone.

U(3, 3, 3) is compiled for a host with softmax heads and GELU (recipe native) and written to a file.
Twenty lines of torch load it into an encoder of torch's own layers, whose norms are left out, give it
⟨T, X⟩ as its sequence and read off T(X), for attentions T that did not exist when it was written.
(Its certified bound is looser than what is seen: in float32 rounding alone could come to 4e-3.)
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

# Torch alone from here on. ------------------------------------------------------------------------
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
    print(f"{type(encoder).__name__}, {name}: largest error on 100 attentions {max(errors):.1e}")
    assert all(error <= allowed for error in errors)
