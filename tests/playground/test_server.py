"""The server: headers, limits, and nothing but its own files."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from locum.interface.playground import answer
from locum.interface.playground.pool import BusyError, Pool, Ticket
from locum.interface.playground.server import FILES, LOCAL, MAX_BODY, Protocol, application
from locum.interface.playground.share import PAGE
from tests.cli.commands import command_line


class FakePool(Pool):
    """Answers in this process."""

    def __init__(self) -> None:
        self.size = self.most = 1
        self.is_busy = False
        self.clients: list[str] = []

    def enter(self, client: str) -> Ticket:
        self.clients.append(client)
        if self.is_busy:
            raise BusyError("busy")
        ticket = Ticket(client)
        ticket.turn.set_result(None)
        return ticket

    def work(self, ticket: Ticket, request: Mapping[str, Any]) -> bytes:
        return json.dumps(answer(request)).encode()

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def pool() -> FakePool:
    return FakePool()


@pytest.fixture(scope="module")
def client(pool: FakePool) -> Iterator[TestClient]:
    with TestClient(application(pool), raise_server_exceptions=False) as client:
        yield client


GOOD = {"action": "run", "source": "x = indices;", "input": "ab"}


def test_it_answers(client: TestClient) -> None:
    reply = client.post("/answer", json=GOOD)
    assert reply.status_code == 200
    assert reply.json()["statements"][0]["values"] == ["0", "1"]


def test_digits_that_a_number_would_drop_are_refused(client: TestClient) -> None:
    matrices = '"X":[[0.99999999999999999,0],[1,1]],"A":[[1,0],[0,0]],"V":[[0],[1]]'
    for typed, words in (
        (
            matrices,
            "to its last digit (15 digits always are), got 0.99999999999999999; try 1.0",
        ),
        (matrices.replace("0.99999999999999999", "1e-400"), "got 1e-400; try 0.0"),
        (matrices.replace("0.99999999999999999", "1e999"), "X: expected a matrix"),
    ):
        content = f'{{"action":"explain",{typed},"temperature":0,"recipe":"fetch"}}'
        reply = client.post("/answer", content=content, headers={"Content-Type": "application/json"})
        assert not reply.json()["ok"]
        assert words in reply.json()["error"]


def test_every_response_has_the_headers(client: TestClient) -> None:
    for reply in (
        client.get("/"),
        client.get("/main.js"),
        client.get("/nothing"),
        client.get("/answer"),
        client.post("/answer", json=GOOD),
    ):
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors *" in client.get("/?embed").headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/server.py",
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/CODEMIRROR.txt",
        "/page/main.js",
        "/main.js%00",
    ],
)
def test_no_other_file_is_served(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert reply.status_code == 404
    assert reply.json() == {"ok": False, "error": "there is no such page"}


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{" + b" " * MAX_BODY + b"}", "application/json", 413),
        (b'{"action": "run"}', "text/plain", 415),
        (b"{", "application/json", 400),
        (b"[" * 60_000, "application/json", 400),
        (b'"run"', "application/json", 400),
        (b'{"action": "run", "action": "save"}', "application/json", 400),
        (b'{"action": "run", "source": "x;", "source": "y;", "input": "a"}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
    ],
)
def test_bad_bodies_are_refused(client: TestClient, content: bytes, kind: str, status: int) -> None:
    reply = client.post("/answer", content=content, headers={"content-type": kind})
    assert reply.status_code == status
    assert not reply.json()["ok"]
    assert "Traceback" not in reply.text


def test_a_long_body_without_a_length_is_cut_off(client: TestClient) -> None:
    pieces = (b" " * 1000 for _ in range(100))
    kind = {"content-type": "application/json"}
    assert client.post("/answer", content=pieces, headers=kind).status_code == 413


def test_files_are_compressed_and_have_tags(client: TestClient) -> None:
    plain = client.get("/main.js", headers={"Accept-Encoding": "identity"})
    packed = client.get("/main.js", headers={"Accept-Encoding": "gzip"})
    assert plain.content == packed.content == (PAGE / "main.js").read_bytes()
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < len(plain.content) / 2
    again = client.get("/main.js", headers={"If-None-Match": plain.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get("/main.js", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


def test_types_have_no_case_and_other_methods_are_named(client: TestClient) -> None:
    body = json.dumps(GOOD).encode()
    reply = client.post("/answer", content=body, headers={"Content-Type": "APPLICATION/JSON"})
    assert reply.json()["ok"]
    reply = client.get("/answer")
    assert (reply.status_code, reply.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("[::1]", 200),
        ("rasp.example", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8000", 421),
        ("evil.example:localhost", 421),
        ("", 421),
    ],
)
def test_other_hosts_are_rejected(pool: FakePool, host: str, status: int) -> None:
    """A name of another site that leads to this address is no way into the playground."""
    with TestClient(application(pool, [*LOCAL, "rasp.example"])) as client:
        assert client.get("/", headers={"Host": host}).status_code == status
        assert client.post("/answer", json=GOOD, headers={"Host": host}).status_code == status


def test_slow_headers_and_bodies_are_cut_off(
    monkeypatch: pytest.MonkeyPatch, pool: FakePool, port: int
) -> None:
    monkeypatch.setattr("locum.interface.playground.server.PATIENCE", 0.3)
    head = b"POST /answer HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    assert b"408" in sent(port, head + b"Content-Length: 50\r\n\r\n{")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head)  # and no end of the headers
        assert connection.recv(100) == b""


def test_busy_is_503(client: TestClient, pool: FakePool) -> None:
    pool.is_busy = True
    try:
        reply = client.post("/answer", json=GOOD)
    finally:
        pool.is_busy = False
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "1"


def test_who_asks_is_the_address_and_not_what_a_header_says(client: TestClient, pool: FakePool) -> None:
    """Behind a proxy that is trusted, uvicorn puts the address of the header in its place."""
    pool.clients.clear()
    for header in ({}, {"X-Forwarded-For": "1.2.3.4"}, {"Forwarded": "for=1.2.3.4"}):
        client.post("/answer", json=GOOD, headers=header)
    assert len(set(pool.clients)) == 1


def test_other_methods_are_refused(client: TestClient) -> None:
    assert client.put("/answer", json=GOOD).status_code == 405
    assert client.post("/", json=GOOD).status_code == 405


@pytest.fixture(scope="module")
def port(pool: FakePool) -> Iterator[int]:
    """A real server, for requests that no client would send."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application(pool), http=Protocol, log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()


def sent(port: int, text: bytes) -> bytes:
    """Send bytes; return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(text)
        parts = []
        while part := connection.recv(4096):
            parts.append(part)
        return b"".join(parts)


_HEAD = b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
_INSIDE = b"GET /main.js HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 6\r\nContent-Length: 60\r\n",
        b"Content-Length: +6\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Content-Length: 0x6\r\n",
    ],
)
def test_a_request_cannot_be_hidden_in_another(port: int, lengths: bytes) -> None:
    reply = sent(port, _HEAD + lengths + b"\r\n0\r\n\r\n" + _INSIDE)
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"200 OK" not in reply
    assert b"Traceback" not in reply


def test_an_invalid_body_writes_nothing_into_the_log(port: int) -> None:
    """Otherwise, a client could fill the log with tracebacks."""
    records = logging.handlers.BufferingHandler(1_000)
    chunked = b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(records)
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel("ERROR")
        sent(port, chunked + b"no length of a chunk\r\n")  # rejected before it is answered
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(chunked)
            assert b"200 OK" in connection.recv(4096)
            connection.sendall(b"no length of a chunk\r\n")  # rejected after it was answered
            with contextlib.suppress(ConnectionError):
                while connection.recv(4096):
                    pass
        assert sent(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(records)
            logger.setLevel(level)
    assert [record.getMessage() for record in records.buffer] == []


def test_a_good_request_is_answered_by_the_same_server(port: int) -> None:
    body = json.dumps(GOOD).encode()
    reply = sent(port, _HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"200 OK" in reply


def test_the_page_is_small_and_needs_nothing_from_elsewhere() -> None:
    import zlib

    size = sum(len(zlib.compress((PAGE / name).read_bytes())) for name in FILES)
    assert size < 1_500_000
    for name in FILES:
        if name != "codemirror.js":
            text = (PAGE / name).read_text(encoding="utf-8")
            text = text.replace("https://arxiv.org/abs/2506.18739", "")  # a link; nothing is loaded
            text = text.replace('"http://www.w3.org/2000/svg"', "")  # the name of SVG
            assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write", text)
            assert not re.search(r"\beval\(|new Function|setAttribute\(.style", text)
    assert "Permission is hereby granted" in (PAGE / "CODEMIRROR.txt").read_text(encoding="utf-8")


def test_the_command_refuses_what_would_be_public_unasked() -> None:
    done = command_line("playground", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--public" in done.stderr


def test_the_command_refuses_a_missing_file() -> None:
    assert command_line("playground", "no/such/file.rasp").returncode == 2
