"""Training on U: backward graphs, random numbers, checkpointing, autocast."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import locum

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from locum.torch import UnsupportedOperationError  # noqa: E402
from tests.torch.comparing import assert_same, check_like_eager, compile_on_u  # noqa: E402


def make_network(dropout: float = 0.1) -> Any:
    return nn.Sequential(
        nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
    ).double()


def train(network: Any, function: Callable[[Any], Any], steps: int) -> None:
    """Run steps of AdamW with the random numbers of one seed."""
    torch.manual_seed(7)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(steps):
        x = torch.randn(6, 4, dtype=torch.float64)
        optimiser.zero_grad()
        loss = function(x).square().mean()
        loss.backward()
        optimiser.step()


def test_adamw_with_dropout_equals_eager() -> None:
    network = make_network()
    other = copy.deepcopy(network)
    train(network, network, steps=50)
    compiled = compile_on_u(other)
    train(other, compiled, steps=50)
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    report = locum.torch.report(compiled)
    assert report.runs_by_kind == {"inference": 0, "forward": 50, "backward": 50}
    assert report.on_host == {"2": {"aten.native_dropout.default": 50}}
    assert report.share == 1


@pytest.mark.parametrize("whole", [True, False])
def test_checkpointing_draws_the_same_numbers_again(whole: bool) -> None:
    """The forward graph saves the state of the generator, and the backward graph restores it."""
    network = make_network(dropout=0.4)
    other = copy.deepcopy(network)

    def function(module: Any) -> Callable[[Any], Any]:
        if whole:
            return lambda x: checkpoint(module, x, use_reentrant=False)
        first, second = module[:3], module[3:]
        return lambda x: second(checkpoint(first, x, use_reentrant=False)) + torch.rand_like(x[:, :2])

    train(network, function(network), steps=3)
    compiled = compile_on_u(function(other))
    train(other, compiled, steps=3)
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    operations = {name for module in locum.torch.report(compiled).on_host.values() for name in module}
    assert {"run_and_save_rng_state", "run_with_rng_state"} <= operations


RANDOM = {
    "dropout": lambda x: functional.dropout(x, 0.3) * 2,
    "dropout of everything": lambda x: functional.dropout(x, 1.0),
    "two dropouts": lambda x: functional.dropout(functional.dropout(x, 0.3) + 1, 0.5),
    "dropout of channels": lambda x: functional.dropout1d(x[None], 0.5),
    "alpha dropout": lambda x: functional.alpha_dropout(x, 0.3, True),
    "rand": lambda x: torch.rand(3, 4) + x,
    "rand_like": lambda x: torch.rand_like(x * 2) + x,
    "randn": lambda x: torch.randn(4) * x,
    "randn_like": lambda x: torch.randn_like(x) * x,
    "randint": lambda x: torch.randint(0, 5, (4,)) + x,
    "randperm": lambda x: (torch.randperm(5), x * 2),
    "normal": lambda x: torch.normal(0.0, 2.0, (3, 4)) + x,
    "normal of an input": lambda x: torch.normal(x, 2.0) * 2,
    "bernoulli_": lambda x: (x * 2).bernoulli_(0.3) + 1,
    "bernoulli of an input": lambda x: torch.bernoulli(x) + x,
    "uniform_": lambda x: torch.empty(2).uniform_(2, 3) + x.sum(),
    "exponential_": lambda x: (x * 2).exponential_(),
    "multinomial of an input": lambda x: torch.multinomial(x, 2),
}


@pytest.mark.parametrize("host", ["allowed", "forbidden"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_equal_eager(name: str, host: str) -> None:
    compiled = check_like_eager(RANDOM[name], torch.rand(3, 4), host=host)
    drawn = ("rand", "normal", "dropout", "bernoulli", "uniform", "exponential", "multinomial")
    on_host = locum.torch.report(compiled).on_host[""]
    assert any(word in operation for operation in on_host for word in drawn)
    if host == "forbidden":
        assert all(any(word in operation for word in drawn) for operation in on_host)


def test_random_numbers_of_computed_probabilities_raise() -> None:
    compiled = compile_on_u(lambda x: torch.bernoulli(torch.tanh(x)))
    with pytest.raises(UnsupportedOperationError, match=r"aten\.bernoulli\.default: expected random"):
        compiled(torch.rand(3))


def test_gradcheck() -> None:
    compiled = compile_on_u(lambda x, w: torch.tanh(x @ w).sum(0) * x[0, 0])
    x, w = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    assert torch.autograd.gradcheck(compiled, (x.requires_grad_(), w.requires_grad_()))
    assert locum.torch.report(compiled).runs_by_kind["backward"] > 0


def test_gradients_of_inputs_and_non_differentiable_results() -> None:
    def function(x: Any, y: Any) -> Any:
        return (x * y).sum(1), (x * y).detach(), y.t()

    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    compiled = check_like_eager(function, x, y)
    for results in (function(x, y), compiled(x, y)):
        (results[0].sum() + results[2].sum()).backward()
    expected = [leaf.grad / 2 for leaf in (x, y)]
    for leaf in (x, y):
        leaf.grad = None
    compiled(x, y)[0].sum().backward()
    compiled(x, y)[2].sum().backward()
    torch.testing.assert_close([leaf.grad for leaf in (x, y)], expected)


def test_autocast_has_the_types_of_eager() -> None:
    network, x = make_network(dropout=0).float(), torch.randn(3, 4)

    def function(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return network(x), network[0](x) + x.sum()

    compiled = check_like_eager(function, x)
    (result, _) = compiled(x)
    assert result.dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(network(x), compile_on_u(network)(x))


def test_gradients_under_autocast() -> None:
    network, x = make_network(dropout=0).float(), torch.randn(3, 4)
    gradients = []
    for function in (network, compile_on_u(network)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = function(x).float().sum()
        gradients.append(torch.autograd.grad(loss, list(network.parameters())))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dynamic", [None, True])
def test_autocast_around_the_backward_pass_changes_nothing(dynamic: bool | None) -> None:
    network, x = make_network(dropout=0).float(), torch.randn(3, 4)
    expected = torch.autograd.grad(network(x).sum(), list(network.parameters()))
    loss = compile_on_u(network, dynamic=dynamic)(x).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(expected, torch.autograd.grad(loss, list(network.parameters())))


def test_double_backward_raises() -> None:
    x = torch.randn(3, requires_grad=True)
    y = compile_on_u(lambda x: torch.tanh(x).sum())(x)
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        (gradient.sum() + x.sum()).backward()


def test_the_default_type_does_not_change_results() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        x = torch.randn(3, dtype=torch.float32)
        check_like_eager(lambda x: (x * 2 + torch.ones(3), torch.tanh(x) * 1.1), x)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_forward_mode_differentiation() -> None:
    forward_ad = torch.autograd.forward_ad
    x, tangent = torch.randn(3), torch.randn(3)
    compiled = compile_on_u(torch.tanh)
    with forward_ad.dual_level(), pytest.raises(locum.InputError, match="forward-mode"):
        compiled(forward_ad.make_dual(x, tangent))
    torch._dynamo.reset()
    check_like_eager(lambda x, t: torch.func.jvp(torch.tanh, (x,), (t,)), x, tangent)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_an_optimiser_on_u() -> None:
    """Dynamo writes ``addcmul_`` and ``addcdiv_`` as fused operations of its own."""
    network = nn.Linear(3, 2)
    other = copy.deepcopy(network)
    first, second = (torch.optim.Adam(n.parameters(), lr=0.1, foreach=False) for n in (network, other))
    step = compile_on_u(lambda: second.step(), fullgraph=False)
    for _ in range(2):
        x = torch.randn(2, 3)
        for module, update in ((network, first.step), (other, step)):
            module.zero_grad()
            module(x).square().sum().backward()
            update()
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    assert locum.torch.report(step).runs == 2
