"""Run the cases of a specification: ``python -m locum.experiments.sweeps SPEC -o results.jsonl``.

SPEC is a TOML file of [[sweep]] sections. Each section contains a kind of case and its settings, and
lists of values define grids. The output file contains one line of JSON for each result. To continue an
interrupted sweep, run the same command again. The exit code is 1 if a case failed, raised an error, or
reached the time limit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from locum.errors import LocumError
from locum.experiments.sweeps.spec import read_spec
from locum.experiments.sweeps.sweep_case import Result
from locum.experiments.sweeps.sweep_kinds import KINDS
from locum.experiments.sweeps.sweep_runner import Report, has_no_value, run

#: Maximum number of failed cases to list. The output file contains all failed cases.
_NAMED = 10
#: The exit code of a program that Ctrl-C has stopped.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing cases of a sweep, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        report = run(
            read_spec(options.spec),
            options.output,
            workers=options.workers,
            time_limit=options.limit,
            shard=options.shard,
            scheduler=options.scheduler,
            again=has_no_value if options.retry else lambda result: False,
            progress=_show if sys.stderr.isatty() else None,
        )
    except LocumError as error:
        sys.stderr.write(f"sweep: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(
            f"sweep: interrupted; finished results are in {options.output}, and the same command "
            "continues\n"
        )
        return _INTERRUPTED
    sys.stdout.write(_describe(report, options.output))
    return 0 if report.holds else 1


def _parser() -> argparse.ArgumentParser:
    kinds = "".join(
        f"  {name}: {kind.summary}\n"
        + "".join(f"    {title}: {setting.help}\n" for title, setting in kind.settings.items())
        for name, kind in KINDS.items()
    )
    parser = argparse.ArgumentParser(
        prog="python -m locum.experiments.sweeps",
        description=__doc__,
        epilog=f"kinds of cases and their settings:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spec", metavar="SPEC", help="TOML file of [[sweep]] sections")
    parser.add_argument("-o", "--output", required=True, help="file to which results are appended")
    parser.add_argument("--workers", type=int, help="number of processes; default: one per core")
    parser.add_argument("--limit", type=float, help="time limit of a case in seconds")
    parser.add_argument(
        "--shard", type=_read_shard, default=(1, 1), metavar="K/N", help="run the K-th of N parts"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler, such as tcp://host:8786"
    )
    parser.add_argument(
        "--retry", action="store_true", help="repeat cases with an error or at the time limit"
    )
    return parser


def _read_shard(text: str) -> tuple[int, int]:
    k, _, n = text.partition("/")
    return int(k), int(n)


def _show(done: int, total: int, result: Result) -> None:
    sys.stderr.write(f"\r{done:,} of {total:,} cases" + "\n" * (done == total))


def _describe(report: Report, output: str) -> str:
    """List the first failed cases, and count the outcomes of all cases."""
    bad = [result for result in report.results if result.outcome != "done"]
    lines = []
    for result in bad[:_NAMED]:
        why = str(result.result.get("error", "")).partition("\n")[0]
        settings = " ".join(f"{name}={value}" for name, value in result.settings.items())
        lines.append(f"{result.outcome}: {result.kind} {settings}"[:200] + (f": {why}" if why else ""))
    if len(bad) > _NAMED:
        lines.append(f"… and {len(bad) - _NAMED:,} more")
    if report.older:
        lines.append(f"{report.older:,} results were computed by another version of the source code.")
    counts = (f"{count:,} {outcome}" for outcome, count in report.outcomes.items() if count)
    lines.append(f"{', '.join(counts) or 'nothing to do'} ({report.known:,} known before): {output}")
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
