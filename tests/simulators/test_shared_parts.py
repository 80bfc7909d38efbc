"""Stand-ins for modules whose parts are used twice, have hooks on gradients, or computed parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import locum
from locum.errors import InputError

torch = pytest.importorskip("torch")
nn = torch.nn
prune: Any = pytest.importorskip("torch.nn.utils.prune")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of what it deprecates

X = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def layer(kind: Any = nn.TransformerEncoderLayer) -> Any:
    torch.manual_seed(1)
    return kind(4, 2, 6, 0.0, batch_first=True, dtype=torch.float64)


def of_one_norm() -> Any:
    T = layer()
    T.norm2 = T.norm1
    return T


def of_one_attention() -> Any:
    T = layer(nn.TransformerDecoderLayer)
    T.multihead_attn = T.self_attn
    return T


def of_one_layer() -> Any:
    T = nn.TransformerEncoder(layer(), 1, enable_nested_tensor=False)
    T.layers = nn.ModuleList([T.layers[0]] * 2)
    return T


def of_layers_with_one_attention() -> Any:
    T = nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False)
    T.layers[1].self_attn = T.layers[0].self_attn
    return T


@pytest.mark.parametrize(
    "make", [of_one_norm, of_one_attention, of_one_layer, of_layers_with_one_attention]
)
def test_parts_that_are_used_twice_stay_one(make: Any) -> None:
    T = make()
    by_U, inputs = locum.stand_in(T), (X, X) if make is of_one_attention else (X,)
    assert list(by_U.state_dict()) == list(T.state_dict())
    assert len(list(by_U.parameters())) == len(list(T.parameters()))
    for _ in range(2):
        assert (by_U(*inputs) - T(*inputs)).abs().max() < 1e-12
    part = by_U.layers[0] if hasattr(by_U, "layers") else by_U
    part.linear1.forward = torch.tanh
    with pytest.raises(InputError, match="linear1"):
        by_U(*inputs)


def test_parts_of_a_stand_in_may_be_parts_of_another_layer() -> None:
    T = layer()
    T.linear1 = locum.stand_in(layer()).linear1
    assert (locum.stand_in(T)(X) - T(X)).abs().max() < 1e-12
    assert (locum.simulate(T, X) - T(X)).abs().max() < 1e-12


@pytest.mark.parametrize(
    "kind", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.MultiheadAttention]
)
def test_signatures_are_those_of_the_module(kind: Any) -> None:
    T = layer(kind) if kind is not nn.MultiheadAttention else kind(4, 2)
    theirs, ours = (inspect.signature(module.forward) for module in (T, locum.stand_in(T)))
    defaults = [{n: p.default for n, p in s.parameters.items()} for s in (theirs, ours)]
    assert defaults[0] == defaults[1]


def test_what_cannot_be_computed_is_described() -> None:
    by_U = locum.stand_in(layer())
    for inputs, message in (
        ((X.numpy(),), "expected the input as a torch tensor, got ndarray"),
        ((X, [[0.0]]), "expected the mask as a torch tensor, got list"),
    ):
        with pytest.raises(InputError, match=message):
            by_U(*inputs)
    with pytest.raises(InputError, match=r"not traced by torch\.jit"):
        torch.jit.trace(by_U, (X,))
    attention = layer().self_attn
    attention._qkv_same_embed_dim = False
    with pytest.raises(AssertionError):
        attention(X, X, X)
    for simulated in list[Any]((locum.stand_in, lambda T: locum.simulate(T, X))):
        with pytest.raises(InputError, match="expected _qkv_same_embed_dim as torch sets it"):
            simulated(attention)


def test_nothing_is_recorded_while_torch_maps() -> None:
    by_U = locum.stand_in(layer())
    with locum.record() as cache:
        mapped = torch.vmap(by_U)(torch.stack([X, X]))
    assert cache == {}
    assert (mapped[1] - by_U(X)).abs().max() < 1e-12


@pytest.mark.parametrize("place", ["", "linear1", "self_attn.out_proj"])
@pytest.mark.parametrize("kind", ["full_backward_hook", "full_backward_pre_hook", "backward_hook"])
def test_hooks_on_gradients_are_not_dropped(place: str, kind: str) -> None:
    model = nn.Sequential(layer())
    part = model[0].get_submodule(place)
    hook = getattr(part, f"register_{kind}")(lambda *inputs: None)
    for arguments in ((model[0],), (model, "0")):
        with pytest.raises(InputError, match=rf"{place} has a backward hook"):
            locum.stand_in(*arguments)
    hook.remove()
    assert locum.stand_in(model[0])(X).shape == X.shape


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_on_the_gradients_of_parameters_are_not_dropped(kind: str) -> None:
    T = layer()
    hook = getattr(T.linear1.weight, kind)(lambda gradient: None)
    with pytest.raises(InputError, match=r"linear1\.weight has a hook on its gradient"):
        locum.stand_in(T)
    hook.remove()
    assert locum.stand_in(T)(X).shape == X.shape


@pytest.mark.parametrize("change", [nn.utils.weight_norm, prune.random_unstructured])
def test_computed_parameters_are_refused_by_name(change: Any) -> None:
    T = layer()
    change(T.linear1, "weight", **({} if change is nn.utils.weight_norm else {"amount": 0.5}))
    with pytest.raises(InputError, match=r"linear1 computes its weight.*prune\.remove"):
        locum.stand_in(T)
