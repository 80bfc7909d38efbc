"""A worker process: answers one request after another, within limits that the kernel enforces.

Requests and answers are JSON in bytes; nothing is unpickled. A worker that exceeds its CPU time is
ended by the kernel; one that runs out of memory says so and ends itself, and a fresh one replaces it.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from locum.experiments.sweeps.worker_process import serve

#: What a worker says when it cannot answer; the page shows it.
MEMORY = "this needs more memory than the playground gives one program; try a smaller one"
INTERNAL = "the playground has a bug here: this request could not be answered"
LARGE = "the answer is too large to show; try a shorter input or a smaller program"


@dataclass(frozen=True)
class Limits:
    """What one request may take."""

    #: Seconds of CPU and of wall time.
    cpu: int = 5
    wall: float = 8.0
    #: Bytes of address space of a worker, and of an answer.
    memory: int = 2 * 2**30
    answer: int = 4 * 2**20
    #: Requests after which a worker is replaced: whatever it has kept goes with it.
    requests: int = 500


def main() -> None:
    """Answer requests until the input ends; the limits are the argument, as JSON."""
    from locum.interface.playground.answer import answer

    limits = Limits(**json.loads(sys.argv[1]))
    answer({"action": "run", "source": "x = length;", "input": "a"})  # loads what every request needs
    # No file can be written, no core dumped, no process started.
    for kind, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, limits.memory),
    ):
        resource.setrlimit(kind, (most, most))

    def prepare(request: bytes) -> Callable[[], tuple[bytes, bool]]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        allowed = int(used.ru_utime + used.ru_stime) + 1 + limits.cpu
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))
        return lambda: _reply(request, answer, limits.answer)

    serve(prepare)


def _reply(text: bytes, answer: Any, largest: int) -> tuple[bytes, bool]:
    """Return the answer as JSON, and whether the worker should be replaced after it."""
    try:
        packed = json.dumps(answer(json.loads(text)), ensure_ascii=False, allow_nan=False).encode()
    except MemoryError:
        return _failure(MEMORY), True
    except Exception:
        return _failure(INTERNAL), True
    return (packed, False) if len(packed) <= largest else (_failure(LARGE), False)


def _failure(problem: str) -> bytes:
    return json.dumps({"ok": False, "error": problem}).encode()
