"""Text as the numbers of its tokens, by the tokenizer that a model brings (tokenizer.json)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError


class Text(NamedTuple):
    """A text, its tokens as words, and their numbers."""

    text: str
    tokens: list[str]
    numbers: list[int]


def tokenised(
    folder: Path,
    texts: Sequence[str],
    positions: int,
    longest: int | None = None,
    lowercase: bool = False,
) -> list[Text]:
    """Tokenise texts, cut to ``longest`` if that is given; else refuse more than ``positions``."""
    tokenizer = read_tokenizer(folder)
    tokenizer.no_padding()
    if longest is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(longest)
    tokenised = []
    for source in texts:
        encoded = tokenizer.encode(source.lower() if lowercase else source)
        text = Text(source, list(encoded.tokens), list(encoded.ids))
        if not text.numbers:
            raise InputError(f"the text {source!r} has no tokens")
        if len(text.numbers) > positions:
            beginning = source if len(source) < 40 else source[:37] + "…"
            raise InputError(
                f"the text {beginning!r} has {len(text.numbers)} tokens, but the model has only "
                f"{positions} positions: shorten it, or split it"
            )
        tokenised.append(text)
    return tokenised


def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a folder."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError(
            "texts are tokenised by the package tokenizers: pip install 'locum[models]'"
        ) from None
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"{folder} has no tokenizer.json: give numbers of tokens instead of text")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:
        # The library raises nothing more specific.
        raise InputError(f"{path} cannot be read: {error}") from None
