"""Run a sweep: skip finished cases, compute the other cases, and append each result to a file."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.experiments.sweeps.processes import cores, perform
from locum.experiments.sweeps.store import Store, read
from locum.experiments.sweeps.sweep_case import OUTCOMES, Case, Result, code_hash, distinct, part
from locum.experiments.sweeps.sweep_kinds import kind_named, resolve

#: Callback after every result, with the number of computed cases, the number of cases to compute, and
#: the result.
Progress = Callable[[int, int, Result], None]

#: Maximum number of workers, to detect typing errors.
_MOST_WORKERS = 4_096


@dataclass(frozen=True)
class Plan:
    """The distinct cases of a sweep or shard, and the cases that remain to be computed."""

    cases: list[Case]
    remaining: list[Case]
    #: Number of repeated cases.
    repeated: int
    #: Number of results in the file that belong to other cases or to other versions of Locum.
    foreign: int
    #: Number of valid results that were computed by a different state of the source code.
    older: int
    #: Number of cases that are computed again, because files that they wrote are missing.
    gone: int = 0
    #: Description of the repair of the file of results, or None.
    repair: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a JSON-compatible dictionary."""
        return {
            "cases": len(self.cases),
            "kinds": dict(Counter(case.kind for case in self.cases)),
            "done_before": len(self.cases) - len(self.remaining),
            "remaining": len(self.remaining),
            "repeated": self.repeated,
            "other_results": self.foreign,
            "by_other_code": self.older,
            "gone": self.gone,
            "repair": self.repair,
        }


@dataclass(frozen=True)
class Report:
    """The results of a sweep: one result for each case of ``plan``, in the same order."""

    plan: Plan
    results: list[Result]

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of cases with each outcome."""
        counted = Counter(result.outcome for result in self.results)
        return {outcome: counted[outcome] for outcome in OUTCOMES}

    @property
    def holds(self) -> bool:
        """Whether every case is done."""
        return all(result.outcome == "done" for result in self.results)


def plan(
    cases: Iterable[Case],
    output: str | Path | None = None,
    *,
    shard: tuple[int, int] = (1, 1),
    retry: bool = False,
    gone: bool = True,
) -> Plan:
    """Return the plan of :func:`run` for the same arguments, without computing cases or changing the
    file.

    ``repair`` is None, because the file is not repaired.
    """
    known = {}
    if output is not None and Path(output).exists():
        known = {result.key: result for result in read(output)}
    return _plan(cases, known, shard, retry, gone, None)


def _plan(
    cases: Iterable[Case],
    known: dict[str, Result],
    shard: tuple[int, int],
    retry: bool,
    gone: bool,
    repair: str | None,
) -> Plan:
    listed = list(cases)
    once = distinct(listed)
    keys = {case.key for case in once}
    mine = part(once, shard)
    again = ("error", "time limit") if retry else ()
    done = {case.key: known[case.key] for case in mine if case.key in known}
    lost = {key for key, result in done.items() if gone and not _is_kept(result)}
    kept = {key for key, result in done.items() if result.outcome not in again} - lost
    return Plan(
        cases=mine,
        remaining=[case for case in mine if case.key not in kept],
        repeated=len(listed) - len(once),
        foreign=len(known.keys() - keys),
        older=sum(done[key].versions.get("code") != code_hash() for key in kept),
        gone=len(lost),
        repair=repair,
    )


def _is_kept(result: Result) -> bool:
    """Return whether the files that a case wrote, such as the files of a circuit, still exist."""
    kept = kind_named(result.kind).kept
    if kept is None or result.outcome != "done":
        return True
    return bool(resolve(kept)(result.settings, result.result))


def run(
    cases: Iterable[Case],
    output: str | Path | None,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    shard: tuple[int, int] = (1, 1),
    scheduler: str | None = None,
    retry: bool = False,
    gone: bool = True,
    started: Callable[[Plan], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compute the cases that have no result in the file ``output``, and append their results to this
    file.

    The cases run on ``workers`` processes of this machine, by default one per core. With ``scheduler``,
    the address of a Dask scheduler such as "tcp://host:8786", the cases run on a Dask cluster. A case
    that takes more than ``time_limit`` seconds is terminated. ``shard`` (k, n) selects the k-th of n
    parts.

    With ``retry``, cases that raised an error or reached the time limit run again. With ``gone``, cases
    run again if files that they wrote, such as circuits, are missing. The same call continues an
    interrupted sweep. If ``output`` is None, the results are only returned.

    >>> report = run([Case("trial", {"seed": seed}) for seed in range(3)], None, workers=1)
    >>> report.outcomes
    {'done': 3, 'failed': 0, 'error': 0, 'time limit': 0}
    """
    workers = cores() if workers is None else workers
    if not 1 <= workers <= _MOST_WORKERS:
        raise InputError(f"workers: expected 1 to {_MOST_WORKERS:,}, got {workers}")
    if time_limit is not None and not (time_limit > 0 and math.isfinite(time_limit)):
        raise InputError(f"time limit: expected seconds, more than 0, got {time_limit:g}")
    with contextlib.ExitStack() as stack:
        store = None if output is None else stack.enter_context(Store(output))
        results = {} if store is None else store.results
        what = _plan(cases, results, shard, retry, gone, None if store is None else store.repair)
        if started is not None:
            started(what)
        computed = _compute(what.remaining, workers, time_limit, scheduler)
        stack.enter_context(contextlib.closing(computed))
        waiting = {case.key for case in what.remaining}
        for result in computed:
            if result.key not in waiting:  # a cluster may return a result twice
                continue
            waiting.discard(result.key)
            if store is not None:
                store.append(result)
            results[result.key] = result
            if progress is not None:
                progress(len(what.remaining) - len(waiting), len(what.remaining), result)
        if store is not None:
            store.check()
        return Report(what, [results[case.key] for case in what.cases])


def _compute(
    cases: list[Case], workers: int, limit: float | None, scheduler: str | None
) -> Generator[Result]:
    if scheduler is None or not cases:
        return perform(cases, workers, limit)
    from locum.experiments.sweeps.cluster import perform as perform_on_cluster

    return perform_on_cluster(cases, scheduler, limit)
