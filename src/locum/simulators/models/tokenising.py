"""Text as the numbers of its tokens, by the tokenizer that a model brings.

Where transformers is installed, that is the library's own, as it reads the folder (its classes go by
tokenizer_config.json before tokenizer.json). Else it is tokenizer.json, where the other files agree.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.simulators.models.sentence import Sentence
from locum.simulators.models.tokenizer_files import (
    ENDLESS,
    Cut,
    read_cut,
    read_tokenizer_config,
    require_agreement,
    require_no_types,
)


class Text(NamedTuple):
    """A text, its tokens as words, and their numbers."""

    text: str
    tokens: list[str]
    numbers: list[int]


class FolderTokenizer(NamedTuple):
    """The tokenizer of a folder, and how the folder says that long texts are cut."""

    tokenizer: Any
    cut: Cut


def tokenised(
    folder: Path, texts: Sequence[str], positions: int, sentence: Sentence | None = None
) -> list[Text]:
    """Tokenise texts, cut as ``sentence`` says; refuse more tokens than ``positions``."""
    sentence = sentence or Sentence()
    tokenizer, cut = read_folder_tokenizer(folder)
    tokenizer.no_padding()
    limits = [sentence.longest, cut.longest if sentence.by_tokenizer else None]
    longest = min((limit for limit in limits if limit is not None), default=None)
    if longest is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(longest, direction=cut.side)
    tokenised = []
    for source in texts:
        text = _encoded(tokenizer, source, sentence)
        if not text.numbers:
            raise InputError(f"the text {source!r} has no tokens")
        if len(text.numbers) > positions:
            raise InputError(
                f"the text {_beginning(source)!r} has {len(text.numbers)} tokens, but the model has "
                f"only {positions} positions: shorten it, or split it"
            )
        tokenised.append(text)
    return tokenised


def _encoded(tokenizer: Any, source: str, sentence: Sentence) -> Text:
    """Tokenise one text; refuse it where versions of sentence-transformers make other tokens of it."""
    encoded = encode(tokenizer, source.lower() if sentence.lowercase else source, source)
    ids = list(encoded.ids)
    if any(encoded.type_ids):
        raise InputError(
            f"expected tokens of type 0, got {max(encoded.type_ids)} by the tokenizer's template; "
            "try input_ids and token_type_ids instead of text"
        )
    if sentence.is_prepared and source != source.strip():
        stripped = source.strip().lower() if sentence.lowercase else source.strip()
        if list(encode(tokenizer, stripped, source).ids) != ids:
            raise InputError(
                f"expected a text without spaces at its ends, got {_beginning(source)!r}: some "
                "versions of sentence-transformers strip them, others do not; try text.strip()"
            )
    if sentence.lowercase and list(_lowercased(tokenizer, source).ids) != ids:
        raise InputError(
            f"expected a text whose lowercase is the same to Python and to the tokenizer, got "
            f"{_beginning(source)!r}: do_lower_case in sentence_bert_config.json is done by one or the "
            "other, depending on the version of sentence-transformers; try text.lower()"
        )
    return Text(source, list(encoded.tokens), ids)


def _lowercased(tokenizer: Any, source: str) -> Any:
    """Tokenise a text by a tokenizer that makes it lowercase first, but for its added tokens."""
    from tokenizers.normalizers import Lowercase
    from tokenizers.normalizers import Sequence as Several

    normalizer = tokenizer.normalizer
    tokenizer.normalizer = Several([Lowercase(), *([] if normalizer is None else [normalizer])])
    try:
        return encode(tokenizer, source, source)
    finally:
        tokenizer.normalizer = normalizer


def encode(tokenizer: Any, text: str, source: str) -> Any:
    """Tokenise a text that is made of ``source``, by which it is called where that cannot be done."""
    try:
        return tokenizer.encode(text)
    except Exception as error:
        # The library raises nothing more specific: half of a pair of surrogates, no room for [CLS].
        raise InputError(f"the text {_beginning(source)!r} cannot be tokenised: {error}") from None


def _beginning(source: str) -> str:
    return source if len(source) < 40 else source[:37] + "…"


def read_folder_tokenizer(folder: Path) -> FolderTokenizer:
    """Read the tokenizer of a folder, and on which side, and to how many tokens, it cuts texts."""
    if importlib.util.find_spec("tokenizers") is None:
        raise InputError("texts are tokenised by the package tokenizers: pip install 'locum[models]'")
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"{folder} has no tokenizer.json: give numbers of tokens instead of text")
    read_tokenizer_config(folder)
    if importlib.util.find_spec("transformers") is not None:
        return _of_library(folder)
    tokenizer = _of_file(path)
    cut = read_cut(folder, tokenizer)
    require_agreement(folder, tokenizer)
    return FolderTokenizer(tokenizer, cut)


def _of_file(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:
        # The library raises nothing more specific.
        raise InputError(f"{path} cannot be read: {error}") from None


def _of_library(folder: Path) -> FolderTokenizer:
    """Read a tokenizer as transformers does, from the folder alone and without code of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, on versions and settings
        import transformers

        logging: Any = transformers.utils.logging
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        try:
            made: Any = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:
            # Files that are no JSON, classes that do not fit: the library raises anything then.
            _of_file(folder / "tokenizer.json")
            raise InputError(
                f"{folder}: expected a tokenizer that transformers reads, got {type(error).__name__}: "
                f"{error!s:.200}; try token ids instead of text"
            ) from None
        finally:
            logging.set_verbosity(verbosity)
    if not getattr(made, "is_fast", False):
        raise InputError(
            f"{folder}: expected a tokenizer of the package tokenizers, got {type(made).__name__}; try "
            "token ids instead of text"
        )
    require_no_types(folder, made.model_input_names)
    longest = made.model_max_length
    return FolderTokenizer(
        made.backend_tokenizer,
        Cut(made.truncation_side, None if longest is None or longest > ENDLESS else int(longest)),
    )
