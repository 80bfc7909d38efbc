"""``locum.stand_in``: nn.Modules that compute by U what torch's own modules compute."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import locum
from locum.errors import InputError

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of its fast paths
DOUBLE = torch.float64
B, N, M, D = 3, 5, 4, 8


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def module(kind: str, **options: Any) -> Any:
    torch.manual_seed(1)
    options = {"batch_first": True, "dtype": DOUBLE} | options
    if kind == "attention":
        return nn.MultiheadAttention(D, 2, **options)
    if kind == "decoder":
        return nn.TransformerDecoderLayer(D, 2, 6, 0.0, **options)
    layer = nn.TransformerEncoderLayer(D, 2, 6, 0.0, activation="gelu", **options)
    return (
        nn.TransformerEncoder(layer, 2, nn.LayerNorm(D, dtype=DOUBLE)) if kind == "encoder" else layer
    )


def arguments(kind: str) -> tuple[Any, ...]:
    X = numbers(B, N, D)
    return {"attention": (X, X, X), "decoder": (X, numbers(B, M, D, seed=2))}.get(kind, (X,))


def first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


KINDS = ("attention", "layer", "decoder", "encoder")
causal = torch.ones(N, N, dtype=torch.bool).triu(1)
padding = torch.tensor([[False] * N, [False] * (N - 1) + [True], [True] + [False] * (N - 1)])
MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "booleans": {"mask": causal},
    "numbers": {"mask": numbers(N, N)},
    "hidden": {"mask": torch.zeros(N, N, dtype=DOUBLE).masked_fill(causal, -torch.inf)},
    "each head": {"mask": numbers(2 * B, N, N)},
    "padding": {"padding": padding},
    "both": {"mask": torch.eye(N, dtype=torch.bool), "padding": padding},
    "all": {"mask": numbers(2 * B, N, N), "padding": torch.zeros(B, N, dtype=DOUBLE) + numbers(N)},
}
OPTIONS = {
    "attention": {"mask": "attn_mask", "padding": "key_padding_mask"},
    "layer": {"mask": "src_mask", "padding": "src_key_padding_mask"},
    "encoder": {"mask": "mask", "padding": "src_key_padding_mask"},
    "decoder": {"mask": "tgt_mask", "padding": "tgt_key_padding_mask"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", MASKS)
def test_a_stand_in_computes_what_the_module_computes(kind: str, mask: str) -> None:
    T = module(kind, **({"norm_first": True} if kind == "decoder" else {}))
    by_U = locum.stand_in(T)
    assert list(by_U.state_dict()) == list(T.state_dict())
    by_U.load_state_dict(T.state_dict())
    inputs = {OPTIONS[kind][name]: value for name, value in MASKS[mask].items()}
    ours, theirs = by_U(*arguments(kind), **inputs), T(*arguments(kind), **inputs)
    if isinstance(theirs, tuple):
        assert (ours[1] - theirs[1]).abs().max() < 1e-12
    assert first(ours).shape == first(theirs).shape
    assert (first(ours) - first(theirs)).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_other_orders_of_axes_and_one_item(kind: str) -> None:
    T = module(kind, batch_first=False)
    by_U, inputs = locum.stand_in(T), arguments(kind)
    if kind == "attention":  # three tensors that are not one
        inputs = (inputs[0], inputs[1].clone(), inputs[2] * 2)
    if kind == "decoder":
        inputs = (inputs[0], numbers(M, N, D, seed=2))  # the middle axis is the batch
    assert (first(by_U(*inputs)) - first(T(*inputs))).abs().max() < 1e-12
    one = [part[:, 0] for part in inputs]
    assert (first(by_U(*one)) - first(T(*one))).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_does_with_modules(kind: str) -> None:
    """Gradients, torch.compile without graph breaks, vmap, export, pickles: as with any nn.Module."""
    by_U, inputs = locum.stand_in(module(kind)), arguments(kind)
    expected = first(by_U(*inputs)).detach()

    def close(result: Any) -> bool:
        return bool((first(result) - expected).abs().max() < 1e-12)

    names = [name for name, _ in by_U.named_parameters()]
    parameters = [part.detach().clone().requires_grad_() for part in by_U.parameters()]

    def of_parameters(*values: Any) -> Any:
        return first(torch.func.functional_call(by_U, dict(zip(names, values, strict=True)), inputs))

    assert torch.autograd.gradcheck(of_parameters, parameters, fast_mode=True)
    if kind in ("attention", "encoder"):  # this takes seconds
        compiled = torch.compile(by_U, fullgraph=True, backend="aot_eager")
        result = compiled(*inputs)
        assert close(result)
        first(result).sum().backward()
        assert all(part.grad is not None for part in by_U.parameters())
        assert close(torch.export.export(by_U, inputs).module()(*inputs))
    stacked = {name: torch.stack([part, part]) for name, part in by_U.named_parameters()}
    call = torch.func.functional_call
    mapped = torch.vmap(lambda p: first(call(by_U, p, inputs)))(stacked)
    assert close(mapped[1])
    twice = torch.vmap(lambda x: first(by_U(*(x if a is inputs[0] else a for a in inputs))))
    assert close(twice(torch.stack([inputs[0]] * 2))[1])
    assert close(pickle.loads(pickle.dumps(by_U))(*inputs))
    assert close(copy.deepcopy(by_U)(*inputs))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["autocast", "autocast of half", "bfloat16"])
def test_half_precision_as_torch_has_it(kind: str, how: str) -> None:
    dtype = torch.bfloat16 if how == "bfloat16" else torch.float32
    T, exact = module(kind).to(dtype), first(module(kind)(*arguments(kind)))
    given_dtype = torch.bfloat16 if how == "autocast of half" else dtype
    X, *others = (part.to(given_dtype) for part in arguments(kind))
    inputs = (X, X, X) if kind == "attention" else (X, *others)
    with torch.autocast("cpu", torch.bfloat16, enabled=how != "bfloat16"):
        ours, theirs = first(locum.stand_in(T)(*inputs)), first(T(*inputs))
    assert ours.dtype is theirs.dtype
    assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max()


def test_trained_for_100_steps_it_equals_the_trained_original() -> None:
    T = module("encoder")
    by_U, X, Y = locum.stand_in(T), numbers(B, N, D), numbers(B, N, D, seed=3)
    for model in (T, by_U):
        optimiser = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(100):
            optimiser.zero_grad()
            (model(X) - Y).square().mean().backward()
            optimiser.step()
    trained = dict(by_U.named_parameters())
    moved = max(
        (p - q).abs().max() for p, q in zip(T.parameters(), module("encoder").parameters(), strict=True)
    )
    assert moved > 0.1
    assert all((part - trained[name]).abs().max() < 1e-8 for name, part in T.named_parameters())


def test_parts_of_a_larger_model() -> None:
    model = nn.Sequential(nn.Linear(D, D, dtype=DOUBLE), module("encoder"), nn.Tanh()).eval()
    X = numbers(B, N, D)
    for where in ("1", "1.layers.*", "1.layers.*.self_attn"):
        by_U = locum.stand_in(model, where=where)
        assert list(by_U.state_dict()) == list(model.state_dict())
        with locum.record("*pattern") as cache:
            assert (by_U(X) - model(X)).abs().max() < 1e-12
        # Torch's own layers must not pass the stand-ins by, as their fast path would.
        assert list(cache) == ["blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"]
    decoders = nn.TransformerDecoder(module("decoder"), 2)
    memory = numbers(B, M, D)
    by_U = locum.stand_in(decoders, where="layers.*")
    assert (by_U(X, memory, causal) - decoders(X, memory, causal)).abs().max() < 1e-12
    shared = nn.ModuleList([model[1].layers[0]] * 2)
    both = locum.stand_in(shared, where="*")
    assert both[0] is both[1]
    assert (both[1](X) - shared[1](X)).abs().max() < 1e-12
    assert type(model[1].layers[0]) is nn.TransformerEncoderLayer  # the original is untouched


class Doubled(nn.TransformerEncoderLayer):  # type: ignore[name-defined,misc]
    def forward(self, *inputs: Any, **options: Any) -> Any:
        return 2 * super().forward(*inputs, **options)


def test_what_has_no_stand_in_is_refused_by_name() -> None:
    hooked = module("layer")
    hooked.linear1.register_forward_hook(lambda *_: None)
    for wrong, message in (
        (nn.Linear(2, 2), r"Linear, has no stand-in"),
        (Doubled(D, 2, 6), "methods of its own"),
        (hooked, "forward hook"),
        (nn.MultiheadAttention(D, 2, add_zero_attn=True), "add_zero_attn"),
        (nn.Sequential(module("layer")), "try where='0'"),
        ("minilm", "expected an nn.Module"),
    ):
        with pytest.raises(InputError, match=message):
            locum.stand_in(wrong)
    model = nn.Sequential(nn.Linear(2, 2))
    for where, message in (("1", "no part"), ("0", "0, a torch.*Linear, has no stand-in")):
        with pytest.raises(InputError, match=message):
            locum.stand_in(model, where=where)
    with pytest.raises(InputError, match=r"layers, a torch.*ModuleList, has no stand-in"):
        locum.stand_in(module("encoder"), where="*")
    by_U = locum.stand_in(module("layer"))
    with pytest.raises(InputError, match="never called"):
        by_U.linear1.register_forward_hook(lambda *_: None)


def test_a_stand_in_that_was_changed_is_refused() -> None:
    X, adapter = numbers(B, N, D), type("Adapter", (nn.Linear,), {})
    changes: dict[str, Any] = {
        "activation was read": lambda by_U: setattr(by_U, "activation", torch.tanh),
        "linear1 was a Linear": lambda by_U: setattr(by_U, "linear1", nn.Sequential()),
        "self_attn.out_proj was a": lambda by_U: setattr(by_U.self_attn, "out_proj", adapter(D, D)),
        "one eps for all norms": lambda by_U: setattr(by_U.norm2, "eps", 1.0),
    }
    for message, change in changes.items():
        by_U = locum.stand_in(module("layer"))
        with pytest.raises(InputError, match=message):
            change(by_U) or by_U(X)


def test_parts_that_are_not_as_usual() -> None:
    X, T = numbers(B, N, D), module("layer")
    T.norm1 = nn.LayerNorm(D, elementwise_affine=False)
    T.linear2.bias = None
    T.register_buffer("more", torch.ones(2))
    by_U = locum.stand_in(T)
    assert list(by_U.state_dict()) == list(T.state_dict())
    assert (by_U(X) - T(X)).abs().max() < 1e-12
    tied = module("encoder")
    tied.layers[1].linear1.weight = tied.layers[0].linear1.weight
    by_U = locum.stand_in(tied)
    assert by_U.layers[1].linear1.weight is by_U.layers[0].linear1.weight
    certain = nn.TransformerEncoderLayer(D, 2, 6, 1, batch_first=True, dtype=DOUBLE)
    with pytest.raises(InputError, match="probability 1"):
        locum.stand_in(certain)(X)


def test_inputs_that_mean_nothing_are_refused() -> None:
    by_U, X = locum.stand_in(module("layer")), numbers(B, N, D)
    integers = torch.zeros(N, N, dtype=torch.int64)
    nowhere = torch.ones(B, N, dtype=torch.bool)
    for tokens, message in (
        ((X.float(),), "expected the input in torch.float64"),
        ((X[..., :-1],), r"\[item, row, 8\]"),
        ((X[:0],), "one row or more"),
        ((X, integers), "booleans or floating-point"),
        ((X, causal[:-1]), "expected a mask of shape"),
        ((X, causal.expand(B, N, N)), "for each head of each"),
        ((X, None, nowhere), "leaves no key"),
        ((X, None, padding[0]), "expected padding of shape"),
        ((X, None, None, True), "hint"),
    ):
        with pytest.raises(InputError, match=message):
            by_U(*tokens)
    T = nn.TransformerEncoderLayer(D, 2, 6, 0.1, batch_first=True, dtype=DOUBLE)
    with pytest.raises(InputError, match=r"drops out with probability 0.1"):
        locum.stand_in(T)(X)
    assert (locum.stand_in(T).eval()(X) - T.eval()(X)).abs().max() < 1e-12
    assert by_U(X * torch.nan).isnan().all()  # NaN goes through, as in torch
    for kind, inputs in (("attention", (X[:1], X[0], X[0])), ("decoder", (X[:1], X[0]))):
        with pytest.raises((AssertionError, RuntimeError)):
            module(kind)(*inputs)
        with pytest.raises(InputError, match="expected all inputs with 3 axes"):
            locum.stand_in(module(kind))(*inputs)


def test_heads_that_were_changed_afterwards_are_refused() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True).eval()
    by_U = locum.stand_in(layer)
    by_U.self_attn.num_heads = 4
    with pytest.raises(InputError, match=r"expected self_attn as it was .* got num_heads=4"):
        by_U(torch.randn(1, 3, 8))


def test_several_shapes_are_compiled_one_by_one() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True).eval()
    compiled = torch.compile(locum.stand_in(layer), fullgraph=True, dynamic=False, backend="eager")
    for shape in ((2, 3, 8), (1, 4, 8)):
        X = torch.randn(shape)
        assert torch.allclose(compiled(X), layer(X), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_alone(kind: str) -> None:
    """On the device "meta" there are no numbers, and a stand-in gives shapes, as torch's modules do."""
    inputs = [part.to("meta") for part in arguments(kind)]
    if kind == "attention":
        inputs = inputs[:1] * 3
    hidden = {OPTIONS[kind]["padding"]: padding.to("meta")}
    ours, theirs = (
        first(one.to("meta")(*inputs, **hidden)) for one in (locum.stand_in(module(kind)), module(kind))
    )
    assert (ours.shape, ours.device, ours.dtype) == (theirs.shape, theirs.device, theirs.dtype)
