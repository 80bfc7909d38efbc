"""Open the playground: RASP, its heads, its weights and U on one page in the browser.

FILE is a RASP program to begin with. The page needs no network; programs run in worker processes with
limits on time and memory (needs the extra web: pip install 'locum[web]').
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import click

from locum.errors import InputError
from locum.files import read_text
from locum.interface.cli import output
from locum.interface.cli.options import PATH, limit_option
from locum.interface.cli.runner import Report, emit
from locum.interface.cli.runner import command as make_command


@make_command("playground", __doc__)
@click.argument("file", type=PATH, required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0: any."
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--public", is_flag=True, help="Tighter limits, and any --host (see docs/playground.md).")
@limit_option(None, "CPU time limit of a request, at least 1.  [default: 5, public: 3]")
def command(
    file: Path | None, host: str, port: int, open_it: bool, public: bool, limit: float | None
) -> None:
    """Serve the page until interrupted."""
    try:
        import uvicorn

        from locum.interface.playground.server import application
    except ModuleNotFoundError as error:
        raise InputError(
            f"the playground needs the extra web ({error.name} missing); try pip install 'locum[web]'"
        ) from None
    from locum.interface.playground.playground_worker import Limits
    from locum.interface.playground.pool import Pool
    from locum.interface.playground.requests import MAX_SOURCE
    from locum.interface.playground.share import fragment

    if not public and host not in ("127.0.0.1", "localhost", "::1"):
        raise InputError(f"--host {host}: expected --public beside it, since others can reach the page")
    link = ""
    if file is not None:
        source = read_text(file, 4 * MAX_SOURCE)
        if len(source) > MAX_SOURCE:
            raise InputError(f"{file}: expected at most {MAX_SOURCE:,} characters, got {len(source):,}")
        link = fragment({"source": source, "input": "hello"})
    listening = _socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/{link}"
    most = (3 if public else 5) if limit is None else max(1, round(limit))
    # A worker that has to share its core takes longer by the clock.
    limits = Limits(cpu=most, wall=most + 3.0, memory=2**30 if public else Limits.memory)
    workers = max(2, os.cpu_count() or 2)
    # Among strangers nobody has all workers at a time.
    pool = Pool(workers, limits=limits, share=workers - 1 if public else None)
    config = uvicorn.Config(
        application(pool),
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=500,
        timeout_keep_alive=10,
    )
    data = {"address": address, "workers": pool.size, "public": public}
    emit(Report(data, lambda: [f"The playground is at {address} (Ctrl-C ends it)"]))
    output.finish()
    if open_it:
        click.launch(address)
    with pool, contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the normal end
        _serve(uvicorn.Server(config), listening)


def _socket(host: str, port: int) -> socket.socket:
    """Listen, so that the address is known before anything is said."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(512)  # who reads the address may connect before the server has started
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(
            f"cannot listen at {host}, port {port} ({error}); try another --port, or --port 0"
        ) from None
    return listening


def _serve(server: Any, listening: socket.socket) -> None:
    server.run(sockets=[listening])
