"""Let a decoder write text on U, token by token, and compare it with transformers' own.

The model is a folder of a decoder (GPT-2, OPT, GPT-NeoX, Llama, Qwen2, Mistral), which continues the
text, or of an encoder and a decoder (T5, BART), which writes another; with its tokenizer.
Greedy text is compared with that of the transformers library, where it is installed: it must be equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from locum.cli import output
from locum.cli.options import PATH, json_option
from locum.cli.progress import loading, progress
from locum.errors import InputError
from locum.files import check_target, write_file

if TYPE_CHECKING:
    from locum.simulators.models.families.generating import Generation


@click.command("generate", help=__doc__)
@click.option("--model", "folder", required=True, metavar="FOLDER", help="The folder.")
@click.option("--text", "texts", required=True, multiple=True, help="A text; may be repeated.")
@click.option(
    "--max-new-tokens",
    type=int,
    help="At most so many.  [default: what the generation config says, else 20]",
)
@click.option("--num-beams", type=int, help="1: greedily, where the generation config asks for beams.")
@click.option("--do-sample", is_flag=True, help="Draw tokens instead of taking the most likely.")
@click.option("--temperature", type=float, default=1.0, show_default=True, help="For --do-sample.")
@click.option("--top-k", type=int, help="Draw from so many of the most likely tokens.")
@click.option("--top-p", type=float, help="Draw from the fewest tokens of this probability.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For --do-sample."
)
@click.option("--dtype", help="float32 or float64.  [default: float32 with torch, else float64]")
@click.option("--compare/--no-compare", default=True, help="With transformers' own text, or not.")
@click.option("--html", type=PATH, help="Write a page: the text, and the attention of each token.")
@json_option
def command(
    folder: str,
    texts: tuple[str, ...],
    max_new_tokens: int | None,
    num_beams: int | None,
    do_sample: bool,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    dtype: str | None,
    compare: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Generate text."""
    from locum.simulators.models.families.generating import generate, read_request
    from locum.simulators.models.families.running import Model
    from locum.simulators.models.reference import reference_text

    check_target(html)
    if max_new_tokens is not None and max_new_tokens < 1:
        raise InputError(f"--max-new-tokens: expected a positive integer, got {max_new_tokens}")
    with loading(quiet=as_json):
        model = Model(folder, dtype=dtype)
    if html is not None and len(texts) > 1:
        raise InputError(f"--html shows one text: expected one --text, got {len(texts)}")
    most = read_request(model, list(texts), max_new_tokens, num_beams).most
    with progress(len(texts) * most, "tokens", quiet=as_json) as advance:
        generations = generate(
            model,
            list(texts),
            most,
            num_beams=num_beams,
            do_sample=do_sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            attentions=html is not None,
            finished=advance,
        )
    encodes, same = model.description.encoder is not None, list[bool | None]()
    for written in generations:
        theirs = None
        if compare and not do_sample:
            # One text by the library's own length; several have that of the longest.
            count = max_new_tokens if len(texts) == 1 else most
            theirs = reference_text(Path(folder), written.dtype, written.prompt, count, encodes)
        same.append(None if theirs is None else theirs == written.ids)
    if html is not None:
        from locum.display.generation_page import generation_page

        write_file(html, generation_page(generations[0], texts[0]))
    if as_json:
        both = zip(generations, same, strict=True)
        listed = [one.to_dict() | {"same_as_transformers": is_same} for one, is_same in both]
        output.print_json(listed[0] if len(listed) == 1 else {"texts": listed})
    else:
        for text, written, is_same in zip(texts, generations, same, strict=True):
            _print(written, "" if encodes else text, is_same)
        output.say_written("Saved in", html)
    if False in same:
        raise click.exceptions.Exit(1)


def _print(generation: Generation, text: str, same: bool | None) -> None:
    """Print the text, what ran, and how it compares."""
    U, count = generation.simulator, len(generation.ids)
    assert U is not None
    output.print_title(f"{generation.model} on U")
    output.say(text + generation.text)
    each = 1e3 * generation.seconds / max(1, count - 1)
    output.say(
        f"{count} new tokens behind {len(generation.prompt)}: the first after "
        f"{generation.first_seconds:.2f} s, plans included, each other {each:.1f} ms."
    )
    output.say(
        f"U of order {U.order}, for every layer and new token: {U.length:,} tokens, "
        f"{U.architecture.layers} layers, {sum(U.architecture.heads):,} heads; program {U.hash[:12]}."
    )
    if same is not None:
        output.say(f"The text that transformers writes is {'the same' if same else 'another'}.")
    output.say_where(generation.where)
