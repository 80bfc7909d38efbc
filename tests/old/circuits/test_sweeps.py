"""Sweeps on processes of this machine: what is written, what is refused, what is gone on with."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from locum import __version__
from locum.errors import InputError, LocumError
from locum.experiments.sweeps import Case, Result, has_no_value, read, run
from locum.experiments.sweeps.store import Store
from locum.experiments.sweeps.sweep_case import part

#: Only so that a hang is a failure.
PATIENCE = 1800


def trials(count: int, **settings: Any) -> list[Case]:
    return [Case("trial", {"seed": seed, **settings}) for seed in range(count)]


def contents(results: Iterable[Result]) -> set[tuple[str, str, str]]:
    """What two runs of the same cases have in common."""
    return {result.content for result in results}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a sweep that nothing disturbed."""
    path = tmp_path_factory.mktemp("sweep") / "whole.jsonl"
    run(trials(30), path, workers=1)
    return path


# What can come of a case -------------------------------------------------------------------------


def test_every_outcome(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ways = ["done", "failed", "error", "not JSON", "killed", "talking", "done"]
    cases = [Case("trial", {"seed": n, "ends": ends}) for n, ends in enumerate(ways)]
    report = run(cases, path, workers=1)
    assert [result.outcome for result in report.results] == [
        *("done", "failed", "error", "error", "error", "done", "done")
    ]
    assert report.outcomes == {"done": 3, "failed": 1, "error": 3, "time limit": 0}
    assert not report.holds
    errors = [result.result.get("error") for result in report.results]
    assert errors[2:5] == [
        "ValueError: the case 2 is set to fail",
        "result.number is nan, which JSON does not have",
        "the worker process was ended by SIGKILL",
    ]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {line["key"] for line in lines} == {case.key for case in cases}
    for line in lines:
        assert line["versions"]["locum"] == __version__
        assert len(line["versions"]["code"]) == 12
        assert "seed" in line["settings"]
    assert lines[0]["hashes"]["number"] == f"{lines[0]['result']['number']:08x}"
    assert lines[0]["versions"]["python"]


def test_a_case_that_takes_too_long_is_ended_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    run(trials(2), path, workers=1)
    slow = trials(2, ends="too long")  # the second on the worker that replaces the first one's
    report = run([*trials(2), *slow], path, workers=1, time_limit=0.2)
    assert [result.outcome for result in report.results] == [*("done", "done"), *["time limit"] * 2]
    assert report.results[3].result == {"limit": 0.2}
    assert report.results[3].seconds >= 0.2
    # It does not run again by itself, but when it is asked for; then the later result counts.
    assert run([*trials(2), *slow], path, workers=1).known == 4
    report = run([*trials(2), *slow], path, workers=1, time_limit=0.1, again=has_no_value)
    assert report.known == 2
    assert [result.result.get("limit") for result in report.results] == [None, None, 0.1, 0.1]
    assert len(list(read(path))) == 6


@pytest.mark.parametrize("limit", [0, -1.0, float("inf"), float("nan")])
def test_limits_that_are_none(limit: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected seconds, more than 0"):
        run(trials(1), tmp_path / "r.jsonl", time_limit=limit)
    with pytest.raises(InputError, match="expected 1 or more, got 0"):
        run(trials(1), tmp_path / "r.jsonl", workers=0)
    assert list(tmp_path.iterdir()) == []


def test_cases_that_are_none() -> None:
    for kind, settings, words in [
        ("os", {}, "no kind of case 'os': expected one of trial"),
        ("trial", {}, "seed: expected an integer ≥ 0 .*, got nothing"),
        ("trial", {"seed": 1.5}, "expected an integer ≥ 0, got 1.5"),
        ("trial", {"seed": True}, "expected an integer ≥ 0, got True"),
        ("trial", {"seed": 1, "sead": 2}, "expected seed, seconds, ends, got 'sead'"),
        ("trial", {"seed": 1, "seconds": float("nan")}, "expected a finite number ≥ 0, got nan"),
        ("trial", {"seed": 1, "ends": "well"}, "expected one of done, failed"),
        ("trial", {"seed": 10**1_100_000}, "settings of kind trial: expected plain JSON"),
        ("trial", [], "expected a table, got list"),
        ("trial", {"seed": 1, "seconds": -1}, "expected a finite number ≥ 0, got -1"),
        ("fuzz", {"seed": 1, "size": 0}, "expected an integer ≥ 1, got 0"),
    ]:
        with pytest.raises(InputError, match=words):
            Case(kind, settings)  # type: ignore[arg-type]


# Going on ----------------------------------------------------------------------------------------


def test_interrupted_anywhere_and_resumed_is_the_same_as_uninterrupted(
    whole: Path, tmp_path: Path
) -> None:
    """Cut at every kind of place: between lines, in a line, before the end of a line."""
    content = whole.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    draw = random.Random(0)
    cuts = [0, 60, ends[3], ends[3] - 1, draw.randrange(len(content))]
    for cut in cuts:
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        report = run(trials(30), path, workers=1)
        assert contents(read(path)) == contents(read(whole)) == contents(report.results)
        assert len(path.read_bytes().splitlines()) == 30  # nothing twice
        assert report.known == content[:cut].count(b"\n")


def test_two_shards_put_together_are_the_whole(whole: Path, tmp_path: Path) -> None:
    parts = []
    for k in (1, 2):
        run(trials(30), tmp_path / f"{k}.jsonl", shard=(k, 2), workers=1)
        parts.append((tmp_path / f"{k}.jsonl").read_bytes())
    together = tmp_path / "together.jsonl"
    together.write_bytes(b"".join(parts))
    assert contents(read(together)) == contents(read(whole))
    assert [part.count(b"\n") for part in parts] == [15, 15]
    report = run(trials(30), together)
    assert report.known == 30
    assert report.holds


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0), (-1, -1)])
def test_shards_that_are_none(shard: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected k/n with 1 ≤ k ≤ n"):
        part(trials(3), shard)


def test_a_case_that_is_given_twice_is_computed_once(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    report = run([*trials(2), *trials(3)], path, workers=1)
    assert len(path.read_bytes().splitlines()) == len(report.results) == 3


def test_another_spec_on_the_same_file(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(whole.read_bytes())
    report = run(trials(5, ends="failed") + trials(2), path, workers=1)
    assert (len(report.results), report.known) == (7, 2)
    assert len(list(read(path))) == 35


# Files that are not to be touched ----------------------------------------------------------------


def test_foreign_and_altered_files_are_refused(whole: Path, tmp_path: Path) -> None:
    lines = whole.read_bytes().splitlines(keepends=True)
    changed = lines[4].replace(b'"seconds":0.0', b'"seconds":1.0', 1)
    for content, words in {
        b"my notes\n": "line 1: not a result of a sweep .*; expected a file that only",
        b"my notes": "line 1: not a result",
        b'{"key":"mine"}': "line 1: not a result",
        b"\n": "line 1: not a result",
        b"".join([*lines[:4], changed, *lines[5:]]): "line 5: changed after it was written",
        b"".join([*lines[:4], lines[4][:-9] + b"\n", *lines[5:]]): "line 5: not a result",
        b"".join([*lines[:4], b"\n", *lines[4:]]): "line 5: not a result",
    }.items():
        path = tmp_path / "results.jsonl"
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            run(trials(30), path)
        assert path.read_bytes() == content


def test_what_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for target in (folder, pipe, loop, tmp_path / "no" / "folder", "/dev/null", tmp_path / "a\0b"):
        with pytest.raises(LocumError, match="cannot write"):
            run(trials(1), target)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link.jsonl", tmp_path / "target.jsonl"
    link.symlink_to(target)
    run(trials(1), link, workers=1)
    assert link.is_symlink()
    assert len(list(read(target))) == 1


@pytest.mark.skipif(os.name != "posix", reason="locks are POSIX")
def test_two_sweeps_do_not_write_one_file(whole: Path) -> None:
    with (
        Store(whole),
        pytest.raises(InputError, match="another sweep is writing"),
    ):
        run(trials(30), whole)
    assert run(trials(30), whole).known == 30


def test_a_full_disk_loses_no_line_and_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    results = run(trials(2), None, workers=1).results
    write = os.write
    with Store(path) as store:
        store.append(results[0])
        monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:50]))
        with pytest.raises(LocumError, match=r"cannot write .*; what was written before is kept"):
            store.append(results[1])
        monkeypatch.undo()
    assert path.read_bytes() == results[0].line()


def test_a_line_of_ours_with_nonsense_in_it_is_refused(whole: Path, tmp_path: Path) -> None:
    result = next(read(whole))
    path = tmp_path / "results.jsonl"
    for changes in [
        *({"versions": []}, {"versions": {}}, {"settings": []}, {"settings": {"seed": 9}}),
        *({"outcome": "well"}, {"outcome": 3}, {"seconds": "1"}, {"hashes": None}, {"kind": "fuzz"}),
    ]:
        path.write_bytes(replace(result, **changes).line())  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"line 1: (not a result|changed)"):
            run(trials(1), path)


# Signals -----------------------------------------------------------------------------------------

SPEC = '[[sweep]]\nkind = "trial"\nseed = { first = 0, count = 30 }\nseconds = 0.01\n'
#: So that the sweep is never at its end when it is interrupted, however late that is.
ENDLESS = '[[sweep]]\nkind = "trial"\nseed = [1, 2]\nends = "too long"\n'


def heed_interrupts() -> None:
    """Undo what a shell does to jobs in the background, from which the tests may have been started."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(folder: Path, spec: str) -> subprocess.Popen[str]:
    (folder / "spec.toml").write_text(spec, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "locum.experiments.sweeps", "spec.toml", "-o", "r.jsonl", "--workers=2"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )


def wait_for_lines(path: Path, process: subprocess.Popen[str], count: int) -> None:
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < count):
        time.sleep(0.005)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_and_a_kill_then_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for number, code in [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]:
        process = start(tmp_path, SPEC + ENDLESS)
        wait_for_lines(path, process, 6 if number == signal.SIGINT else 12)
        os.kill(process.pid, number)
        # The pipes are at their end only when every worker, which inherited one, is gone.
        _, problems = process.communicate(timeout=PATIENCE)
        assert process.returncode == code
        if number == signal.SIGINT:
            assert problems == (
                "sweep: interrupted; finished results are in r.jsonl, and the same command continues\n"
            )
            assert path.read_bytes().endswith(b"\n")
    process = start(tmp_path, SPEC)
    said, problems = process.communicate(timeout=PATIENCE)
    assert (process.returncode, problems) == (0, "")
    assert re.fullmatch(r"30 done \(\d+ known before\): r.jsonl\n", said)
    assert contents(read(path)) == contents(run(trials(30, seconds=0.01), None, workers=2).results)
    assert len(path.read_bytes().splitlines()) == 30
