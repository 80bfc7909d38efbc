"""Verify the certificate that `locum prove … --certificate FILE` wrote, without the prover.

FILE is a proof, or a refutation by numbers. A separate process with limits on time and memory checks
the file. The command prints what the file shows. Exit code 1 if the file is rejected.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.errors import InputError
from locum.files import open_file, parse_json

#: The most bytes of a certificate.
LIMIT = 2**25
#: What the separate process runs.
_SCRIPT = "from locum.cli.check import check_in_limits; check_in_limits()"
#: The exit code of the separate process if its memory limit is reached.
_NO_MEMORY = 3


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
    """Check a file in a process with limits; returns whether it is accepted, and why or what.

    This process opens the file and does not read it: the other process does, within its limits.
    """
    command_line = [sys.executable, "-c", _SCRIPT, str(seconds), str(megabytes)]
    try:
        # The limit of CPU time ends the process; the timeout is for systems without such a limit.
        with open_file(file, LIMIT) as content:
            done = subprocess.run(
                command_line,
                stdin=content,
                capture_output=True,
                check=False,
                timeout=20 * seconds + 60,
            )
    except subprocess.TimeoutExpired:
        return {"accepted": False, "problem": f"it takes more than {seconds} s; try --seconds N"}
    if done.returncode == 0:
        result: dict[str, Any] = json.loads(done.stdout)
        if "unreadable" in result:
            raise InputError(f"cannot read {file}: {result['unreadable']}")
        return result
    if done.returncode > 0 and done.returncode != _NO_MEMORY and b"MemoryError" not in done.stderr:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    limits = f"it takes more than {seconds} s of CPU time or {megabytes} MB of memory"
    return {"accepted": False, "problem": f"{limits}; try --seconds N or --megabytes N"}


def check_in_limits() -> None:
    """Set the limits of this process, check its standard input, and print the result as JSON."""
    # Imports are not part of the work that the limits are for.
    import locum.verification.checking  # noqa: F401

    _limit_process(*map(int, sys.argv[1:]))
    try:
        # ASCII, in every locale.
        sys.stdout.buffer.write(json.dumps(_check(sys.stdin.buffer)).encode("ascii"))
    except MemoryError:
        sys.exit(_NO_MEMORY)


def _check(file: IO[bytes]) -> dict[str, Any]:
    """Read and check a file."""
    from locum.verification import RejectedError, check

    try:
        content = file.read(LIMIT + 1)
        if len(content) > LIMIT:  # a file whose size the system does not know, or that grows
            raise InputError(f"it has more than {LIMIT:,} bytes")
        verified = check(parse_json(content))
    except RejectedError as problem:
        return {"accepted": False, "problem": str(problem)}
    except InputError as problem:
        return {"unreadable": str(problem)}
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
    return result


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
