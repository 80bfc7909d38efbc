"""The kind ``trial``: cases that do nothing, to rehearse a sweep on a new machine or cluster."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from typing import Any


def trial(seed: int, seconds: float, ends: str) -> dict[str, Any]:
    """Wait, and end as told: with a number, or in one of the ways in which real cases go wrong.

    >>> trial(1, 0.0, "done") == trial(1, 0.0, "done")
    True
    """
    time.sleep(seconds)
    number = random.Random(seed).getrandbits(32)
    if ends == "error":
        raise ValueError(f"the case {seed} was told to fail")
    if ends == "killed":
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    if ends == "too long":
        time.sleep(86_400)
    if ends == "talking":
        sys.stdout.write("words that are no result\n")
        sys.stdout.flush()
    value = float("nan") if ends == "not JSON" else number
    return {"number": value, "holds": ends != "failed", "hashes": {"number": f"{number:08x}"}}
