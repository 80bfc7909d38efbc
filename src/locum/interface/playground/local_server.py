"""Serve the page on this machine only; worker processes answer its requests within limits.

The static site (``static_site.py``) needs no server. It is the form of the playground for others.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import queue
import re
import socket
import subprocess
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from locum.interface.playground.answer import answer_text
from locum.interface.playground.requests import MEMORY
from locum.interface.playground.share import PAGE, POLICY, page_files

#: Seconds in which a request must be answered, and number of requests that run at the same time: the
#: values of a program are computed while its network is compiled.
SECONDS, WORKERS = 10.0, 2
#: Maximum size in bytes of the memory of a worker, of a request, and of the answer.
MAX_MEMORY, MAX_REQUEST, MAX_ANSWER = 2 * 2**30, 64 * 1024, 4 * 2**20
#: Number of bytes of a larger request that are read, so that the browser receives the error message.
_SKIPPED = 2**22
#: The only host names in requests. The name of another site that leads to this machine is rejected.
HOSTS = ("127.0.0.1", "localhost")
_MISSING = "there is no such page"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Worker:
    """A process that answers one request at a time, and is replaced if it exceeds a limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._is_closed = seconds, False
        self._start()

    def _start(self) -> None:
        self._pipe, end = multiprocessing.Pipe()
        number = end.fileno()
        command = [sys.executable, "-P", "-c", f"from {__name__} import work; work({number})"]
        # A terminal sends Ctrl-C to all processes of its session, so the worker starts a new session.
        self._process = subprocess.Popen(command, pass_fds=[number], start_new_session=True)
        self._is_ready = False
        end.close()

    def answer(self, request: bytes) -> str:
        """Return the answer to a request; both are JSON texts."""
        try:
            answer = self._ask(request)
            if MEMORY not in answer:
                return answer
        except TimeoutError:
            answer = _failure(f"this takes longer than the limit of {self._seconds:g} seconds")
        except (EOFError, OSError):
            answer = _failure("the worker process was ended; try again, or a smaller program")
        self._end()
        if not self._is_closed:
            self._start()
        return answer

    def _ask(self, request: bytes) -> str:
        if not self._is_ready:  # the time limit does not include the start of the process
            self._pipe.recv()
            self._is_ready = True
        self._pipe.send(request)
        if not self._pipe.poll(self._seconds):
            raise TimeoutError
        answer: str = self._pipe.recv()
        return answer

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def close(self) -> None:
        """End the process."""
        self._is_closed = True
        self._end()


def work(number: int) -> None:
    """Answer the requests in the pipe with a file descriptor, until the server ends."""
    pipe = Connection(number)
    answer_text('{"action": "run", "source": "x = length;", "input": "a"}')  # loads most modules
    with contextlib.suppress(ImportError, OSError, ValueError):  # some systems have no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    with contextlib.suppress(EOFError, OSError):
        pipe.send("ready")
        while True:
            answer = answer_text(pipe.recv())
            if len(answer) > MAX_ANSWER:
                answer = _failure("the answer is too large to show; try a shorter input")
            pipe.send(answer)


def _failure(problem: str) -> str:
    return json.dumps({"ok": False, "error": problem})


class Handler(SimpleHTTPRequestHandler):
    """Send the files of the page, and the answers of a free worker to requests at /answer."""

    #: Seconds after which a connection that sends nothing is closed.
    timeout = 10.0
    path = ""  # of a request whose first line is invalid
    extensions_map = {  # noqa: RUF012 # as in the base class
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
    }

    def __init__(self, workers: queue.SimpleQueue[Worker], *arguments: Any) -> None:
        self._workers = workers
        super().__init__(*arguments, directory=str(PAGE))

    def handle(self) -> None:
        """Answer a request. The page closes the connection if it no longer needs the answer."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def parse_request(self) -> bool:
        """Read a request, and reject requests that pages of other sites have sent."""
        if not super().parse_request():
            return False
        host, origin = self.headers.get("Host", "").lower(), self.headers.get("Origin")
        if re.sub(r":\d+\Z", "", host) not in HOSTS:
            self._reject(HTTPStatus.MISDIRECTED_REQUEST, f"expected a request to {HOSTS[0]}")
            return False
        if origin is not None and origin.lower() != f"http://{host}":
            self._reject(HTTPStatus.FORBIDDEN, "expected a request from the page of the playground")
            return False
        return True

    def send_head(self) -> Any:
        """Send the headers of a file of the page, and return the file; reject other addresses."""
        if self.path.partition("?")[0].removeprefix("/") not in ("", *page_files()):
            self._reject(HTTPStatus.NOT_FOUND, _MISSING)
            return None
        return super().send_head()

    def do_POST(self) -> None:
        """Answer a request of the page."""
        length = self.headers.get("Content-Length", "")
        if self.path != "/answer":
            self._reject(HTTPStatus.NOT_FOUND, _MISSING)
        # Pages of other sites cannot send this type unless the server allows it.
        elif self.headers.get_content_type() != "application/json":
            self._reject(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected Content-Type: application/json")
        elif not re.fullmatch("[0-9]{1,15}", length):
            self._reject(HTTPStatus.LENGTH_REQUIRED, "expected Content-Length, the number of bytes")
        elif int(length) > MAX_REQUEST:
            self.rfile.read(min(int(length), _SKIPPED))
            problem = f"expected a request of at most {MAX_REQUEST:,} bytes, got {int(length):,}"
            self._reject(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
        else:
            self._answer(self.rfile.read(int(length)))

    def _answer(self, request: bytes) -> None:
        worker = self._workers.get()
        try:
            if self._is_closed():
                return
            answer = worker.answer(request)
        finally:
            self._workers.put(worker)
        self._send(HTTPStatus.OK, answer)

    def _is_closed(self) -> bool:
        """Return whether the page has closed the connection while the request waited."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:  # it is open, and sends nothing more
            return False
        finally:
            self.connection.settimeout(self.timeout)

    def _reject(self, status: HTTPStatus, problem: str) -> None:
        self._send(status, _failure(problem))

    def _send(self, status: HTTPStatus, answer: str) -> None:
        body = answer.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Add the headers of every response. Only an embedded page may be shown in a frame."""
        ancestors = "*" if "?embed" in self.path or "&embed" in self.path else "'none'"
        self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors {ancestors}")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Print no log."""


class Server(ThreadingHTTPServer):
    """A server of the page that listens on this machine only, with workers for its requests."""

    #: A browser opens many connections at the same time.
    request_queue_size = 128

    def __init__(self, port: int, seconds: float = SECONDS) -> None:
        free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        super().__init__(("127.0.0.1", port), partial(Handler, free))
        # The workers inherit this. The memory that NumPy reserves for more threads would count.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        for _ in range(WORKERS):
            self._workers.append(Worker(seconds))
            free.put(self._workers[-1])

    def server_close(self) -> None:
        """Stop listening, and end the workers."""
        super().server_close()
        for worker in self._workers:
            worker.close()
