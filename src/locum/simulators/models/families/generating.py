"""``locum.generate``: a decoder writes text, each new token by one row through U (``writing.py``).

Several texts are one run of U, each with a cache of its own. Where there is an encoder, it is run once,
and the keys and values of its last states are among the tokens of U.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from locum.errors import InputError
from locum.simulators.checking import positive_integer
from locum.simulators.models.batch import pieces
from locum.simulators.models.families.caching import CachedLayer
from locum.simulators.models.families.choosing import Choice
from locum.simulators.models.families.inputs import read_ids, read_padding
from locum.simulators.models.families.outputs import BY_U, HOST
from locum.simulators.models.families.running import Model
from locum.simulators.models.families.settings import Settings, read_settings
from locum.simulators.models.families.writing import Writer, require_writer
from locum.simulators.models.tokenising import encode
from locum.simulators.modules.module import Numbers

#: What the host does more than in a run.
HOST_IN_GENERATION = (
    "new rows of keys and values into the cache, which is a part of U's next input",
    "the choice of the next token among the logits",
)


@dataclass(frozen=True)
class Generation:
    """What a model wrote."""

    model: str
    #: Ids of the prompt, and of what was written.
    prompt: list[int]
    ids: list[int]
    #: The text that was written, and its tokens one by one (without a tokenizer, their ids).
    text: str
    tokens: list[str]
    prompt_tokens: list[str]
    #: The type of its numbers.
    dtype: str
    #: Seconds until the first new token, planning included, and for all others (of all texts at once).
    first_seconds: float
    seconds: float
    #: For each new token the weights [layer, head, key] by which its row was made, if asked for.
    attentions: list[Numbers] = field(default_factory=list, repr=False)
    #: U for the last row.
    simulator: CachedLayer | None = field(default=None, repr=False)

    @property
    def where(self) -> list[tuple[str, str]]:
        """List where it ran, and what."""
        host = (*HOST, *HOST_IN_GENERATION)
        return [("host", part) for part in host] + [("U", part) for part in BY_U]

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts."""
        assert self.simulator is not None
        data: dict[str, Any] = {
            name: getattr(self, name) for name in ("model", "prompt", "ids", "text", "tokens")
        }
        data["simulator"] = self.simulator.to_dict()
        return data | {"seconds": {"first": self.first_seconds, "others": self.seconds}}


@overload
def generate(
    model: Any, text: str, max_new_tokens: int | None = None, **options: Any
) -> Generation: ...


@overload
def generate(model: Any, text: Any, max_new_tokens: int | None = None, **options: Any) -> Any: ...


def generate(
    model: Any,
    text: Any,
    max_new_tokens: int | None = None,
    *,
    num_beams: int | None = None,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    attentions: bool = False,
    executor: str | None = None,
    finished: Callable[[str], None] = lambda name: None,
    **options: Any,
) -> Any:
    """Continue a text by a decoder, or write one for it by an encoder and a decoder, run by U.

    - ``model``: a folder, a live model of the transformers library, or a ``Model``.
    - ``text``: a text (the folder has a tokenizer), or a list of token ids. Several texts, lists of
      ids, or a dict of rows of ids and their mask, as tokenizers give it, make a list of results.
    - ``max_new_tokens``: how many tokens are written at most; the model's end-of-text token ends it.
      Without it, as many as the library's ``generate`` writes: as max_new_tokens or max_length of the
      generation config say, else 20, and not beyond the positions of the model.
    - ``num_beams``: 1 lets a model write greedily whose generation config asks for beams.
    - ``do_sample``: draw tokens (by ``temperature``, ``top_k``, ``top_p``, from ``seed``) instead of
      taking the most likely one, as the library's greedy ``generate`` does. Without ``top_k`` any token
      may be drawn; the library's default is 50. Settings of the model's own have to be given, too.
    - ``attentions``: whether to keep the weights of all heads for each new token.
    - ``options``: dtype and backend, for a folder.

    >>> import transformers
    >>> config = transformers.GPT2Config(
    ...     vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0
    ... )
    >>> written = generate(transformers.GPT2LMHeadModel(config).eval(), [1, 2, 3], max_new_tokens=2)
    >>> len(written.tokens)
    2
    """
    if not isinstance(model, Model):
        model = Model(model, **options)
    elif options:
        raise InputError(
            f"expected {', '.join(options)} where the Model is made, got it beside a Model that is"
        )
    request = read_request(model, text, max_new_tokens, num_beams)
    chosen = [
        Choice(do_sample, temperature, top_k, top_p, seed, number)
        for number in range(len(request.prompts))
    ]
    if do_sample:
        request.settings.require_sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    if attentions and model.description.encoder is not None:
        raise InputError(
            "attentions are kept of decoders alone: expected attentions=False beside an encoder"
        )
    results: list[Generation] = []
    fast = executor in (None, "fast", "auto")  # others run the program as it is, text by text
    while len(results) < len(request.prompts):
        begin = len(results)
        end = begin + (pieces(len(request.prompts) - begin) if fast else 1)
        piece = request._replace(prompts=request.prompts[begin:end])
        results += _continued(model, piece, chosen[begin:end], attentions, executor, finished)
    return results if request.several else results[0]


class Request(NamedTuple):
    """What is to be written: the ids of all prompts, and how many tokens follow at most."""

    prompts: list[list[int]]
    #: Whether a list of results was asked for.
    several: bool
    most: int
    settings: Settings


def read_request(
    model: Model, text: Any, max_new_tokens: int | None = None, num_beams: int | None = None
) -> Request:
    """Read what a model is to continue; all prompts have the room that the longest leaves.

    (Of several, the library sees one length: that of the padded batch.)
    """
    require_writer(model.description)
    encodes, stack = model.description.encoder is not None, model.description.stack
    assert stack.words is not None
    settings = read_settings(model.source, encodes, num_beams)
    settings.require_tokens(len(stack.words))
    if max_new_tokens is not None:
        positive_integer(max_new_tokens, "max_new_tokens")
    prompts, several, longest = _prompts(model, text, settings)
    if max_new_tokens is None:
        positions = stack.trained if stack.longest is None else stack.longest
        max_new_tokens = settings.room(1 if encodes else longest, positions)
    return Request(prompts, several, max_new_tokens, settings)


def _continued(
    model: Model,
    request: Request,
    chosen: Sequence[Choice],
    attentions: bool,
    executor: str | None,
    finished: Callable[[str], None],
) -> list[Generation]:
    """Write behind all prompts at once: one run of U for a token of each."""
    began, (prompts, _, most, settings) = time.perf_counter(), request
    memory, starts = None, prompts
    longest = model.description.stack.longest
    if model.description.encoder is not None:
        assert settings.start is not None
        starts = [[settings.start] for _ in prompts]
    for tokens in starts:
        if longest is not None and len(tokens) + most > longest + 1:
            raise InputError(
                f"the model takes up to {longest} tokens, but {len(tokens)} are given and {most} are "
                "to follow"
            )
    if model.description.encoder is not None:
        memory = model.encoded(prompts, executor)
    writer = Writer(model, executor, attentions, memory, len(prompts))
    written: list[list[int]] = [[] for _ in prompts]
    first, rows = 0.0, starts
    while any(rows):
        logits = writer.feed(rows)
        for number, ids in enumerate(written):
            if rows[number]:
                forced = settings.forced(len(ids), most)
                banned = settings.banned([*starts[number], *ids], len(ids))
                ids.append(chosen[number](logits[number], banned) if forced is None else forced)
                finished(f"token {len(ids)}")
        rows = [[] if len(ids) == most or ids[-1] in settings.ends else ids[-1:] for ids in written]
        first = first or time.perf_counter()
    ended = time.perf_counter()
    tokenizer = model.tokenizer
    shown = str if tokenizer is None else lambda one: tokenizer.decode([one])
    return [
        Generation(
            model.source.where,
            prompt,
            ids,
            "" if tokenizer is None else _decoded(tokenizer, tokens, ids),
            [shown(one) for one in ids],
            [shown(one) for one in prompt],
            str(model.result_kind.dtype).removeprefix("torch."),
            first - began,
            ended - first,
            kept,
            writer.simulator,
        )
        for prompt, tokens, ids, kept in zip(prompts, starts, written, writer.attentions, strict=True)
    ]


def _decoded(tokenizer: Any, start: list[int], ids: list[int]) -> str:
    """Return what follows the tokens given: some tokenizers leave out a space that begins a text."""
    before, whole = tokenizer.decode(start), tokenizer.decode([*start, *ids])
    return str(whole.removeprefix(before) if whole.startswith(before) else tokenizer.decode(ids))


def _prompts(model: Model, text: Any, settings: Settings) -> tuple[list[list[int]], bool, int]:
    """Return the ids of all prompts, without padding.

    Then whether a list of results was asked for, and how long the longest is, with its padding.
    """
    if isinstance(text, Mapping):
        prompts, several, longest = _masked(model, text)
        if text.get("attention_mask") is None:
            for prompt in prompts:
                settings.require_no_padding(prompt)
        return prompts, several, longest
    if isinstance(text, str):
        prompts = [_encoded(model, text)]
        return prompts, False, len(prompts[0])
    if isinstance(text, (list, tuple)) and text and all(isinstance(one, str) for one in text):
        prompts = [_encoded(model, one) for one in text]
        return prompts, True, max(map(len, prompts))
    rows = [text]
    if isinstance(text, (list, tuple)) and text and all(map(_is_row, text)):
        rows = list(text)  # of any lengths
    prompts = [[int(one) for one in ids] for row in rows for ids in _checked(model, row, "the prompt")]
    for prompt in prompts:
        settings.require_no_padding(prompt)
    return prompts, len(prompts) > 1, max(map(len, prompts))


def _is_row(value: Any) -> bool:
    """Return whether a value is a list, an array or a tensor; refuse lists inside of one."""
    if isinstance(value, (list, tuple)) and any(isinstance(one, (list, tuple)) for one in value):
        raise InputError("expected prompts as lists of token ids, got lists of lists of them")
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1


def _encoded(model: Model, text: str) -> list[int]:
    """Tokenise one text."""
    folder = model.source.folder
    if model.tokenizer is None:
        where = "a live model" if folder is None else str(folder)
        raise InputError(f"{where} has no tokenizer (tokenizer.json): expected token ids, got text")
    ids = encode(model.tokenizer, text, text).ids
    if not ids:
        raise InputError("the text has no tokens: expected one or more to continue")
    return [int(one) for one in _checked(model, ids, "the prompt")[0]]


def _masked(model: Model, texts: Mapping[str, Any]) -> tuple[list[list[int]], bool, int]:
    """Read rows of ids and their attention mask: padding stands before a text, or behind an encoder's.

    (The library counts positions from the first token that is not padding, in a decoder.)
    """
    unknown = sorted(str(name) for name in texts if name not in ("input_ids", "attention_mask"))
    if unknown or "input_ids" not in texts:
        raise InputError(
            f"expected input_ids and attention_mask to continue, got {', '.join(map(str, texts))}"
        )
    ids = _checked(model, texts["input_ids"], "input_ids")
    mask = read_padding(texts.get("attention_mask"), "attention_mask", ids)
    prompts = []
    side = "left" if model.description.encoder is None else "right"
    for number, row in enumerate(ids):
        kept = row == row if mask is None else mask[number] != 0
        count = int(kept.sum())
        if not (kept[len(row) - count :] if side == "left" else kept[:count]).all():
            raise InputError(
                f"expected padding on the {side} of a text, got another mask in row {number}: try "
                f"padding_side={side!r} in the tokenizer"
            )
        prompts.append([int(one) for one in row[kept]])
    return prompts, len(prompts) > 1, ids.shape[1]


def _checked(model: Model, ids: Any, name: str) -> Numbers:
    stack = model.description.encoder or model.description.stack
    assert stack.words is not None
    return read_ids(ids, name, len(stack.words), stack.longest)
