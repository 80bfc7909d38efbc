"""Verify the certificate that `locum prove … --certificate FILE` wrote, without the prover.

FILE is a proof, or a refutation by numbers. A separate process with limits on time and memory checks
the file. The command prints what the file shows. Exit code 1 if the file is rejected.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.files import read_json

#: The most bytes of a certificate.
LIMIT = 2**25
#: What the separate process runs.
_SCRIPT = "from locum.cli.check import check_in_limits; check_in_limits()"


@click.command("check", help=__doc__)
@click.argument("file", type=PATH)
@click.option(
    "--seconds", type=click.IntRange(1), default=60, show_default=True, help="CPU time limit."
)
@click.option(
    "--megabytes", type=click.IntRange(1), default=1_000, show_default=True, help="Memory limit."
)
@json_option
def command(file: Path, seconds: int, megabytes: int, as_json: bool) -> None:
    """Check a certificate and print whether it is accepted, and what it shows."""
    read_json(file, LIMIT)
    result = run_check(file, seconds, megabytes)
    problem = result.pop("problem", None)
    if as_json:
        output.print_json(result if result["accepted"] else {**result, "problem": problem})
    elif result["accepted"]:
        proven, owner, cases = result["shows"] == "proof", result["claim"], result["cases"]
        output.say(f"Accepted: {'' if proven else 'it is not true that '}{result['statement']}")
        output.say(f"(P is the program of {owner or 'the file'}, SHA-256 {result['program']})")
        output.say(f"({cases:,} case{'' if cases == 1 else 's'} checked)" if proven else f"({problem})")
    else:
        output.say(f"Rejected: {problem}")
    if not result["accepted"]:
        raise click.exceptions.Exit(1)


def run_check(file: Path, seconds: int, megabytes: int) -> dict[str, Any]:
    """Check a file in a process with limits; returns whether it is accepted, and why or what."""
    command_line = [sys.executable, "-c", _SCRIPT, str(file), str(seconds), str(megabytes)]
    try:
        # The limit of CPU time ends the process; the timeout is for systems without such a limit.
        done = subprocess.run(
            command_line, capture_output=True, text=True, check=False, timeout=20 * seconds + 60
        )
    except subprocess.TimeoutExpired:
        return {"accepted": False, "problem": f"it takes more than {seconds} s; try --seconds N"}
    if done.returncode == 0:
        result: dict[str, Any] = json.loads(done.stdout)
        return result
    if done.returncode > 0 and "MemoryError" not in done.stderr:
        raise RuntimeError(done.stderr)
    limits = f"it takes more than {seconds} s of CPU time or {megabytes} MB of memory"
    return {"accepted": False, "problem": f"{limits}; try --seconds N or --megabytes N"}


def check_in_limits() -> None:
    """Set the limits of this process, check a file, and print the result as JSON."""
    from locum.verification import RejectedError, check

    file, seconds, megabytes = sys.argv[1:]
    content = read_json(Path(file), LIMIT)
    _limit_process(int(seconds), int(megabytes))
    try:
        verified = check(content)
    except RejectedError as problem:
        output.print_json({"accepted": False, "problem": str(problem)})
        return
    result = {
        "accepted": True,
        "shows": "proof" if verified.refuted is None else "refutation",
        "claim": verified.title,
        "statement": verified.statement,
        "program": verified.program,
        "cases": verified.cases,
    }
    if verified.refuted is not None:
        result["problem"] = verified.refuted.problem
    output.print_json(result)


def _limit_process(seconds: int, megabytes: int) -> None:
    """Limit the CPU time and the additional memory of this process, where the system supports it."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            in_use = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * 10**6,) * 2)
    except (ImportError, OSError, ValueError):
        return
