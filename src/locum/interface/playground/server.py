"""Serve the page and its answers over HTTP, with a pool of workers."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from locum.errors import InputError
from locum.interface.playground.pool import BusyError, Pool
from locum.interface.playground.requests import decimal
from locum.interface.playground.share import PAGE, POLICY, page_files

#: Maximum number of bytes of a request, and seconds within which its headers and body must arrive.
MAX_BODY, PATIENCE = 64 * 1024, 10.0
#: Host names of a server that only this machine can reach.
LOCAL = ("127.0.0.1", "localhost", "[::1]")
_CLOSE = {"Connection": "close"}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
#: The files of the page and their types. The server reads no other files.
FILES = {name: f"{_TYPES[Path(name).suffix]}; charset=utf-8" for name in page_files()}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def headers(*, embedded: bool = False) -> dict[str, str]:
    """Return the headers of every response.

    With ``embedded``, other sites may show the page in a frame.
    """
    ancestors = "frame-ancestors *" if embedded else "frame-ancestors 'none'"
    return {**_HEADERS, "Content-Security-Policy": f"{POLICY}; {ancestors}"}


def application(pool: Pool, hosts: Collection[str] = ()) -> ASGIApp:
    """Return the ASGI application of the playground, which closes ``pool`` when it ends.

    The application answers only requests to one of ``hosts``, or all requests if ``hosts`` is empty.
    """

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name == "answer":
            return _failure(_METHOD, 405, {"Allow": "POST"})
        if name not in FILES:
            return _failure("there is no such page", 404)
        embedded = name == "index.html" and "embed" in request.query_params
        content, packed, tag = _content(name)
        own = {**headers(embedded=embedded), "Cache-Control": "no-cache", "ETag": tag}
        own["Vary"] = "Accept-Encoding"
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=own)
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, own["Content-Encoding"] = packed, "gzip"
        return Response(content, media_type=FILES[name], headers=own)

    async def api(request: Request) -> Response:
        if {"content-length", "transfer-encoding"} <= set(request.headers.keys()):
            return _failure("expected one length of the request, got two", 400, _CLOSE)
        try:
            async with asyncio.timeout(PATIENCE):
                body = await _body(request)
        except ClientDisconnect:
            return _failure("the request was not finished", 400)
        except TimeoutError:
            return _failure(f"expected the request within {PATIENCE:g} seconds", 408, _CLOSE)
        if body is None:
            return _failure(f"expected a request of at most {MAX_BODY:,} bytes", 413, _CLOSE)
        # A page of another origin cannot send this content type without a CORS preflight request.
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
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
            return _failure("the client closed the connection", 400)
        return _json(reply, 200)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # A thread waits for the worker of each request.
        import anyio.to_thread

        anyio.to_thread.current_default_thread_limiter().total_tokens = pool.most + 8
        yield
        pool.close()

    routes = [
        Route("/", page, methods=["GET"]),
        Route("/answer", api, methods=["POST"]),
        Route("/{name}", page, methods=["GET"]),
    ]
    handlers = {
        404: lambda request, error: _failure("there is no such page", 404),
        405: lambda request, error: _failure(_METHOD, 405),
        500: lambda request, error: _failure("the playground has a bug here", 500),
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    return _only(app, frozenset(hosts)) if hosts else app


_METHOD = "this address does not support the method"


def _only(app: ASGIApp, hosts: frozenset[str]) -> ASGIApp:
    """Reject requests whose Host header is not in ``hosts``.

    This prevents DNS rebinding, in which the name of another site leads to this address.
    """

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = Request(scope).headers.get("host", "").lower()
            if host.removesuffix(f":{host.rpartition(':')[2]}") not in hosts and host not in hosts:
                known = ", ".join(sorted(hosts))
                await _failure(f"expected a request to {known}", 421)(scope, receive, send)
                return
        await app(scope, receive, send)

    return check


class Server(uvicorn.Server):
    """A server that ends waiting and running requests when it is interrupted."""

    def __init__(self, pool: Pool, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._pool = pool

    def handle_exit(self, *signal: Any) -> None:
        """Close the pool, which ends all requests, and shut down the server."""
        # Close the pool in a thread, because the interrupted code may hold its lock.
        threading.Thread(target=self._pool.close).start()
        super().handle_exit(*signal)


class Protocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """An HTTP protocol that closes a connection if request headers do not arrive in time.

    If a request turns out to be invalid while it is answered, the answer is dropped.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the deadline of the first request headers."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of further request headers, and stop it when they are complete."""
        if self._is_idle():
            self._expect()
        super().data_received(data)
        if not self._is_idle():
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline of a closed connection."""
        self._stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Reject an invalid request; a second response to it would raise an error."""
        if self.cycle is not None and self.cycle.response_started:
            self.transport.close()
            return
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self._is_idle():
            self.transport.close()


async def _answered(pool: Pool, content: dict[str, Any], request: Request) -> bytes | None:
    """Return the answer to a request, or None if the client disconnects while it waits."""
    ticket = pool.enter(request.client.host if request.client else "")
    turn, gone = asyncio.wrap_future(ticket.turn), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            pool.leave(ticket)
        # If a worker was assigned while the client disconnected, the work must finish to free it.
        if ticket.turn.cancelled():
            return None
        await turn
        return await run_in_threadpool(pool.work, ticket, content)
    finally:
        gone.cancel()


async def _gone(request: Request) -> None:
    """Wait until the client closes the connection, after the request body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request) -> bytes | None:
    """Return the request body, or None if it is larger than ``MAX_BODY`` bytes."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ``ValueError`` for repeated names.

    Parsers interpret repeated names in different ways.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice")
    return content


@cache
def _content(name: str) -> tuple[bytes, bytes, str]:
    """Return a file of the page, the compressed file, and its entity tag."""
    content = (PAGE / name).read_bytes()
    return content, gzip.compress(content), f'"{hashlib.sha256(content).hexdigest()[:24]}"'


def _failure(problem: str, status: int, more: dict[str, str] | None = None) -> Response:
    return _json(json.dumps({"ok": False, "error": problem}).encode(), status, more)


def _json(body: bytes, status: int, more: dict[str, str] | None = None) -> Response:
    own = {**headers(), "Cache-Control": "no-store", **(more or {})}
    return Response(body, status, media_type="application/json", headers=own)
