"""Worker processes: one request at a time, killed at the time limit, without orphans.

:class:`WorkerProcess` starts ``main`` of a module, which calls :func:`serve`. Both sides exchange
lines of bytes. A worker never receives Ctrl-C. It ends when its input ends, whatever it computes: it
ends with the process that started it.
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

#: One thread of linear algebra in each worker: the workers share the cores already.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: The line before the first request and before each computation; the first byte of an answer.
_READY, _MORE, _LAST = b"ready", b"+", b"."


class WorkerEndedError(Exception):
    """The process ended without an answer."""

    def __init__(self, code: int, *, started: bool, expired: bool, seconds: float = 0.0) -> None:
        self.code, self.started, self.expired, self.seconds = code, started, expired, seconds
        name = "" if code >= 0 else signal.Signals(-code).name
        how = f"was ended by {name}" if name else f"ended with exit code {code}"
        super().__init__(f"the worker process {how}")


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Delay Ctrl-C; threads and processes that are started meanwhile never receive it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """A process that answers requests, and the pipes to it."""

    def __init__(self, module: str, *arguments: str) -> None:
        paths = [str(Path(locum.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = dict.fromkeys(_ONE_THREAD, "1") | os.environ
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        program = f"from {module} import main; main()"
        with hold_interrupts():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        self._is_ready = self._has_ended = False
        #: The number of answers.
        self.answered = 0

    def ask(self, request: bytes, limit: float | None = None) -> bytes:
        """Return the answer to a line; a process that takes more than ``limit`` seconds is killed.

        Raises :class:`WorkerEndedError` if there is no answer. The worker may have ended after an
        answer: see :attr:`is_alive`.
        """
        if not self._is_ready and not self._receive():
            raise LocumError("a worker process does not start; its error, if it has one, is above")
        self._is_ready = True
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has died: there will be no answer
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
        self._has_ended |= expired.is_set() or answer.startswith(_LAST)
        if not answer:
            seconds, code = round(time.perf_counter() - started, 6), self.process.wait()
            raise WorkerEndedError(code, started=True, expired=expired.is_set(), seconds=seconds)
        self.answered += 1
        return answer[1:]

    def _receive(self) -> bytes:
        """Return the next line; an empty one if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            self._has_ended = True  # the system may take a moment longer to report it
            return b""
        return line[:-1]

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked again."""
        return not self._has_ended and self.process.poll() is None

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def serve(prepare: Callable[[bytes], Callable[[], tuple[bytes, bool]]]) -> None:
    """Answer requests until the input ends.

    ``prepare`` loads what a request needs, which is not part of its time. The function that it returns
    computes the answer, and whether it is the last one of this process.
    """
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # What a request prints must not be read as an answer.
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
    is_last = False
    while not is_last:
        compute = prepare(lines.get())
        write(_READY)
        answer, is_last = compute()
        write((_LAST if is_last else _MORE) + answer)
