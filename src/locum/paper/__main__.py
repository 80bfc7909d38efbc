"""Check all proofs of the paper's claims, in two processes (``make prove``).

Every proof of ``items.py`` is run, and its certificate is checked. Statements of the paper that the
prover can refute are refuted, and their corrections are proven. The errors of 500 executions of U are
compared with their certified bounds. ``locum sweep sweeps/prove.toml`` runs the same cases. Ctrl-C stops
the command and its workers.
"""

from __future__ import annotations

import sys
import time

from locum.experiments.sweeps import Case, Result, run
from locum.paper import proving
from locum.text import at_most

#: Maximum ratio of the largest certified error to the largest observed error.
TIGHT = 100.0
#: The exit code of a program that Ctrl-C has stopped.
INTERRUPTED = 130


def jobs() -> list[Case]:
    """List every proof and every refutation as a case of a sweep.

    The proofs are in the order of the paper's items, and the refutations follow.
    """
    proofs = [Case("proof", settings) for settings in proving.proofs()]
    return [*proofs, *(Case("refutation", settings) for settings in proving.refutations())]


class Report:
    """A report that prints a line for each proof and refutation, in the order of the cases."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.results: dict[str, Result] = {}
        self.printed = 0

    def take(self, done: int, total: int, result: Result) -> None:
        """Add a result, and print the lines of all cases up to the first unfinished one."""
        self.results[result.key] = result
        while self.printed < len(self.cases) and self.cases[self.printed].key in self.results:
            case = self.cases[self.printed]
            self.printed += 1
            print(
                f"[{self.printed}/{len(self.cases)}] {line(self.results[case.key], case)}", flush=True
            )


def line(result: Result, case: Case) -> str:
    """Return a line of text with the title of a case, its outcome and the times."""
    title = result.result.get("title", case.title)
    remark = result.result.get("remark", result.result.get("error", result.outcome))
    proving, checking = (result.timings.get(name, 0.0) for name in ("proving", "checking"))
    return (
        f"{'ok ' if result.outcome == 'done' else 'NOT'} {title}: {remark}, "
        f"{proving:.2f} s, checked in {checking:.2f} s"
    )


def prove_everything() -> int:
    """Run all proofs, refutations and certified executions, and print the results.

    Return 0 if all proofs and refutations succeed and all error bounds hold, otherwise 1. The largest
    certified error must also be at most ``TIGHT`` times the largest observed error.
    """
    started = time.perf_counter()
    cases = jobs()
    parts = [Case("certificate", settings) for settings in proving.certificates()]
    results = run([*cases, *parts], None, workers=2, progress=Report(cases).take).results
    holds = all(result.outcome == "done" for result in results)
    errors = [result.result for result in results if result.kind == "certificate"]
    certified = max(error.get("certified", 0.0) for error in errors)
    observed = max(error.get("observed", 0.0) for error in errors)
    sound = all(error.get("holds") for error in errors) and certified <= TIGHT * observed
    times = f"{certified / observed:.0f}" if observed else "no number of"
    print(
        f"{'ok ' if sound else 'NOT'} certified error of U of order (8, 8, 8), {proving.INPUTS} random "
        f"inputs: at most {at_most(certified, '.1e')}; worst seen {observed:.1e}, {times} times less"
    )
    print(f"{len(cases)} proofs and refutations in {time.perf_counter() - started:.0f} s")
    return 0 if holds and sound else 1


def main() -> int:
    """Run all cases and return the exit code; Ctrl-C stops the command and its workers."""
    try:
        return prove_everything()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
