"""``locum.generate``: a decoder writes text, each new token by one row through U.

Keys and values of all tokens so far are rows among the tokens of U, so a new token costs one row. The
sizes of caches and prompts are rounded up to powers of two, so that few programs are planned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, like, numpy_of
from locum.simulators.checking import positive_integer
from locum.simulators.models.families.caching import CachedLayer, cached_layer
from locum.simulators.models.families.choosing import Choice
from locum.simulators.models.families.inputs import Inputs, read_ids
from locum.simulators.models.families.outputs import BY_U, HOST
from locum.simulators.models.families.rotary import tables
from locum.simulators.models.families.running import Model
from locum.simulators.models.families.settings import read_settings
from locum.simulators.models.tokenising import read_tokenizer
from locum.simulators.modules.module import Numbers
from locum.simulators.prepared import Prepared

#: The smallest cache, and the smallest prompt that is run at once.
SMALLEST = 8
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
    #: Seconds until the first new token, planning included, and for all others.
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
        U = self.simulator
        assert U is not None
        data: dict[str, Any] = {
            name: getattr(self, name) for name in ("model", "prompt", "ids", "text", "tokens")
        }
        data["simulator"] = {
            "order": str(U.order),
            "tokens": U.length,
            "layers": U.architecture.layers,
            "heads": U.architecture.heads,
            "program": U.hash,
        }
        return data | {"seconds": {"first": self.first_seconds, "others": self.seconds}}


def generate(
    model: Any,
    text: Any,
    max_new_tokens: int = 20,
    *,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    attentions: bool = False,
    executor: str | None = None,
    finished: Callable[[str], None] = lambda name: None,
    **options: Any,
) -> Generation:
    """Continue a text by a decoder, run by U.

    - ``model``: a folder, a live model of the transformers library, or a ``Model``.
    - ``text``: a text (the folder has a tokenizer), or a list of token ids.
    - ``max_new_tokens``: how many tokens are written at most; the model's end-of-text token ends it.
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
    positive_integer(max_new_tokens, "max_new_tokens")
    choose = Choice(do_sample, temperature, top_k, top_p, seed)
    settings = read_settings(model.source)
    if do_sample:
        settings.require_sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    tokenizer, prompt = _prompt(model, text)
    if not isinstance(text, str):
        settings.require_no_padding(prompt)
    writer = Writer(model, executor, attentions)
    longest = model.description.stack.longest
    if longest is not None and len(prompt) + max_new_tokens > longest + 1:
        raise InputError(
            f"the model takes up to {longest} tokens, but {len(prompt)} are given and {max_new_tokens} "
            "are to follow"
        )
    began = time.perf_counter()
    ids, first = [choose(writer.feed(prompt))], time.perf_counter()
    finished(f"token {len(ids)}")
    while len(ids) < max_new_tokens and ids[-1] not in settings.ends:
        ids.append(choose(writer.feed(ids[-1:])))
        finished(f"token {len(ids)}")
    ended = time.perf_counter()
    written = "" if tokenizer is None else tokenizer.decode(ids)
    shown = str if tokenizer is None else lambda one: tokenizer.decode([one])
    return Generation(
        model.source.where,
        prompt,
        ids,
        written,
        [shown(one) for one in ids],
        [shown(one) for one in prompt],
        str(model.given.dtype).removeprefix("torch."),
        first - began,
        ended - first,
        writer.attentions,
        writer.simulator,
    )


class Writer:
    """A decoder with the keys and values of all rows so far."""

    def __init__(self, model: Model, executor: str | None = None, attentions: bool = False) -> None:
        description, stack = model.description, model.description.stack
        if description.encoder is not None or not stack.causal or stack.words is None:
            raise InputError(
                f"{description.name}: expected a decoder, which writes text token by token"
            )
        if "logits" not in description.outputs:
            raise InputError(
                f"{description.name}: a model without an unembedding has no logits to write text by; "
                "try its …ForCausalLM or …LMHeadModel"
            )
        self.model, self.stack, self.executor = model, stack, executor
        self.unembed = description.outputs["logits"].stage
        self.keep = attentions
        #: The weights [layer, head, key] of the last row of each run.
        self.attentions: list[Numbers] = []
        self.ids: list[int] = []
        self.size = 0
        self.caches: list[tuple[Array, Array]] = []
        self.simulator: CachedLayer | None = None

    def feed(self, ids: Sequence[int]) -> Array:
        """Put these tokens behind the others; gives the logits behind the last of them."""
        before, count = len(self.ids), len(ids)
        self.ids = [*self.ids, *ids]
        self._grow(_rounded(len(self.ids)))
        n = 1 if count == 1 else _rounded(count)
        # Rows behind the last are padding: they are like the last one, and no key.
        positions = np.minimum(np.arange(before, before + n), len(self.ids) - 1)
        everything = np.array([self.ids])
        stack = self.stack
        places = stack.places(everything, np.ones(everything.shape))[:, positions]
        X = self.model.embedded(stack, Inputs(everything[:, positions], at=places), self.executor)
        others: dict[str, Any] = {"places": np.zeros((self.size, n))}
        others["places"][range(before, before + count), range(count)] = 1
        if stack.frequencies is not None:
            others |= tables(stack.frequencies, positions)
        kept_weights = []
        for number in range(len(stack.layers)):
            keys, values = self.caches[number]
            mask, masks = self._mask(number, positions)
            ready = self._layer(number, n, mask)
            layer = ready.simulator
            assert isinstance(layer, CachedLayer)
            blocks = others | masks | {"keys": keys, "values": values}
            if self.keep:
                weights = ready(X, blocks, executor=self.executor, step=layer.weights)
                rows = numpy_of(weights)[count - 1].reshape(stack.heads, self.size)
                kept_weights.append(rows[:, : len(self.ids)])
            out = ready(X, blocks, executor=self.executor)
            first, second = layer.begins
            keys[before : before + count] = out[:count, first:second]
            values[before : before + count] = out[:count, second:]
            X = out[:, :first]
        if self.keep:
            self.attentions.append(np.stack(kept_weights))
        last = stack.final(_contiguous(X[count - 1 : count]), executor=self.executor)
        return self.unembed(last, executor=self.executor)[0]

    def _grow(self, size: int) -> None:
        """Make room for so many rows in all caches."""
        if size <= self.size:
            return
        for number, T in enumerate(self.stack.layers):
            order = T.attention.attention_order()
            widths = (order.shared_heads * order.width, order.shared_heads * order.d_v)
            wider = [like(np.zeros((size, width)), self.model.kind) for width in widths]
            if self.size:
                for new, old in zip(wider, self.caches[number], strict=True):
                    new[: self.size] = old
                self.caches[number] = (wider[0], wider[1])
            else:
                self.caches.append((wider[0], wider[1]))
        self.size = size

    def _mask(self, layer: int, positions: NDArray[Any]) -> tuple[Numbers, dict[str, Numbers]]:
        """Tell which keys each row attends to: those up to its own position, and in its window."""
        keys, window = np.arange(self.size), self.stack.windows[layer] if self.stack.windows else None
        kept = keys[None, :] <= positions[:, None]
        if window is not None:
            kept &= keys[None, :] > positions[:, None] - window
        rows = np.asarray(kept, dtype=np.float64)
        if len(positions) == 1:
            return rows[0], {"attention_mask": rows}
        return rows, {"mask": rows}

    def _layer(self, number: int, n: int, mask: Numbers) -> Prepared:
        """Prepare one layer with its U for n new rows and the cache as it is; made once."""
        T = self.stack.layers[number].with_masks(mask)
        order = T.order(n)
        order = replace(order, attention=replace(order.attention, cache=self.size))
        ready = self.model.ready(number, T, order, cached_layer)
        assert isinstance(ready.simulator, CachedLayer)
        self.simulator = ready.simulator
        return ready


def _prompt(model: Model, text: Any) -> tuple[Any, list[int]]:
    """Return the tokenizer, if there is one, and the ids of the prompt."""
    folder, stack = model.source.folder, model.description.stack
    tokenizer = None
    if folder is not None and (folder / "tokenizer.json").is_file():
        tokenizer = read_tokenizer(folder)
    if isinstance(text, str):
        if tokenizer is None:
            where = "a live model" if folder is None else str(folder)
            raise InputError(f"{where} has no tokenizer (tokenizer.json): expected token ids, got text")
        tokenizer.no_padding()
        tokenizer.no_truncation()
        text = tokenizer.encode(text).ids
        if not text:
            raise InputError("the text has no tokens: expected one or more to continue")
    assert stack.words is not None
    ids = read_ids(text, "the prompt", len(stack.words), stack.longest)
    if len(ids) != 1:
        raise InputError(f"one text is continued at a time, but got {len(ids)}")
    return tokenizer, [int(one) for one in ids[0]]


def _rounded(count: int) -> int:
    """Round up to a power of two."""
    return max(SMALLEST, 1 << (count - 1).bit_length())


def _contiguous(rows: Array) -> Array:
    return rows.contiguous() if hasattr(rows, "contiguous") else np.ascontiguousarray(rows)
