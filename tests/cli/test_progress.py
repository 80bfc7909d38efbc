"""Bars: only once a second has passed, only on a terminal, and gone afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from locum.cli.progress import progress


class Timer:
    """Rings at once, whatever time it is set to."""

    set_to: list[float]

    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self.set_to.append(seconds)
        self.start = ring

    def cancel(self) -> None:
        """Do nothing: it has rung."""

    def is_alive(self) -> bool:
        return False


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> type[Timer]:
    Timer.set_to = []
    monkeypatch.setattr("locum.cli.progress.threading.Timer", Timer)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Timer


def test_a_bar_after_a_second(
    timer: type[Timer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal
    with progress(2, "layers") as advance:
        advance("layer 0")
    assert timer.set_to == [1.0]
    shown = capsys.readouterr().err
    assert "running U, layer 0 done" in shown
    assert "1/2 layers" in shown


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_where_nobody_looks(
    timer: type[Timer],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quiet: bool,
) -> None:
    if quiet:
        monkeypatch.setenv("FORCE_COLOR", "1")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress(2, "layers", quiet=quiet) as advance:
        advance("layer 0")
    assert capsys.readouterr().err == ""
