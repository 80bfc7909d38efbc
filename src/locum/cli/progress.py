"""Bars on the terminal for what takes long; nothing where nobody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


def progress(total: int, noun: str) -> AbstractContextManager[Callable[[str], None]]:
    """A bar of so many steps (or layers) on stderr, once a second has passed.

    What it gives is to be called with the name of each that is done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    class Late:
        """Starts to show when a second has passed."""

        def __enter__(self) -> Callable[[str], None]:
            self.console = Console(stderr=True)
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} " + noun),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task("running U", total=total)
            self.timer = threading.Timer(1.0, self.show)
            self.shown = False
            if self.console.is_terminal:
                self.timer.start()
            return self.advance

        def show(self) -> None:
            self.shown = True
            self.bar.start()

        def advance(self, name: str) -> None:
            self.bar.update(self.task, advance=1, description=f"running U, {name} done")

        def __exit__(self, *problem: object) -> None:
            self.timer.cancel()
            if self.timer.is_alive():
                self.timer.join()  # it may be starting the bar at this very moment
            if self.shown:
                self.bar.stop()

    return Late()


@contextmanager
def counted(what: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """A function that shows (done, of how many, what), on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total, text: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total, text: bar.update(
            task, completed=done, total=total, description=f"{what}, {text}"
        )
