"""Stand-ins whose parts are changed after they were made: as torch computes it, or refused by name."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import locum
from locum.errors import InputError

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of its fast paths and its older norms
D = 4


def layer(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.TransformerEncoderLayer(D, 2, 6, 0.0, batch_first=True, dtype=torch.float64)


def decoder() -> Any:
    torch.manual_seed(0)
    return nn.TransformerDecoderLayer(D, 2, 6, 0.0, batch_first=True, dtype=torch.float64)


def attention() -> Any:
    torch.manual_seed(0)
    return nn.MultiheadAttention(D, 2, batch_first=True, dtype=torch.float64)


def encoder() -> Any:
    return nn.TransformerEncoder(layer(), 1, nn.LayerNorm(D, dtype=torch.float64))


X = torch.randn(2, 3, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
ARGUMENTS = {attention: (X, X, X), decoder: (X, X)}


def parameter(*shape: int) -> Any:
    return nn.Parameter(torch.ones(*shape, dtype=torch.float64))


def nothing(X: Any, *_: Any, **__: Any) -> Any:
    return X * 0


class Adapter(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self) -> None:
        super().__init__()
        self.delta = parameter(6, D)

    def forward(self, weight: Any) -> Any:
        return weight + self.delta


def hidden_hook(m: Any) -> None:
    """Hook a part by another way than its own method."""
    nn.Module.register_forward_hook(m.linear1, lambda *_: None)


utils = nn.utils
#: What is done to a stand-in, and how it is refused.
REFUSED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "forward of a part": (
        layer,
        lambda m: setattr(m.linear1, "forward", nothing),
        "linear1 .* forward=",
    ),
    "forward of attention": (
        decoder,
        lambda m: setattr(m.multihead_attn, "forward", nothing),
        "multihead_attn .* forward=",
    ),
    "forward of a dropout": (layer, lambda m: setattr(m.dropout1, "forward", nothing), "dropout1"),
    "block of attention": (layer, lambda m: setattr(m, "_sa_block", nothing), "_sa_block"),
    "feed-forward": (encoder, lambda m: setattr(m.layers[0], "_ff_block", nothing), "_ff_block"),
    "block of a decoder": (decoder, lambda m: setattr(m, "_mha_block", nothing), "_mha_block"),
    "noted activation": (
        layer,
        lambda m: setattr(m, "activation_relu_or_gelu", 2),
        "activation_relu_or_gelu",
    ),
    "a key of zeros": (
        layer,
        lambda m: setattr(m.self_attn, "add_zero_attn", True),
        "self_attn .* add_zero_attn=True",
    ),
    "a key of zeros, itself": (attention, lambda m: setattr(m, "add_zero_attn", True), "add_zero_attn"),
    "a key more": (
        layer,
        lambda m: setattr(m.self_attn, "bias_k", parameter(1, 1, D)),
        r"bias_k of shape \(1, 1, 4\)",
    ),
    "a key more, itself": (attention, lambda m: setattr(m, "bias_k", parameter(1, 1, D)), "no bias_k"),
    "a key more, registered": (
        attention,
        lambda m: m.register_parameter("bias_k", parameter(1, 1, D)),
        "bias_k of shape",
    ),
    "order of axes": (layer, lambda m: setattr(m.self_attn, "batch_first", False), "batch_first=False"),
    "width of heads": (layer, lambda m: setattr(m.self_attn, "head_dim", 1), "head_dim=1"),
    "dropout": (layer, lambda m: setattr(m.dropout2, "p", torch.tensor(0.5)), "dropout2 drops out"),
    "a hidden hook": (layer, hidden_hook, "linear1 has a hook"),
    "a wider part": (layer, lambda m: setattr(m, "linear1", nn.Linear(D, 7)), "out_features=7"),
    "other heads": (
        layer,
        lambda m: setattr(m, "self_attn", nn.MultiheadAttention(D, 2, dtype=torch.float64)),
        "self_attn .* batch_first=False",
    ),
    "a wider weight": (layer, lambda m: setattr(m.linear1, "weight", parameter(1, D)), r"\(1, 4\)"),
    "no bias": (layer, lambda m: setattr(m.self_attn, "in_proj_bias", None), "in_proj_bias of None"),
    "no bias, itself": (attention, lambda m: setattr(m, "in_proj_bias", None), "in_proj_bias of None"),
    "no output bias": (layer, lambda m: setattr(m.self_attn.out_proj, "bias", None), "bias of None"),
    "no weight": (layer, lambda m: delattr(m.linear1, "weight"), "linear1 .* no weight"),
    "half of a part": (layer, lambda m: m.linear1.half(), "all parameters in one type"),
    "pruning": (layer, lambda m: utils.prune.l1_unstructured(m.linear1, "weight", 0.5), "prune.remove"),
    "pruning, itself": (
        attention,
        lambda m: utils.prune.l1_unstructured(m, "in_proj_weight", 0.5),
        "no in_proj_weight",
    ),
    "weight norm": (layer, lambda m: utils.parametrizations.weight_norm(m.linear1), "Parametrized"),
    "old weight norm": (layer, lambda m: utils.weight_norm(m.linear1), "never called"),
    "spectral norm": (layer, lambda m: utils.spectral_norm(m.linear1), "never called"),
    "adapter": (
        layer,
        lambda m: utils.parametrize.register_parametrization(m.linear1, "weight", Adapter()),
        "linear1 was a Linear .* ParametrizedLinear",
    ),
    "axes of a norm": (
        layer,
        lambda m: setattr(m.norm1, "normalized_shape", (3, D)),
        "normalized_shape",
    ),
    "axes of the last norm": (
        encoder,
        lambda m: setattr(m.norm, "normalized_shape", (3, D)),
        "normalized_shape",
    ),
    "a part more": (layer, lambda m: m.linear1.add_module("more", nn.Identity()), "a part more"),
    "a part less": (layer, lambda m: m._modules.pop("dropout1"), "dropout1 .* nothing"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_would_be_ignored_is_refused(change: str) -> None:
    make, do, message = REFUSED[change]
    by_U, inputs = locum.stand_in(make()), ARGUMENTS.get(make, (X,))
    by_U(*inputs)
    with pytest.raises(InputError, match=message):
        assert (do(by_U), by_U(*inputs)) is None


def removed(m: Any) -> None:
    utils.prune.l1_unstructured(m.linear1, "weight", 0.5)
    utils.prune.remove(m.linear1, "weight")


#: What is done to a stand-in, and to the module that it stands in for.
TAKEN: dict[str, Callable[[Any], Any]] = {
    "forward": lambda m: setattr(m, "forward", nothing),
    "hook": lambda m: m.register_forward_hook(lambda _, __, result: result * 2),
    "parameter": lambda m: setattr(m.linear1, "weight", parameter(6, D)),
    "part of its kind": lambda m: setattr(m, "linear1", layer(1).linear1),
    "one norm twice": lambda m: setattr(m, "norm2", m.norm1),
    "epsilon": lambda m: [vars(norm).update(eps=0.5) for norm in (m.norm1, m.norm2)],
    "note": lambda m: setattr(m.linear1, "note", "mine"),
    "dropouts that rest": lambda m: setattr(m.eval().dropout1, "p", 0.5),
    "pruned for good": removed,
}


@pytest.mark.parametrize("change", TAKEN)
def test_what_counts_is_taken(change: str) -> None:
    T = layer()
    with torch.no_grad():
        T.norm1.weight.mul_(2)
        T.norm1.bias.add_(1)
    by_U = locum.stand_in(T)
    before = by_U(X)
    for module in (T, by_U):
        TAKEN[change](module)
    assert (by_U(X) - T(X)).abs().max() < 1e-12
    assert (by_U(X) - by_U(X)).abs().max() == 0
    moved = (by_U(X) - before).abs().max()
    assert (moved > 1e-3) == (change not in ("note", "dropouts that rest"))


def test_copies_are_looked_at_as_the_original_is() -> None:
    by_U = locum.stand_in(layer())
    for other in (copy.deepcopy(by_U), pickle.loads(pickle.dumps(by_U))):
        assert (other(X) - by_U(X)).abs().max() == 0
        other.linear1.forward = nothing
        with pytest.raises(InputError, match="linear1"):
            other(X)
        assert by_U(X).shape == X.shape
        with pytest.raises(InputError, match="never called"):
            other.linear2.register_forward_hook(lambda *_: None)


def test_hooks_for_every_module_are_refused() -> None:
    by_U = locum.stand_in(encoder())
    expected = by_U(X)
    common = nn.modules.module
    for register in (
        common.register_module_forward_hook,
        common.register_module_forward_pre_hook,
        common.register_module_full_backward_hook,
    ):
        hook = register(lambda *_: None)
        try:
            with pytest.raises(InputError, match="hook for every module"):
                by_U(X)
        finally:
            hook.remove()
    counter = pytest.importorskip("torch.utils.flop_counter")
    with counter.FlopCounterMode(display=False):  # its hooks count, and change nothing
        assert (by_U(X) - expected).abs().max() == 0


def test_parts_inside_of_a_parametrisation_are_called() -> None:
    T = layer()
    utils.parametrize.register_parametrization(T.linear1, "weight", Adapter().double())
    by_U = locum.stand_in(T)
    for module in (T, by_U):
        adapter = module.linear1.parametrizations.weight[0]
        adapter.register_forward_hook(lambda _, __, weight: weight * 3)
    assert (by_U(X) - T(X)).abs().max() < 1e-12


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Leave no trace: other shapes would be compiled as unknown ones afterwards."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_code_is_not_run_on_a_changed_part() -> None:
    """What torch's compiler has read is compared again, and the trace ends at our refusal."""
    by_U = locum.stand_in(attention())
    compiled = torch.compile(by_U, backend="eager", fullgraph=True, dynamic=False)
    assert (compiled(X, X, X)[0] - by_U(X, X, X)[0]).abs().max() < 1e-12
    by_U.out_proj.forward = nothing
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Observed exception"):
        compiled(X, X, X)
    del by_U.out_proj.forward
    assert (compiled(X, X, X)[0] - by_U(X, X, X)[0]).abs().max() < 1e-12
    by_U.out_proj.in_features = 3
    with pytest.raises(torch._dynamo.exc.Unsupported, match="as it was when the stand-in was made"):
        compiled(X, X, X)
