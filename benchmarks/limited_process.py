"""Run work in a separate process, with limits on CPU time, wall time and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from benchmarks.harness import Row

#: Maximum wall time for each second of CPU time, because other processes may use the processor.
_WALL = 15


def run_limited(work: Callable[[], Row], seconds: int, megabytes: int | None = None) -> Row:
    """Return the row that ``work`` returns, with its CPU time in seconds and its peak memory in MB.

    If an error occurs or a limit is exceeded, a row with a ``reason`` is returned instead. ``work``
    runs in a forked process, so loaded modules are not loaded again.
    """
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, send, seconds, megabytes))
    process.start()
    send.close()
    row: Row = {}
    if receive.poll(_WALL * seconds):
        try:
            row = receive.recv()
        except EOFError:
            process.join()
            row = {"reason": f"stopped: more than {seconds} s of CPU time"}
    else:
        process.kill()
        row = {"reason": f"stopped: more than {_WALL * seconds} s"}
    process.join()
    receive.close()
    return row


def _work(work: Callable[[], Row], send: Connection, seconds: int, megabytes: int | None) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if megabytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    started = time.process_time()
    try:
        row = work()
    except MemoryError:
        row = {"reason": "stopped: not enough memory"}
    except Exception as error:  # Any error is a result of the benchmark.
        row = {"reason": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    row["cpu_seconds"] = round(time.process_time() - started, 3)
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    send.send(row)
    send.close()
    os._exit(0)
