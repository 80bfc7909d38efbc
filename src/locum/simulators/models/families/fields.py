"""The fields of a config.json, against the table of those that a family knows.

A reader lists every field that matters with the values that it accepts. Fields that say nothing about
what is computed in ``eval()`` (dropout, initialisation, token ids, labels) are passed over; any other
field is refused by its name, unless it has the value that the transformers library gives it by default.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError

#: What configurations call the activations, and what they are called here.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "leaky_relu": "leaky_relu",
}
#: Fields that do not change what a model computes from its inputs.
_NEUTRAL = re.compile(
    r"""model_type | architectures | transformers_version | _name_or_path | (torch_)?dtype
    | .*drop(out|path)?(_.*)? | .*_pdrop | layerdrop | .*_layerdrop | .*initializer.* | init_std
    | (?!attention_)[a-z_]*_token_id | id2label | label2id | problem_type | num_labels
    | task_specific_params | summary_.* | return_dict | output_(hidden_states|attentions) | use_cache
    | gradient_checkpointing | tokenizer_class | finetuning_task | chunk_size_feed_forward
    | pretraining_tp | prefix | language | torchscript | name_or_path | _commit_hash
    | _?attn_implementation(_internal|_autoset)? | model_max_length | vocab_size | encoder_stride
    | keys_to_ignore_at_inference | net_structure_type | num_memory_blocks | down_scale_factor
    | gap_size | output_past | attention_probs_dropout_prob
    | pooler_(fc_size|num_.*|size_per_head|type) | directionality | tie_weights_ | is_llama_config
    | transformers\.js_config | early_stopping | num_beams | num_beam_groups
    | (encoder_)?no_repeat_ngram_size | (max|min)_length | length_penalty | do_sample | temperature
    | top_[kp] | typical_p | (repetition|diversity)_penalty | bad_words_ids | num_return_sequences
    | remove_invalid_values | (begin_)?suppress_tokens | exponential_decay_length_penalty""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Field:
    """One field: its default, what it may be in words, whether a value is that, and its other names."""

    default: Any
    expected: str
    accepts: Callable[[Any], bool]
    names: tuple[str, ...] = ()


def is_neutral(name: str) -> bool:
    """Tell whether a field says nothing about what a model computes in ``eval()``."""
    return _NEUTRAL.fullmatch(name) is not None


def size(default: int, *names: str) -> Field:
    """Describe a positive integer."""
    return Field(default, "a positive integer", _is_size, names)


def size_or_none(default: int | None, *names: str) -> Field:
    """Describe a positive integer, or null."""
    return Field(default, "a positive integer or null", lambda v: v is None or _is_size(v), names)


def epsilon(default: float, *names: str) -> Field:
    """Describe a number between 0 and 1."""
    return Field(
        default, "a number from 0 to 1", lambda v: type(v) in (int, float) and 0 < v < 1, names
    )


def flag(default: bool, *names: str) -> Field:
    """Describe true or false."""
    return Field(default, "true or false", lambda v: isinstance(v, bool), names)


def activation(default: str, *names: str) -> Field:
    """Describe the name of an activation; ``ACTIVATIONS`` says what it is called here."""
    known = f"one of {', '.join(ACTIVATIONS)}"
    return Field(default, known, lambda v: isinstance(v, str) and v in ACTIVATIONS, names)


def only(value: Any, why: str, *names: str) -> Field:
    """Accept one value alone; any other is not simulated, for the reason given."""
    return Field(value, f"{value!r} ({why})", lambda v: bool(v == value), names)


def anything(default: Any, *names: str) -> Field:
    """Accept any value: the reader looks at it itself."""
    return Field(default, "anything", lambda v: True, names)


def read_fields(
    config: Mapping[str, Any], table: Mapping[str, Field], where: str, family: str
) -> dict[str, Any]:
    """Read a configuration by the table of its family; refuse what is not in it."""
    values: dict[str, Any] = {}
    known = set()
    for name, field in table.items():
        names = (name, *field.names)
        known |= set(names)
        spelled = [other for other in names if other in config]
        present = spelled[0] if spelled else None
        for other in spelled[1:]:
            if config[other] != config[spelled[0]]:
                raise InputError(
                    f"{where}: expected one value of {present} in config.json, got "
                    f"{config[spelled[0]]!r:.60}, and {config[other]!r:.60} as {other}: leave one out"
                )
        value = field.default if present is None else config[present]
        if not field.accepts(value):
            shown = f"{present or name} in config.json, got {value!r:.60}"
            raise InputError(f"{where}: expected {field.expected} as {shown}")
        values[name] = value
    unknown = [name for name in config if name not in known and not is_neutral(name)]
    if unknown:
        defaults = _defaults(family)
        for name in unknown:
            if name not in defaults or defaults[name] != config[name]:
                raise InputError(
                    f"{where}: the field {name} of config.json ({config[name]!r:.60}) is not known for "
                    f"the family {family}, and may change what is computed"
                )
    return values


def _defaults(family: str) -> dict[str, Any]:
    """Return the defaults of the transformers library, where that is installed."""
    if importlib.util.find_spec("transformers") is None:
        return {}
    from transformers import CONFIG_MAPPING

    return dict(CONFIG_MAPPING[family]().to_dict()) if family in CONFIG_MAPPING else {}


def _is_size(value: Any) -> bool:
    return type(value) is int and value > 0
