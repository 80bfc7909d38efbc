"""Show bars on the terminal for what takes long, and nothing where nobody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress(
    total: int, noun: str, what: str = "running U", quiet: bool = False
) -> Iterator[Callable[[str], None]]:
    """Show a bar of ``total`` steps on standard error once a second has passed, unless ``quiet``.

    Gives a function that is to be called with the name of each step that is done.
    """
    bar = _bar(noun)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(1.0, bar.start)
    if bar.console.is_terminal and not quiet:
        timer.start()
    try:
        yield lambda name: bar.update(task, advance=1, description=f"{what}, {name} done")
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()  # it may be starting the bar at this very moment
        if bar.live.is_started:
            bar.stop()


@contextmanager
def counted(what: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Give a function that shows (done, of how many, which) on standard error if that is a terminal."""
    bar = _bar("")
    if quiet or not bar.console.is_terminal:
        yield lambda done, total, which: None
        return
    with bar:
        task = bar.add_task(what, total=1)
        yield lambda done, total, which: bar.update(
            task, completed=done, total=total, description=f"{what}, {which}"
        )


def _bar(noun: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} " + noun),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
