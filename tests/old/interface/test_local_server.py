"""The local server: answers to its own page alone, within limits."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locum.interface.playground.local_server import MAX_REQUEST, Server, Worker
from locum.interface.playground.share import PAGE, page_files
from locum.interface.playground.solutions import SOLUTIONS
from tests.cli.commands import command_line

GOOD = {"action": "run", "source": "x = indices;", "input": "ab"}
#: A right solution of an exercise that takes long on each of its inputs.
_HEAVY = "x = indices;\n" + "x = aggregate(select(x, indices, <=), x, 0) + 1;\n" * 150
ENDLESS = {
    "action": "exercise",
    "exercise": "reverse",
    "source": f"{_HEAVY}{SOLUTIONS['reverse']}\nr = reverse if x == x else tokens;",
}
HOSTILE = {
    "nested loops": "x = 0;\nfor i in range(9999) { for j in range(9999) { x = x + i * j; } }",
    "tower": "x = 9 ^ (9 ^ (9 ^ 9));",
    "squares": "x = indices + 3;\n" + "x = x * x;\n" * 60,
    "strings": 'x = "aaaaaaaa";\n' + "x = x + x;\n" * 60,
    "family": "x = sum l in range(100000000) { aggregate(select(indices, l, ==), indices) };",
    "deep brackets": "x = " + "(" * 9000 + "1" + ")" * 9000 + ";",
    "deep calls": "def f(x) { return f(x + 1); }\nf(1);",
    "deep lists": "x = [1];\n" + "x = [x, x];\n" * 60,
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with Server(0, seconds=60.0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def sent(port: int, text: bytes) -> bytes:
    """Send bytes; return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def post(port: int, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    """Send a request of the page; ``headers`` replace those that a browser sends."""
    names = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    message = urllib.request.Request(f"http://127.0.0.1:{port}/answer", body, names)
    try:
        with urllib.request.urlopen(message, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_it_answers_and_every_response_has_the_headers(port: int) -> None:
    status, reply = post(port, json.dumps(GOOD).encode(), Origin=f"http://127.0.0.1:{port}")
    assert (status, reply["statements"][0]["values"]) == (200, ["0", "1"])
    for path in ("/", "/main.js", "/nothing", "/answer", "/?embed=heads"):
        text = sent(port, f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()).decode()
        assert (
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'" in text
        )
        assert "X-Content-Type-Options: nosniff" in text
        assert ("frame-ancestors *" in text) == ("embed" in path)
        assert ("200 OK" in text) == (path not in ("/nothing", "/answer"))


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", None, 200),
        ("LOCALHOST:8000", "http://localhost:8000", 200),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", 200),
        ("127.0.0.1:8000", "http://127.0.0.1:8001", 403),
        ("127.0.0.1:8000", "https://evil.example", 403),
        ("127.0.0.1:8000", "null", 403),
        ("evil.example", "http://evil.example", 421),
        ("localhost.evil.example:8000", None, 421),
        ("evil.example:localhost", None, 421),
        ("", None, 421),
    ],
)
def test_pages_of_other_sites_are_rejected(
    port: int, host: str, origin: str | None, status: int
) -> None:
    fields = {"Host": host} | ({} if origin is None else {"Origin": origin})
    assert post(port, json.dumps(GOOD).encode(), **fields)[0] == status
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    assert f" {status} ".encode() in sent(port, f"GET / HTTP/1.1\r\n{lines}\r\n".encode())[:20]


@pytest.mark.parametrize(
    "path",
    ["/answer.py", "/../answer.py", "/..%2fanswer.py", "//etc/passwd", "/main.js%00", "/worker.js"],
)
def test_no_other_file_is_served(port: int, path: str) -> None:
    reply = sent(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert b" 404 " in reply[:20]
    assert reply.endswith(b'"error": "there is no such page"}')


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"{" + b" " * MAX_REQUEST + b"}", {}, 413, "at most 65,536 bytes, got 65,538"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "application/json"),
        (b"{}", {"Content_Length": "-1"}, 411, "Content-Length"),
        (b"{}", {"Content_Length": "2e9"}, 411, "Content-Length"),
        (b"{", {}, 200, "expected a JSON object"),
        (b"[" * 60_000, {}, 200, "expected a JSON object"),
        (b'"run"', {}, 200, "expected a JSON object as the request, got str"),
        (b'{"action": "run", "source": "\xff", "input": "a"}', {}, 200, "expected a JSON object"),
        (b'{"action": "run", "source": 1e999, "input": []}', {}, 200, "source: expected a text"),
        (b'{"action": "explain", "X": [[0.99999999999999999]]}', {}, 200, "to its last digit"),
    ],
)
def test_bad_requests_are_rejected(
    port: int, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    code, reply = post(port, body, **headers)
    assert code == status
    assert words in reply["error"]
    assert "Traceback" not in reply["error"]


@pytest.mark.parametrize(
    "text", [b"", b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET\x00/ HTTP/9.9\r\n\r\n", b"POST /answer"]
)
def test_half_requests_do_not_end_the_server(
    port: int, text: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(text)
    assert post(port, json.dumps(GOOD).encode())[1]["ok"]
    assert capfd.readouterr().err == ""


def test_slow_requests_are_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locum.interface.playground.local_server.Handler.timeout", 0.3)
    head = b"POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert sent(port, head) == sent(port, head + b"Content-Length: 50\r\n\r\n{") == b""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(seconds=60.0)
    yield worker
    worker.close()


def asked(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(worker.answer(json.dumps(request).encode()))
    return reply


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_have_an_error_and_leave_the_worker_usable(worker: Worker, name: str) -> None:
    reply = asked(worker, {"action": "run", "source": HOSTILE[name], "input": "a" * 10})
    told = str(reply.get("error")) + str(reply.get("errors"))
    assert "Traceback" not in told
    assert "/locum/" not in told
    assert asked(worker, GOOD)["ok"]


def test_a_request_that_takes_too_long_is_ended(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(worker, GOOD)["ok"]
    monkeypatch.setattr(worker, "_seconds", 0.5)
    started = time.monotonic()
    reply = asked(worker, ENDLESS)
    assert reply == {"ok": False, "error": "this takes longer than the limit of 0.5 seconds"}
    assert time.monotonic() - started < 10
    monkeypatch.setattr(worker, "_seconds", 60.0)
    assert asked(worker, GOOD)["ok"]


def test_a_worker_that_ended_loses_its_own_request_only(worker: Worker) -> None:
    assert asked(worker, GOOD)["ok"]
    os.kill(worker._process.pid, signal.SIGKILL)
    assert "was ended" in asked(worker, GOOD)["error"]
    assert asked(worker, GOOD)["ok"]


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="needs /proc")
def test_the_memory_of_a_worker_is_limited(worker: Worker) -> None:
    assert asked(worker, GOOD)["ok"]
    limits = Path(f"/proc/{worker._process.pid}/limits").read_text(encoding="ascii")
    assert re.search(r"^Max address space +2147483648 ", limits, re.MULTILINE)


def test_the_page_is_small_and_needs_nothing_from_elsewhere() -> None:
    size = sum(len(zlib.compress((PAGE / name).read_bytes())) for name in page_files())
    assert size < 1_500_000
    for name in page_files():
        if name != "codemirror.js":
            text = (PAGE / name).read_text(encoding="utf-8")
            text = text.replace('"http://www.w3.org/2000/svg"', "")  # the name of SVG
            assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write", text)
            assert not re.search(r"\beval\(|new Function|setAttribute\(.style", text)
    assert "Permission is hereby granted" in (PAGE / "CODEMIRROR.txt").read_text(encoding="utf-8")


def test_a_port_in_use_and_a_missing_file_are_errors(port: int) -> None:
    done = command_line("playground", "--port", str(port))
    assert (done.returncode, done.stderr.count("try another --port, or --port 0")) == (2, 1)
    assert command_line("playground", "no/such/file.rasp").returncode == 2
