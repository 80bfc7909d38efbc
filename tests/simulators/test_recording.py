"""``locum.record``: steps of U by names like TransformerLens's, from whatever runs it."""

from __future__ import annotations

import numpy as np
import pytest

import locum
from locum.errors import InputError
from locum.simulators import Encoder, Module
from tests.simulators.random_modules import Chance, distance


def layer(norm: str) -> Module:
    c = Chance(3)
    norms = (c.norm(4), c.norm(4))
    return Encoder(
        c.heads(4, 2, 2), c(4, 3), c(3, 4), c(3), c(4), norm=norm, norm1=norms[0], norm2=norms[1]
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_step_has_a_name_and_is_the_step(norm: str) -> None:
    T, X = layer(norm), Chance(4)(3, 5, 4)
    with locum.record() as cache:
        result = locum.simulate(T, X)
    steps = [T.steps(x) for x in X]
    last = "hook_resid_post" if norm == "pre" else "hook_normalized_resid_post"
    assert distance(cache[f"blocks.0.{last}"], result) == 0
    for name, step in {
        "hook_attn_out": "attention",
        "hook_resid_mid": "residual",
        "mlp.hook_post": "hidden",
        "hook_mlp_out": "feed-forward",
        "ln1.hook_out": "norm1",
    }.items():
        assert distance(cache[f"blocks.0.{name}"], [own[step] for own in steps]) < 1e-12
    for name, step in {"pattern": "softmax", "attn_scores": "scores", "z": "output", "v": "XV"}.items():
        value = np.asarray(cache[f"blocks.0.attn.hook_{name}"])
        if name in "zv":
            value = value.swapaxes(1, 2)
        expected = [[own[f"{'head' if name == 'z' else step}[{h}]"] for h in range(2)] for own in steps]
        assert distance(value, expected) < 1e-12


def test_patterns_choose_and_nothing_is_recorded_outside() -> None:
    T, X = Chance(0).attention(2, 2), Chance(1)(3, 2)
    with locum.record("*.hook_pattern", "blocks.1.*") as cache:
        locum.simulate(T, X)
    locum.simulate(T, X)
    assert list(cache) == ["blocks.0.attn.hook_pattern"]
    assert cache["blocks.0.attn.hook_pattern"].shape == (1, 1, 3, 3)
    with pytest.raises(InputError, match="expected patterns"), locum.record(3):  # type: ignore[arg-type]
        pass


def test_every_layer_of_several_stand_ins_has_its_number() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True).eval()
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    other = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    by_U, X = (
        locum.stand_in(torch.nn.Sequential(encoder, layer, other), where="*"),
        torch.randn(1, 3, 4),
    )
    with locum.record("*hook_pattern") as cache:
        by_U(X)
    assert list(cache) == [f"blocks.{number}.attn.hook_pattern" for number in range(4)]
    for Y, number in ((X, 0), (encoder(X), 2), (layer(encoder(X)), 3)):
        expected = layer.self_attn(Y, Y, Y, average_attn_weights=False)[1]
        assert distance(cache[f"blocks.{number}.attn.hook_pattern"].detach(), expected.detach()) < 1e-6


def test_stand_ins_and_simulate_record_the_same() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True), 2, enable_nested_tensor=False
    ).eval()
    X = torch.randn(2, 3, 4)
    with locum.record() as ours:
        locum.stand_in(encoder)(X)
    with locum.record() as theirs:
        locum.simulate(encoder, X)
    assert set(ours) == set(theirs)
    assert {name.split(".")[1] for name in ours} == {"0", "1"}
    assert all(distance(ours[name].detach(), theirs[name]) < 1e-5 for name in ours)
