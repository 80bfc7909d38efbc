"""Show the progress of a running command on a terminal.

The progress line is printed on standard error after two seconds without output, and is removed before
other output. If the number of steps is known, the line shows a bar and the remaining time.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from locum.shared_state import Lock

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds without output before the progress line appears, and seconds between updates.
PATIENCE, BEAT = 2.0, 0.25


class Status:
    """The progress line of the running command."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = f"locum {name} is running", clock
        self._began = self._last = clock()
        self._text, self._done, self._total = self._name, 0, 0
        self._line: Progress | None = None
        self._lock = Lock()
        self._ended = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Show and update the progress line from another thread while the context is open."""
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()
            self.heard()

    def _watch(self) -> None:
        while not self._ended.wait(BEAT):
            self.beat()

    def beat(self) -> None:
        """Show the progress line if there was no output for ``PATIENCE`` seconds."""
        with self._lock:
            silent = self._clock() - self._last >= PATIENCE
            if silent and self._line is None and not self._ended.is_set():
                self._line = self._show()

    def heard(self) -> None:
        """Remove the progress line, because other output follows."""
        with self._lock:
            self._last = self._clock()
            self._hide()

    def update(self, text: str = "", done: int = 0, total: int = 0) -> None:
        """Set the text and the number of finished steps; a bar is shown if ``total`` is not 0."""
        with self._lock:
            self._text, self._done = text or self._name, done
            changed, self._total = total != self._total, total
            if self._line is None:
                return
            if changed:
                self._hide()
                self._line = self._show()
            else:
                self._line.update(self._line.tasks[0].id, description=self._text, completed=done)

    def _hide(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.stop()

    def _show(self) -> Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        bar = [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()] if self._total else []
        line = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            *bar,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            get_time=self._clock,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        line.add_task(self._text, total=self._total or None, completed=self._done)
        line.tasks[0].start_time = self._began
        line.start()
        return line


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function ``(done, total, name)`` that updates the progress line.

    ``what`` describes the work. If the command has no progress line, the function has no effect.
    """
    status = current()
    if status is None:
        yield lambda done, total, which: None
        return
    try:
        yield lambda done, total, which: status.update(f"{what}, {which}", done, total)
    finally:
        status.update()


@contextmanager
def progress(total: int, what: str = "running U") -> Iterator[Callable[[str], None]]:
    """Yield a function that must be called with the name of each finished step.

    ``total`` is the number of steps.
    """
    steps = itertools.count(1)
    with counted(what) as advance:
        yield lambda name: advance(next(steps), total, f"{name} done")


def is_quiet() -> bool:
    """Return whether the current command prints JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


@contextmanager
def waiting(context: click.Context, arguments: list[str]) -> Iterator[None]:
    """Show a progress line for the command, on a terminal, without ``--json`` and outside of
    dialogues.
    """
    name = next(iter(arguments), "")
    if name in ("repl", "playground") or "--json" in arguments or not sys.stderr.isatty():
        yield
        return
    context.obj = Status(name)
    with context.obj.watched():
        yield


def current() -> Status | None:
    """Return the progress line of the current command, or None if the command has none."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_object(Status)
