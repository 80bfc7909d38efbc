"""Run many cases on several processes or machines.

Example: locum sweep fuzz.toml -o results.jsonl. SPEC is a TOML file of [[sweep]] sections. Each section
contains a kind of case and its settings, and lists of values define grids. The output file contains one
line of JSON for each result. To continue an interrupted sweep, run the same command again. The exit
code is 1 if a case failed, raised an error, or reached the time limit.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.interface.cli import output as terminal
from locum.interface.cli.options import PATH, limit_option, output_option
from locum.interface.cli.progress import counted, is_quiet
from locum.interface.cli.runner import Part, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.experiments.sweeps import Plan
    from locum.experiments.sweeps import Report as Results

#: Maximum number of failed cases to list. The output file contains all failed cases.
_NAMED = 10


def _read_shard(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard: expected k/n with 1 ≤ k ≤ n, such as 1/4, got {text!r}")
    return int(match[1]), int(match[2])


@make_command("sweep", __doc__)
@click.argument("spec", type=PATH, required=False)
@output_option(text="File to which results are appended.")
@click.option("--workers", type=int, help="Number of worker processes.  [default: one per core]")
@click.option(
    "--shard",
    callback=_read_shard,
    metavar="K/N",
    help="Run only the K-th of N parts of the cases.",
)
@limit_option(None, "Time limit for each case in seconds.")
@click.option("--scheduler", metavar="ADDRESS", help="Address of a Dask scheduler: tcp://host:8786.")
@click.option("--retry", is_flag=True, help="Repeat cases with an error or at the time limit.")
@click.option("--kinds", "only_kinds", is_flag=True, help="List the kinds of cases and their settings.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the number of cases, and stop.")
def command(spec: Path | None, output: Path | None, limit: float | None, **options: Any) -> Report:
    """Run the missing cases of a sweep, or list kinds of cases, or plan the sweep."""
    from locum.experiments import sweeps
    from locum.experiments.sweeps.spec import read_spec

    if options["only_kinds"]:
        return _kinds()
    if spec is None:
        raise InputError("a sweep needs a spec, a TOML file of [[sweep]] sections; --kinds lists kinds")
    if options["scheduler"] is not None:
        if options["workers"] is not None:
            raise InputError(
                "expected --workers or --scheduler, not both: the cluster has its own workers"
            )
        _prepare_cluster()
    cases, shard = read_spec(spec), options["shard"]
    if options["only_plan"]:
        what = sweeps.plan(cases, output, shard=shard, retry=options["retry"])
        return Report(what.to_dict(), lambda: [_size(what, shard)])
    if output is None:
        raise InputError("a sweep needs a file for its results: try -o results.jsonl, or --plan")

    def begin(what: Plan) -> None:
        if not is_quiet():
            terminal.say(_size(what, shard))
            terminal.finish()

    try:
        with counted("sweeping") as advance:
            report = sweeps.run(
                cases,
                output,
                time_limit=limit,
                **{name: options[name] for name in ("workers", "shard", "scheduler", "retry")},
                started=begin,
                progress=lambda done, total, result: advance(done, total, result.kind),
            )
    except KeyboardInterrupt:
        terminal.complain(f"locum: finished results are in {output}; the same command continues")
        raise
    data = {**report.plan.to_dict(), "outcomes": report.outcomes, "output": str(output)}
    return Report(data, lambda: _text(report, output), holds=report.holds)


def _prepare_cluster() -> None:
    """Raise an error if Dask is not installed, and silence the log messages of Dask.

    Locum's own error messages contain the errors of Dask's threads.
    """
    if importlib.util.find_spec("distributed") is None:
        raise InputError("--scheduler needs the package distributed; try pip install 'locum[cluster]'")
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _kinds() -> Report:
    """List the kinds of cases, their settings with defaults, and their named lists of cases."""
    from locum.experiments.sweeps.sweep_kinds import KINDS

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for name, kind in KINDS.items():
            yield name, "", kind.summary, ""
            for title, setting in kind.settings.items():
                default = "" if setting.is_required else json.dumps(setting.default)
                yield "", title, f"{setting.help} ({setting.expected})", default
            if kind.lists:
                yield "", "cases", "a list by its name: " + ", ".join(kind.lists), ""

    return Report(
        {"kinds": {name: kind.to_dict() for name, kind in KINDS.items()}},
        lambda: [terminal.table("kind", "setting", "meaning", "default", rows=rows())],
    )


def _size(what: Plan, shard: tuple[int, int]) -> str:
    """Describe the number of cases, of finished cases and of remaining cases."""
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
        lines.append(f"{what.older:,} results were computed by another version of the source code.")
    if what.gone:
        lines.append(f"{what.gone:,} results belong to deleted files; these cases are run again.")
    if what.foreign:
        lines.append(f"{what.foreign:,} results of other cases or versions in the file are kept.")
    if what.repair:
        lines.append(f"Repaired: {what.repair}.")
    return "\n".join(lines)


def _text(report: Results, target: Path) -> Iterator[Part]:
    """List the first failed cases, and count the outcomes of all cases."""
    bad = [result for result in report.results if result.outcome != "done"]
    for result in bad[:_NAMED]:
        why = str(result.result.get("error", "")).partition("\n")[0]
        settings = " ".join(f"{name}={value}" for name, value in result.settings.items())
        yield f"{result.outcome}: {result.kind} {settings}"[:200] + (f": {why}" if why else "")
    if len(bad) > _NAMED:
        yield f"… and {len(bad) - _NAMED:,} more"
    counts = (f"{count:,} {outcome}" for outcome, count in report.outcomes.items() if count)
    yield f"{', '.join(counts) or 'nothing to do'}: {target}"
