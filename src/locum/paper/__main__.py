"""``make prove``: prove and check everything that is claimed to be proven, on two processes.

Every proof of ``items.py`` is run and its certificate checked; every erratum of severity A is refuted
and its correction proven; and a thousand executions of U are compared with their certified errors.
Ctrl-C ends it at once and leaves no worker behind.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from locum.paper.errata import ERRATA
from locum.paper.findings import work
from locum.paper.item import ClaimInstance

#: Random inputs for the certified error, in so many parts, and how tight the certificate has to be.
INPUTS, PARTS, TIGHT = 1000, 20, 100.0
#: How long one proof may take; the longest needs a minute, but the machine may be busy with other work.
SECONDS = 3600.0
#: The exit code of a program that Ctrl-C ended.
INTERRUPTED = 130


class Line(NamedTuple):
    """One line of the report: what was done, whether it holds, seconds spent, and a remark."""

    title: str
    holds: bool
    proving: float
    checking: float
    remark: str


class Measured(NamedTuple):
    """The largest certified and the largest observed error of U, and whether no certificate was exceeded."""

    certified: float
    observed: float
    holds: bool


def prove_and_check(instance: ClaimInstance) -> Line:
    """Prove a claim; ``prove`` has the certificate checked before it says so."""
    from locum.paper.right_as_printed import stated
    from locum.verification.prover.prove import Proof, prove

    claim = stated(instance)
    verdict = prove(claim, seconds=SECONDS)
    if not isinstance(verdict, Proof):
        return Line(claim.title, False, verdict.seconds, 0.0, str(verdict))
    cases = f"{verdict.cases} case{'' if verdict.cases == 1 else 's'}"
    return Line(claim.title, True, verdict.seconds, verdict.checking, cases)


def refute(number: str) -> Line:
    """Refute the erratum ``number`` by numbers."""
    from locum.verification.prover.prove import Refutation, prove

    refutable = ERRATA[number].refutable
    assert refutable is not None
    verdict = prove(refutable.claim())
    remark = str(verdict).splitlines()[-1]
    return Line(f"refuted: {number}", isinstance(verdict, Refutation), verdict.seconds, 0.0, remark)


def measure(seeds: range) -> Measured:
    """Compare certified and observed errors of U on random T and X of order (8, 8, 8)."""
    import numpy as np

    from locum.simulators import Attention, UniversalSimulator
    from locum.verification.certified.certify import certify

    U, certified, observed, holds = UniversalSimulator(8, 8, 8), 0.0, 0.0, True
    for seed in seeds:
        A, V, X = np.random.default_rng(seed).normal(size=(3, 8, 8))
        result = certify(U, Attention(A, V), X)
        seen = result.seen(U(Attention(A, V), X, executor="dense"))
        certified, observed = max(certified, result.error), max(observed, seen)
        holds = holds and seen <= result.error
    return Measured(certified, observed, holds)


def jobs() -> list[Callable[[], Line]]:
    """List every proof and refutation, in the order of the paper's items."""
    everything = work(everything=True).values()
    proofs = [partial(prove_and_check, instance) for item in everything for instance in item.proofs]
    return [*proofs, *(partial(refute, number) for item in everything for number in item.refutations)]


def run(pool: ProcessPoolExecutor) -> int:
    """Do all of it on ``pool`` and print a line for each; 1 if anything does not hold."""
    size = INPUTS // PARTS
    started, everything_holds = time.perf_counter(), True
    with _without_interrupts():
        lines = [pool.submit(job) for job in jobs()]
        parts = [pool.submit(measure, range(k * size, (k + 1) * size)) for k in range(PARTS)]
    for number, future in enumerate(lines, start=1):
        line = future.result()
        everything_holds = everything_holds and line.holds
        print(
            f"[{number}/{len(lines)}] {'ok ' if line.holds else 'NOT'} {line.title}: {line.remark}, "
            f"{line.proving:.2f} s, checked in {line.checking:.2f} s",
            flush=True,
        )
    errors = [part.result() for part in parts]
    certified, observed = max(e.certified for e in errors), max(e.observed for e in errors)
    sound = all(error.holds for error in errors) and certified <= TIGHT * observed
    print(
        f"{'ok ' if sound else 'NOT'} certified error of U of order (8, 8, 8), {INPUTS} random inputs: "
        f"at most {certified:.1e}; worst seen {observed:.1e}, {certified / observed:.0f} times less"
    )
    print(f"{len(lines)} proofs and refutations in {time.perf_counter() - started:.0f} s")
    return 0 if everything_holds and sound else 1


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let an interrupt wait, for good in the processes that are started meanwhile.

    A terminal sends it to the workers as well, but it is for this process; a worker that ignored it only
    once it runs would be interrupted while it starts.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main() -> int:
    """Run everything; on Ctrl-C kill the workers, which may be minutes away from an answer."""
    pool = ProcessPoolExecutor(2)
    try:
        return run(pool)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for worker in multiprocessing.active_children():
            worker.kill()
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(main())
