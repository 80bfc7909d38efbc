"""Run many cases on processes or machines, into one file: locum sweep fuzz.toml -o results.jsonl.

SPEC is a TOML file of [[sweep]] sections: a kind of case and its settings, of which lists are grids.
Each result is a line of JSON in the file of -o. The same command goes on where an earlier one was
ended. Exit code 1 if a case failed, broke, or reached the time limit.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import counted
from locum.errors import InputError
from locum.files import check_target

if TYPE_CHECKING:
    from locum.sweeps import Plan, Report

#: Cases that did not end well and are named; the file has them all.
_NAMED = 10


def _read_shard(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard: expected k/n with 1 ≤ k ≤ n, such as 1/4, got {text!r}")
    return int(match[1]), int(match[2])


@click.command("sweep", help=__doc__)
@click.argument("spec", type=PATH, required=False)
@click.option("-o", "--output", "target", type=PATH, help="The file of results, appended to.")
@click.option("--workers", type=int, help="Processes.  [default: one for each core]")
@click.option("--shard", callback=_read_shard, metavar="K/N", help="Only the K-th of N equal parts.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="End a case after so long.")
@click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster: tcp://host:8786.")
@click.option("--retry", is_flag=True, help="Again what broke or reached the time limit.")
@click.option("--kinds", "only_kinds", is_flag=True, help="List the kinds of cases and their settings.")
@click.option("--plan", "only_plan", is_flag=True, help="Say how much there is to do, and stop.")
@json_option
def command(
    spec: Path | None,
    target: Path | None,
    workers: int | None,
    shard: tuple[int, int],
    time_limit: float | None,
    scheduler: str | None,
    retry: bool,
    only_kinds: bool,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Run a sweep, or go on with it."""
    from locum import sweeps
    from locum.sweeps.spec import read_spec

    if only_kinds:
        _print_kinds(as_json)
        return
    if spec is None:
        raise InputError("a sweep needs a spec, a TOML file of [[sweep]] sections; --kinds lists kinds")
    cases = read_spec(spec)
    if only_plan:
        what = sweeps.plan(cases, target, shard=shard, retry=retry)
        if as_json:
            output.print_json(what.to_dict())
        else:
            output.say(_size(what, shard))
        return
    if target is None:
        raise InputError("a sweep needs a file for its results: try -o results.jsonl, or --plan")
    if scheduler is not None and workers is not None:
        raise InputError("expected --workers or --scheduler, not both: the cluster has its own workers")
    check_target(target, spec)
    if scheduler is not None:
        # What Dask's own threads have to say of a lost connection is in the error that is raised.
        for name in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    def begin(what: Plan) -> None:
        if not as_json:
            output.say(_size(what, shard))
            output.finish()

    try:
        with counted("sweeping", quiet=as_json) as advance:
            report = sweeps.run(
                cases,
                target,
                workers=workers,
                time_limit=time_limit,
                shard=shard,
                scheduler=scheduler,
                retry=retry,
                started=begin,
                progress=lambda done, total, result: advance(done, total, result.kind),
            )
    except KeyboardInterrupt:
        output.complain(f"locum: what is done is in {target}; the same command goes on from there")
        raise
    if as_json:
        output.print_json({**report.plan.to_dict(), "outcomes": report.outcomes, "output": str(target)})
    else:
        _print(report, target)
    if not report.holds:
        raise click.exceptions.Exit(1)


def _print_kinds(as_json: bool) -> None:
    """List the kinds, their settings with defaults, and the lists of cases that they know."""
    from locum.sweeps.kinds import KINDS

    if as_json:
        output.print_json({"kinds": {name: kind.to_dict() for name, kind in KINDS.items()}})
        return
    from rich.table import Table

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for name, kind in KINDS.items():
            yield name, "", kind.summary, ""
            for title, setting in kind.settings.items():
                default = "" if setting.is_required else json.dumps(setting.default)
                yield "", title, f"{setting.help} ({setting.expected})", default
            if kind.lists:
                yield "", "cases", "a list by its name: " + ", ".join(kind.lists), ""

    output.show(output.add_rows(Table("kind", "setting", "meaning", "default"), rows()))


def _size(what: Plan, shard: tuple[int, int]) -> str:
    """Say how much there is to do."""
    kinds = Counter(case.kind for case in what.cases)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    parts = [f"{len(what.cases):,} cases" + (f" ({counts})" if counts else "")]
    if shard[1] > 1:
        parts.append(f"shard {shard[0]} of {shard[1]}")
    if what.repeated:
        parts.append(f"{what.repeated:,} given more than once")
    parts.append(f"{len(what.cases) - len(what.remaining):,} done before")
    parts.append(f"{len(what.remaining):,} to do")
    lines = ["; ".join(parts) + "."]
    if what.older:
        lines.append(f"{what.older:,} of the results come from another state of the source code.")
    if what.gone:
        lines.append(f"{what.gone:,} results are of files that are gone; those are made again.")
    if what.foreign:
        lines.append(f"{what.foreign:,} results of other cases or versions in the file are left alone.")
    if what.repair:
        lines.append(f"Repaired: {what.repair}.")
    return "\n".join(lines)


def _print(report: Report, target: Path) -> None:
    """Print how many ended how, and which did not end well."""
    bad = [result for result in report.results if result.outcome != "done"]
    for result in bad[:_NAMED]:
        why = str(result.result.get("error", "")).partition("\n")[0]
        settings = " ".join(f"{name}={value}" for name, value in result.settings.items())
        output.say(f"{result.outcome}: {result.kind} {settings}"[:200] + (f": {why}" if why else ""))
    if len(bad) > _NAMED:
        output.say(f"… and {len(bad) - _NAMED:,} more")
    counts = (f"{count:,} {outcome}" for outcome, count in report.outcomes.items() if count)
    output.say(f"{', '.join(counts) or 'nothing to do'}: {target}")
