"""The forward pass in blocks: the same numbers, in bounded memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from locum.networks.transformer import forward
from tests.old.networks.random_models import random_inputs, random_model


@pytest.mark.parametrize("scores", [1, 7, 40, 2**22])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_give_the_same_numbers(seed: int, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(seed, layers=2, dtype="float64")
    inputs = random_inputs(model, seed)
    answer, cache = model.run_with_cache(inputs)
    monkeypatch.setattr(forward, "MAX_SCORES", scores)
    again, other = model.run_with_cache(inputs)
    assert list(cache) == list(other)
    for name in cache:
        np.testing.assert_allclose(cache[name], other[name], rtol=1e-13, atol=1e-13)
    assert model(inputs) == again
    if model.config.outputs is not None:
        assert again == answer


def test_blocks_are_small_and_cover_everything() -> None:
    for batch, heads, positions in ((1, 80, 3072), (3, 5, 7), (9, 1, 10_000), (1, 1, 1)):
        covered = np.zeros((heads, positions), dtype=int)
        for some, queries in forward._blocks(batch, heads, positions):
            covered[some, queries] += 1
            count = covered[some, queries].size
            assert count == 1 or batch * count * positions <= forward.MAX_SCORES
        assert (covered == 1).all()


#: Thirty heads over 1,500 positions have 540 MB of scores, and softmax needs them several times.
LARGE = """
import resource
import numpy as np
from locum.networks.transformer import AttentionWeights
from locum.networks.transformer.forward import attend, shown_to

heads, positions = 30, 1500
chance = np.random.default_rng(0)
W, b = chance.normal(size=(heads, 3, 2)), np.zeros((heads, 2))
kinds = ("hard", "softmax") * (heads // 2)
weights = AttentionWeights(W, b, W, b, W, b, W.swapaxes(1, 2), np.zeros(3), kinds)
stream = chance.normal(size=(1, positions, 3))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert np.isfinite(attend(weights, stream, "", shown_to(None))).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_many_heads_take_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300_000  # kilobytes
