"""Counterexamples: numbers for which a program does not give what its claim says.

Small whole numbers are tried first, then random ones. What looks wrong in floats is settled in
balls: the enclosures of the program's result and of the reference's must be apart (or the program
must have no value where the reference has one), so that a refutation is as certain as a proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from locum.errors import ExecutionError
from locum.execution import dense
from locum.execution.domains.floats import FloatDomain
from locum.verification.certified.balls import PRECISION, BallDomain, TooCloseError, precise
from locum.verification.claims.claim import Claim

_FLOAT = FloatDomain()
#: Differences that floats can be trusted to show.
_VISIBLE = 1e-9


@dataclass(frozen=True)
class Counterexample:
    """An input, and what is wrong there."""

    entries: tuple[int | float, ...]
    #: What the program gives, row by row (None where it has no value), and what it should.
    found: tuple[float, ...] | None
    wanted: tuple[float, ...]
    problem: str


def counterexample(claim: Claim, tries: int = 400, seed: int = 0) -> Counterexample | None:
    """The first input tried that refutes the claim, or None."""
    for entries in candidates(claim, tries, seed):
        if looks_wrong(claim, entries):
            found = settled(claim, entries)
            if found is not None:
                return found
    return None


def candidates(claim: Claim, tries: int, seed: int) -> Iterator[tuple[int | float, ...]]:
    """Inputs to try: constant ones, counting ones, small ones at random, larger ones."""
    count = len(claim.entries)
    kind: Any = int if claim.whole else float
    for value in (1, 2, 3, 4, 5, -1, 0):
        yield tuple(kind(value) for _ in range(count))
    yield tuple(kind(i + 1) for i in range(count))
    yield tuple(kind(-i - 1) for i in range(count))
    chance = random.Random(seed)
    for number in range(tries):
        reach = 1 + number // 20
        if claim.whole or number % 2 == 0:
            yield tuple(kind(chance.randint(-reach, reach)) for _ in range(count))
        else:
            yield tuple(chance.randint(-8 * reach, 8 * reach) / 8 for _ in range(count))


def looks_wrong(claim: Claim, entries: Sequence[int | float]) -> bool:
    """Whether floats show a difference under dense execution."""
    try:
        if any(abs(value) < _VISIBLE for _, value in claim.assumed(entries, _FLOAT)):
            return False
        wanted = [float(value) for value in claim.wanted(entries, _FLOAT)]
    except (ArithmeticError, ValueError):
        return False
    try:
        values = dense.evaluate(claim.program, claim.tokens(entries), _FLOAT, claim.names)
    except ExecutionError:
        return True
    found = [float(value) for value in claim.found(values)]
    scale = max(1.0, *map(abs, wanted))
    return any(not abs(a - b) <= _VISIBLE * scale for a, b in zip(found, wanted, strict=True))


def settled(claim: Claim, entries: Sequence[int | float]) -> Counterexample | None:
    """The input as a counterexample, if enclosures bear it out."""
    with precise(PRECISION):
        domain = BallDomain()
        exact = [x if isinstance(x, int) else fmpq(*x.as_integer_ratio()) for x in entries]
        try:
            conditions = [_ball(value) for _, value in claim.assumed(exact, domain)]
            wanted = [_ball(value) for value in claim.wanted(exact, domain)]
        except (ArithmeticError, ValueError):
            return None
        if any(value.contains(0) for value in conditions):
            return None
        numbers = tuple(float(value.mid()) for value in wanted)
        try:
            values = dense.evaluate(claim.program, claim.tokens(exact), domain, claim.names)
        except ExecutionError as error:
            if error.kind == TooCloseError.__name__:
                return None
            return Counterexample(tuple(entries), None, numbers, f"the program has no value: {error}")
        balls = [_ball(value) for value in claim.found(values)]
        for place, (found, right) in enumerate(zip(balls, wanted, strict=True)):
            if not found.overlaps(right):
                shown = tuple(float(value.mid()) for value in balls)
                problem = f"entry {place} is {shown[place]:.9g}, but should be {numbers[place]:.9g}"
                return Counterexample(tuple(entries), shown, numbers, problem)
    return None


def _ball(value: Any) -> arb:
    return arb(int(value) if isinstance(value, bool) else value)
