"""Write the reference page of the command line: usage, options and an example of each command."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from locum.interface.cli.main import SECTIONS, cli

#: Examples of commands and of subcommands of groups, by name.
EXAMPLES = {
    "run": "locum run reverse --input abc",
    "repl": "locum repl --example hello",
    "playground": "locum playground --open",
    "compile": "locum compile reverse --length 5 --vocab abcd -o reversed",
    "simulate": "locum simulate --order 3,3,3 --executor dense",
    "prove claim": "locum prove claim matmul 3 3 4",
    "language classify": "locum language classify '(ab+ba)*'",
    "language equivalent": "locum language equivalent '(ab)*' '(ab)*ab'",
    "paper report": "locum paper report algo:softmax",
    "paper errata": "locum paper errata",
    "dataset make": "locum dataset make -o circuits --size 20",
    "dataset score": "locum dataset score circuits/items/ITEM/circuit.json found.json",
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the name and the object of each command; the name of a subcommand begins with its group."""
    context = click.Context(cli)
    for names in SECTIONS.values():
        for name in names:
            command = cli.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                inner = click.Context(command, parent=context, info_name=name)
                for key in command.list_commands(inner):
                    child = command.get_command(inner, key)
                    assert child is not None
                    yield f"{name} {key}", child
            else:
                yield name, command


def page() -> str:
    """Return the Markdown text of the reference page of all commands."""
    found = dict(commands())
    sections = "\n\n".join(
        "\n\n".join(
            [f"## {title}", *(_entry(key, found[key]) for key in found if key.split()[0] in names)]
        )
        for title, names in SECTIONS.items()
    )
    return f"""# Command line

Use this page to look up the options of a command. `locum COMMAND --help` prints the same descriptions. Every command also supports `--json`
and `--help`. The [feature overview](../README.md#the-command-line) describes inputs, outputs and exit codes.

{sections}
"""


def _entry(name: str, command: click.Command) -> str:
    """Return the section of a command: its description, usage, example and options."""
    context = click.Context(command, info_name=f"locum {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    rows = [
        record
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in ("as_json", "help")
        for record in [parameter.get_help_record(context)]
        if record is not None
    ]
    table = "\n".join(f"| `{_cell(names)}` | {_cell(text)} |" for names, text in rows)
    # click marks paragraphs that it must not wrap by \b, and the end of the help by \f.
    text = (command.help or "").replace("\b", "").partition("\f")[0].strip()
    parts = [
        f"### locum {name}",
        _prose(text),
        f"Usage: `locum {name} {usage}`",
        f"Example:\n\n<!-- not run: an example of the syntax -->\n```text\n{EXAMPLES[name]}\n```",
    ]
    if rows:
        parts.append(f"| option | meaning |\n|---|---|\n{table}")
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    """Return text for a table cell, on one line and with escaped vertical bars."""
    return " ".join(text.replace("|", "\\|").split())


def _prose(text: str) -> str:
    """Return help text as Markdown: paragraphs without line breaks, and options as code."""
    # Every second piece is code.
    pieces = text.split("`")
    pieces[::2] = [
        re.sub(r"(?<!\w)--?[a-z][\w-]*", r"`\g<0>`", part.replace("*", r"\*")) for part in pieces[::2]
    ]
    pieces[1::2] = [f"`{part}`" for part in pieces[1::2]]
    return "\n\n".join(" ".join(part.split()) for part in "".join(pieces).split("\n\n"))
