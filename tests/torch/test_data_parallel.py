"""Training in two processes ends with the weights of training in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.torch.data_parallel import PROCESSES, STEPS, make_model, train  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_two_processes_train_like_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.torch.data_parallel", str(tmp_path)]
    subprocess.run(command, check=True, timeout=600, capture_output=True)
    single = make_model()
    train(single, single.parameters(), slice(None))
    for rank in range(PROCESSES):
        state = torch.load(tmp_path / f"process{rank}.pt", weights_only=True)
        assert state["runs"] == {"inference": 0, "forward": STEPS, "backward": STEPS}
        assert state["share"] == 1.0
        torch.testing.assert_close(state["weights"], single.state_dict(), rtol=0, atol=1e-9)
