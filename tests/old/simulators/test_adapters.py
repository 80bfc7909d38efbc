"""``from_torch`` over the options of PyTorch's layers, in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locum.errors import GraphError, InputError
from locum.simulators import UniversalSimulator, from_torch
from locum.simulators.conversion import FORMS
from tests.simulators.random_modules import Chance, distance

torch: Any = pytest.importorskip("torch")


@dataclass(frozen=True)
class Options:
    """The options of a layer, and of a call."""

    heads: int
    width: int
    hidden: int
    norm_first: bool
    bias: bool
    activation: str
    n: int
    m: int
    mask: str
    form: str
    seed: int

    @property
    def d(self) -> int:
        return self.heads * self.width

    def layer(self, kind: Any) -> Any:
        made = kind(
            self.d, self.heads, self.hidden, dropout=0.0, activation=self.activation, bias=self.bias,
            norm_first=self.norm_first, dtype=torch.float64,
        )  # fmt: skip
        return randomised(made, self.seed)

    def inputs(self, rows: int, columns: int, seed: int) -> Any:
        return torch.from_numpy(Chance(self.seed + seed)(rows, columns))

    def seen(self, rows: int, columns: int) -> Any:
        """The mask of Locum: 1 where a query attends to a key."""
        if self.mask in ("none", "causal"):
            return None if self.mask == "none" else "causal"
        shape = (rows, columns) if self.mask == "matrix" else (columns,)
        kept = np.random.default_rng(self.seed + 1).random(shape) < 0.6
        kept[..., 0] = True
        return kept.astype(float)


OPTIONS = st.builds(
    Options,
    heads=st.integers(1, 3),
    width=st.integers(1, 3),
    hidden=st.integers(1, 5),
    norm_first=st.booleans(),
    bias=st.booleans(),
    activation=st.sampled_from(["relu", "gelu"]),
    n=st.integers(1, 4),
    m=st.integers(1, 4),
    mask=st.sampled_from(["none", "causal", "matrix", "keys"]),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 1000),
)


def randomised(module: Any, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        with torch.no_grad():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.4 * drawn)
    return module


def hidden(seen: Any, rows: int, columns: int) -> Any:
    """The same mask for PyTorch's modules: True where a query does not attend to a key."""
    if seen is None:
        return None
    kept = np.tri(rows) if isinstance(seen, str) else np.broadcast_to(seen, (rows, columns))
    return torch.from_numpy(kept == 0)


def simulated(T: Any, X: Any, memory: Any = None) -> Any:
    U = UniversalSimulator.of(T, len(X), 0 if memory is None else len(memory))
    return U(T, X, memory)


@settings(max_examples=settings().max_examples // 5)
@given(OPTIONS)
def test_random_encoder_layers(options: Options) -> None:
    n = options.n
    module, X = options.layer(torch.nn.TransformerEncoderLayer), options.inputs(n, options.d, 1)
    seen = options.seen(n, n)
    expected = module(X, src_mask=hidden(seen, n, n)).detach()
    T = from_torch(module, mask=seen, form=options.form)
    assert distance(simulated(T, X), expected) <= 1e-10


@settings(max_examples=settings().max_examples // 5)
@given(OPTIONS)
def test_random_decoder_layers(options: Options) -> None:
    n, m = options.n, options.m
    module, X = options.layer(torch.nn.TransformerDecoderLayer), options.inputs(n, options.d, 1)
    M = options.inputs(m, options.d, 2)
    seen = None if options.mask == "causal" else options.seen(n, m)
    expected = module(X, M, tgt_mask=hidden("causal", n, n), memory_mask=hidden(seen, n, m)).detach()
    T = from_torch(module, mask="causal", memory_mask=seen, form=options.form)
    assert distance(simulated(T, X, M), expected) <= 1e-10


@settings(max_examples=settings().max_examples // 5)
@given(OPTIONS)
def test_random_attentions(options: Options) -> None:
    module = randomised(
        torch.nn.MultiheadAttention(
            options.d, options.heads, bias=options.bias, kdim=options.hidden, vdim=options.hidden,
            dtype=torch.float64,
        ),
        options.seed,
    )  # fmt: skip
    n, m = options.n, options.m
    X, M = options.inputs(n, options.d, 1), options.inputs(m, options.hidden, 2)
    seen = None if options.mask == "causal" else options.seen(n, m)
    expected = module(X, M, M, need_weights=False, attn_mask=hidden(seen, n, m))[0].detach()
    T = from_torch(module, mask=seen, form=options.form)
    assert distance(simulated(T, X, M), expected) <= 1e-10


def encoder_layer(**options: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(4, 2, 5, dtype=torch.float64, **options)


def test_gelu_by_tanh_without_the_fast_path() -> None:
    module, X = encoder_layer(activation=torch.nn.GELU("tanh"), dropout=0.0), Chance(2)(3, 4)
    module.activation_relu_or_gelu = 0
    expected = module(torch.from_numpy(X)).detach().numpy()
    result = simulated(from_torch(module), X)
    assert isinstance(result, np.ndarray)
    assert distance(result, expected) <= 1e-12


REJECTED: list[tuple[Any, dict[str, Any], str]] = [
    (torch.nn.Linear(4, 4), {}, r"got torch.nn.modules.linear.Linear; try locum.torch.simulate"),
    (torch.nn.MultiheadAttention(4, 2, add_zero_attn=True), {}, "add_zero_attn"),
    (torch.nn.MultiheadAttention(4, 2, add_bias_kv=True), {}, "add_bias_kv"),
    (torch.nn.MultiheadAttention(4, 2, kdim=2, vdim=3), {}, "kdim = vdim, got 2 and 3"),
    (encoder_layer(activation=torch.nn.ELU()), {}, "activation: expected .*, got ELU"),
    (encoder_layer(activation=torch.nn.GELU("tanh")), {}, "activation_relu_or_gelu"),
    (encoder_layer(), {"mask": [0, 0, 0]}, "allows one key or more"),
    (encoder_layer(), {"form": "sparse"}, "form: expected one of paper, factored, got 'sparse'"),
    (
        torch.nn.TransformerEncoder(encoder_layer(batch_first=True), 1),
        {},
        r"expected one layer, got an nn.TransformerEncoder; try from_torch\(module.layers\[0\]\)",
    ),
    ("a word", {}, "got builtins.str$"),
]


@pytest.mark.parametrize(("module", "options", "problem"), REJECTED)
def test_modules_that_are_not_supported(module: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((InputError, GraphError), match=problem):
        from_torch(module, **options)


def test_the_suggestions_of_the_errors_work() -> None:
    import locum.torch

    layer, X = encoder_layer(batch_first=True, dropout=0.0).eval(), torch.from_numpy(Chance(1)(1, 3, 4))
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    assert distance(locum.torch.simulate(module, X).detach(), module(X).detach()) <= 1e-12
    first = from_torch(module.layers[0])
    assert distance(simulated(first, X[0]), module.layers[0](X)[0].detach()) <= 1e-12
    linear = torch.nn.Linear(4, 4).double()
    assert distance(locum.torch.simulate(linear, X).detach(), linear(X).detach()) <= 1e-12
