"""Run a sweep: skip finished cases, compute the other cases, and append each result to a file."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from locum.errors import InputError
from locum.experiments.sweeps.processes import cores, perform
from locum.experiments.sweeps.store import Store
from locum.experiments.sweeps.sweep_case import OUTCOMES, Case, Result, code_hash, distinct, part

#: Callback after every result, with the number of computed cases, the number of cases to compute, and
#: the result.
Progress = Callable[[int, int, Result], None]


@dataclass(frozen=True)
class Report:
    """The results of a sweep or shard, one for each distinct case in order."""

    results: list[Result]
    #: Number of results that were in the file before.
    known: int
    #: Number of these results that were computed by a different state of the source code.
    older: int

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of cases with each outcome."""
        counted = Counter(result.outcome for result in self.results)
        return {outcome: counted[outcome] for outcome in OUTCOMES}

    @property
    def holds(self) -> bool:
        """Whether every case is done."""
        return all(result.outcome == "done" for result in self.results)


def has_no_value(result: Result) -> bool:
    """Return whether a case raised an error or reached the time limit."""
    return result.outcome in ("error", "time limit")


def run(
    cases: Iterable[Case],
    output: str | Path | None,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    shard: tuple[int, int] = (1, 1),
    scheduler: str | None = None,
    again: Callable[[Result], bool] = lambda result: False,
    progress: Progress | None = None,
) -> Report:
    """Compute the cases that have no result in the file ``output``, and append their results to this
    file.

    The cases run on ``workers`` processes of this machine, by default one per core. With ``scheduler``,
    the address of a Dask scheduler such as "tcp://host:8786", the cases run on a Dask cluster. A case
    that takes more than ``time_limit`` seconds is terminated. ``shard`` (k, n) selects the k-th of n
    parts. Cases for whose results ``again`` is true, such as :func:`has_no_value`, run again. The same
    call continues an interrupted sweep. If ``output`` is None, the results are only returned.

    >>> report = run([Case("trial", {"seed": seed}) for seed in range(3)], None, workers=1)
    >>> report.outcomes
    {'done': 3, 'failed': 0, 'error': 0, 'time limit': 0}
    """
    workers = cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"workers: expected 1 or more, got {workers}")
    if time_limit is not None and not (time_limit > 0 and math.isfinite(time_limit)):
        raise InputError(f"time limit: expected seconds, more than 0, got {time_limit:g}")
    mine = part(distinct(cases), shard)
    with contextlib.ExitStack() as stack:
        store = None if output is None else stack.enter_context(Store(output))
        results = {} if store is None else store.results
        known = {case.key for case in mine if case.key in results and not again(results[case.key])}
        older = sum(results[key].versions.get("code") != code_hash() for key in known)
        remaining = [case for case in mine if case.key not in known]
        computed = _compute(remaining, workers, time_limit, scheduler)
        stack.enter_context(contextlib.closing(computed))
        waiting = {case.key for case in remaining}
        for result in computed:
            if result.key not in waiting:  # a cluster may return a result twice
                continue
            waiting.discard(result.key)
            if store is not None:
                store.append(result)
            results[result.key] = result
            if progress is not None:
                progress(len(remaining) - len(waiting), len(remaining), result)
        return Report([results[case.key] for case in mine], len(known), older)


def _compute(
    cases: list[Case], workers: int, limit: float | None, scheduler: str | None
) -> Generator[Result]:
    if scheduler is None or not cases:
        return perform(cases, workers, limit)
    from locum.experiments.sweeps.cluster import perform as perform_on_cluster

    return perform_on_cluster(cases, scheduler, limit)
