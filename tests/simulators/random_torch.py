"""Random layers of torch, with options that are simulated and options that are not.

``torch_verdict`` says what came of one by ``locum.simulate`` and ``locum.stand_in``: refused, or right;
anything accepted and wrong raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn

ACTIVATIONS = (
    *("relu", "gelu", nn.functional.silu, nn.Tanh(), nn.GELU(), torch.sigmoid, nn.LeakyReLU()),
    *(nn.ELU(), nn.LeakyReLU(0.3), nn.functional.mish, nn.GELU(approximate="tanh"), nn.ReLU6()),
)
KINDS = ("attention", "encoder layer", "encoder", "decoder layer")
#: How far a result may be off, relative to 1 + its greatest number.
BOUNDS = {"float64": 1e-10, "float32": 1e-4}


def _pick(chance: np.random.Generator, choices: Any) -> Any:
    return choices[int(chance.integers(len(choices)))]


def random_module(chance: np.random.Generator, kind: str, d: int) -> Any:
    """Draw a module of some kind on d columns."""
    heads, first = _pick(chance, (1, 2, 4)), bool(chance.integers(2))
    bias = bool(chance.random() < 0.8)
    if kind == "attention":
        options: dict[str, Any] = {"bias": bias, "batch_first": first}
        if chance.random() < 0.2:
            options["add_zero_attn"] = True
        if chance.random() < 0.1:
            options["add_bias_kv"] = True
        if chance.random() < 0.3:
            options |= {"kdim": 6, "vdim": _pick(chance, (6, 6, 3))}
        return nn.MultiheadAttention(d, heads, **options)
    options = {"batch_first": first, "norm_first": bool(chance.integers(2)), "bias": bias}
    options |= {"activation": _pick(chance, ACTIVATIONS), "layer_norm_eps": _pick(chance, (1e-5, 0.1))}
    make = nn.TransformerDecoderLayer if kind == "decoder layer" else nn.TransformerEncoderLayer
    layer = make(d, heads, _pick(chance, (3, 10)), 0.1, **options)
    if kind != "encoder":
        return layer
    norm = _pick(chance, (None, nn.LayerNorm(d), nn.LayerNorm(d, elementwise_affine=False)))
    return nn.TransformerEncoder(layer, int(chance.integers(1, 4)), norm, enable_nested_tensor=False)


def change(module: Any, chance: np.random.Generator) -> bool:
    """Now and then change the module, so that it computes something else."""
    if chance.random() > 0.15:
        return False
    parts = [part for part in module.modules() if isinstance(part, (nn.Linear, nn.LayerNorm))]
    part = _pick(chance, parts)
    match chance.integers(3):
        case 0:
            part.register_forward_hook(lambda module, inputs, output: output + 1)
        case 1:
            part.forward = lambda x: x * 0
        case _:
            part.__class__ = type(type(part).__name__, (type(part),), {"forward": lambda self, x: x})
    return True


def torch_verdict(seed: int) -> str:
    """Run one random layer by torch and by U: "refused", "right", or "torch refuses"."""
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    kind, dtype = _pick(chance, KINDS), _pick(chance, ("float64", "float64", "float32"))
    d = _pick(chance, (4, 8))
    module = random_module(chance, kind, d).to(getattr(torch, dtype)).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    was_changed = change(module, chance)
    batch, n, m = int(chance.integers(1, 4)), int(chance.integers(1, 6)), int(chance.integers(1, 6))
    first = module.batch_first if kind == "attention" else _batch_first(module)
    to_memory = kind == "decoder layer" or (kind == "attention" and chance.random() < 0.5)
    width = getattr(module, "kdim", d) if kind == "attention" else d
    X, M = (torch.randn(batch, size, c).to(module_dtype(module)) for size, c in ((n, d), (m, width)))
    keys = m if to_memory else n
    # What a query attends to: each at least to its own key, or to the first one.
    kept = torch.rand(n, keys) < 0.7
    kept[:, 0] = True
    padding = torch.rand(batch, keys) < 0.7
    padding[:, 0] = True
    mask, seen = (kept if chance.random() < 0.5 else None), (padding if chance.random() < 0.5 else None)
    try:
        with torch.no_grad():
            expected = _by_torch(module, kind, X, M if to_memory else None, mask, seen, first)
    except Exception:
        return "torch refuses"
    given = X if first else X.transpose(0, 1)
    memory = None if not to_memory else (M if first else M.transpose(0, 1))
    prefix = "memory_" if to_memory else ""
    masks: dict[str, Any] = {f"{prefix}mask": mask, f"{prefix}attention_mask": seen}
    masks = {name: one for name, one in masks.items() if one is not None}
    try:
        found = locum.simulate(module, given, memory, **masks)
    except InputError:
        found = None
    try:
        by_U = locum.stand_in(module)
        with torch.no_grad():
            stood = _by_torch(by_U, kind, X, M if to_memory else None, mask, seen, first)
    except InputError:
        stood = None
    if found is None and stood is None:
        return "refused"
    assert not was_changed, f"{seed}: a changed module was accepted"
    for result in (found, stood):
        if result is not None:
            off = float((result - expected).abs().max()) / (1 + float(expected.abs().max()))
            assert off <= BOUNDS[dtype], f"{seed}: {kind}, off by {off}"
    return "right"


def module_dtype(module: Any) -> Any:
    """Return the type of its parameters."""
    return next(module.parameters()).dtype


def _batch_first(module: Any) -> bool:
    layer = module.layers[0] if isinstance(module, nn.TransformerEncoder) else module
    return bool(layer.self_attn.batch_first)


def _by_torch(module: Any, kind: str, X: Any, M: Any, mask: Any, seen: Any, batch_first: bool) -> Any:
    """Call a module as torch has it, whose masks are true where a key does not count."""
    hidden = None if mask is None else ~mask
    padded = None if seen is None else ~seen
    X, M = (x if x is None or batch_first else x.transpose(0, 1) for x in (X, M))
    if kind == "attention":
        keys = X if M is None else M
        return module(X, keys, keys, key_padding_mask=padded, attn_mask=hidden)[0]
    if kind == "decoder layer":
        return module(X, M, memory_mask=hidden, memory_key_padding_mask=padded)
    return module(X, hidden, src_key_padding_mask=padded)
