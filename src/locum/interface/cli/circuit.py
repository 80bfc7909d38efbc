"""Check whether a trained model computes a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError
from locum.files import read_json, read_text
from locum.interface.cli import output as terminal
from locum.interface.cli.options import PATH, choice, name_option, output_option, read_input
from locum.interface.cli.programs import Program, complete_program
from locum.interface.cli.runner import Group, Part, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.experiments.circuits.hypothesis import HypothesisReport

#: Positions of the model's answers (``hypothesis_examples.ANSWERS``).
ANSWERS = ("each", "last", "first", "generated")
#: Maximum size of a file of inputs or of tokens in bytes.
_LIMIT = 2**27

command = Group("circuit", help=__doc__, usual="check")


@make_command("check", group=command)
@click.argument("model", type=PATH)
@click.argument("program", type=PATH, shell_complete=complete_program)
@name_option
@click.option("--inputs", type=PATH, help="Inputs: a .json, .jsonl or .txt file (one per line).")
@click.option(
    "--input", "texts", multiple=True, metavar="TOKENS",
    help='Input: abc, or JSON (["a", "b"]); may be repeated.',
)  # fmt: skip
@click.option("--text", "is_text", is_flag=True, help="Encode inputs as texts with the tokenizer.")
@choice("--answers", ANSWERS, "Positions at which the model answers.", "each")
@click.option("--vocabulary", type=PATH, help="JSON file that maps tokens to token ids.")
@click.option("--labels", type=PATH, help="JSON file that maps answers to classes.")
@click.option("--prefix", help="Token ids before each input: 0,1.  [default: tokenizer's]")
@click.option("--suffix", help="Token ids after each input: 0,1.  [default: tokenizer's]")
@click.option(
    "--agreement", type=float, default=1.0, show_default=True, help="Minimum fraction of equal answers."
)
@click.option("--interventions", type=float, help="Minimum fraction of interventions that agree.")
@click.option("--on-u", is_flag=True, help="Also run the model on U, and compare the outputs.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@output_option(".html", ".json", multiple=True, text="File for the report; may be repeated.")
def check(model: Path, program: Path, output: tuple[Path, ...], **options: Any) -> Report:
    """Check the hypothesis that MODEL computes PROGRAM.

    MODEL is a folder written by transformers or by `locum compile`. The report contains the agreement
    of answers, the shortest counterexamples and the best matching heads for selectors. For s-ops, it
    contains linear probes and interchange interventions. The exit code is 1 if the hypothesis does not
    hold.
    """
    from locum.experiments.circuits.hypothesis import check_hypothesis
    from locum.interface.display.hypothesis_page import hypothesis_page

    inputs = _inputs(options["inputs"], options["texts"], is_text=options["is_text"])
    source = Program(program, "a")
    name, sop = source.sop(options["name"])
    loaded, tokenizer = _load(model)
    report = check_hypothesis(
        loaded,
        sop,
        inputs,
        tokenizer=tokenizer,
        vocabulary=_table(options["vocabulary"], "--vocabulary"),
        labels=_table(options["labels"], "--labels"),
        answers=options["answers"],
        prefix=_ids(options["prefix"], "--prefix"),
        suffix=_ids(options["suffix"], "--suffix"),
        text=options["is_text"],
        agreement=options["agreement"],
        interventions=options["interventions"],
        on_u=options["on_u"],
        names=source.names(),
        seed=options["seed"],
    )
    title = f"{model.name}: {name}"
    files: dict[Path | None, Any] = {
        path: hypothesis_page(report, title)
        if path.suffix == ".html"
        else json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n"
        for path in output
    }
    return Report(report.to_dict(), lambda: _text(report, title), holds=report.holds, files=files)


def _load(folder: Path) -> tuple[Any, Any]:
    """Return the model in ``folder`` and its tokenizer, which is None for compiled transformers."""
    from locum.networks.transformer import load

    config = folder / "config.json"
    if not config.is_file():
        raise InputError(
            f"MODEL: expected a folder with config.json, got {folder}; "
            "try model.save_pretrained(folder)"
        )
    data = read_json(config, _LIMIT)
    if isinstance(data, dict) and str(data.get("format", "")).startswith("locum"):
        return load(folder), None
    from transformers.utils.logging import disable_progress_bar

    from locum.torch.pretrained import load_pretrained

    disable_progress_bar()  # type: ignore[no-untyped-call]  # the command shows its own progress line
    found = load_pretrained(folder, answers=True)
    return found.model, found.tokenizer


def _inputs(path: Path | None, texts: tuple[str, ...], *, is_text: bool) -> list[Any]:
    """Return the inputs given on the command line, followed by the inputs in the file ``path``."""
    entries = [text if is_text else read_input(text) for text in texts]
    if path is None:
        if not entries:
            raise InputError("expected --inputs or --input, got none; try --inputs inputs.txt")
        return entries
    if path.suffix == ".json":
        data = read_json(path, _LIMIT)
        if not isinstance(data, list):
            raise InputError(
                f"{path}: expected a list of inputs, got {type(data).__name__}; try [[1, 2], [2, 1]]"
            )
        return entries + data
    lines = [line for line in read_text(path, _LIMIT).splitlines() if line.strip()]
    if path.suffix == ".jsonl":
        return entries + [_line(path, number, line) for number, line in enumerate(lines, start=1)]
    return entries + [line if is_text else read_input(line, str(path)) for line in lines]


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError(
            f'{path}, line {number}: expected JSON, got {line[:40]!r} ({error}); try ["a", "b"]'
        ) from None


def _table(path: Path | None, option: str) -> Mapping[str, int] | None:
    """Return a mapping from names to integers from a JSON file, or None without a file."""
    if path is None:
        return None
    data = read_json(path, _LIMIT)
    if not isinstance(data, dict) or not all(type(number) is int for number in data.values()):
        raise InputError(
            f'{option}: expected a JSON object of integers in {path}; try {{"a": 5, "b": 6}}'
        )
    return data


def _ids(text: str | None, option: str) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(
            f"{option}: expected token ids with commas, got {text!r}; try {option} 0,1"
        ) from None


def _text(report: HypothesisReport, title: str) -> Iterator[Part]:
    from locum.interface.display.hypothesis_page import layer_name, verdict

    yield terminal.title(title)
    yield verdict(report)
    if report.counterexamples:
        rows = [
            [" ".join(map(str, one.tokens)), str(one.position), str(one.model), str(one.program)]
            for one in report.counterexamples
        ]
        yield terminal.table("shortest counterexamples", "position", "model", "program", rows=rows)
    if report.heads:
        rows = [
            [head.label, f"{head.layer}.{head.head}", f"{head.distance:.3f}", f"{head.uniform:.3f}"]
            for head in report.heads
        ]
        yield terminal.table("selector", "layer.head", "distance", "of uniform attention", rows=rows)
    if report.probes:
        rows = [
            [probe.label, layer_name(probe.layer), f"{probe.accuracy:.3f}", f"{probe.embeddings:.3f}"]
            for probe in report.probes
        ]
        yield terminal.table("s-op", "best probe", "held out", "of embeddings", rows=rows)
    if report.interventions:
        rows = [
            [
                part.label,
                layer_name(part.layer),
                str(part.pairs),
                f"{part.agreement:.1%}",
                f"{part.random:.1%}",
            ]
            for part in report.interventions
        ]
        yield terminal.table("s-op", "interchanged", "pairs", "agree", "random directions", rows=rows)
    for note in report.notes:
        yield f"note: {note}"
