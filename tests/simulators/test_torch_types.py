"""``from_torch`` accepts PyTorch's own classes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from locum.errors import InputError
from locum.simulators import UniversalSimulator, from_torch
from tests.simulators.random_modules import Chance

torch: Any = pytest.importorskip("torch")
nn = torch.nn
prune: Any = pytest.importorskip("torch.nn.utils.prune")

X = torch.from_numpy(Chance(3)(3, 4))


def layer() -> Any:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(4, 2, 5, 0.0, batch_first=True, dtype=torch.float64).eval()


def run(module: Any, X: Any) -> Any:
    T = from_torch(module)
    return UniversalSimulator.of(T, len(X))(T, X)


class WithPositions(nn.TransformerEncoderLayer):  # type: ignore[misc, name-defined]
    """The usual way to add positions."""

    def forward(self, src: Any, *rest: Any, **more: Any) -> Any:
        return super().forward(src + 1.0, *rest, **more)


class TransformerEncoderLayer(nn.Module):  # type: ignore[misc, name-defined]
    """A class of the same name that computes something else."""

    def forward(self, src: Any) -> Any:
        return 10 * src


class LayerNorm(nn.LayerNorm):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return 2 * super().forward(x)


class Linear(nn.Linear):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return 2 * super().forward(x)


class Called(nn.TransformerEncoderLayer):  # type: ignore[misc, name-defined]
    def __call__(self, x: Any, *rest: Any, **more: Any) -> Any:
        return 2 * super().__call__(x, *rest, **more)


class Negated(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return -x


def changed(module: Any, name: str, part: Any) -> Any:
    """The module with one of its parts replaced."""
    setattr(module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], part)
    return module


def with_own_forward(module: Any, name: str) -> Any:
    module.get_submodule(name).forward = lambda x, **more: x
    return module


FOREIGN: dict[str, Callable[[], Any]] = {
    "subclass with a forward": lambda: WithPositions(4, 2, 5, dtype=torch.float64),
    "class of the same name": TransformerEncoderLayer,
    "layer with a call": lambda: Called(4, 2, 5, batch_first=True, dtype=torch.float64),
    "norm of the same name": lambda: changed(layer(), "norm1", LayerNorm(4)),
    "another norm": lambda: changed(layer(), "norm2", nn.RMSNorm(4)),
    "norm over two axes": lambda: changed(layer(), "norm1", nn.LayerNorm((3, 4))),
    "linear of the same name": lambda: changed(layer(), "linear1", Linear(4, 5)),
    "linear in the attention": lambda: changed(layer(), "self_attn.out_proj", Linear(4, 4)),
    "a part in the place of dropout": lambda: changed(layer(), "dropout1", Negated()),
    "an activation with a setting": lambda: changed(layer(), "activation", nn.LeakyReLU(0.5)),
    "weights that are integers": lambda: changed(
        layer(), "linear1.weight", nn.Parameter(torch.ones(5, 4, dtype=torch.int8), requires_grad=False)
    ),
    "weights on the meta device": lambda: layer().to("meta"),
    "own forward of a layer": lambda: with_own_forward(layer(), ""),
    "own forward of a norm": lambda: with_own_forward(layer(), "norm2"),
    "own forward of the attention": lambda: with_own_forward(layer(), "self_attn"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_modules_that_may_compute_something_else_are_refused(case: str) -> None:
    with pytest.raises(InputError, match=r"expected|meta device"):
        from_torch(FOREIGN[case]())


@pytest.mark.parametrize("name", [name for name, _ in layer().named_modules()])
@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_hook_on_any_part_is_refused(name: str, register: str) -> None:
    module = layer()
    handle = getattr(module.get_submodule(name), register)(lambda *arguments: None)
    with pytest.raises(InputError, match="expected no forward hook"):
        run(module, X)
    handle.remove()
    assert float((run(module, X) - module(X).detach()).abs().max()) <= 1e-12


def test_hooks_on_all_modules_are_refused() -> None:
    handle = nn.modules.module.register_module_forward_hook(lambda module, inputs, result: None)
    try:
        with pytest.raises(InputError, match="every module: expected no forward hook"):
            run(layer(), X)
    finally:
        handle.remove()


def test_pruning_is_refused_until_it_is_permanent() -> None:
    module = layer()
    prune.l1_unstructured(module.linear1, "weight", amount=0.5)
    with torch.no_grad():
        module.linear1.weight_orig.mul_(2.0)  # .weight is made anew in the next forward
    with pytest.raises(InputError, match="linear1: expected no forward hook"):
        run(module, X)
    prune.remove(module.linear1, "weight")
    assert float((run(module, X) - module(X).detach()).abs().max()) <= 1e-12


def test_parametrised_weights_are_read_as_they_are_used() -> None:
    module = layer()
    for part in (module.linear1, module.self_attn.out_proj):
        torch.nn.utils.parametrizations.weight_norm(part)
    with torch.no_grad():
        module.linear1.parametrizations.weight.original0.mul_(3.0)
    assert float((run(module, X) - module(X).detach()).abs().max()) <= 1e-12


class RenamedReLU(nn.ReLU):  # type: ignore[misc,name-defined]
    """Computes what its base does."""


ACTIVATIONS = (nn.LeakyReLU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.GELU(), RenamedReLU())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_as_modules(activation: Any) -> None:
    module = nn.TransformerEncoderLayer(
        4, 2, 6, 0.0, activation, batch_first=True, dtype=torch.float64
    ).eval()
    assert float((run(module, X) - module(X).detach()).abs().max()) <= 1e-12


BAD_INPUTS: dict[str, tuple[Callable[[], Any], str]] = {
    "meta": (lambda: X.to("meta"), "got one on the meta device"),
    "sparse": (lambda: X.to_sparse(), "X: expected a dense tensor"),
    "float8": (
        lambda: X.to(torch.float8_e4m3fn),
        "X: expected a type with arithmetic, got torch.float8_e4m3fn",
    ),
    "complex": (lambda: 1j * X, "X: expected real numbers"),
    "an empty batch": (lambda: X[None][:0], "X: expected one entry or more"),
    "no rows": (lambda: X[:0], "X: expected 3×4, got 0×4"),
    "masked": (lambda: np.ma.masked_less(X.numpy(), 0), "got a masked array"),
    "words": (lambda: [["a"] * 4], "X: expected real numbers"),
    "ragged": (lambda: [[1.0] * 4, [1.0] * 3], "X is ragged"),
    "not finite": (lambda: X / 0, "X has"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_inputs_that_are_refused_by_name(case: str) -> None:
    make, problem = BAD_INPUTS[case]
    T = from_torch(layer())
    with pytest.raises(InputError, match=problem):
        UniversalSimulator.of(T, 3)(T, make())


def test_an_activation_that_was_changed_afterwards_is_refused() -> None:
    """Torch's fast path computes the activation that the layer was built with."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dtype=torch.float64).eval()
    layer.activation = nn.GELU()
    with pytest.raises(InputError, match="activation_relu_or_gelu: expected 2 or 0"):
        run(layer, torch.zeros(3, 8, dtype=torch.float64))
    built = nn.TransformerEncoderLayer(
        8, 2, 16, activation=torch.relu, batch_first=True, dtype=torch.float64
    ).eval()
    X = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(3, 8)
    assert (run(built, X) - built(X[None])[0]).abs().max() < 1e-12
