"""Open the playground, a page in the browser.

The page shows RASP programs, their heads and weights, and U. FILE is the initial program. The page
works without a network connection, and only this machine can open it.

--export writes a static site instead, which runs Python in the browser.
"""

from __future__ import annotations

from pathlib import Path

import click

from locum.errors import InputError
from locum.files import read_text
from locum.interface.cli import output
from locum.interface.cli.options import PATH, limit_option
from locum.interface.cli.runner import INTERRUPTED, Report, emit
from locum.interface.cli.runner import command as make_command


@make_command("playground", __doc__)
@click.argument("file", type=PATH, required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port, or 0 for any free port.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--export", type=PATH, metavar="FOLDER", help="Write a static site, and do not start a server."
)
@click.option(
    "--pyodide", type=PATH, metavar="FOLDER", help="Folder of Pyodide, to include in the static site."
)
@limit_option(10.0, "Time limit of a request in seconds.")
def command(
    file: Path | None,
    port: int,
    open_it: bool,
    export: Path | None,
    pyodide: Path | None,
    limit: float,
) -> Report | None:
    """Serve the page until interrupted, or write a static site."""
    if export is not None:
        return _export(export, pyodide)
    if pyodide is not None:
        raise InputError("--pyodide: expected --export FOLDER with it; try --export site")
    from locum.interface.playground.local_server import Server
    from locum.interface.playground.requests import MAX_SOURCE
    from locum.interface.playground.share import fragment

    link = ""
    if file is not None:
        source = read_text(file, 4 * MAX_SOURCE)
        if len(source) > MAX_SOURCE:
            raise InputError(f"{file}: expected at most {MAX_SOURCE:,} characters, got {len(source):,}")
        link = fragment({"source": source, "input": "hello"})
    try:
        server = Server(port, limit)
    except OSError as error:
        raise InputError(
            f"cannot listen at port {port} ({error.strerror}); try another --port, or --port 0"
        ) from None
    address = f"http://127.0.0.1:{server.server_port}/{link}"
    try:
        with server:
            text = f"The playground is at {address} (Ctrl-C ends it)"
            emit(Report({"address": address}, lambda: [text]))
            output.finish()
            if open_it:
                click.launch(address)
            server.serve_forever()
    except KeyboardInterrupt:  # the usual end of the server, without a message
        raise click.exceptions.Exit(INTERRUPTED) from None
    return None


def _export(folder: Path, pyodide: Path | None) -> Report:
    """Write the playground as a static site to ``folder``."""
    from locum.interface.playground import static_site

    site = static_site.export(folder, pyodide)
    text = f"The site is in {folder} ({site['files']} files, {site['bytes'] / 1e6:.1f} MB)"
    return Report(site, lambda: [text])
