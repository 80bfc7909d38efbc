"""Prove claims, check certificates and export programs to Coq."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.files import open_file, parse_json
from locum.interface.cli import output
from locum.interface.cli.options import PATH, limit_option, output_option
from locum.interface.cli.progress import counted
from locum.interface.cli.runner import Group, Part, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.paper.findings import Finding
    from locum.proofs.claims.claim import Claim

#: Maximum size of a certificate in bytes.
LIMIT = 2**25
#: Python code that the separate process runs.
_SCRIPT = "from locum.interface.cli.prove import check_in_limits; check_in_limits()"
#: Exit code of the separate process if it reaches its memory limit.
_NO_MEMORY = 3

command = Group("prove", help=__doc__)


def _complete_claim(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the names of claims, and the numbers of errata that can be refuted."""
    from locum.paper.errata import refutable_errata
    from locum.proofs.claims.named import FAMILIES

    return [name for name in [*FAMILIES, *refutable_errata()] if name.startswith(begun)]


def _complete_recipe(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from locum.proofs.claims.named import FAMILIES

    family = FAMILIES.get(str(context.params.get("name")))
    return [name for name in (family.recipes if family else ()) if name.startswith(begun)]


# Claims ---------------------------------------------------------------------------------------------


@make_command("claim", group=command)
@click.argument("name", shell_complete=_complete_claim)
@click.argument("shape", nargs=-1, type=int)
@click.option(
    "--recipe",
    shell_complete=_complete_recipe,
    help="Recipe of the construction.  [default: the first one]",
)
@click.option("--tolerance", type=float, help="Bound below which determinants count as 0 (inverse).")
@limit_option(600.0)
@click.option(
    "--terms",
    type=click.IntRange(1),
    default=200_000,
    show_default=True,
    help="Limit of the number of terms.",
)
@click.option(
    "--megabytes",
    type=click.IntRange(1),
    default=1_500,
    show_default=True,
    help="Memory limit in megabytes.",
)
@output_option(text="File for the certificate (see `locum prove check`).")
def claim(name: str, shape: tuple[int, ...], output: Path | None, **options: Any) -> Report:
    """Prove a claim for all inputs of a shape, or refute it.

    Example: locum prove claim matmul 3 3 4. NAME is a construction, a layer that U simulates, such as
    attention, or the number of an erratum whose printed statement can be refuted, such as E2. The error
    for an unknown NAME lists all names. Before a proof or a refutation is printed, the checker of
    `locum prove check` verifies it. The exit code is 1 if the claim is refuted, or not proven within
    the limits.
    """
    from locum.proofs import Unproven, prove

    with counted("proving") as advance:
        verdict = prove(
            _claim(name, shape, options),
            *shape,
            seconds=options.pop("limit"),
            progress=lambda done, total, cases: advance(done, total, f"{cases} cases"),
            **options,
        )
    if output is None or isinstance(verdict, Unproven):
        return Report(verdict.to_dict(), lambda: [str(verdict)], holds=bool(verdict.holds))
    lines = [str(verdict), f"To check the certificate: {verdict.check_command(output)}"]
    files = {output: json.dumps(verdict.certificate)}
    return Report(verdict.to_dict(), lambda: lines, holds=bool(verdict.holds), files=files)


def _claim(name: str, shape: tuple[int, ...], options: Mapping[str, Any]) -> str | Claim:
    """Return the claim of an erratum, or ``name`` unchanged if it is not an erratum."""
    from locum.paper.errata import ERRATA, refutable_errata
    from locum.proofs.claims.named import FAMILIES

    if name not in ERRATA:
        if name not in FAMILIES:
            names = ", ".join([*FAMILIES, *refutable_errata()])
            raise InputError(f"expected the name of a claim, got {name!r}; try one of {names}")
        return name
    if shape or options["recipe"] or options["tolerance"] is not None:
        raise InputError(
            f"expected no shape or option with the erratum {name}; try locum prove claim {name}"
        )
    refutable = ERRATA[name].refutable
    if refutable is None:
        numbers = ", ".join(refutable_errata())
        raise InputError(
            f"expected an erratum that can be refuted ({numbers}), got {name}; try locum paper errata"
        )
    return refutable.claim()


@make_command("all", group=command)
@click.option(
    "--all-shapes", "everything", is_flag=True, help="Prove at more shapes, which takes minutes."
)
@output_option(".html", text="File for a page; certificates go into a folder next to it.")
def prove_everything(everything: bool, output: Path | None) -> Report:
    """Prove or refute the paper's claims.

    Claims about programs are proven for all inputs at some shapes, or refuted as printed. A refuted
    claim is corrected, and the correction is proven. Other claims are measured (compared with a direct
    computation on numbers) or counted (heads and layers). The exit code is 1 if a proof, a refutation,
    a measurement or a count fails.
    """
    from locum.paper.findings import prove_all

    with counted("proving") as advance:
        findings = prove_all(everything, advance)
    files: dict[Path | None, Any] = {}
    if output is not None:
        from locum.interface.display.claims import certificates, page

        folder = output.with_name(f"{output.stem}-certificates")
        files = {output: page(findings, folder.name), folder: certificates(findings)}
    return Report(
        {"claims": [finding.claim_dict() for finding in findings]},
        lambda: _claims_text(findings),
        holds=all(finding.holds for finding in findings),
        files=files,
    )


def _claims_text(findings: list[Finding]) -> Iterator[Part]:
    """Yield a table of proofs and refutations, with one row for each item of the paper."""

    def row(finding: Finding) -> tuple[str, ...]:
        proven = [proof.claim.title for proof in finding.proofs if proof.holds]
        unproven = [f"NOT PROVEN: {proof.claim.title}" for proof in finding.proofs if not proof.holds]
        refuted = [f"{number}: {verdict}" for number, verdict in finding.refutations.items()]
        known = "\n".join([", ".join(proven), *unproven, *refuted]).strip()
        spent = sum(v.seconds for v in [*finding.proofs, *finding.refutations.values()])
        theorems = "\n".join(finding.item.theorems)
        return finding.item.paper, ", ".join(finding.status), known, theorems, f"{spent:.1f}"

    titles = ("paper", "status", "all inputs", "all shapes", "seconds")
    yield output.table(*titles, rows=map(row, findings), lines=True)
    if all(finding.holds for finding in findings):
        count = len({proof.statement for finding in findings for proof in finding.proofs})
        yield f"{count} claims proven for all inputs."


@make_command("export", group=command)
@click.argument("name", required=False)
@click.argument("shape", nargs=-1, type=int)
def export(name: str | None, shape: tuple[int, ...]) -> Report:
    """Print the program of a construction as a Coq term.

    Example: locum prove export matmul_fetch 3 3 4. The type of the term is sop, defined in
    proofs/Rasp.v. The theorem is about a Coq definition. `make coq` checks at many shapes
    that the term equals this definition. Without NAME, the command lists the constructions.
    """
    from locum.proofs.coq.coq_text import coq_term
    from locum.proofs.coq.tie_table import BY_NAME, TIES

    if name is None:
        rows = [
            {"name": tie.name, "shape": list(tie.arguments), "theorem": tie.theorem} for tie in TIES
        ]
        return Report(
            {"constructions": rows},
            lambda: [f"{t.name} {' '.join(t.arguments)}: {t.theorem} in proofs/{t.file}" for t in TIES],
        )
    if name not in BY_NAME:
        raise InputError(f"expected one of {', '.join(BY_NAME)}, got {name!r}")
    tie = BY_NAME[name]
    if len(shape) != len(tie.arguments) or min(shape) < 1:
        sizes = " ".join(tie.arguments)
        raise InputError(f"{name}: expected the sizes {sizes}, integers ≥ 1, got {shape}")
    term = coq_term(tie.program(*shape))
    data = {"name": name, "shape": list(shape), "theorem": tie.theorem, "term": term}
    return Report(data, lambda: [term])


# Certificates ---------------------------------------------------------------------------------------


@make_command("check", group=command)
@click.argument("file", type=PATH)
@limit_option(60.0)
@click.option(
    "--megabytes",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    help="Memory limit in megabytes.",
)
def check(file: Path, limit: float, megabytes: int) -> Report:
    """Verify a certificate without the prover.

    FILE is a proof or a refutation written by `locum prove claim … -o FILE`. A separate process with
    limits on time and memory checks the file. The command prints the verified statement. The exit code
    is 1 if the file is rejected.
    """
    result = run_check(file, max(1, round(limit)), megabytes)
    accepted = result["verdict"] == "accepted"
    return Report(result, lambda: _checked_text(result), holds=accepted)


def _checked_text(result: dict[str, Any]) -> Iterator[str]:
    if result["verdict"] == "rejected":
        yield f"Rejected: {result['problem']}"
        return
    proven, owner, cases = result["shows"] == "proof", result["name"], result["cases"]
    yield f"Accepted: {result['statement']}"
    yield f"(P is the program of {owner or 'the file'}, SHA-256 {result['program']})"
    yield f"({cases:,} case{'' if cases == 1 else 's'} checked)" if proven else f"({result['problem']})"


def run_check(file: Path, seconds: int, megabytes: int) -> dict[str, Any]:
    """Check a certificate in a process with limits, and return the verdict as a dictionary.

    The verdict contains the verified statement or the problem. This process only opens the file, and
    the process with limits reads it.
    """
    command_line = [sys.executable, "-c", _SCRIPT, str(seconds), str(megabytes)]
    try:
        # The CPU limit ends the process; the timeout is for systems without such a limit.
        with open_file(file, LIMIT) as content:
            done = subprocess.run(
                command_line,
                stdin=content,
                capture_output=True,
                check=False,
                timeout=20 * seconds + 60,
            )
    except subprocess.TimeoutExpired:
        return {
            "verdict": "rejected",
            "problem": f"it takes more than {seconds} s; try --limit SECONDS",
        }
    if done.returncode == 0:
        result: dict[str, Any] = json.loads(done.stdout)
        if "unreadable" in result:
            raise InputError(f"cannot read {file}: {result['unreadable']}")
        return result
    if done.returncode > 0 and done.returncode != _NO_MEMORY and b"MemoryError" not in done.stderr:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    limits = f"it takes more than {seconds} s of CPU time or {megabytes} MB of memory"
    return {"verdict": "rejected", "problem": f"{limits}; try --limit SECONDS or --megabytes N"}


def check_in_limits() -> None:
    """Limit this process, check the certificate on standard input, and print the result as JSON."""
    # imported before the limits are set
    import locum.paper.errata
    import locum.proofs.file_checking  # noqa: F401

    _limit_process(*map(int, sys.argv[1:]))
    try:
        # Bytes in ASCII do not depend on the locale.
        sys.stdout.buffer.write(json.dumps(_check(sys.stdin.buffer)).encode("ascii"))
    except MemoryError:
        sys.exit(_NO_MEMORY)


def _check(file: IO[bytes]) -> dict[str, Any]:
    """Read and check a certificate, and return the verdict as a JSON-compatible dictionary."""
    from locum.paper.errata import claims_of_the_paper
    from locum.proofs import RejectedError, check

    try:
        content = file.read(LIMIT + 1)
        if len(content) > LIMIT:  # the file has no known size, or grows while it is read
            raise InputError(f"it has more than {LIMIT:,} bytes")
        verified = check(parse_json(content), more=claims_of_the_paper())
    except RejectedError as problem:
        return {"verdict": "rejected", "problem": str(problem)}
    except InputError as problem:
        return {"unreadable": str(problem)}
    result = {
        "verdict": "accepted",
        "shows": "proof" if verified.refuted is None else "refutation",
        "name": verified.title,
        "statement": ("it is not true that " if verified.refuted else "") + verified.statement,
        "program": verified.program,
        "cases": verified.cases,
    }
    return result if verified.refuted is None else result | {"problem": verified.refuted.problem}


def _limit_process(seconds: int, megabytes: int) -> None:
    """Limit CPU time and additional memory of this process, on systems with ``/proc``."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            in_use = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * 10**6,) * 2)
    except (ImportError, OSError, ValueError):
        return
