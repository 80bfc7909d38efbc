"""Serve the page and its answers: a thin layer without state around ``answer`` and the pool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from locum.errors import InputError
from locum.interface.playground.pool import BusyError, Pool
from locum.interface.playground.requests import decimal
from locum.interface.playground.share import PAGE

#: The most bytes of a request.
MAX_BODY = 64 * 1024
#: The files of the page, and what they are. No other file is ever read.
FILES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    **dict.fromkeys(
        (
            "codemirror.js",
            "base.js",
            "share.js",
            "editor.js",
            "grids.js",
            "panes.js",
            "weights.js",
            "universal.js",
            "exercises.js",
            "main.js",
        ),
        "text/javascript; charset=utf-8",
    ),
}
#: Scripts and styles are the page's own files; nothing is loaded from elsewhere, nothing runs inline.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; "
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def headers(*, embedded: bool = False) -> dict[str, str]:
    """Return the headers of every response; an embedded page may stand in a frame of any other."""
    ancestors = "frame-ancestors *" if embedded else "frame-ancestors 'none'"
    return {**_HEADERS, "Content-Security-Policy": POLICY + ancestors}


def application(pool: Pool) -> Starlette:
    """Make the application; it closes the pool when it ends."""

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in FILES:
            return _failure("there is no such page", 404)
        embedded = name == "index.html" and "embed" in request.query_params
        own = {**headers(embedded=embedded), "Cache-Control": "no-cache"}
        return Response(_content(name), media_type=FILES[name], headers=own)

    async def api(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:
            return _failure("the request was not finished", 400)
        if body is None:
            return _failure(f"expected a request of at most {MAX_BODY:,} bytes", 413)
        # A page of another origin cannot send this type without asking first.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _failure("expected Content-Type: application/json", 415)
        try:
            content = json.loads(body, object_pairs_hook=_object, parse_float=decimal)
        except InputError as error:
            return _failure(str(error), 400)
        except (ValueError, RecursionError):
            return _failure("expected a JSON object, each of its names once", 400)
        if not isinstance(content, dict):
            return _failure("expected a JSON object", 400)
        try:
            reply = await _answered(pool, content, request)
        except BusyError as error:
            return _failure(str(error), 503, {"Retry-After": "1"})
        if reply is None:
            return _failure("the request was given up", 400)
        return _json(reply, 200)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Each request that has a worker waits for it in a thread.
        import anyio.to_thread

        anyio.to_thread.current_default_thread_limiter().total_tokens = pool.size + 8
        yield
        pool.close()

    routes = [
        Route("/", page, methods=["GET"]),
        Route("/answer", api, methods=["POST"]),
        Route("/{name}", page, methods=["GET"]),
    ]
    handlers = {
        404: lambda request, error: _failure("there is no such page", 404),
        405: lambda request, error: _failure("this address does not take that method", 405),
        500: lambda request, error: _failure("the playground has a bug here", 500),
    }
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


async def _answered(pool: Pool, content: dict[str, Any], request: Request) -> bytes | None:
    """Answer when it is this client's turn; None if the client has gone before that."""
    ticket = pool.enter(request.client.host if request.client else "")
    turn, gone = asyncio.wrap_future(ticket.turn), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            pool.leave(ticket)
        # Its turn may have come while the client went: the worker has to be given back by working.
        if ticket.turn.cancelled():
            return None
        await turn
        return await run_in_threadpool(pool.work, ticket, content)
    finally:
        gone.cancel()


async def _gone(request: Request) -> None:
    """Wait until the client closes the connection; the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request) -> bytes | None:
    """Read the body; None if it is longer than the limit, whatever its headers say."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object; a name that occurs twice could mean one thing here and another elsewhere."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice")
    return content


@cache
def _content(name: str) -> bytes:
    return (PAGE / name).read_bytes()


def _failure(problem: str, status: int, more: dict[str, str] | None = None) -> Response:
    return _json(json.dumps({"ok": False, "error": problem}).encode(), status, more)


def _json(body: bytes, status: int, more: dict[str, str] | None = None) -> Response:
    own = {**headers(), "Cache-Control": "no-store", **(more or {})}
    return Response(body, status, media_type="application/json", headers=own)
