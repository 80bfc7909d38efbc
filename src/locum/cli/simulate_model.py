"""Run a pretrained model of the transformers library on U, and compare it with eager execution.

FOLDER has a configuration, a tokenizer and weights as safetensors. The texts run as one batch, and the
model as one RASP program. With --generate, the model continues the texts, or writes others if it has an
encoder and a decoder. The exit code is 1 if the results differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.cli import output
from locum.cli.archives import npz
from locum.cli.options import PATH, json_option
from locum.cli.progress import loading, progress
from locum.errors import InputError, LocumError
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.torch.pretrained import Pretrained
    from locum.torch.usage_report import Report


@click.command("simulate", help=__doc__)
@click.option("--model", "folder", required=True, type=PATH, metavar="FOLDER", help="The folder.")
@click.option("--text", "texts", multiple=True, required=True, help="A text; may be repeated.")
@click.option("--generate", "generates", is_flag=True, help="Generate text with the model.")
@click.option(
    "--max-new-tokens", type=click.IntRange(1), help="With --generate.  [default: 20, or the model's]"
)
@click.option("--do-sample", is_flag=True, help="With --generate: sample tokens.")
@click.option("--num-beams", type=click.IntRange(1), help="With --generate: search with beams.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Of the random numbers.",
)
@click.option("--dtype", help="float64, float32, bfloat16 or float16.  [default: the model's]")
@click.option("--executor", default="fast", show_default=True, help="fast, dense or heads.")
@click.option("--host", default="allowed", show_default=True, help="allowed or forbidden.")
@click.option("--compare/--no-compare", default=True, help="With eager execution, or not.")
@click.option("--html", type=PATH, help="Write a page with the attention patterns.")
@click.option("--save", type=PATH, help="Write the results to this .npz file.")
@json_option
def command(folder: Path, texts: tuple[str, ...], html: Path, save: Path, **options: Any) -> None:
    """Run a model on texts."""
    from locum.torch.backend import read_options

    check_target(html)
    check_target(save)
    if save is not None and save.suffix != ".npz":
        raise InputError(f"--save: expected a .npz file, got {save}")
    read_options({name: options[name] for name in ("executor", "host")}, None)
    of_generation = ("max_new_tokens", "do_sample", "num_beams")
    if not options["generates"]:
        given = [f"--{name.replace('_', '-')}" for name in of_generation if options[name]]
        if given:
            raise InputError(f"{', '.join(given)}: expected --generate beside it")
    elif html is not None:
        raise InputError("--html: expected no --generate beside it; try locum.torch.record in Python")
    if options["generates"]:
        _generate(folder, texts, save=save, **options)
    else:
        _run(folder, texts, html=html, save=save, **options)


def _load(folder: Path, options: dict[str, Any]) -> Pretrained:
    from transformers.utils.logging import disable_progress_bar

    from locum.torch.pretrained import load_pretrained

    disable_progress_bar()  # type: ignore[no-untyped-call]  # the command has its own
    with loading(quiet=options["as_json"]):
        return load_pretrained(folder, generates=options["generates"], dtype=options["dtype"])


def _compile(model: Any, options: dict[str, Any]) -> None:
    import torch

    from locum.torch.simulation import MOST_GRAPHS

    torch.manual_seed(options["seed"])
    chosen = {name: options[name] for name in ("executor", "host")}
    modules = [model]
    if options["generates"] and model.config.is_encoder_decoder:
        modules.append(model.get_encoder())  # generate calls it directly
    for module in modules:
        module.compile(backend="locum", fullgraph=True, recompile_limit=MOST_GRAPHS, options=chosen)


@contextmanager
def _errors_of_the_library() -> Iterator[None]:
    """Turn errors of the library about inputs, such as texts that are too long, into bad input."""
    try:
        yield
    except LocumError:
        raise
    except Exception as error:
        problem = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            "--model: expected texts and options that the model accepts, got an error of the library: "
            f"{type(error).__name__}: {problem}"
        ) from error


def _warn_of_missing(loaded: Pretrained) -> None:
    """Say that parameters are not in the folder."""
    if loaded.missing:
        names = ", ".join(loaded.missing[:3]) + (", …" if len(loaded.missing) > 3 else "")
        count = len(loaded.missing)
        output.say(f"warning        {count} parameters are not in the folder and are random: {names}")


# Forward passes -------------------------------------------------------------------------------------


def _run(
    folder: Path, texts: tuple[str, ...], *, html: Path | None, save: Path | None, **options: Any
) -> None:
    """Run one forward pass, print what came of it, and exit with 1 if it differs from eager's."""
    import torch

    import locum.torch
    from locum.torch.simulation import TOLERANCES, list_tensors, measure_difference

    loaded = _load(folder, options)
    inputs: dict[str, Any] = loaded.encode(texts)
    if loaded.is_encoder_decoder:
        start = loaded.model.config.decoder_start_token_id
        inputs["decoder_input_ids"] = torch.full((len(texts), 1), start or 0)
    with torch.no_grad(), progress(2, "passes", quiet=options["as_json"]) as advance:
        with _errors_of_the_library():
            expected = list_tensors(loaded.model(**inputs)) if options["compare"] else {}
        advance("the eager pass")
        _compile(loaded.model, options)
        with locum.torch.record("*") if html is not None else _nothing() as recorded:
            with _errors_of_the_library():
                found = list_tensors(loaded.model(**inputs))
            advance("the pass on U")
        started = time.perf_counter()
        if html is None:
            loaded.model(**inputs)
        seconds = time.perf_counter() - started
    differences = {name: measure_difference(value, found[name]) for name, value in expected.items()}
    allowed = {name: TOLERANCES.get(value.dtype, 0.0) for name, value in expected.items()}
    report = locum.torch.report(loaded.model)
    if save is not None:
        arrays = {name: value.double().numpy() for name, value in found.items()}
        write_file(save, npz(arrays))
    if html is not None:
        from locum.display.model_page import model_page

        patterns = recorded.patterns if recorded is not None else {}
        write_file(html, model_page(loaded, texts, inputs, patterns, report, differences))
    holds = all(differences[name] <= allowed[name] for name in differences)
    summary = {
        "model": folder.name,
        "missing_weights": list(loaded.missing),
        "texts": [
            {"text": text, "tokens": int(mask.sum())}
            for text, mask in zip(texts, _mask(inputs), strict=True)
        ],
        "outputs": {name: list(value.shape) for name, value in found.items()},
        "differences": differences if options["compare"] else None,
        "holds": holds if options["compare"] else None,
        "seconds": seconds if html is None else None,
        "report": report.to_dict(),
    }
    if options["as_json"]:
        output.print_json(summary)
    else:
        _print(summary, report)
        _warn_of_missing(loaded)
        output.say_written("Saved in", html, save)
    if not holds:
        raise click.exceptions.Exit(1)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def _mask(inputs: dict[str, Any]) -> Any:
    ids = inputs["input_ids"]
    return inputs.get("attention_mask", ids.new_ones(ids.shape))


def _print(summary: dict[str, Any], report: Report) -> None:
    """Print the shapes of the outputs, their differences, and what ran on U."""
    from rich.table import Table

    output.print_title(f"{summary['model']} on U")
    compared = summary["differences"] is not None
    table = Table("output", "shape", *(["difference from eager"] if compared else []))
    rows = [
        [
            name,
            " × ".join(map(str, shape)),
            *([f"{summary['differences'][name]:.1e}"] if compared else []),
        ]
        for name, shape in summary["outputs"].items()
    ]
    output.show(output.add_rows(table, rows))
    if summary["seconds"] is not None:
        output.say(f"Time of a pass on U, without planning: {summary['seconds'] * 1e3:.1f} ms.")
    _print_report(report)


def _print_report(report: Report) -> None:
    """Print the first lines of a report: what ran, without the list of operations."""
    for line in str(report).splitlines():
        if line.startswith("on U"):
            break
        output.say(line)
    for warning in report.warnings:
        output.say(f"warning        {warning}")


# Generation -----------------------------------------------------------------------------------------


def _generate(folder: Path, texts: tuple[str, ...], *, save: Path | None, **options: Any) -> None:
    """Generate text, print it, and exit with 1 if it is not eager's."""
    import torch

    import locum.torch

    if save is not None:
        raise InputError("--save: expected no --generate beside it; try --json")
    loaded = _load(folder, options)
    inputs = loaded.encode(texts, pad_left=not loaded.is_encoder_decoder)
    settings: dict[str, Any] = {"disable_compile": True}
    for name in ("max_new_tokens", "num_beams"):
        if options[name] is not None:
            settings[name] = options[name]
    if "max_new_tokens" not in settings and loaded.model.generation_config.max_new_tokens is None:
        settings["max_new_tokens"] = 20
    if options["do_sample"]:
        settings["do_sample"] = True
    if getattr(loaded.model, "_can_compile_fullgraph", False):
        settings["cache_implementation"] = "static"  # one program for all new tokens
    most = settings.get("max_new_tokens") or loaded.model.generation_config.max_new_tokens
    passes = most * (2 if options["compare"] else 1)
    with torch.no_grad(), progress(passes, "tokens", quiet=options["as_json"]) as advance:
        expected = None
        if options["compare"]:
            torch.manual_seed(options["seed"])
            with _errors_of_the_library():
                expected = loaded.model.generate(**inputs, **settings, **_counting(advance))
        _compile(loaded.model, options)
        started = time.perf_counter()
        with _errors_of_the_library():
            found = loaded.model.generate(**inputs, **settings, **_counting(advance))
        seconds = time.perf_counter() - started
    report = locum.torch.report(loaded.model)
    same = None if expected is None else torch.equal(expected, found)
    skipped = 0 if loaded.is_encoder_decoder else inputs["input_ids"].shape[1]
    texts = tuple(text for text in texts for _ in range(len(found) // len(texts)))
    written = loaded.tokenizer.batch_decode(found[:, skipped:], skip_special_tokens=True)
    whole = loaded.tokenizer.batch_decode(found, skip_special_tokens=True)
    summary = {
        "model": folder.name,
        "missing_weights": list(loaded.missing),
        "texts": [
            {"text": text, "generated": new, "ids": ids.tolist()}
            for text, new, ids in zip(texts, written, found[:, skipped:], strict=True)
        ],
        "same_as_eager": same,
        "seconds": seconds,
        "report": report.to_dict(),
    }
    if options["as_json"]:
        output.print_json(summary)
    else:
        output.print_title(f"{folder.name} generates on U")
        for text in whole:
            output.say(text)
        _warn_of_missing(loaded)
        if same is not None:
            output.say(f"Eager execution generates {'the same' if same else 'other'} tokens.")
        output.say(f"Time on U, planning included: {seconds:.1f} s.")
        _print_report(report)
    if same is False:
        raise click.exceptions.Exit(1)


def _counting(advance: Any) -> dict[str, Any]:
    """Return an argument of ``generate`` that calls ``advance`` for each new token."""
    from transformers import LogitsProcessorList

    def count(ids: Any, scores: Any) -> Any:
        advance("a token")
        return scores

    return {"logits_processor": LogitsProcessorList([count])}
