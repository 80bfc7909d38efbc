"""The pool: hostile programs end within their limits, and others are answered meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from locum.experiments.sweeps.worker_process import WorkerProcess
from locum.interface.playground.playground_worker import Limits
from locum.interface.playground.pool import BusyError, Pool
from locum.interface.playground.solutions import SOLUTIONS

GOOD = {"action": "run", "source": "x = indices + 1;", "input": "abc"}
HOSTILE = {
    "loop": "x = 0; for i in range(100000000) { x = x + i; }",
    "nested loops": "x = 0;\nfor i in range(9999) { for j in range(9999) { x = x + i * j; } }",
    "tower": "x = 9 ^ (9 ^ (9 ^ 9));",
    "squares": "x = indices + 3;\n" + "x = x * x;\n" * 60,
    "strings": 'x = "aaaaaaaa";\n' + "x = x + x;\n" * 60,
    "family": "x = sum l in range(100000000) { aggregate(select(indices, l, ==), indices) };",
    "large family": "x = sum l in range(19000) { aggregate(select(indices, l, ==), indices) };",
    "deep brackets": "x = " + "(" * 9000 + "1" + ")" * 9000 + ";",
    "deep calls": "def f(x) { return f(x + 1); }\nf(1);",
    "deep lists": "x = [1];\n" + "x = [x, x];\n" * 60,
    "many statements": "x = indices;\n" * 1500,
    "heads": "x = indices;\n" + "x = aggregate(select(x, indices, ==), x, 0);\n" * 300,
}
#: A right solution of an exercise that takes long on each of its inputs.
_HEAVY = "x = indices;\n" + "x = aggregate(select(x, indices, <=), x, 0) + 1;\n" * 150
ENDLESS = {
    "action": "exercise",
    "exercise": "reverse",
    "source": f"{_HEAVY}{SOLUTIONS['reverse']}\nr = reverse if x == x else tokens;",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=1, waiting=1, limits=Limits(cpu=2, wall=600.0)) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _forgiven(pool: Pool) -> None:
    """Let each test begin without penalties: the tests are one client."""
    pool._line._records.clear()


def free(pool: Pool) -> list[WorkerProcess]:
    """Return the workers in the foreground, when all have started."""
    while len(pool._free) < pool.size:
        time.sleep(0.02)
    return pool._free


def asked(pool: Pool, request: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(pool.answer(request))
    return reply


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_workers_are_deaf_to_interrupts_from_their_first_moment(pool: Pool) -> None:
    """The terminal interrupts them, too, and they would print where they are."""
    (status,) = (Path(f"/proc/{worker.process.pid}/status") for worker in free(pool))
    blocked = re.search(r"^SigBlk:\s*(\w+)$", status.read_text(encoding="ascii"), re.MULTILINE)
    assert blocked is not None
    assert int(blocked[1], 16) >> (signal.SIGINT - 1) & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # the server is not


def test_hostile_programs_end_and_leave_the_pool_usable(pool: Pool) -> None:
    for name, source in HOSTILE.items():
        for action in ("run", "draw") if name in ("squares", "heads") else ("run",):
            reply = asked(pool, {"action": action, "source": source[:20_000], "input": "a" * 10})
            told = str(reply.get("error")) + str(reply.get("errors"))
            assert "Traceback" not in told, name
            assert "/locum/" not in told, name
    assert asked(pool, GOOD)["statements"][0]["values"] == ["1", "2", "3"]


def test_workers_that_break_a_limit_are_replaced(pool: Pool) -> None:
    usual, before = pool.limits, pool.replaced
    pool.limits = replace(usual, cpu=0, wall=0.0)
    assert "limit of 0 seconds" in asked(pool, ENDLESS)["error"]
    pool.limits = replace(usual, cpu=0)  # the new worker has a second and no more
    reply = asked(pool, ENDLESS)
    pool.limits = usual
    assert "more CPU time than" in reply["error"]
    assert asked(pool, GOOD)["ok"]
    assert pool.replaced == before + 2


def test_memory_is_bounded() -> None:
    from locum.interface.playground.playground_worker import _reply
    from locum.interface.playground.requests import MEMORY

    def greedy(request: Any) -> Any:
        raise MemoryError

    reply, is_last = _reply(b"{}", greedy, 1000)
    assert json.loads(reply)["error"] == MEMORY
    assert is_last


def test_a_bug_is_told_without_its_traceback() -> None:
    from locum.interface.playground.playground_worker import LARGE, _reply
    from locum.interface.playground.requests import INTERNAL

    assert json.loads(_reply(b"not json", lambda request: request, 100)[0])["error"] == INTERNAL
    assert json.loads(_reply(b'"abc"', lambda request: request * 99, 100)[0])["error"] == LARGE


def test_a_killed_worker_loses_its_own_request_only(pool: Pool) -> None:
    assert asked(pool, GOOD)["ok"]
    worker, *_ = free(pool)
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait()
    reply = asked(pool, GOOD)
    assert not reply["ok"]
    assert "was ended" in reply["error"]
    assert asked(pool, GOOD)["ok"]


def test_a_worker_that_ends_is_not_asked_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer that says so it still runs for a moment, in which it looks alive."""
    worker, *_ = free(pool)

    def answered(request: bytes, wall: float) -> bytes:
        worker._has_ended = True
        return b"0.1 {}"

    monkeypatch.setattr(worker, "ask", answered)
    assert asked(pool, GOOD) == {}
    assert asked(pool, GOOD)["ok"]


def test_more_requests_than_can_wait_are_refused_and_clients_take_turns(pool: Pool) -> None:
    first = pool.enter("a")  # has the worker
    waiting = pool.enter("a")
    with pytest.raises(BusyError, match="busy"):
        pool.answer(GOOD, "a")
    assert json.loads(pool.work(first, GOOD))["ok"]
    assert waiting.turn.done()  # its turn has come
    pool.leave(waiting)  # too late: it has to work
    assert json.loads(pool.work(waiting, GOOD))["ok"]
    assert asked(pool, GOOD)["ok"]


def test_who_goes_away_leaves_the_place_to_others(pool: Pool) -> None:
    first, second = pool.enter("a"), pool.enter("b")
    pool.leave(second)
    assert second.turn.cancelled()
    third = pool.enter("c")
    assert json.loads(pool.work(first, GOOD))["ok"]
    assert json.loads(pool.work(third, GOOD))["ok"]
    assert len(free(pool)) == 1
