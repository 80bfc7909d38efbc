"""U against torch's own modules, in double precision; tensors in, tensors out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from locum.errors import InputError
from locum.execution.arrays import like
from locum.execution.fast import Plan
from locum.simulators import Attention, UniversalSimulator, from_torch
from tests.simulators.random_modules import Chance, distance

torch: Any = pytest.importorskip("torch")


def randomised(module: Any, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        with torch.no_grad():
            parameter.copy_(
                0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
    return module


def tensor(*shape: int, seed: int = 1) -> Any:
    return torch.from_numpy(Chance(seed)(*shape))


def hidden_after(n: int) -> Any:
    """torch's causal mask: True where a key is *not* seen."""
    return torch.triu(torch.ones(n, n, dtype=torch.bool), 1)


@pytest.mark.parametrize("heads", [1, 2, 3, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_multihead_attention(heads: int, bias: bool) -> None:
    size = heads * 2 if heads < 4 else 4
    module = randomised(torch.nn.MultiheadAttention(size, heads, bias=bias, dtype=torch.float64))
    T, X = from_torch(module), tensor(3, size)
    expected = module(X, X, X, need_weights=False)[0].detach()
    assert distance(T(X), expected) <= 1e-12
    assert distance(UniversalSimulator.of(T, 3)(T, X), expected) <= 1e-12


def test_multihead_attention_masked_and_to_a_memory() -> None:
    module = randomised(torch.nn.MultiheadAttention(4, 2, dtype=torch.float64))
    X, M = tensor(3, 4), tensor(4, 4, seed=2)
    expected = module(X, X, X, attn_mask=hidden_after(3), need_weights=False)[0].detach()
    causal = from_torch(module, mask="causal")
    assert distance(UniversalSimulator.of(causal, 3)(causal, X), expected) <= 1e-12
    # Padding, said the way torch says it.
    padded = torch.tensor([False, False, True])
    expected = module(X, X, X, key_padding_mask=padded, need_weights=False)[0].detach()
    T = from_torch(module, mask=np.tile([1, 1, 0], (3, 1)))
    assert distance(UniversalSimulator.of(T, 3)(T, X), expected) <= 1e-12
    expected = module(X, M, M, need_weights=False)[0].detach()
    T = from_torch(module)
    assert distance(UniversalSimulator.of(T, 3, memory=4)(T, X, M), expected) <= 1e-12


def test_keys_of_another_width() -> None:
    module = randomised(torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=3, dtype=torch.float64))
    X, M, T = tensor(2, 4), tensor(3, 3, seed=2), from_torch(module)
    expected = module(X, M, M, need_weights=False)[0].detach()
    assert distance(UniversalSimulator.of(T, 2, memory=3)(T, X, M), expected) <= 1e-12


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("heads", [1, 2])
def test_encoder_layer(norm_first: bool, activation: str, heads: int) -> None:
    module = torch.nn.TransformerEncoderLayer(
        4, heads, 5, dropout=0.0, activation=activation, norm_first=norm_first, dtype=torch.float64
    )
    T, X = from_torch(randomised(module)), tensor(3, 4)
    expected = module(X).detach()
    assert distance(T(X), expected) <= 1e-12
    assert distance(UniversalSimulator.of(T, 3)(T, X), expected) <= 1e-12


def test_encoder_layer_causal_and_without_biases() -> None:
    module = torch.nn.TransformerEncoderLayer(4, 2, 3, dropout=0.0, bias=False, dtype=torch.float64)
    T, X = from_torch(randomised(module), mask="causal"), tensor(3, 4)
    expected = module(X, src_mask=hidden_after(3)).detach()
    assert distance(UniversalSimulator.of(T, 3)(T, X), expected) <= 1e-12


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_layer(norm_first: bool) -> None:
    module = torch.nn.TransformerDecoderLayer(
        4, 2, 5, dropout=0.0, activation="gelu", norm_first=norm_first, dtype=torch.float64
    )
    T = from_torch(randomised(module), mask="causal")
    X, M = tensor(3, 4), tensor(2, 4, seed=2)
    expected = module(X, M, tgt_mask=hidden_after(3)).detach()
    assert distance(T(X, M), expected) <= 1e-12
    U = UniversalSimulator.of(T, 3, memory=2)
    assert distance(U(T, X, M), expected) <= 1e-12
    explanation = U.explain(T, X, M)
    assert all(step.error <= 1e-12 for step in explanation)
    assert "cross softmax[1]" in [step.name for step in explanation]


def test_tensors_in_tensors_out() -> None:
    module = randomised(torch.nn.MultiheadAttention(4, 2, dtype=torch.float64))
    T = from_torch(module)
    U = UniversalSimulator.of(T, 3)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        X = tensor(3, 4).to(dtype)
        result = U(T, X)
        assert isinstance(result, torch.Tensor)
        assert result.dtype == dtype
        assert result.device == X.device
        assert U.encode(T, X).dtype == dtype
        assert distance(result, T(X)) <= tolerance
    assert isinstance(U(T, tensor(3, 4).numpy()), np.ndarray)


def test_tensors_that_are_no_numbers() -> None:
    module = torch.nn.MultiheadAttention(2, 1, dtype=torch.float64)
    T = from_torch(module)
    with pytest.raises(InputError, match=r"X has nan at \[0, 1\]"):
        UniversalSimulator.of(T, 1)(T, torch.tensor([[0.0, float("nan")]]))


def test_numbers_whose_sum_is_too_large_are_numbers() -> None:
    huge = torch.full((2, 2), 3e38)
    assert Attention(huge, huge).A is huge


def test_what_is_not_simulated_is_said() -> None:
    with pytest.raises(InputError, match="Linear"):
        from_torch(torch.nn.Linear(2, 2))
    with pytest.raises(InputError, match="add_zero_attn"):
        from_torch(torch.nn.MultiheadAttention(2, 1, add_zero_attn=True))


def encoder_layer(**options: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, dtype=torch.float64, **options)


class Doubled(torch.nn.TransformerEncoderLayer):  # type: ignore[misc]
    def forward(self, *arguments: Any, **options: Any) -> Any:
        return 2 * super().forward(*arguments, **options)


class OtherBlock(torch.nn.TransformerEncoderLayer):  # type: ignore[misc]
    def _ff_block(self, x: Any) -> Any:
        return -super()._ff_block(x)


class Renamed(torch.nn.TransformerEncoderLayer):  # type: ignore[misc]
    """Computes what its base does."""


def test_layers_that_compute_something_else_are_refused() -> None:
    module = encoder_layer()
    module.norm2.eps = 0.5
    with pytest.raises(
        InputError, match=r"same eps for all norms of a layer, got 1e-05 in norm1, 0\.5 in norm2"
    ):
        from_torch(module)
    for norm in (torch.nn.Identity(), torch.nn.RMSNorm(4)):
        module = encoder_layer()
        module.norm2 = norm
        with pytest.raises(
            InputError, match=f"norm2: expected an nn.LayerNorm, got .*{type(norm).__name__}"
        ):
            from_torch(module)
    module.norm2 = torch.nn.LayerNorm((3, 4), elementwise_affine=False)
    with pytest.raises(InputError, match=r"norm2: expected normalized_shape \(4,\)"):
        from_torch(module)
    for kind in (Doubled, OtherBlock):
        with pytest.raises(InputError, match=f"{kind.__name__}, a subclass that defines methods"):
            from_torch(kind(4, 2, 5))
    module = encoder_layer()
    module.forward = lambda x: x
    with pytest.raises(InputError, match="got its own forward"):
        from_torch(module)
    with pytest.raises(InputError, match=r"activation: expected .*, got relu"):
        from_torch(encoder_layer(activation=_relu_of_ones_own()))


def test_attributes_that_python_adds_to_subclasses() -> None:
    added = {"__firstlineno__": 1, "__static_attributes__": (), "__annotations_cache__": {}}
    kind = type("Layer", (torch.nn.MultiheadAttention,), added)
    module: Any = from_torch(kind(4, 2))
    assert module.attention_order().heads == 2


def _relu_of_ones_own() -> Any:
    def relu(x: Any) -> Any:
        return x.clamp(min=0, max=6)

    return relu


def test_layers_whose_parts_differ() -> None:
    """One bias of two, gains in one norm of two, an eps of its own: read off part by part."""
    module = Renamed(4, 2, 5, dropout=0.0, layer_norm_eps=0.3, dtype=torch.float64)
    module.linear1 = torch.nn.Linear(4, 5, bias=False, dtype=torch.float64)
    module.norm1 = torch.nn.LayerNorm(4, eps=0.3, elementwise_affine=False)
    T, X = from_torch(randomised(module)), tensor(3, 4)
    assert distance(UniversalSimulator.of(T, 3)(T, X), module(X).detach()) <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_goes_through_u_is_checked_and_converted_once(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X is not converted at all, T's matrices each once where they must be, and plans check nothing."""
    T, U, X = Chance(1).attention(3, 2), UniversalSimulator(4, 3, 2), tensor(4, 3).to(dtype)
    U(T, X)
    converted: list[Any] = []

    def counted(part: Any, model: Any) -> Any:
        converted.append(part)
        return like(part, model)

    monkeypatch.setattr("locum.simulators.simulator.like", counted)
    monkeypatch.setattr(Plan, "_check", None)
    result = U(T, X)
    assert result.dtype is dtype
    assert [id(part) for part in converted] == [id(T.A), id(T.V)]
    converted.clear()
    own = Attention(torch.as_tensor(T.A).to(dtype), torch.as_tensor(T.V).to(dtype))
    assert torch.equal(U(own, X), result)
    assert converted == []


def test_complex_tensors_are_refused() -> None:
    with pytest.raises(InputError, match="A: expected real numbers, got the type"):
        Attention(1j * torch.eye(2, dtype=torch.complex64), torch.eye(2))


@pytest.mark.parametrize("biased", [True, False])
def test_gradients_reach_the_projections(biased: bool) -> None:
    weights = [tensor(3, 2, seed=seed).requires_grad_() for seed in (1, 2, 3)]
    biases = [tensor(2, seed=seed).requires_grad_() for seed in (4, 5, 6)] if biased else None
    X = tensor(4, 3, seed=7)
    T = Attention.from_projections(*weights, scale=0.5, biases=biases)
    actual = UniversalSimulator.of(T, 4)(T, X)
    q, k, v = (X @ weight + (biases[i] if biases else 0) for i, weight in enumerate(weights))
    expected = torch.softmax(0.5 * q @ k.T, dim=1) @ v
    assert distance(actual.detach(), expected.detach()) <= 1e-12
    leaves = [*weights, *(biases or [])]
    ours = torch.autograd.grad(actual.sin().sum(), leaves)
    theirs = torch.autograd.grad(expected.sin().sum(), leaves)
    assert all(distance(a, b) <= 1e-12 for a, b in zip(ours, theirs, strict=True))


def test_gradients_pass_through_u() -> None:
    A, V, X = (tensor(*shape, seed=3).requires_grad_() for shape in ((3, 3), (3, 2), (4, 3)))
    actual = UniversalSimulator(4, 3, 2)(Attention(A, V), X, executor="fast")
    expected = torch.softmax(X @ A @ X.T, dim=1) @ X @ V
    ours = torch.autograd.grad(actual.sin().sum(), [A, V, X])
    theirs = torch.autograd.grad(expected.sin().sum(), [A, V, X])
    assert all(distance(a, b) <= 1e-12 for a, b in zip(ours, theirs, strict=True))


def test_runs_after_the_first_check_x_and_t() -> None:
    U, T = UniversalSimulator(3, 2, 2), Attention(torch.eye(2), torch.ones(2, 2))
    X = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.5, 0.25]])
    first = U(T, X)
    assert torch.equal(U(T, X), first)
    assert np.allclose(U(T, X + 1), T(X + 1))
    with pytest.raises(InputError, match="nan"):
        U(T, X * math.nan)
    with pytest.raises(InputError, match="expected 3×2"):
        U(T, X[:2])
    assert U(T, X.double()).dtype is torch.float64
    T.V = 2 * T.V
    assert torch.allclose(U(T, X), 2 * first)
    other = Attention(T.A, 3 * T.V)
    assert torch.allclose(U(other, X), 6 * first)
    assert torch.allclose(U(T, X), 2 * first)
    X.requires_grad_()
    U(T, X).sum().backward()
    assert X.grad is not None
