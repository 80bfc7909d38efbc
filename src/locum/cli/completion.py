"""Print the script with which a shell completes commands and options: bash, zsh or fish.

Put eval "$(locum completion bash)" into the file that your shell reads at its start.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from locum.cli import output
from locum.cli.options import json_option


@click.command("completion", help=__doc__)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print the script of one shell."""
    from locum.cli.main import VARIABLE, cli

    script = get_completion_class(shell)
    assert script is not None
    text = script(cli, {}, "locum", VARIABLE).source()
    if as_json:
        output.print_json({"shell": shell, "script": text})
    else:
        output.say(text)
