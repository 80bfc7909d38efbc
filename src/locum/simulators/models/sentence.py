"""How a folder makes one embedding of a text: what sentence-transformers notes beside a model.

``modules.json`` lists what is done in order: a Transformer, a Pooling, perhaps a Normalize. That is
done; anything else (a Dense, another pooling, a prompt, a field that nobody knows) is refused. A folder
without that file has no embedding of its own: there it is the mean of the last states, scaled to
length 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.files import read_json
from locum.simulators.models.folders import read_config, read_object

#: Configurations beyond so many bytes are not read.
CONFIG_LIMIT = 1 << 20
#: How the rows of a sequence become one: their mean, or the first of them.
POOLINGS = ("mean", "cls")
#: The modules by the names that versions of sentence-transformers give them.
_MODULES = {
    f"sentence_transformers.{room}.{name}": name.rpartition(".")[2]
    for room, names in {
        "models": ("Transformer", "Pooling", "Normalize"),
        "models.Transformer": ("Transformer",),
        "models.Pooling": ("Pooling",),
        "models.Normalize": ("Normalize",),
        "base.modules": ("Transformer", "Normalize", "transformer.Transformer", "normalize.Normalize"),
        "sentence_transformer.modules": ("Transformer", "Pooling", "Normalize", "pooling.Pooling"),
    }.items()
    for name in names
}
#: Fields that say nothing about one text's embedding, or have the one value that is simulated.
_NO_ARGUMENTS: tuple[Any, ...] = (None, {})
_KNOWN: dict[str, dict[str, tuple[Any, ...]]] = {
    "transformer": {
        **dict.fromkeys(("model_args", "tokenizer_args", "config_args"), _NO_ARGUMENTS),
        **dict.fromkeys(("model_kwargs", "processor_kwargs", "config_kwargs"), _NO_ARGUMENTS),
        "processing_kwargs": _NO_ARGUMENTS,
        "transformer_task": ("feature-extraction",),
        "modality_config": (
            {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        ),
        "module_output_name": ("token_embeddings",),
        "unpad_inputs": (None, True, False),
        **dict.fromkeys(("query_length", "document_length", "query_expansion"), (None,)),
    },
    "pooling": {"include_prompt": (True, False)},
    "normalize": dict.fromkeys(("module_input_name", "module_output_name"), ("sentence_embedding",)),
    "sentence": {
        "model_type": ("SentenceTransformer",),
        "truncate_dim": (None,),
        "similarity_fn_name": (None, "cosine", "dot", "euclidean", "manhattan"),
    },
}
#: Where the Transformer's settings are, by the names that older versions give the file.
_LIMITS = [
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
]
#: What older versions call the poolings, each with its default.
_OLDER = {
    "pooling_mode_cls_token": ("cls", False),
    "pooling_mode_mean_tokens": ("mean", True),
    "pooling_mode_max_tokens": ("max", False),
    "pooling_mode_mean_sqrt_len_tokens": ("mean_sqrt_len", False),
    "pooling_mode_weightedmean_tokens": ("weightedmean", False),
    "pooling_mode_lasttoken": ("lasttoken", False),
}


class Sentence(NamedTuple):
    """What becomes of a text: how it is cut, and how its states become one row."""

    pooling: str = "mean"
    #: Whether the row is scaled to length 1.
    normalised: bool = True
    #: Texts are cut to so many tokens; None: they are refused where the model has fewer positions.
    longest: int | None = None
    lowercase: bool = False
    #: Whether texts are cut to the tokenizer's model_max_length, too.
    by_tokenizer: bool = False
    #: Whether it is sentence-transformers that prepares texts.
    is_prepared: bool = False


def read_sentence(folder: Path, d: int) -> Sentence:
    """Read how a model of d columns embeds a text; refuse what is not simulated."""
    path = folder / "modules.json"
    if not path.is_file():
        pooling = folder / "1_Pooling" / "config.json"
        return Sentence(_pooling(pooling, d) if pooling.is_file() else "mean")
    kinds, places = _modules(path)
    _require_plain(folder)
    if "Normalize" in kinds:
        _require_known(folder / places[-1] / "config.json", "normalize")
    longest, lowercase = _limits(folder)
    by_tokenizer = longest is None
    return Sentence(
        _pooling(folder / places[1] / "config.json", d),
        "Normalize" in kinds,
        _positions(folder) if by_tokenizer else longest,
        lowercase,
        by_tokenizer,
        is_prepared=True,
    )


def _modules(path: Path) -> tuple[list[str], list[str]]:
    """Read the kinds of the modules in their order, and their folders."""
    modules = read_json(path, CONFIG_LIMIT)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InputError(f"{path}: expected a list of modules")
    types = [str(module.get("type", "")) for module in modules]
    kinds = [_MODULES.get(name, name) for name in types]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        listed = ", ".join(kind.removeprefix("sentence_transformers.models.") for kind in kinds)
        raise InputError(
            f"{path}: the modules {listed or 'none'} are not simulated: expected Transformer, Pooling "
            "and perhaps Normalize of sentence_transformers, in this order"
        )
    for module in modules:
        # "kwargs" names what a caller may hand on to the module; here nobody does.
        known = ("idx", "name", "path", "type", "kwargs")
        _require_values(path, {k: v for k, v in module.items() if k not in known}, {})
    names = [str(module["name"]) for module in modules if "name" in module]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: expected a name of its own for each module, got {', '.join(names)}")
    places = [module.get("path", "") for module in modules]
    if places[0] != "" or not all(isinstance(place, str) for place in places):
        raise InputError(f"{path}: expected the Transformer in the folder itself, got {places[0]!r}")
    return kinds, places


def _pooling(path: Path, d: int) -> str:
    """Read the one pooling that a file names."""
    config = _object(path)
    sizes, modes = ("word_embedding_dimension", "embedding_dimension"), []
    flags = {key: value for key, value in config.items() if key.startswith("pooling_mode_")}
    for key, value in flags.items():
        if not isinstance(value, bool):
            raise InputError(f"{path}: expected {key} as true or false, got {value!r:.60}")
    rest = {k: v for k, v in config.items() if k not in (*flags, *sizes, "pooling_mode")}
    _require_values(path, rest, _KNOWN["pooling"])
    if "pooling_mode" in config:
        named = config["pooling_mode"]
        modes = named if isinstance(named, list) else [named]
    else:
        modes = [name for key, (name, default) in _OLDER.items() if flags.get(key, default)]
        modes += sorted(key for key in set(flags) - set(_OLDER) if flags[key])
    if len(modes) != 1 or modes[0] not in POOLINGS:
        listed = " and ".join(map(str, modes)) or "none"
        raise InputError(f"{path}: expected one of the poolings {', '.join(POOLINGS)}, got {listed!r}")
    for key in sizes:
        if config.get(key, d) != d:
            raise InputError(f"{path}: expected {key} to be {d}, as in the model, got {config[key]!r}")
    return str(modes[0])


def _limits(folder: Path) -> tuple[int | None, bool]:
    """Read to how many tokens a text is cut, and whether it is made lowercase."""
    paths = [folder / name for name in _LIMITS if (folder / name).is_file()]
    path = next((path for path in paths if _object(path)), folder / _LIMITS[0])
    config = dict(_object(path)) if path.is_file() else {}
    longest, lowercase = config.pop("max_seq_length", None), config.pop("do_lower_case", None) or False
    if longest is not None and (type(longest) is not int or longest < 1):
        raise InputError(f"{path}: expected max_seq_length as a positive integer, got {longest!r}")
    if not isinstance(lowercase, bool):
        raise InputError(f"{path}: expected do_lower_case as true or false, got {lowercase!r}")
    _require_values(path, config, _KNOWN["transformer"])
    return longest, lowercase


def _positions(folder: Path) -> int | None:
    """Read the positions of the model, to which texts are cut where no other limit is given."""
    config = read_config(folder)
    if config.get("model_type") == "t5":
        return None  # the library's config of it has none
    names = ("max_position_embeddings", "n_positions")
    count = next((config[name] for name in names if config.get(name) is not None), None)
    if type(count) is not int or count < 1:
        raise InputError(
            f"{folder}: expected max_seq_length in {_LIMITS[0]}, or {names[0]} in config.json, as the "
            f"number of tokens to which texts are cut, got {count!r:.60}"
        )
    return count


def _require_plain(folder: Path) -> None:
    """Refuse a prompt before every text, columns that are cut, other kinds of models."""
    path = folder / "config_sentence_transformers.json"
    config = _object(path) if path.is_file() else {}
    if config.get("default_prompt_name"):
        raise InputError(f"{path}: a prompt before every text (default_prompt_name) is not simulated")
    harmless = ("__version__", "prompts", "default_prompt_name")
    _require_values(path, {k: v for k, v in config.items() if k not in harmless}, _KNOWN["sentence"])


def _require_known(path: Path, kind: str) -> None:
    if path.is_file():
        _require_values(path, _object(path), _KNOWN[kind])


def _require_values(path: Path, config: dict[str, Any], known: dict[str, tuple[Any, ...]]) -> None:
    """Refuse fields that nobody knows, and values that are not simulated."""
    for key, value in config.items():
        if key not in known:
            raise InputError(
                f"{path}: {key} is not simulated: expected no such field, got {value!r:.60}"
            )
        # By their JSON, since 1 == True.
        if json.dumps(value, sort_keys=True) not in [json.dumps(one) for one in known[key]]:
            expected = " or ".join(json.dumps(one) for one in known[key])
            raise InputError(f"{path}: expected {key} to be {expected}, got {value!r:.60}")


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"there is no {path}")
    return read_object(path, CONFIG_LIMIT)
