"""A bar on the terminal for what takes longer than a second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager


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
