"""Run worker processes that answer one request at a time, with a time limit.

:class:`WorkerProcess` starts the function ``main`` of a module, which calls :func:`serve`. Both
processes exchange lines of bytes. On POSIX systems, a worker does not receive Ctrl-C. A worker ends
when its input is closed, even during a computation. It therefore also ends after the process that
started it ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import locum
from locum.errors import LocumError

#: Environment variables that limit linear algebra to one thread, because the workers already share the
#: cores.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Line before the first request and before each computation.
_READY = b"ready"


class WorkerEndedError(Exception):
    """An error that is raised if a worker process ends without an answer."""

    def __init__(self, code: int, *, started: bool, expired: bool, seconds: float = 0.0) -> None:
        self.code, self.started, self.expired, self.seconds = code, started, expired, seconds
        name = "" if code >= 0 else signal.Signals(-code).name
        how = f"was ended by {name}" if name else f"ended with exit code {code}"
        super().__init__(f"the worker process {how}")


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Delay Ctrl-C in this thread during the block.

    Threads and processes started in the block do not receive it. On systems without signal masks, such
    as Windows, this has no effect.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """A worker process with the pipes through which it receives requests and returns answers."""

    def __init__(self, module: str) -> None:
        paths = [str(Path(locum.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = dict.fromkeys(_ONE_THREAD, "1") | os.environ
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        program = f"from {module} import main; main()"
        with hold_interrupts():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        self._is_ready = self._has_ended = False

    def ask(self, request: bytes, limit: float | None = None) -> bytes:
        """Return the answer to a request; kill the process if it takes more than ``limit`` seconds.

        Raise :class:`WorkerEndedError` if the process ends without an answer, and :class:`LocumError`
        if it does not start.
        """
        if not self._is_ready and not self._receive():
            raise LocumError("a worker process did not start; any error that it printed is above")
        self._is_ready = True
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # the process has ended, so there is no answer
            self.process.stdin.write(request + b"\n")
            self.process.stdin.flush()
        if not self._receive():
            raise WorkerEndedError(self.process.wait(), started=False, expired=False)
        started, expired = time.perf_counter(), threading.Event()

        def expire() -> None:
            expired.set()
            self.process.kill()

        timer = None
        if limit is not None:
            timer = threading.Timer(min(limit, threading.TIMEOUT_MAX), expire)
            timer.start()
        answer = self._receive()
        if timer is not None:
            timer.cancel()
            timer.join()
        self._has_ended |= expired.is_set()
        if not answer:
            seconds, code = round(time.perf_counter() - started, 6), self.process.wait()
            raise WorkerEndedError(code, started=True, expired=expired.is_set(), seconds=seconds)
        return answer

    def _receive(self) -> bytes:
        """Return the next line from the process; empty if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            self._has_ended = True  # the system may report this slightly later
            return b""
        return line[:-1]

    @property
    def is_alive(self) -> bool:
        """Whether the process can answer another request."""
        return not self._has_ended and self.process.poll() is None

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def serve(prepare: Callable[[bytes], Callable[[], bytes]]) -> None:
    """Answer requests from standard input until the input ends.

    ``prepare`` loads the code for a request; this time does not count for the time limit. The result of
    ``prepare`` is a function that returns the answer.
    """
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # Text printed during a request must not be read as an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def read() -> None:
        unfinished = b""
        while content := os.read(0, 2**16):
            *whole, unfinished = (unfinished + content).split(b"\n")
            for line in whole:
                lines.put(line)
        os._exit(0)

    def write(line: bytes) -> None:
        try:
            answers.write(line + b"\n")
            answers.flush()
        except OSError:
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    write(_READY)
    while True:
        compute = prepare(lines.get())
        write(_READY)
        write(compute())
