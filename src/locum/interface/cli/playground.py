"""Serve the playground, a page in the browser.

The page shows RASP programs, their heads and weights, and U. FILE is the initial program. The page
works without a network connection, and programs run in worker processes with limits on time and memory.
The server needs the extra web: pip install 'locum[web]'.

--export writes a static site instead, and --verify checks completion codes of exercises.
"""

from __future__ import annotations

import contextlib
import json
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
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address at which the server listens."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port, or 0 for any free port.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--public", is_flag=True, help="Allow any --host, with lower limits (docs/hosting.md).")
@click.option(
    "--host-name", multiple=True, metavar="NAME", help="Host name of the site; may be repeated."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help="Number of worker processes.  [default: CPU cores, at least 2]",
)
@click.option(
    "--waiting",
    type=click.IntRange(1, 10_000),
    default=400,
    show_default=True,
    help="Maximum number of waiting requests.",
)
@click.option(
    "--export", type=PATH, metavar="FOLDER", help="Write a static site, and do not start a server."
)
@click.option(
    "--pyodide", type=PATH, metavar="FOLDER", help="Folder of Pyodide, to include in the static site."
)
@click.option("--flint", type=PATH, metavar="WHEEL", help="Wheel of python-flint for the static site.")
@click.option("--verify", type=PATH, help="File of completion codes to verify, one per line.")
@click.option("--exercise", help="Exercise of the codes: its key or a link to it.")
@limit_option(None, "CPU time limit of a request, at least 1.  [default: 5; 3 with --public]")
def command(
    file: Path | None,
    host: str,
    port: int,
    open_it: bool,
    public: bool,
    host_name: tuple[str, ...],
    workers: int | None,
    waiting: int,
    export: Path | None,
    pyodide: Path | None,
    flint: Path | None,
    verify: Path | None,
    exercise: str | None,
    limit: float | None,
) -> Report | None:
    """Serve the page until interrupted, write a static site, or verify completion codes."""
    if export is not None:
        return _export(export, pyodide, flint)
    if pyodide is not None or flint is not None:
        raise InputError("--pyodide and --flint: expected --export FOLDER with them; try --export site")
    if verify is not None:
        return _verify(verify, exercise, limit)
    if exercise is not None:
        raise InputError("--exercise: expected it with --verify FILE, got it alone")
    try:
        import uvicorn

        from locum.interface.playground.server import LOCAL, Protocol, Server, application
    except ModuleNotFoundError as error:
        raise InputError(
            f"the playground needs the extra web ({error.name} missing); try pip install 'locum[web]'"
        ) from None
    from locum.interface.playground.playground_worker import Limits
    from locum.interface.playground.pool import Pool
    from locum.interface.playground.requests import MAX_SOURCE
    from locum.interface.playground.share import fragment

    if not public and host not in ("127.0.0.1", "localhost", "::1"):
        raise InputError(f"--host {host}: expected also --public, since others can reach the page")
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
    # A worker that shares a core with other processes needs more wall time than CPU time.
    limits = Limits(cpu=most, wall=most + 3.0, memory=2**30 if public else Limits.memory)
    workers = workers or max(2, os.cpu_count() or 2)
    # On a public server with several workers, one client cannot use all of them.
    share = max(1, workers - 1) if public else None
    pool = Pool(workers, waiting, limits, share, spare=2)
    names = [name.lower() for name in host_name]
    config = uvicorn.Config(
        application(pool, names if public else [*LOCAL, *names]),
        http=Protocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=waiting + 600,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
    )
    data = {"address": address, "workers": pool.size, "public": public}
    emit(Report(data, lambda: [f"The playground is at {address} (Ctrl-C ends it)"]))
    output.finish()
    if open_it:
        click.launch(address)
    with pool, contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the normal end
        _serve(Server(pool, config), listening)
    return None


def _export(folder: Path, pyodide: Path | None, flint: Path | None) -> Report:
    """Write the playground as a static site to ``folder``."""
    from locum.interface.playground import static_site

    site = static_site.export(folder, pyodide, flint)
    text = f"The site is in {folder} ({site['files']} files, {site['bytes'] / 1e6:.1f} MB)"
    return Report(site, lambda: [text])


def _verify(codes: Path, exercise: str | None, limit: float | None) -> Report:
    """Verify a file of completion codes, one code on each line.

    The program in each code runs again on the inputs of its exercise, in a process with limits.
    ``exercise`` is the key of a built-in exercise or a link, or None.
    """
    from locum.interface.playground.exercises import EXERCISES
    from locum.interface.playground.playground_worker import Limits
    from locum.interface.playground.pool import Pool
    from locum.interface.playground.share import state

    asked: dict[str, object] = {"action": "verify"}
    if exercise is not None and "#" in exercise:
        content = state("#" + exercise.partition("#")[2])
        if "exercise" not in content:
            raise InputError("--exercise: expected a link of an exercise, got one without an exercise")
        asked["exercise"] = content["exercise"]
    elif exercise is not None:
        if exercise not in EXERCISES:
            known = ", ".join(EXERCISES)
            raise InputError(f"--exercise: expected {known}, or a link, got {exercise[:60]!r}")
        asked["exercise"] = exercise
    numbered = enumerate(read_text(codes, 2**24).splitlines(), 1)
    lines = {number: line.strip() for number, line in numbered if line.strip()}
    if not lines:
        raise InputError(f"{codes}: expected a completion code on each line, got none")
    rows: list[dict[str, Any]] = []
    first: dict[str, str] = {}
    most = 5 if limit is None else max(1, round(limit))
    with Pool(1, limits=Limits(cpu=most, wall=most + 3.0)) as pool:

        def answer(client: str, request: dict[str, object]) -> dict[str, Any]:
            ticket = pool.enter(client)
            ticket.turn.result()
            reply: dict[str, Any] = json.loads(pool.work(ticket, request))
            return reply

        if "exercise" in asked:
            described = answer("exercise", {"action": "describe", "exercise": asked["exercise"]})
            if not described["ok"]:
                raise InputError(f"--exercise: {described['error']}")
        for number, line in lines.items():
            reply = answer(f"line {number}", {**asked, "code": line})
            row = {"line": number, **reply, "solved": bool(reply["ok"] and reply["solved"])}
            # Programs that differ only in names and comments have equal hashes.
            if row["solved"]:
                row["same_as"] = first.get(row["program"])
                first.setdefault(row["program"], row["by"])
            rows.append(row)
    failed = sum(not row["solved"] for row in rows)
    return Report({"codes": rows, "failed": failed}, lambda: map(_verified, rows), holds=not failed)


def _verified(row: dict[str, Any]) -> str:
    """Describe the verdict on a code in one line, even if the name or the program has line breaks."""
    return " ".join(_description(row).split())


def _description(row: dict[str, Any]) -> str:
    if not row["ok"]:
        return f"✗ line {row['line']}: {row['error']}"
    who = f"{row['by']}, {row['title']}"
    if not row["solved"]:
        wrong = row.get("counterexample")
        why = f"wrong on {' '.join(wrong['input'])}" if wrong else row["problem"]
        return f"✗ line {row['line']}: {who}: not solved; {why}"
    size, possible = row["size"], row["possible"]
    same = f"; same program as {row['same_as']}" if row["same_as"] else ""
    counts = f"layers {size['layers']}, heads {size['heads']}"
    known = f"reference: {possible['layers']} and {possible['heads']}"
    return f"✓ line {row['line']}: {who}: solved; {counts} ({known}){same}"


def _socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at ``host`` and ``port``, so that the printed address is valid."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(512)  # clients may connect before the server has started
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(
            f"cannot listen at {host}, port {port} ({error}); try another --port, or --port 0"
        ) from None
    return listening


def _serve(server: Any, listening: socket.socket) -> None:
    server.run(sockets=[listening])
