"""``make prove``: prove and check everything that is claimed to be proven, on two processes.

Every proof of ``items.py`` is run and its certificate checked; every erratum that the prover can refute
is refuted and its correction proven; and 500 executions of U are compared with their certified errors. It
is the sweep of sweeps/prove.toml, which ``locum sweep`` runs, too. Ctrl-C ends it at once and leaves no
worker behind.
"""

from __future__ import annotations

import sys
import time

from locum.experiments.sweeps import Case, Result, run
from locum.paper import proving
from locum.text import at_most

#: How tight the certificates have to be.
TIGHT = 100.0
#: The exit code of a program that Ctrl-C ended.
INTERRUPTED = 130


def jobs() -> list[Case]:
    """List every proof and refutation, in the order of the paper's items."""
    proofs = [Case("proof", settings) for settings in proving.proofs()]
    return [*proofs, *(Case("refutation", settings) for settings in proving.refutations())]


class Report:
    """Prints a line for each proof and refutation, in their order, as soon as it can."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.results: dict[str, Result] = {}
        self.printed = 0

    def take(self, done: int, total: int, result: Result) -> None:
        """Take a result, and print what stood behind it."""
        self.results[result.key] = result
        while self.printed < len(self.cases) and self.cases[self.printed].key in self.results:
            case = self.cases[self.printed]
            self.printed += 1
            print(
                f"[{self.printed}/{len(self.cases)}] {line(self.results[case.key], case)}", flush=True
            )


def line(result: Result, case: Case) -> str:
    """Say in a line what was done, whether it holds, and how long it took."""
    title = result.result.get("title", case.title)
    remark = result.result.get("remark", result.result.get("error", result.outcome))
    proving, checking = (result.timings.get(name, 0.0) for name in ("proving", "checking"))
    return (
        f"{'ok ' if result.outcome == 'done' else 'NOT'} {title}: {remark}, "
        f"{proving:.2f} s, checked in {checking:.2f} s"
    )


def prove_everything() -> int:
    """Do all of it and print a line for each; 1 if anything does not hold."""
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
    """Run everything; on Ctrl-C the sweep ends its workers, which may be minutes away from an answer."""
    try:
        return prove_everything()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
