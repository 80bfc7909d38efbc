"""Runs texts of strangers within hard limits of processor time and memory, which the system counts.

:func:`run_alone` starts a process for one text. A :class:`Worker` is a process for many texts: each is
run by a session or a command of its own, and has what the limits leave after the interpreter started.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

#: What any text may take: seconds of processor time, and bytes. Work is counted in steps, which are two
#: seconds on an ordinary machine; five times as many end only a text that would not end by itself.
SECONDS, BYTES = 10, 10**9

#: Ways in which a text reaches the language.
COMMANDS = {
    "run": ["run", "{path}"],
    "repl": ["repl"],
    "json": ["repl", "--json"],
    "auto": ["run", "{path}", "--executor", "auto"],
    "heads": ["run", "{path}", "--executor", "heads"],
}
FACES = ("session", *COMMANDS)


def limit_memory() -> None:
    """Limit the address space of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def _limit() -> None:
    limit_memory()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _environment() -> dict[str, str]:
    # One thread: each reserves address space of its own.
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


def run_alone(face: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a text by a command in a process of its own, which is killed if it breaks the limits."""
    path = folder / "program.rasp"
    path.write_text(text, encoding="utf-8", newline="")
    done = subprocess.run(
        [sys.executable, "-m", "locum", *(part.format(path=path) for part in COMMANDS[face])],
        input=text if face in ("repl", "json") else "",
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        preexec_fn=_limit,
        env=_environment(),
    )
    check({"code": done.returncode, "out": done.stdout, "error": done.stderr}, text)
    return done


def check(answer: dict[str, Any], text: str) -> None:
    """Fail for a text that broke a limit or ended in anything but results and described errors."""
    said = f"{answer['out'][-300:]}\n{answer['error'][-1_500:]}"
    assert answer["code"] in (0, 2), f"code {answer['code']} for {text[:300]!r}\n{said}"
    assert "Traceback" not in said, f"{text[:300]!r}\n{said}"
    assert "not enough memory" not in said, f"{text[:300]!r}\n{said}"


class Worker:
    """A process that runs texts one after the other, and is replaced when it has been killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._texts = 0

    def run(self, face: str, text: str) -> dict[str, Any]:
        """Run a text and return its exit code, output and errors."""
        self._texts += 1
        if self._texts % 40 == 0:  # memory that earlier texts left behind is not this one's
            self.close()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.old.rasp.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=limit_memory,
                env={**_environment(), "WORKER_FOLDER": str(self.folder)},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([face, text]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            code, self._process = self._process.wait(), None
            raise AssertionError(f"the worker died with {code} of {face}: {text[:300]!r}")
        answer: dict[str, Any] = json.loads(line)
        check(answer, text)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None
