"""The settings of generation_config.json: those that leave greedy text alone, and those that do not.

Any other setting than these is refused by its name, unless it is null or has the transformers library's
own default, and so is one that would change the text.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.simulators.models.families.source import Source
from locum.simulators.models.folders import read_object

#: Settings that would change greedy text, and what they are when they do not.
_NEUTRAL: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "num_beams": 1,
    "num_return_sequences": 1,
    "min_length": 0,
    "token_healing": False,
    "is_assistant": False,
    **dict.fromkeys(
        (
            *("bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id"),
            *("forced_eos_token_id", "forced_decoder_ids", "sequence_bias", "min_new_tokens"),
            *("penalty_alpha", "guidance_scale", "exponential_decay_length_penalty", "stop_strings"),
            *("max_time", "constraints", "force_words_ids", "watermarking_config", "dola_layers"),
            # Guessed tokens leave the text alone, but not with all caches, and not for several texts.
            *("assistant_early_exit", "assistant_ensemble_weight", "prompt_lookup_num_tokens"),
        )
    ),
}
#: Settings of sampling, and the value that changes nothing.
_DRAWN: dict[str, float] = {
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "typical_p": 1.0,
    "min_p": 0.0,
    "top_h": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
#: Settings that speak of the tokens written, which are those of a decoder behind an encoder.
_OF_WRITTEN = ("min_length", "min_new_tokens", "no_repeat_ngram_size")
#: How many tokens are written where nobody says it, as the library has it.
DEFAULT_LENGTH = 20
#: Settings of lengths (read on their own), of sampling, of beams, of caches, of what is returned.
_HARMLESS = re.compile(
    r"""max_(length|new_tokens) | do_sample | temperature | top_[kph] | min_p | typical_p
    | (epsilon|eta)_cutoff | (bos|eos|pad|decoder_start)_token_id | _?transformers_version
    | _from_model_config | output_[a-z_]+ | return_[a-z_]+ | use_cache | cache_[a-z_]+
    | length_penalty | early_stopping | num_beam_groups | diversity_penalty | renormalize_logits
    | remove_invalid_values | low_memory | (disable_)?compile(_config)?
    | (num_)?assistant_(?!early|ensemble)[a-z_]+ | max_matching_ngram_size
    | target_lookbehind | (prefill_)?chunk_size | trust_remote_code""",
    re.VERBOSE,
)


class Settings(NamedTuple):
    """What generation takes from a model's settings."""

    #: The ids that end a text.
    ends: frozenset[int]
    #: The id of padding, if there is one.
    pad: int | None
    #: What the settings say of sampling.
    sampling: Mapping[str, Any]
    #: How many tokens follow at most, and how many there are at most with those before them.
    max_new_tokens: int | None = None
    max_length: int | None = None
    #: The token that a decoder behind an encoder begins with, and those that come first and last.
    start: int | None = None
    first: int | None = None
    last: int | None = None
    #: How many tokens follow before an end may, and how many in a row are not repeated (0: any are).
    least: int = 0
    ngram: int = 0

    def room(self, count: int, positions: int | None) -> int:
        """Return how many tokens may follow so many, where the caller does not say it.

        ``positions``: for how many the model was made, if that is known.
        """
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if self.max_length is not None:
            longest, said = self.max_length, "max_length of the generation config"
        else:
            longest, said = count + DEFAULT_LENGTH, "max_position_embeddings of the config"
            longest = longest if positions is None else min(longest, positions)
        if longest <= count:
            raise InputError(
                f"{count} tokens are given, and there are {longest} at most ({said}): expected fewer, "
                "or max_new_tokens"
            )
        return longest - count

    def banned(self, tokens: Sequence[int], written: int) -> list[int]:
        """List the ids that may not follow these, the last so many of which were written."""
        banned = set(self.ends) if written < self.least else set[int]()
        size, count = self.ngram, len(tokens)
        if 0 < size <= count + 1:
            last = tokens[count - size + 1 :]
            repeated = (k for k in range(count - size + 1) if tokens[k : k + size - 1] == last)
            banned |= {tokens[k + size - 1] for k in repeated}
        return sorted(banned)

    def forced(self, written: int, most: int) -> int | None:
        """Return the token that follows so many, whatever the logits are, if there is one."""
        if self.last is not None and written == most - 1:
            return self.last
        return self.first if written == 0 else None

    def require_tokens(self, vocabulary: int) -> None:
        """Refuse tokens that are put there, and that the table of words has not."""
        named = {"decoder_start_token_id": self.start, "forced_bos_token_id": self.first}
        for name, token in (named | {"forced_eos_token_id": self.last}).items():
            if token is not None and not 0 <= token < vocabulary:
                raise InputError(
                    f"expected a token from 0 to {vocabulary - 1} as {name} in the generation config, "
                    f"got {token}"
                )

    def require_sampling(self, **passed: float | None) -> None:
        """Refuse to draw by other settings than the model's own, unless the caller gave them."""
        for name, value in self.sampling.items():
            if value == _DRAWN[name] or passed.get(name) not in (None, _DRAWN[name]):
                continue
            what = f"expected a {name} beside do_sample" if name in passed else "it is not known here"
            raise InputError(f"{name} = {value!r:.60} of the generation config changes draws: {what}")

    def require_no_padding(self, prompt: Sequence[int]) -> None:
        """Refuse ids of padding in a prompt: the library takes no notice of such tokens.

        (It does so unless padding ends texts, too.)
        """
        if self.pad is not None and self.pad not in self.ends and self.pad in prompt:
            raise InputError(
                f"the prompt has the token {self.pad}, which is padding (pad_token_id): expected the "
                "ids of one text, without any, or an attention_mask beside them"
            )


def read_settings(source: Source, encodes: bool = False, num_beams: int | None = None) -> Settings:
    """Read what ends a text, and what pads it; refuse settings that would change greedy text.

    ``encodes``: whether an encoder stands before the decoder, which then begins with its own token.
    ``num_beams``: what the caller says instead of the model.
    """
    settings = _settings(source)
    kept = {"least": 0, "ngram": 0}
    if encodes:  # there the decoder's own tokens count, and no padding
        sizes = {name: settings.pop(name, None) for name in _OF_WRITTEN}
        for name, value in sizes.items():
            if value is not None and (type(value) is not int or value < 0):
                raise InputError(
                    f"{source.where}: expected an integer, 0 or more, as {name} in the generation "
                    f"config, got {value!r:.60}"
                )
        least = max((sizes["min_length"] or 0) - 1, 0)
        kept["least"] = least if sizes["min_new_tokens"] is None else sizes["min_new_tokens"]
        kept["ngram"] = sizes["no_repeat_ngram_size"] or 0
    if num_beams is not None:
        if type(num_beams) is not int or num_beams != 1:
            raise InputError(f"num_beams: expected 1, since beams are not simulated, got {num_beams!r}")
        settings["num_beams"] = num_beams
    edges = {}
    if encodes:
        names = ("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id")
        edges = {name: settings.pop(name, None) for name in names}
        if edges["decoder_start_token_id"] is None:
            edges["decoder_start_token_id"] = settings.get("bos_token_id")
        for name, value in edges.items():
            if type(value) is not int and (value is not None or name == "decoder_start_token_id"):
                raise InputError(
                    f"{source.where}: expected the id of a token as {name} in the generation config, "
                    f"got {value!r:.60}"
                )
    _require_neutral(settings, source.where)
    end = settings.get("eos_token_id")
    ids: list[Any] = end if isinstance(end, list) else [end]
    if end is not None and not (ids and all(type(one) is int for one in ids)):
        raise InputError(
            f"{source.where}: expected the id of a token, or a list of such, as eos_token_id, got "
            f"{end!r:.60}"
        )
    for name, kind, least in (
        ("pad_token_id", "the id of a token", None),
        ("max_new_tokens", "a positive integer", 1),
        ("max_length", "an integer", None),
    ):
        value = settings.get(name)
        fits = type(value) is int and (least is None or value >= least)
        if value is not None and not fits:
            raise InputError(f"{source.where}: expected {kind} as {name}, got {value!r:.60}")
    return Settings(
        frozenset([] if end is None else ids),
        settings.get("pad_token_id"),
        {name: settings[name] for name in _DRAWN if settings.get(name) is not None},
        settings.get("max_new_tokens"),
        settings.get("max_length"),
        *edges.values(),
        **kept,
    )


def _settings(source: Source) -> dict[str, Any]:
    """Return the settings of generation: those of their own file, or else those of the config."""
    if source.generation is not None:
        for name, value in source.misplaced.items():
            raise InputError(
                f"{source.where}: {name} = {value!r:.60} of its config is a setting of generation, "
                f"with which the library writes nothing: try model.generation_config.{name}"
            )
        return dict(source.generation)
    path = None if source.folder is None else source.folder / "generation_config.json"
    if path is None or not path.is_file():
        ids = (f"{kind}_token_id" for kind in ("bos", "eos", "pad", "decoder_start"))
        known = (*_NEUTRAL, *_DRAWN, *ids, "max_length", "max_new_tokens")
        settings = {name: source.config[name] for name in known if name in source.config}
        if source.config.get("force_bos_token_to_be_generated"):  # as older BARTs say it
            settings["forced_bos_token_id"] = settings.get("bos_token_id")
        return settings
    return read_object(path, 2**20)


def _require_neutral(settings: Mapping[str, Any], where: str) -> None:
    """Refuse settings that would change greedy text, or that nobody here knows."""
    defaults: dict[str, Any] | None = None
    for name, value in settings.items():
        if value is None or _HARMLESS.fullmatch(name):
            continue
        if name not in _NEUTRAL:
            defaults = _defaults() if defaults is None else defaults
            if name not in defaults or defaults[name] != value:
                raise InputError(
                    f"{where}: the setting {name} ({value!r:.60}) of the generation config is not "
                    "known, and may change the text"
                )
        elif value != _NEUTRAL[name]:
            raise InputError(
                f"{where}: {name} = {value!r:.60} in the generation config would change the text: "
                f"expected {_NEUTRAL[name]!r}"
            )


def _defaults() -> dict[str, Any]:
    """Return the defaults of the transformers library, where that is installed."""
    if importlib.util.find_spec("transformers") is None:
        return {}
    import transformers

    kind: Any = transformers.GenerationConfig
    return dict(kind().to_dict())
