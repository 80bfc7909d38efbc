"""``make prove`` as a process: Ctrl-C ends it at once, and the documents count what it counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from locum.paper.__main__ import jobs

#: Only so that a hang is a failure: nothing here depends on how fast the machine is.
PATIENCE = 1800


def heed_interrupts() -> None:
    """Undo what a shell does to jobs in the background, from which the tests may have been started."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX")
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the process", "as a terminal does"])
def test_one_interrupt_ends_it_and_leaves_no_workers(send: Callable[[int, int], None]) -> None:
    """The terminal interrupts the whole group; ``kill -INT`` only the first process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "locum.paper"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("[1/")  # workers are busy with the next ones
        send(process.pid, signal.SIGINT)
        # The pipes are at their end only when every worker, which inherited them, is gone.
        _, problems = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert problems == "interrupted\n"
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_the_documents_count_what_it_counts() -> None:
    text = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")
    assert re.findall(r"(\d+) proofs and refutations", text) == [str(len(jobs()))]


def test_each_proof_is_counted_once() -> None:
    """A corrected claim may be among the item's own."""
    keys = [case.key for case in jobs()]
    assert len(set(keys)) == len(keys)
