"""Show bars on the terminal for what takes long, and nothing where nobody looks.

Work whose steps can be counted has a bar, with the time that is left. For the rest there is a line,
with the time that has passed, once a command has been silent for two seconds; it is gone as soon as
something is printed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from locum.locks import Lock

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds of silence after which the line is shown, and between two looks.
PATIENCE, BEAT = 2.0, 0.25


@contextmanager
def progress(total: int, noun: str, what: str = "running U") -> Iterator[Callable[[str], None]]:
    """Show a bar of ``total`` steps on standard error after a second.

    Yields a function to call with the name of each step that is done.
    """
    bar = _bar(noun)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(1.0, bar.start)
    if bar.console.is_terminal and not is_quiet():
        timer.start()
    try:
        with _alone():
            yield lambda name: bar.update(task, advance=1, description=f"{what}, {name} done")
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()  # it may be starting the bar at this very moment
        if bar.live.is_started:
            bar.stop()


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function that shows (done, total, which) on standard error if that is a terminal."""
    bar = _bar("")
    if is_quiet() or not bar.console.is_terminal:
        yield lambda done, total, which: None
        return
    with _alone(), bar:
        task = bar.add_task(what, total=None)  # how many there are is known with the first
        yield lambda done, total, which: bar.update(
            task, completed=done, total=total, description=f"{what}, {which}"
        )


def is_quiet() -> bool:
    """Return whether the command that is running prints JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def _alone() -> AbstractContextManager[None]:
    """Keep away the line that says that a command is at work: the bar says it better."""
    watching = current()
    return nullcontext() if watching is None else watching.another()


def _bar(noun: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Count(ProgressColumn):
        """How many are done, of how many."""

        def render(self, task: Task) -> Text:
            total = "?" if task.total is None else f"{task.total:.0f}"
            return Text(f"{task.completed:.0f}/{total} {noun}")

    class Left(TimeRemainingColumn):
        """The time that is left, where it is known how much there is to do."""

        def render(self, task: Task) -> Text:
            return Text("" if task.total is None else "left ") + super().render(task)

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        Count(),
        TimeElapsedColumn(),
        Left(),
        console=Console(stderr=True),
        transient=True,
        # What is printed meanwhile stands above the bar, unless it goes into a pipe or a file.
        redirect_stdout=sys.stdout.isatty(),
    )


class Waiting:
    """The line of one command, which is there while the command is silent."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._began = self._last = clock()
        self._line: Progress | None = None
        self._others = 0
        self._lock = Lock()
        self._ended = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look again and again, from another thread, until this is left."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self.heard()

    def _watch(self) -> None:
        while not self._ended.wait(BEAT):
            self.beat()

    def beat(self) -> None:
        """Show the line, if there has been silence for long enough and no other bar is there."""
        with self._lock:
            silent = self._clock() - self._last >= PATIENCE
            if silent and self._line is None and not self._others and not self._ended.is_set():
                self._line = _line(f"locum {self._name} is at work", self._began, self._clock)

    def heard(self) -> None:
        """Take the line away: something is about to be printed."""
        with self._lock:
            self._hush()

    def _hush(self) -> None:
        self._last = self._clock()
        line, self._line = self._line, None
        if line is not None:
            line.stop()

    @contextmanager
    def another(self) -> Iterator[None]:
        """Keep the line away while a bar of the command is there."""
        with self._lock:
            self._hush()
            self._others += 1
        try:
            yield
        finally:
            self._others -= 1
            self.heard()


@contextmanager
def waiting(context: click.Context, arguments: list[str]) -> Iterator[None]:
    """Watch the command of this context, if someone looks and it is not a conversation."""
    name = next(iter(arguments), "")
    if name in ("repl", "playground") or "--json" in arguments or not sys.stderr.isatty():
        yield
        return
    context.obj = Waiting(name)
    with context.obj.watched():
        yield


def current() -> Waiting | None:
    """Return what watches the command that is running, if anything does."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_object(Waiting)


def _line(text: str, began: float, clock: Callable[[], float]) -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    line = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        get_time=clock,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line.add_task(text, total=None)
    line.tasks[0].start_time = began
    line.start()
    return line
