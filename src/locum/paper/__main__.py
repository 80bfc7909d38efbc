"""``make prove``: everything that is claimed to be proven, on two processes, with its time.

Each claim of ``catalogue.PROVEN`` is proven, and its certificate checked; each erratum is refuted
and its correction proven; and a thousand executions of U are compared with their certified errors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeAlias

from locum.paper.findings import PROVEN, Named

#: What was done, whether it holds, seconds of proving and of checking, and a remark.
Line: TypeAlias = tuple[str, bool, float, float, str]

#: Random inputs for the certified error, in so many parts, and how tight it has to be.
INPUTS, PARTS, TIGHT = 1000, 20, 100.0


def prove_and_check(named: Named) -> Line:
    """A claim proven, its certificate checked."""
    from locum.verification.checker.check import check
    from locum.verification.claims.named import claim
    from locum.verification.prover.prove import Proof, prove

    name, shape, recipe = named
    stated = claim(name, *shape, recipe=recipe)
    started = time.process_time()
    verdict = prove(stated)
    proven = time.process_time()
    if not isinstance(verdict, Proof):
        return stated.title, False, proven - started, 0.0, str(verdict)
    checked = check(verdict.certificate())
    spent = time.process_time() - proven
    return (
        stated.title,
        checked.cases == verdict.cases,
        proven - started,
        spent,
        f"{verdict.cases} cases",
    )


def refute(number: str) -> Line:
    """An erratum refuted by numbers."""
    from locum.paper.as_printed import ERRATA
    from locum.verification.prover.prove import Refutation, prove

    started = time.process_time()
    verdict = prove(ERRATA[number].claim())
    remark = str(verdict).splitlines()[-1]
    return (
        f"refuted: {number}",
        isinstance(verdict, Refutation),
        time.process_time() - started,
        0.0,
        remark,
    )


def measure(seeds: range) -> tuple[float, float, bool]:
    """Greatest certified and greatest observed error over random T and X of order (8, 8, 8)."""
    import numpy as np

    from locum.simulators import Attention, UniversalSimulator
    from locum.verification.certified.certify import certify

    U, certified, observed, holds = UniversalSimulator(8, 8, 8), 0.0, 0.0, True
    for seed in seeds:
        generator = np.random.default_rng(seed)
        A, V, X = generator.normal(size=(3, 8, 8))
        result = certify(U, Attention(A, V), X)
        seen = result.seen(U(Attention(A, V), X, executor="dense"))
        certified, observed = max(certified, result.error), max(observed, seen)
        holds = holds and seen <= result.error
    return certified, observed, holds


def main() -> int:
    """Print a line for each; 1 if anything is not as it should be."""
    from locum.paper.as_printed import ERRATA

    jobs: list[Callable[[], Line]] = [
        partial(prove_and_check, named) for claims in PROVEN.values() for named in claims
    ]
    jobs += [partial(refute, number) for number in ERRATA]
    jobs += [partial(prove_and_check, (*erratum.corrected, None)) for erratum in ERRATA.values()]
    size = INPUTS // PARTS
    parts = [range(k * size, (k + 1) * size) for k in range(PARTS)]
    started, good = time.perf_counter(), True
    with ProcessPoolExecutor(2) as pool:
        lines = [pool.submit(job) for job in jobs]
        errors = [pool.submit(measure, part) for part in parts]
        for number, line in enumerate(lines, start=1):
            title, holds, proving, checking, remark = line.result()
            good = good and holds
            print(
                f"[{number}/{len(lines)}] {'ok ' if holds else 'NOT'} {title}: {remark}, "
                f"{proving:.2f} s, checked in {checking:.2f} s",
                flush=True,
            )
        found = [part.result() for part in errors]
    certified, observed = max(part[0] for part in found), max(part[1] for part in found)
    sound = all(part[2] for part in found) and certified <= TIGHT * observed
    print(
        f"{'ok ' if sound else 'NOT'} certified error of U of order (8, 8, 8), {INPUTS} random inputs: "
        f"at most {certified:.1e}; worst seen {observed:.1e}, {certified / observed:.0f} times less"
    )
    print(f"{len(jobs)} proofs and refutations in {time.perf_counter() - started:.0f} s")
    return 0 if good and sound else 1


if __name__ == "__main__":
    sys.exit(main())
