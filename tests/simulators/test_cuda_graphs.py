"""Recordings of calls on a GPU: what they notice of a module, and what they give where there is one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")
from locum.simulators import cuda_graphs  # noqa: E402
from locum.simulators.stand_ins import modules  # noqa: E402

nn = torch.nn
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def encoder(**options: Any) -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(**options).eval()


def _replace_data(module: Any) -> None:
    weight = module.layers[0].linear1.weight
    weight.data = weight.data.clone()


CHANGES: dict[str, Callable[[Any], object]] = {
    "hook": lambda m: m.layers[1].linear1.register_forward_hook(print),
    "pre-hook": lambda m: m.register_forward_pre_hook(print),
    "part": lambda m: setattr(m.layers[0], "norm1", nn.LayerNorm(8)),
    "type": lambda m: setattr(m.layers[0].linear1, "__class__", type("Other", (nn.Linear,), {})),
    "setting": lambda m: setattr(m.layers[0].norm1, "eps", 0.5),
    "forward": lambda m: setattr(m.layers[0], "forward", print),
    "training": lambda m: m.train(),
    "parameter": lambda m: setattr(m.layers[0].linear1, "weight", nn.Parameter(torch.ones(16, 8))),
    "data": _replace_data,
    "another layer": lambda m: m.layers.append(m.layers[0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_a_module_is_noticed(change: str) -> None:
    module = encoder()
    state = cuda_graphs.State(module)
    assert state.is_of(module)
    with torch.no_grad():
        module.layers[0].linear1.weight.mul_(2)  # is read where it is
    assert state.is_of(module)
    CHANGES[change](module)
    assert not state.is_of(module)


def test_nothing_is_replayed_on_a_processor() -> None:
    X = torch.zeros(1, 3, 8)
    assert cuda_graphs.replayed(encoder(), X, encoder(), differentiable=False) is None


def test_only_plain_calls_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint without its mask is refused, whatever was recorded before."""
    on_U, X, recorded = locum.stand_in(encoder()), torch.zeros(1, 3, 8), torch.ones(1)
    monkeypatch.setattr(modules, "replayed", lambda *inputs, **options: recorded)
    assert on_U(X) is recorded
    assert on_U(X, src_key_padding_mask=torch.zeros(1, 3, dtype=torch.bool)) is not recorded
    assert on_U(X, mask=torch.zeros(3, 3)) is not recorded
    with pytest.raises(locum.InputError, match="is_causal is a hint"):
        on_U(X, is_causal=True)


@on_gpu
@pytest.mark.parametrize("door", ["stand_in", "simulate"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_replays_are_right_and_follow_the_parameters(door: str, dtype: str) -> None:
    kind = {"device": "cuda", "dtype": getattr(torch, dtype)}
    module = encoder(**kind)
    owner = locum.stand_in(module) if door == "stand_in" else module
    run: Any = owner if door == "stand_in" else lambda X: locum.simulate(module, X)
    with torch.no_grad():
        for change in (None, "in place", "replaced", "eps", "hook"):
            if change == "in place":
                for own in {module, owner}:
                    own.layers[0].linear1.weight.mul_(-1.5)
            elif change == "replaced":
                for own in {module, owner}:
                    own.layers[1].linear2.weight.data = own.layers[1].linear2.weight.data * 0.5
            elif change == "eps" and door == "simulate":
                for norm in (module.layers[0].norm1, module.layers[0].norm2):
                    norm.eps = 0.25
            exact = _exact(module)
            for number in range(4):
                X = torch.randn(3, 40, 8, **kind) * 2
                expected, ours, theirs = exact(X.double()), run(X), module(X)
                error, own_error = (float((y.double() - expected).abs().max()) for y in (ours, theirs))
                assert ours.dtype is X.dtype
                assert error <= min(2 * own_error, 1e-3 + own_error) + 16 * torch.finfo(X.dtype).eps, (
                    change,
                    number,
                )


def _exact(module: Any) -> Any:
    """Return the module in float64, without torch's fast path, whose GELU is an approximation."""
    exact = copy.deepcopy(module).double()

    def run(X: Any) -> Any:
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return exact(X)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    return run


@on_gpu
def test_a_replay_gives_memory_of_its_own_and_refuses_what_is_not_finite() -> None:
    module = encoder(device="cuda")
    first = torch.randn(2, 5, 8, device="cuda")
    runs = [locum.simulate(module, first * k) for k in range(1, 5)]
    for k, run in enumerate(runs, start=1):
        assert torch.allclose(run, module(first * k), atol=1e-5)
    with pytest.raises(locum.InputError, match="only finite numbers"):
        locum.simulate(module, first * torch.nan)
    handle = module.layers[0].register_forward_hook(print)
    with pytest.raises(locum.InputError, match="hook"):
        locum.simulate(module, first)
    handle.remove()
    assert torch.allclose(locum.simulate(module, first), module(first), atol=1e-5)


@on_gpu
def test_gradients_and_streams_and_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    torch.backends.mha.set_fastpath_enabled(False)  # whose GELU is an approximation
    module = encoder(device="cuda")
    on_U = locum.stand_in(module)
    X = torch.randn(2, 40, 8, device="cuda")
    with torch.no_grad():
        for _ in range(4):
            on_U(X)
    inputs = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(module(inputs).square().sum(), inputs)
    (ours,) = torch.autograd.grad(on_U(inputs).square().sum(), inputs)
    assert torch.allclose(ours, expected, atol=1e-3)

    def one(k: int) -> bool:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            return all(
                torch.allclose(on_U(X * s), module(X * s), atol=1e-4)
                for s in (k, k + 0.5)
                for _ in range(5)
            )

    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(one, range(1, 9)))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


@on_gpu
def test_a_mask_that_is_called_causal_is_compared_once() -> None:
    from locum.errors import InputError
    from locum.simulators.stand_ins import arguments

    by_U, X = locum.stand_in(encoder(device="cuda").layers[0]), torch.randn(2, 5, 8, device="cuda")
    mask = nn.Transformer.generate_square_subsequent_mask(5, device="cuda")
    expected = by_U(X, mask)
    for _ in range(2):
        assert (by_U(X, mask, is_causal=True) - expected).abs().max() < 1e-6
        assert arguments._compared.get(mask) == mask._version
    mask[0, 1] = 0
    with pytest.raises(InputError, match="is_causal says"):
        by_U(X, mask, is_causal=True)


@on_gpu
@pytest.mark.parametrize("family", ["llama", "t5"])
def test_several_texts_are_written_on_a_gpu(family: str) -> None:
    pytest.importorskip("transformers")
    from tests.simulators.families import CASES, built

    prompts = [[4, 6], [5, 3, 9], [8]]
    expected = locum.generate(built(CASES[family][0], torch.float64), prompts, 5)
    found = locum.generate(built(CASES[family][0], torch.float64).cuda(), prompts, 5)
    assert [one.ids for one in found] == [one.ids for one in expected]
