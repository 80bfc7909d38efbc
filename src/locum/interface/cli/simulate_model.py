"""Run a pretrained model of the transformers library on U, and compare it with eager execution.

FOLDER contains a configuration, a tokenizer and weights as safetensors. The texts run as one batch, and
a forward pass is one RASP program. With --generate, the model continues the texts as prompts. The exit
code is 1 if the results differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from locum.errors import InputError, LocumError
from locum.interface.cli import output as terminal
from locum.interface.cli.archives import npz
from locum.interface.cli.options import PATH, choice, output_option
from locum.interface.cli.progress import progress
from locum.interface.cli.runner import Part, Report
from locum.interface.cli.runner import command as make_command

if TYPE_CHECKING:
    from locum.torch.pretrained import Pretrained
    from locum.torch.usage_report import Report as Usage

DTYPES = ("float64", "float32", "bfloat16", "float16")


@make_command("simulate", __doc__)
@click.option(
    "--model", "folder", required=True, type=PATH, metavar="FOLDER", help="Folder of the model."
)
@click.option("--text", "texts", multiple=True, required=True, help="Input text; may be repeated.")
@click.option("--generate", "generates", is_flag=True, help="Generate text with the model.")
@click.option(
    "--max-new-tokens",
    type=click.IntRange(1),
    help="Maximum number of new tokens.  [default: model's value, else 20]",
)
@click.option("--do-sample", is_flag=True, help="Sample new tokens (with --generate).")
@click.option(
    "--num-beams", type=click.IntRange(1), help="Number of beams for beam search (with --generate)."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Random seed."
)
@choice("--dtype", DTYPES, "Data type.  [default: as saved]")
@choice("--executor", ["fast", "dense", "heads"], "Executor that runs U.", "fast")
@choice(
    "--host", ["allowed", "forbidden"], "Whether PyTorch may compute tables of positions.", "allowed"
)
@click.option("--compare/--no-compare", default=True, help="Compare the results with eager execution.")
@output_option(
    ".npz",
    ".html",
    multiple=True,
    text="File for outputs or attention patterns; may be repeated.",
)
def command(folder: Path, texts: tuple[str, ...], output: tuple[Path, ...], **options: Any) -> Report:
    """Run a forward pass of the model on the texts, or generate text."""
    if options["generates"]:
        if output:
            raise InputError("--output: expected no --generate with it; try --json")
        return _generate(folder, texts, options)
    of_generation = ("max_new_tokens", "do_sample", "num_beams")
    given = [f"--{name.replace('_', '-')}" for name in of_generation if options[name]]
    if given:
        raise InputError(f"{', '.join(given)}: expected --generate with it")
    return _run(folder, texts, output, options)


def _load(folder: Path, options: dict[str, Any]) -> Pretrained:
    from transformers.utils.logging import disable_progress_bar

    from locum.torch.pretrained import load_pretrained

    disable_progress_bar()  # type: ignore[no-untyped-call]  # the command shows its own progress line
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
    """Convert errors of the transformers library, for example for long texts, to ``InputError``."""
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


def _report_text(loaded: Pretrained, usage: Usage) -> Iterator[str]:
    """Yield the summary lines of a usage report and its warnings, without the list of operations."""
    for line in str(usage).splitlines():
        if line.startswith("on U"):
            break
        yield line
    for warning in usage.warnings:
        yield f"warning        {warning}"
    if loaded.missing:
        names = ", ".join(loaded.missing[:3]) + (", …" if len(loaded.missing) > 3 else "")
        count = len(loaded.missing)
        yield f"warning        {count} parameters are not in the folder and are random: {names}"


# Forward passes -------------------------------------------------------------------------------------


def _run(
    folder: Path, texts: tuple[str, ...], output: tuple[Path, ...], options: dict[str, Any]
) -> Report:
    """Run a forward pass on U, and compare its outputs with eager execution, if requested.

    Without an HTML page, the pass runs twice to measure its time.
    """
    import torch

    import locum.torch
    from locum.torch.simulation import TOLERANCES, list_tensors, measure_difference

    has_page = any(path.suffix == ".html" for path in output)
    loaded = _load(folder, options)
    inputs: dict[str, Any] = loaded.encode(texts)
    if loaded.is_encoder_decoder:
        start = loaded.model.config.decoder_start_token_id
        inputs["decoder_input_ids"] = torch.full((len(texts), 1), start or 0)
    with torch.no_grad(), progress(2) as advance:
        with _errors_of_the_library():
            expected = list_tensors(loaded.model(**inputs)) if options["compare"] else {}
        advance("the eager pass")
        _compile(loaded.model, options)
        with locum.torch.record("*") if has_page else nullcontext() as recorded:
            with _errors_of_the_library():
                found = list_tensors(loaded.model(**inputs))
            advance("the pass on U")
        started = time.perf_counter()
        if not has_page:
            loaded.model(**inputs)
        seconds = time.perf_counter() - started
    differences = {name: measure_difference(value, found[name]) for name, value in expected.items()}
    allowed = {name: TOLERANCES.get(value.dtype, 0.0) for name, value in expected.items()}
    usage = locum.torch.report(loaded.model)
    files: dict[Path | None, Any] = {}
    for path in output:
        if path.suffix == ".npz":
            files[path] = npz({name: value.double().numpy() for name, value in found.items()})
        else:
            from locum.interface.display.model_page import model_page

            patterns = recorded.patterns if recorded is not None else {}
            files[path] = model_page(loaded, texts, inputs, patterns, usage, differences)
    holds = all(differences[name] <= allowed[name] for name in differences)
    ones = torch.ones_like(inputs["input_ids"])
    summary = {
        "name": folder.name,
        "missing_weights": list(loaded.missing),
        "texts": [
            {"text": text, "tokens": int(mask.sum())}
            for text, mask in zip(texts, inputs.get("attention_mask", ones), strict=True)
        ],
        "outputs": {name: list(value.shape) for name, value in found.items()},
        "differences": differences if options["compare"] else None,
        "holds": holds if options["compare"] else None,
        "seconds": None if has_page else seconds,
        "report": usage.to_dict(),
    }
    return Report(summary, lambda: _text(summary, loaded, usage), holds=holds, files=files)


def _text(summary: dict[str, Any], loaded: Pretrained, usage: Usage) -> Iterator[Part]:
    """Format the shapes of the outputs, their differences, and the usage of U."""
    yield terminal.title(f"{summary['name']} on U")
    differences = summary["differences"]
    titles = ("output", "shape", *(["difference from eager"] if differences is not None else []))
    rows = [
        [name, " × ".join(map(str, shape)), *([f"{differences[name]:.1e}"] if differences else [])]
        for name, shape in summary["outputs"].items()
    ]
    yield terminal.table(*titles, rows=rows)
    if summary["seconds"] is not None:
        yield f"Time of a pass on U, without planning: {summary['seconds'] * 1e3:.1f} ms."
    yield from _report_text(loaded, usage)


# Generation -----------------------------------------------------------------------------------------


def _generate(folder: Path, texts: tuple[str, ...], options: dict[str, Any]) -> Report:
    """Generate text on U, and compare the tokens with eager execution, if requested."""
    import torch

    import locum.torch

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
    with torch.no_grad():
        expected = None
        if options["compare"]:
            torch.manual_seed(options["seed"])
            with _errors_of_the_library():
                expected = loaded.model.generate(**inputs, **settings)
        _compile(loaded.model, options)
        started = time.perf_counter()
        with _errors_of_the_library():
            found = loaded.model.generate(**inputs, **settings)
        seconds = time.perf_counter() - started
    usage = locum.torch.report(loaded.model)
    same = None if expected is None else torch.equal(expected, found)
    skipped = 0 if loaded.is_encoder_decoder else inputs["input_ids"].shape[1]
    texts = tuple(text for text in texts for _ in range(len(found) // len(texts)))
    written = loaded.tokenizer.batch_decode(found[:, skipped:], skip_special_tokens=True)
    whole = loaded.tokenizer.batch_decode(found, skip_special_tokens=True)
    summary = {
        "name": folder.name,
        "missing_weights": list(loaded.missing),
        "texts": [
            {"text": text, "generated": new, "ids": ids.tolist()}
            for text, new, ids in zip(texts, written, found[:, skipped:], strict=True)
        ],
        "same_as_eager": same,
        "seconds": seconds,
        "report": usage.to_dict(),
    }

    def text() -> Iterator[Part]:
        yield terminal.title(f"{folder.name} generates on U")
        yield from whole
        if same is not None:
            yield f"Eager execution generates {'the same' if same else 'other'} tokens."
        yield f"Time on U, including planning: {seconds:.1f} s."
        yield from _report_text(loaded, usage)

    return Report(summary, text, holds=same is not False)
