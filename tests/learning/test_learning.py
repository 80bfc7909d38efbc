"""Trainings: they begin where they say, depend on their seeds alone, and step as torch does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum.errors import InputError
from locum.experiments.sweeps.sweep_case import Case
from locum.experiments.sweeps.sweep_kinds import KINDS

torch: Any = pytest.importorskip("torch")

from locum.experiments.learning import training  # noqa: E402
from locum.experiments.learning.constructions import Network, construction  # noqa: E402
from locum.experiments.learning.grid import GROUPS  # noqa: E402
from locum.experiments.learning.training import (  # noqa: E402
    learn,
    optimiser,
    train,
)

SMALLEST = {"task": "U", "order": [1, 1, 1]}
TASKS: list[dict[str, Any]] = [
    SMALLEST,
    {"task": "U", "order": [2, 1, 1]},
    {"task": "U", "order": [1, 1, 1], "units": "relu"},
    {"task": "matmul", "size": 2},
    *({"task": "fetch", "keys": keys, "positions": 6} for keys in ("squares", "one-hot", "bits")),
]
FEW = {**SMALLEST, "sigmas": [0.0, 0.1], "seeds": 2, "steps": 3, "batch": 4}


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: "-".join(map(str, task.values())))
def test_the_exact_start_is_right_on_both_ranges(task: dict[str, Any], balanced: bool) -> None:
    result = train({**task, "balanced": balanced, "sigmas": [0.0], "seeds": 1, "steps": 0})
    (row,) = result["rows"]
    assert row["error_before"] == row["error"] <= 2e-3
    assert row["error_wide"] <= 2e-3
    assert row["distance"] == row["zeros_rms"] == 0
    assert row["recovered"]


def test_the_network_is_what_is_exported() -> None:
    for task in TASKS:
        built = construction({**task, "balanced": True})
        network, inputs = Network.of(built.model), built.inputs(np.random.default_rng(0), 5)
        actual = network.forward(network.vector(built.model), torch.tensor(inputs))
        expected = built.model.to_torch()(torch.tensor(inputs))[..., 0].detach()
        assert float((actual - expected).abs().max()) < 1e-12


def test_what_is_exported_can_be_mapped_over_parameters() -> None:
    model = construction(SMALLEST).model
    module, inputs = model.to_torch(), torch.tensor([[0.5, -0.25, 1.0]])
    stacked = {name: torch.stack([p, p]) for name, p in module.named_parameters()}
    result = torch.func.vmap(lambda tokens: torch.func.functional_call(module, tokens, (inputs,)))(
        stacked
    )
    assert torch.equal(result[0], module(inputs))


@pytest.mark.parametrize("name", ["adam", "sgd", "muon"])
def test_trainings_depend_on_their_seed_alone(name: str) -> None:
    """Twice the same; and many networks at once are what each is by itself."""
    settings = {**FEW, "optimiser": name}
    together = train(settings)["rows"]
    assert together == train(settings)["rows"]
    assert together[0]["error"] != together[1]["error"]
    for row in together:
        alone = {**settings, "sigmas": [row["sigma"]], "seeds": 1, "first_seed": row["seed"]}
        (single,) = train(alone)["rows"]
        for title, value in row.items():
            assert single[title] == pytest.approx(value, rel=1e-6, abs=1e-9), title


def test_networks_that_take_turns_are_trained_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together = train(FEW)["rows"]
    monkeypatch.setitem(training._MOST_NUMBERS, "cpu", 1)
    for row, alone in zip(together, train(FEW)["rows"], strict=True):
        assert alone == pytest.approx(row, rel=1e-6, abs=1e-9)


def test_inputs_of_a_smaller_order_are_all_that_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"task": "U", "order": [1, 2, 1], "sigmas": [0.1], "seeds": 1, "steps": 3, "batch": 4}
    built = construction(settings)
    whole = train(settings)["rows"]
    (narrow,) = train({**settings, "inputs": "smaller"})["rows"]
    assert narrow["error"] != whole[0]["error"]
    assert narrow["error_before"] == whole[0]["error_before"]
    # The same as if the inputs were drawn so.
    monkeypatch.setattr(type(built), "inputs", _narrow(type(built).inputs))
    (drawn,) = train(settings)["rows"]
    assert drawn["distance"] == narrow["distance"]


def _narrow(draw: Any) -> Any:
    def inputs(self: Any, draws: Any, count: int, *reach: float) -> Any:
        drawn = draw(self, draws, count, *reach)
        return self.smaller(drawn) if count == 4 else drawn

    return inputs


def test_what_is_held_fast_does_not_move() -> None:
    held = train({**FEW, "trainable": "nonzeros"})["rows"]
    assert all(row["zeros_rms"] == 0 and row["distance"] > 0 for row in held)
    free = train({**FEW, "trainable": "zeros", "sigmas": [0.0]})["rows"]
    assert all(row["zeros_rms"] > 0 for row in free)
    relative = train({**FEW, "relative": True})["rows"]
    assert all(row["zeros_rms"] == 0 for row in relative)


def test_training_repairs_a_little_noise() -> None:
    settings = {**SMALLEST, "sigmas": [0.01], "seeds": 2, "steps": 120, "trainable": "nonzeros"}
    for row in train({**settings, "curve": [0, 120]})["rows"]:
        assert row["recovered"]
        assert row["error"] < row["error_before"] / 2


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_steps_are_those_of_torch(name: str) -> None:
    network = Network.of(construction(SMALLEST).model)
    draw = torch.Generator().manual_seed(0)
    gradients = torch.randn(4, 1, 9, generator=draw, dtype=torch.float64) * 0.1
    weights = torch.nn.Parameter(torch.zeros(1, 9, dtype=torch.float64))
    makers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    theirs = makers[name]([weights], lr=0.5, **({"momentum": 0.9} if name == "sgd" else {}))
    mine, step = torch.zeros(1, 9, dtype=torch.float64), optimiser(name, network)
    for gradient in gradients:
        weights.grad = gradient
        theirs.step()
        mine = mine - 0.5 * step(gradient)
    assert torch.allclose(mine, weights.detach())


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
def test_muon_steps_as_torch_does_up_to_its_half_precision() -> None:
    network = Network({"blocks.0.mlp.W_in": (3, 5)}, (None,), ((),))
    gradients = torch.randn(3, 1, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = torch.nn.Parameter(torch.zeros(3, 5, dtype=torch.float64))
    theirs = torch.optim.Muon([weights], lr=0.1, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    mine, step = torch.zeros(1, 15, dtype=torch.float64), optimiser("muon", network)
    for gradient in gradients:
        weights.grad = gradient.reshape(3, 5)
        theirs.step()
        mine = mine - 0.1 * step(gradient)
    apart = (mine.reshape(3, 5) - weights.detach()).norm() / weights.detach().norm()
    assert float(apart) < 0.05


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": "V"}, "task: expected one of U"),
        ({"optimiser": "lion"}, "expected one of sgd"),
        ({"trainable": "some"}, "trainable: expected one of all"),
        ({"start": "here"}, "start: expected one of construction"),
        ({"task": "fetch", "keys": "hash", "positions": 4}, "keys: expected one of squares"),
        ({"device": "abacus"}, "expected the device cpu, or cuda"),
        ({"device": "cuda:99"}, "expected the device cpu, or cuda"),
        ({"inputs": "some"}, "inputs: expected one of whole, smaller"),
        ({"inputs": "smaller"}, "inputs: expected .whole. for a task without a smaller order"),
    ],
)
def test_unknown_settings_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train({**FEW, **wrong})


def test_every_case_of_the_grid_is_a_case_of_a_sweep() -> None:
    kind = KINDS["learning"]
    assert set(kind.lists) == set(GROUPS)
    cases = [Case("learning", settings) for group in GROUPS.values() for settings in group()]
    assert len({case.key for case in cases}) == len(cases)
    assert sum(len(c.settings["sigmas"]) * c.settings["seeds"] for c in cases) >= 500


def test_a_case_of_a_sweep_is_trained() -> None:
    result = learn(**Case("learning", FEW).settings)
    assert len(result["rows"]) == 4
    assert result["hashes"]["weights"] == construction(SMALLEST).model.hash
    assert result["rows"] == train(FEW)["rows"]
