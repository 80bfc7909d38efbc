"""Interrupt a sweep again and again and compare its results with those of one that nothing disturbed.

    python benchmarks/interrupted_sweep.py sweeps/fuzz.toml
    python benchmarks/interrupted_sweep.py sweeps/fuzz.toml --signals 9 9 9 9 --seed 1

Each signal (2 is Ctrl-C, 9 cannot be caught) is sent after a random share of the cases that are left;
then the same command goes on. Exit code 1 if a result is missing, counted twice, or another one.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from locum.experiments.sweeps import plan, read
from locum.experiments.sweeps.spec import read_spec


def start(spec: Path, target: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start ``locum sweep``."""
    command = [sys.executable, "-m", "locum", "sweep", str(spec), "-o", str(target)]
    return subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.DEVNULL)


def lines_of(path: Path) -> int:
    """Count the whole lines that are there."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def interrupt(spec: Path, target: Path, workers: int, number: int, lines: int) -> str:
    """Run the sweep until there are so many lines, send it a signal, and say what is left."""
    process = start(spec, target, workers)
    while process.poll() is None and lines_of(target) < lines:
        time.sleep(0.002)
    os.kill(process.pid, number)
    process.wait()
    ends_whole = target.read_bytes().endswith(b"\n") if target.stat().st_size else True
    name = signal.Signals(number).name
    return f"{name} at {lines_of(target):,} lines, the last one {'whole' if ends_whole else 'cut off'}"


def main() -> int:
    """Run the sweep twice and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--signals", type=int, nargs="+", default=[signal.SIGINT, signal.SIGKILL])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    cases = read_spec(options.spec)
    with tempfile.TemporaryDirectory() as name:
        whole, broken = Path(name, "whole.jsonl"), Path(name, "broken.jsonl")
        started = time.perf_counter()
        start(options.spec, whole, options.workers).wait()
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"uninterrupted: {lines_of(whole):,} lines in {time.perf_counter() - started:.0f} s")
        print(f"  {spent.ru_utime + spent.ru_stime:.0f} s of CPU, {whole.stat().st_size:,} bytes")
        for index, number in enumerate(options.signals):
            left = len(plan(cases, broken).remaining)
            share = draw.random() / (len(options.signals) - index)
            lines = lines_of(broken) + max(1, int(left * share))
            print(interrupt(options.spec, broken, options.workers, number, lines))
        code = start(options.spec, broken, options.workers).wait()
        actual, expected = list(read(broken)), list(read(whole))
    differ = {result.content for result in actual} ^ {result.content for result in expected}
    keys = {result.key for result in actual}
    print(f"resumed: {len(actual):,} lines, {len(keys):,} keys, exit code {code}")
    print(f"results that differ: {len(differ)}")
    return int(bool(differ) or len(actual) != len(keys) or len(actual) != len(expected))


if __name__ == "__main__":
    sys.exit(main())
