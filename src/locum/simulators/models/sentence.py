"""How a folder makes one embedding of a text: what sentence-transformers notes beside a model.

``modules.json`` lists what is done in order: a Transformer, a Pooling, perhaps a Normalize. That is
done; anything else (a Dense, another pooling, a prompt) is refused. A folder without that file has no
embedding of its own: there it is the mean of the last states, scaled to length 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.files import read_json

#: Configurations beyond so many bytes are not read.
CONFIG_LIMIT = 1 << 20
#: How the rows of a sequence become one: their mean, or the first of them.
POOLINGS = ("mean", "cls")
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


def read_sentence(folder: Path, d: int) -> Sentence:
    """Read how a model of d columns embeds a text; refuse what is not simulated."""
    path = folder / "modules.json"
    if not path.is_file():
        pooling = folder / "1_Pooling" / "config.json"
        return Sentence(_pooling(pooling, d) if pooling.is_file() else "mean")
    modules = _read(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InputError(f"{path}: expected a list of modules")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise InputError(
            f"{path}: the modules {', '.join(kinds) or 'none'} are not simulated: expected "
            "Transformer, Pooling and perhaps Normalize, in this order"
        )
    places = [module.get("path", "") for module in modules]
    if places[0] != "" or not isinstance(places[1], str):
        raise InputError(f"{path}: expected the Transformer in the folder itself, got {places[0]!r}")
    longest, lowercase = _limits(folder)
    _require_no_prompt(folder)
    pooling_name = _pooling(folder / places[1] / "config.json", d)
    return Sentence(pooling_name, "Normalize" in kinds, longest, lowercase)


def _pooling(path: Path, d: int) -> str:
    """Read the one pooling that a file names."""
    config = _read(path)
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object")
    if "pooling_mode" in config:
        named = config["pooling_mode"]
        modes = named if isinstance(named, list) else [named]
    else:
        modes = [name for key, (name, default) in _OLDER.items() if config.get(key, default)]
        others = {key for key in config if key.startswith("pooling_mode_")} - set(_OLDER)
        modes += sorted(key for key in others if config[key])
    if len(modes) != 1 or modes[0] not in POOLINGS:
        listed = " and ".join(map(str, modes)) or "none"
        raise InputError(
            f"{path}: unsupported pooling {listed!r}; supported: {', '.join(POOLINGS)}, one of them"
        )
    for key in ("word_embedding_dimension", "embedding_dimension"):
        if config.get(key, d) != d:
            raise InputError(f"{path}: {key} is {config[key]!r}, but the model has {d} columns")
    return str(modes[0])


def _limits(folder: Path) -> tuple[int | None, bool]:
    """Read to how many tokens a text is cut, and whether it is made lowercase."""
    path = folder / "sentence_bert_config.json"
    config = _read(path) if path.is_file() else {}
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object")
    longest, lowercase = config.get("max_seq_length"), config.get("do_lower_case") or False
    if longest is not None and (type(longest) is not int or longest < 1):
        raise InputError(f"{path}: expected max_seq_length as a positive integer, got {longest!r}")
    if not isinstance(lowercase, bool):
        raise InputError(f"{path}: expected do_lower_case as true or false, got {lowercase!r}")
    return longest, lowercase


def _require_no_prompt(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    config = _read(path) if path.is_file() else {}
    if isinstance(config, dict) and config.get("default_prompt_name"):
        raise InputError(f"{path}: a prompt before every text (default_prompt_name) is not simulated")


def _read(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no {path}")
    return read_json(path, CONFIG_LIMIT)
