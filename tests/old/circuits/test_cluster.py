"""A sweep on a real Dask cluster of local processes, one of which is killed in the middle of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locum.errors import InputError
from locum.experiments.sweeps import Case, Result, read, run

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three worker processes of Dask, each with one thread; a busy machine starts them in its time."""
    patience = {"distributed.comm.timeouts.connect": "600s", "distributed.comm.timeouts.tcp": "600s"}
    with (
        dask.config.set(patience),
        pytest.MonkeyPatch.context() as patch,
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: another process may have a cluster
            worker_dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
    ):
        patch.setattr("locum.experiments.sweeps.cluster._PATIENCE", 600.0)
        yield cluster


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(cluster: Any, tmp_path: Path) -> None:
    cases = [Case("trial", {"seed": seed, "seconds": 0.02}) for seed in range(60)]
    cases.append(Case("trial", {"seed": 0, "ends": "failed"}))
    path = tmp_path / "results.jsonl"
    killed: list[int] = []

    def kill_one(done: int, total: int, result: Result) -> None:
        if done == 10:
            victim = next(iter(cluster.workers.values())).pid
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    report = run(cases, path, scheduler=cluster.scheduler_address, progress=kill_one)
    assert len(killed) == 1
    lines = list(read(path))
    assert len(lines) == len({line.key for line in lines}) == 61  # nothing lost, nothing twice
    assert report.outcomes == {"done": 60, "failed": 1, "error": 0, "time limit": 0}
    alone = run(cases, None, workers=2)
    assert {line.content for line in lines} == {result.content for result in alone.results}


def test_the_time_limit_and_a_case_that_dies_mean_the_same(cluster: Any) -> None:
    # On a busy machine a case that dies at once may take seconds to do so.
    for ends, limit, outcome in (("too long", 0.2, "time limit"), ("killed", 600.0, "error")):
        case = Case("trial", {"seed": 0, "ends": ends})
        report = run([case], None, scheduler=cluster.scheduler_address, time_limit=limit)
        assert [result.outcome for result in report.results] == [outcome]


def test_sweeps_of_one_case_with_other_limits_do_not_share_it(cluster: Any) -> None:
    """Dask runs one of two tasks with one name: the patient sweep must not get the other's limit."""
    from threading import Thread

    case, result = Case("trial", {"seed": 1, "seconds": 2.0}), {}

    def sweep(limit: float) -> None:
        report = run([case], None, scheduler=cluster.scheduler_address, time_limit=limit)
        result[limit] = report.results[0].outcome

    both = [Thread(target=sweep, args=(limit,)) for limit in (0.2, 600.0)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert result == {0.2: "time limit", 600.0: "done"}


def test_an_address_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locum.experiments.sweeps.cluster._PATIENCE", 0.5)
    for address in ("host", "tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(InputError, match="expected an address such as"):
            run([Case("trial", {"seed": 0})], tmp_path / "r.jsonl", scheduler=address)
    assert list(read(tmp_path / "r.jsonl")) == []
