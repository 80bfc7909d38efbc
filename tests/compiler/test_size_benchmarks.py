"""The benchmarks of sizes: their programs, their limits, and the comparison with Tracr."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from benchmarks import bench_random_programs, bench_tracr_sizes
from benchmarks.limited_process import run_limited
from benchmarks.size_programs import everyday
from benchmarks.tracr_reference import FILE, LENGTHS


def test_thirty_one_everyday_programs() -> None:
    names = [case.name for case in everyday()]
    assert len(names) == len(set(names)) == 31


@pytest.mark.parametrize("name", ["count_a", "reverse", "increment"])
def test_a_network_is_measured_and_right(name: str) -> None:
    (case,) = [case for case in everyday() if case.name == name]
    row = bench_tracr_sizes.measure(case, 5, "float64", {})
    assert row["right"] == row["inputs"] == 8
    assert row["d_model"] > 0


def test_random_programs_are_measured() -> None:
    row = bench_random_programs.measure(1, {})
    assert "rejected" in row or set(row["outcomes"]) <= {"right", "no value", "rejected"}


def test_a_limit_stops_work() -> None:
    def work() -> dict[str, Any]:
        while True:
            time.process_time()

    assert run_limited(work, 1)["reason"] == "stopped: more than 1 s of CPU time"
    assert run_limited(lambda: {"value": 1 // 0}, 5)["reason"].startswith("ZeroDivisionError")
    assert run_limited(lambda: {"value": 7}, 5)["value"] == 7


def test_exceptions_are_deeper_or_wider_than_a_network_that_is_right() -> None:
    right = {"layers": 2, "d_model": 9, "d_mlp": 4, "inputs": 8, "right": 8}
    rows: list[dict[str, Any]] = [
        {"layers": 3, "d_model": 9, "inputs": 8, "right": 8},
        {"layers": 1, "d_model": 10, "inputs": 8, "right": 8},
        {"layers": 2, "d_model": 9, "inputs": 8, "right": 7},
        {"reason": "CompileError: …"},
        {"layers": 3, "d_model": 9, "inputs": 8, "right": 8},
    ]
    for row in rows[:4]:
        bench_tracr_sizes.compare(row, right)
    bench_tracr_sizes.compare(rows[4], right | {"right": 7})
    assert [row["exceeds"] for row in rows] == [["layers"], ["d_model"], [], [], []]
    summary = bench_tracr_sizes.summarise(rows)
    assert (summary["compared"], summary["exceptions"], summary["wrong"]) == (3, 2, 1)
    assert summary["not_compiled"] == 1


def test_recorded_sizes_have_a_size_or_a_reason() -> None:
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    everyday_names = {case.name for case in everyday()}
    for key, row in stored.items():
        suite, name, length = key.split()
        assert suite != "everyday" or name in everyday_names
        assert int(length) in LENGTHS
        assert ("reason" in row) != ({"layers", "d_model", "d_mlp", "inputs", "right"} <= row.keys())
