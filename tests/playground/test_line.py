"""The line: bounded, clients in turn, nobody starved."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locum.interface.playground.line import FORGIVEN, BusyError, Line, Ticket


def entered(line: Line, clients: str) -> list[Ticket]:
    return [line.enter(client) for client in clients]


def served(line: Line, count: int) -> str:
    """Who is served one after another, each leaving before the next begins."""
    names = ""
    for _ in range(count):
        ticket = line.next()
        assert ticket is not None
        names += ticket.client
        line.leave(ticket)
    return names


def test_clients_are_served_in_turn_and_each_in_order() -> None:
    line = Line(workers=1, waiting=9)
    entered(line, "aaaabbc")
    assert served(line, 7) == "abcabaa"
    assert line.next() is None


def test_a_client_that_floods_the_line_gives_way() -> None:
    line = Line(workers=1, waiting=3)
    running = line.enter("a")
    assert line.next() is running
    waiting = entered(line, "aaa")
    with pytest.raises(BusyError, match="busy"):
        line.enter("a")
    line.enter("b")
    assert isinstance(waiting[-1].turn.exception(timeout=0), BusyError)
    with pytest.raises(BusyError):
        line.enter("b")  # as many as the other: nobody gives way
    line.leave(running)
    assert served(line, 3) in ("aba", "baa")


def test_one_client_alone_has_the_whole_line() -> None:
    line = Line(workers=2, waiting=2)
    entered(line, "aaaa")
    with pytest.raises(BusyError):
        line.enter("a")
    assert [bool(line.next()) for _ in range(3)] == [True, True, False]


def test_a_share_leaves_a_worker_for_others() -> None:
    line = Line(workers=2, waiting=9, share=1)
    first, second, other = entered(line, "aab")
    assert line.next() is first
    assert line.next() is other
    line.leave(first)
    assert line.next() is second


def test_who_gives_up_is_forgotten() -> None:
    line = Line(workers=1, waiting=2)
    first, second = entered(line, "ab")
    line.leave(first)
    assert line.next() is second
    line.leave(second)
    assert line.next() is None
    assert not line._queues
    assert not line._running


def test_the_client_that_used_less_is_served_first() -> None:
    line = Line(workers=1, waiting=9)
    first, *_ = entered(line, "aab")
    assert line.next() is first
    line.leave(first, seconds=2.0)
    assert served(line, 2) == "ba"


def test_a_client_that_broke_a_limit_leaves_the_foreground_for_a_while() -> None:
    moment = [0.0]
    line = Line(workers=2, waiting=9, background=1, clock=lambda: moment[0])
    first, *_ = entered(line, "aaab")
    assert line.next() is first
    line.leave(first, seconds=5.0, is_broken=True)
    assert line.broken("a") == 1
    other, slow = line.next(), line.next()
    assert (other and other.client, slow and slow.client) == ("b", "a")
    assert slow is not None
    assert slow.in_background
    assert line.next() is None  # one at a time
    line.leave(slow)
    moment[0] = FORGIVEN
    again = line.next()
    assert again is not None
    assert not again.in_background


def test_long_requests_move_to_the_background_for_others_only() -> None:
    line = Line(workers=1, waiting=9, background=1)
    first, *_ = entered(line, "aa")
    assert line.next() is first
    assert line.move(first) is None  # only its own client waits
    line.enter("b")
    assert line.move(first) is True
    second = line.next()
    assert second is not None
    assert second.client == "b"
    line.enter("c")
    assert line.move(second) is False  # there is no room


@given(st.lists(st.sampled_from("abcde-"), max_size=60), st.integers(1, 3), st.integers(0, 5))
def test_the_line_is_bounded_and_loses_nobody(moves: list[str], workers: int, waiting: int) -> None:
    """A letter enters, a dash lets the oldest worker go on."""
    line = Line(workers, waiting)
    held: list[Ticket] = []
    waits: list[Ticket] = []
    for move in moves:
        if move == "-":
            if held:
                line.leave(held.pop(0))
        else:
            try:
                waits.append(line.enter(move))
            except BusyError:
                counts = Counter(ticket.client for ticket in waits)
                assert counts[move] + 1 >= max(counts.values(), default=0)
        waits = [ticket for ticket in waits if not ticket.turn.done()]
        while (ticket := line.next()) is not None:
            waits.remove(ticket)
            held.append(ticket)
        assert len(held) <= workers
        assert len(waits) <= waiting
        assert sum(map(len, line._queues.values())) == len(waits)
        assert not waits or len(held) == workers
