"""Random layers of torch, with options that are simulated and options that are not.

``torch_verdict`` says what came of one by ``locum.simulate`` and ``locum.stand_in``: refused, or right;
anything accepted and wrong raises. ``afterwards_verdict`` does so for a stand-in that is changed in the
same way as the module that it stands in for.
"""

from __future__ import annotations

import copy
import warnings
from types import FunctionType
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
    inputs = X if first else X.transpose(0, 1)
    memory = None if not to_memory else (M if first else M.transpose(0, 1))
    prefix = "memory_" if to_memory else ""
    masks: dict[str, Any] = {f"{prefix}mask": mask, f"{prefix}attention_mask": seen}
    masks = {name: one for name, one in masks.items() if one is not None}
    try:
        actual = locum.simulate(module, inputs, memory, **masks)
    except InputError:
        actual = None
    try:
        by_U = locum.stand_in(module)
        with torch.no_grad():
            stood = _by_torch(by_U, kind, X, M if to_memory else None, mask, seen, first)
    except InputError:
        stood = None
    if actual is None and stood is None:
        return "refused"
    assert not was_changed, f"{seed}: a changed module was accepted"
    for result in (actual, stood):
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


def nothing(X: Any, *inputs: Any, **options: Any) -> Any:
    """Stand in a method that computes something else."""
    return X * 0


def change_afterwards(module: Any, pattern: Any, seed: int) -> Any:
    """Change a module or its stand-in in the way that a seed says; gives a hook to remove, if any.

    ``pattern`` is a copy of the module, whose parts and settings are drawn.
    """
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    place = _pick(chance, [name for name, _ in pattern.named_modules()])
    part, drawn = module.get_submodule(place), pattern.get_submodule(place)
    parameters = [name for name, _ in drawn.named_parameters(recurse=False)]
    match int(chance.integers(12)):
        case 0:
            part.forward = nothing
        case 1:
            plain = (bool, int, float)
            own = sorted(n for n, v in vars(drawn).items() if isinstance(v, plain) and n[0] != "_")
            name = _pick(chance, own)
            value = getattr(drawn, name)
            setattr(part, name, not value if isinstance(value, bool) else value * 2 + 1)
        case 2:
            return nn.Module.register_forward_hook(part, lambda *inputs: inputs[2])
        case 3 if parameters:
            nn.utils.prune.random_unstructured(part, _pick(chance, parameters), 0.5)
        case 4 if "weight" in parameters and drawn.weight.dim() == 2:
            nn.utils.parametrizations.weight_norm(part)
        case 5 if parameters:
            setattr(part, _pick(chance, parameters), None)
        case 6 if parameters:
            name = _pick(chance, parameters)
            setattr(part, name, nn.Parameter(torch.randn_like(getattr(part, name))))
        case 7:
            own = vars(type(drawn))
            methods = sorted(n for n in own if isinstance(own[n], FunctionType) and n[:2] != "__")
            setattr(part, _pick(chance, methods), nothing)
        case 8:
            return nn.modules.module.register_module_forward_hook(lambda *inputs: None)
        case 9:
            layer = module.layers[0] if hasattr(pattern, "layers") else module
            setattr(
                layer, _pick(chance, ("_sa_block", "_ff_block", "activation", "norm_first")), nothing
            )
        case 10:
            attention = getattr(module, "self_attn", module)
            setattr(attention, _pick(chance, ("add_zero_attn", "batch_first", "bias_k")), True)
        case _:
            names = [name for name, one in drawn.named_children() if isinstance(one, nn.Linear)]
            for name in names[:1]:
                old = getattr(drawn, name)
                sizes = (old.in_features, old.out_features + int(chance.integers(2)))
                setattr(part, name, nn.Linear(*sizes, dtype=old.weight.dtype))
    return None


def afterwards_verdict(seed: int) -> str:
    """Change a stand-in and its module in the same way: "refused", "right", or "torch refuses"."""
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    kind, d = _pick(chance, KINDS), _pick(chance, (4, 8))
    module = random_module(chance, kind, d).to(torch.float64).eval()
    X = torch.randn(2, 3, d, dtype=torch.float64)
    M = X if kind == "decoder layer" else None
    first = module.batch_first if kind == "attention" else _batch_first(module)
    try:
        by_U = locum.stand_in(module)
    except InputError:
        return "refused"
    pattern, results = copy.deepcopy(module), list[Any]()
    for one in (module, by_U):
        hook: Any = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's, of modules that are changed
                hook = change_afterwards(one, pattern, seed)
                # With gradients, so that torch takes no fast path.
                results.append(_by_torch(one, kind, X, M, None, None, first))
        except Exception as error:
            results.append(error)
        finally:
            if hook is not None:
                hook.remove()
    expected, result = results
    if isinstance(result, InputError):
        return "refused"
    if isinstance(expected, Exception):
        return "torch refuses"
    assert not isinstance(result, Exception), f"{seed}: {kind}, {result!r}"
    expected, result = expected.detach(), result.detach()
    off = float((result - expected).abs().max()) / (1 + float(expected.abs().max()))
    assert off <= BOUNDS["float64"], f"{seed}: {kind}, off by {off}"
    return "right"
