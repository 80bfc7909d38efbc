"""Tokens as they are typed: vocabularies, and inputs for a compiled transformer.

A number is what RASP's grammar reads as one; ``True`` and ``False`` are truth values, and what stands
in double quotes is a string. Nothing is evaluated.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locum.cli.matrices import read_array
from locum.cli.programs import read_input
from locum.errors import InputError, LocumError
from locum.graph import Atom, is_atom

if TYPE_CHECKING:
    from locum.transformer import CompiledTransformer

#: Vocabularies are read from files of these kinds: one token on each line, or a list.
TEXT, LIST = ".txt", ".json"


def read_vocabulary(text: str) -> list[Atom]:
    """``abc`` (characters), ``one,two`` or ``1,2.5`` (literals), or the name of a .txt or .json file.

    >>> read_vocabulary("abc"), read_vocabulary("1,-2.5,true"), read_vocabulary('1,2,"3"')
    (['a', 'b', 'c'], [1, -2.5, 'true'], [1, 2, '3'])
    """
    if text.endswith((TEXT, LIST)):
        return _from_file(Path(text))
    _refuse_half_characters(text, "--vocab")
    return list(text) if "," not in text else _separated(text, "--vocab")


def _from_file(path: Path) -> list[Atom]:
    content = _read(path, "the vocabulary")
    if path.suffix == TEXT:
        found: Any = [literal(line) for line in content.splitlines() if line.strip()]
    else:
        found = _json(content, path)
        if not isinstance(found, list) or not all(is_atom(token) for token in found):
            raise InputError(f"the vocabulary {path} must be a list of strings, or of numbers")
    return list(found)


def _separated(text: str, option: str) -> list[Atom]:
    parts = text.split(",")
    if not text.strip():
        raise InputError(f"{option} is empty")
    if any(not part.strip() for part in parts):
        raise InputError(f"{option} {text[:40]!r} has nothing between two commas")
    return [literal(part) for part in parts]


def literal(text: str) -> Atom:
    """One token: a number or truth value of RASP, a string in quotes, or the word as it stands.

    >>> literal("007"), literal("1e3"), literal("a b"), literal('"1"'), literal("- 2"), literal("True")
    (7, 1000.0, 'a b', '1', -2, True)
    """
    from locum.language.rasp.reader import grammar

    text = text.strip()
    match [(str(token.type), str(token)) for token in grammar().lex(text)]:
        case [("INTEGER", digits)]:
            return _whole(digits)
        case [("FLOAT", digits)]:
            return float(digits)
        case [("MINUS", _), ("INTEGER", digits)]:
            return -_whole(digits)
        case [("MINUS", _), ("FLOAT", digits)]:
            return -float(digits)
        case [("STRING", quoted)] if quoted == text:
            return quoted[1:-1]
        case [("NAME", "True" | "False")]:
            return text == "True"
    return text


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python reads no more than some thousand digits
        raise InputError(f"a whole number of {len(digits)} digits is too long") from None


def read_tokens(text: str, model: CompiledTransformer) -> Any:
    """An input of the model: JSON as ``locum run`` takes it, or as one would type it.

    Where tokens are strings, ``hello`` is five characters and ``one,two`` two words; where they are
    numbers, ``1,2.5`` is two.
    """
    vocabulary = model.config.vocabulary
    strings = vocabulary is not None and isinstance(vocabulary[0], str)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list) and any(isinstance(token, list) for token in found) and not strings:
        raise InputError("an input is one sequence; several are given by repeating --input")
    if isinstance(found, list) and found and all(isinstance(t, str) == strings for t in found):
        return read_input(text)
    if isinstance(found, str):
        return read_input(text)
    if not strings:
        return _separated(text, "--input")
    words = text.split(",")
    if len(words) > 1 and all(word in (vocabulary or ()) for word in words):
        return words
    return text


def read_tokens_file(path: Path) -> Any:
    """An input from a .json file (a list), or from a .npy file (an array, row by row)."""
    if path.suffix != LIST:
        return read_array(path).ravel().tolist()
    found = _json(_read(path, "the input"), path)
    if not isinstance(found, str) and not (isinstance(found, list) and all(map(is_atom, found))):
        raise InputError(f"{path} must hold one string, or one list of tokens")
    return found


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LocumError(f"cannot read {what} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LocumError(f"cannot read {what} {path}: it is not text") from None


def _json(content: str, path: Path) -> Any:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    _refuse_half_characters(found, str(path))
    return found


def _refuse_half_characters(value: Any, where: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} has half a character in it (a lone surrogate)") from None
