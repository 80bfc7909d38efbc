"""Interrupt a sweep repeatedly, and compare its results with the results of an uninterrupted sweep.

    python benchmarks/interrupted_sweep.py sweeps/fuzz.toml
    python benchmarks/interrupted_sweep.py sweeps/fuzz.toml --signals 9 9 9 9 --seed 1

Each signal (2 is Ctrl-C, and 9 cannot be caught) is sent after a random fraction of the remaining
cases. Then the same command resumes the sweep. The exit code is 1 if a result is missing, occurs twice,
or differs.
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

from locum.experiments.sweeps import read
from locum.experiments.sweeps.spec import read_spec


def start(spec: Path, target: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a sweep of a specification in a new process."""
    command = [sys.executable, "-m", "locum.experiments.sweeps", str(spec), "-o", str(target)]
    return subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.DEVNULL)


def lines_of(path: Path) -> int:
    """Count the complete lines in a file of results, which may not exist."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def interrupt(spec: Path, target: Path, workers: int, number: int, lines: int) -> str:
    """Run a sweep until its file has ``lines`` lines, send it a signal, and describe the file."""
    process = start(spec, target, workers)
    while process.poll() is None and lines_of(target) < lines:
        time.sleep(0.002)
    os.kill(process.pid, number)
    process.wait()
    ends_whole = target.read_bytes().endswith(b"\n") if target.stat().st_size else True
    name = signal.Signals(number).name
    return f"{name} at {lines_of(target):,} lines, the last one {'whole' if ends_whole else 'cut off'}"


def main() -> int:
    """Run the sweep without and with interruptions, and compare the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--signals", type=int, nargs="+", default=[signal.SIGINT, signal.SIGKILL])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    cases = len(read_spec(options.spec))
    with tempfile.TemporaryDirectory() as name:
        whole, broken = Path(name, "whole.jsonl"), Path(name, "broken.jsonl")
        started = time.perf_counter()
        start(options.spec, whole, options.workers).wait()
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"uninterrupted: {lines_of(whole):,} lines in {time.perf_counter() - started:.0f} s")
        print(f"  {spent.ru_utime + spent.ru_stime:.0f} s of CPU, {whole.stat().st_size:,} bytes")
        for index, number in enumerate(options.signals):
            left = cases - lines_of(broken)
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
