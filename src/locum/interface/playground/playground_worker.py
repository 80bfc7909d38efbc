"""Run a worker process that answers requests within limits enforced by the kernel.

Requests and answers are JSON in bytes, and nothing is unpickled. Before a request, the process receives
its limit of CPU time. Before an answer, the process sends the CPU time of the request. The kernel
terminates a worker that exceeds the limit. A worker that runs out of memory reports this and exits.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from locum.experiments.sweeps.worker_process import serve
from locum.interface.playground.requests import INTERNAL, MEMORY

LARGE = "the answer is too large to show; try a shorter input or a smaller program"


@dataclass(frozen=True)
class Limits:
    """Limits of CPU time, wall time, memory and answer size of one request."""

    #: CPU time and wall time in seconds.
    cpu: int = 5
    wall: float = 8.0
    #: Size of the address space of a worker, and size of an answer, in bytes.
    memory: int = 2 * 2**30
    answer: int = 4 * 2**20
    #: Number of requests after which a worker and its caches are replaced.
    requests: int = 500


def main() -> None:
    """Answer requests until the input ends, within the limits in the first command-line argument."""
    from locum.interface.playground.answer import answer

    limits = Limits(**json.loads(sys.argv[1]))
    answer({"action": "run", "source": "x = length;", "input": "a"})  # loads what every request needs
    # The process cannot write files or core dumps, and its memory is limited.
    for kind, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, limits.memory),
    ):
        resource.setrlimit(kind, (most, most))

    def prepare(request: bytes) -> Callable[[], tuple[bytes, bool]]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        before = used.ru_utime + used.ru_stime
        cpu, _, text = request.partition(b" ")
        resource.setrlimit(resource.RLIMIT_CPU, (int(before) + 1 + int(cpu), hard))

        def compute() -> tuple[bytes, bool]:
            reply, is_last = _reply(text, answer, limits.answer)
            return b"%.4f " % (time.process_time() - before) + reply, is_last

        return compute

    serve(prepare)


def _reply(text: bytes, answer: Any, largest: int) -> tuple[bytes, bool]:
    """Return the answer as JSON, and whether the worker must be replaced after this answer."""
    try:
        packed = json.dumps(answer(json.loads(text)), ensure_ascii=False, allow_nan=False).encode()
    except MemoryError:
        return _failure(MEMORY), True
    except Exception:
        return _failure(INTERNAL), True
    return (packed, False) if len(packed) <= largest else (_failure(LARGE), False)


def _failure(problem: str) -> bytes:
    return json.dumps({"ok": False, "error": problem}).encode()
