"""``locum.torch.simulate``: a model on U, compared with eager execution."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest
import torch

import locum.torch
from locum.errors import ExecutionError, InputError
from locum.torch.simulation import check_difference, list_tensors, measure_difference


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> Any:
        y = self.drop(self.norm(self.first(x)))
        return {"y": y * scale, "parts": (y, [y.sum()])}


@pytest.fixture
def model() -> Model:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Model()


def test_a_run_has_the_random_numbers_and_buffers_of_one_run(model: Model) -> None:
    other, x = copy.deepcopy(model), torch.randn(5, 3)
    torch.manual_seed(1)
    found = locum.torch.simulate(model, x, scale=2.0)
    after = torch.get_rng_state()
    torch.manual_seed(1)
    expected = other(x, scale=2.0)
    assert torch.equal(after, torch.get_rng_state())
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(dict(model.named_buffers()), dict(other.named_buffers()))


def test_the_compiled_model_is_kept_and_dropped_with_the_model() -> None:
    torch._dynamo.reset()
    model = Model()
    x = torch.randn(5, 3)
    for _ in range(3):
        locum.torch.simulate(model, x)
    report = locum.torch.report(model)
    assert (report.runs, report.plans) == (3, 1)
    reference = weakref.ref(model)
    del model, report
    gc.collect()
    assert reference() is None


def test_copies_and_pickles_of_a_model_are_their_own(model: Model) -> None:
    model.eval()
    x = torch.randn(5, 3)
    before = locum.torch.simulate(model, x)["y"]
    other = copy.deepcopy(model)
    loaded = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        for one in (other, loaded):
            one.first.weight.zero_()
            assert not torch.allclose(locum.torch.simulate(one, x)["y"], before)
    assert torch.equal(locum.torch.simulate(model, x)["y"], before)
    assert list(model.state_dict()) == list(other.state_dict())


def test_gradients_flow_through_the_output(model: Model) -> None:
    model.double()
    other, x = copy.deepcopy(model), torch.randn(5, 3, dtype=torch.float64)
    for one, run in ((model, locum.torch.simulate), (other, lambda m, v: m(v))):
        torch.manual_seed(1)
        run(one, x)["y"].square().sum().backward()
    for found, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


def test_many_models_of_a_class() -> None:
    torch._dynamo.reset()
    for seed in range(12):
        torch.manual_seed(seed)
        locum.torch.simulate(Model().eval(), torch.randn(2, 3))


def test_a_difference_raises() -> None:
    x = torch.tensor([1.0, 2.0])
    check_difference({"y": x}, {"y": x + 1e-6})
    with pytest.raises(ExecutionError, match=r"y: expected a relative difference .* at most 0.0001"):
        check_difference({"y": x}, {"y": x + 1e-2})
    with pytest.raises(ExecutionError, match="at most 1e-08"):
        check_difference([x], [x + 1e-6], tolerance=1e-8)
    with pytest.raises(ExecutionError, match=r"expected torch.float32 of shape"):
        check_difference(x, x.double())
    with pytest.raises(ExecutionError, match="got inf"):
        check_difference(x, torch.tensor([1.0, float("nan")]))
    with pytest.raises(ExecutionError, match="got inf"):
        check_difference(torch.tensor([1, 2]), torch.tensor([1, 3]))
    with pytest.raises(ExecutionError, match="expected the tensors"):
        check_difference({"y": x}, {"z": x})


def test_tensors_of_objects_are_found() -> None:
    class Cache:
        def __init__(self) -> None:
            self.layers = [torch.zeros(1)]

    assert list(list_tensors({"a": (torch.zeros(1), Cache())})) == ["a[0]", "a[1].layers[0]"]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_bad_input(model: Model) -> None:
    with pytest.raises(InputError, match=r"expected a torch.nn.Module, got function"):
        locum.torch.simulate(lambda x: x, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="executor: expected one of fast, dense, heads"):
        locum.torch.simulate(model, torch.zeros(2, 3), executor="quick")
    x = torch.randn(5, 3, requires_grad=True) * 2
    with pytest.raises(InputError, match="compare=False"):
        locum.torch.simulate(model, x)
    locum.torch.simulate(model, x, compare=False)


def test_the_largest_difference_is_returned() -> None:
    a, b = torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.5])
    assert check_difference((a, b), (a, b)) == 0.0
    assert check_difference((a, a), (a, b), tolerance=0.2) == 0.125


def test_complex_numbers_differ_in_both_parts() -> None:
    a = torch.tensor([3 + 4j, 1 + 1j])
    assert measure_difference(a, a) == 0.0
    assert measure_difference(a, a + 2j) == 0.5
    assert measure_difference(a, a.conj()) == 2.0
