"""Fixtures of all tests of the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.commands import Done, command_line

Run = Callable[..., Done]


@pytest.fixture
def command() -> Run:
    """Runs a command as a user with a wide terminal would: exit code, output, errors."""
    return lambda *arguments: command_line(*arguments, columns=140)


@pytest.fixture
def simulate() -> Run:
    """Runs ``locum simulate`` so."""
    return lambda *arguments: command_line("simulate", *arguments, columns=140)
