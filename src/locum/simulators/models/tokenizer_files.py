"""What stands beside tokenizer.json, read without the transformers library."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.files import read_json

#: Files beyond so many bytes are not read.
LIMIT = 1 << 24
#: A longest text beyond this means that there is none.
ENDLESS = 10**20


class Cut(NamedTuple):
    """How a tokenizer cuts long texts: on which side, and to how many tokens (None: not at all)."""

    side: str = "right"
    longest: int | None = None


def read_tokenizer_config(folder: Path) -> dict[str, Any]:
    """Read tokenizer_config.json, if there is one; refuse code of the model's own."""
    path = folder / "tokenizer_config.json"
    config = read_json(path, LIMIT) if path.is_file() else {}
    if not isinstance(config, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(config).__name__}")
    if config.get("auto_map"):
        raise InputError(
            f"{path}: a tokenizer with code of its own (auto_map) is not run: expected none, got "
            f"{config['auto_map']!r:.60}; try token ids instead of text"
        )
    return config


def read_cut(folder: Path, tokenizer: Any) -> Cut:
    """Read how texts are cut by a tokenizer of a folder, as tokenizer_config.json says."""
    path, config = folder / "tokenizer_config.json", read_tokenizer_config(folder)
    side = config.get("truncation_side") or (tokenizer.truncation or {}).get("direction", "right")
    if side not in ("left", "right"):
        raise InputError(f"{path}: expected truncation_side as left or right, got {side!r:.60}")
    longest = config.get("model_max_length")
    if longest is not None and (type(longest) not in (int, float) or longest < 1):
        raise InputError(
            f"{path}: expected model_max_length as a positive integer, got {longest!r:.60}"
        )
    return Cut(side, None if longest is None or longest > ENDLESS else int(longest))
