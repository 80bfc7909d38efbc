"""Read tokens in command-line syntax: vocabularies, and inputs of compiled transformers with their
conditions.

Outside of JSON, numbers follow RASP's grammar, ``True`` and ``False`` are booleans, and text in double
quotes is a string. No text is evaluated as code.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locum.errors import InputError
from locum.files import read_json, read_text
from locum.graph import Atom, is_atom
from locum.interface.cli.options import read_input, require_unicode

if TYPE_CHECKING:
    from locum.networks.transformer import CompiledTransformer

#: Suffixes of vocabulary files: one token per line, or a JSON list.
TEXT, LIST = ".txt", ".json"
#: Maximum size of a file of tokens in bytes.
LIMIT = 2**26


def read_vocabulary(text: str) -> list[Atom]:
    """Return the tokens of a vocabulary in command-line syntax.

    ``text`` consists of characters (``abc``) or comma-separated literals (``one,two`` or ``1,2.5``), or
    is the name of a .txt or .json file. A JSON list of several tokens is also accepted.

    >>> read_vocabulary("abc"), read_vocabulary("1,-2.5,true"), read_vocabulary('1,2,"3"')
    (['a', 'b', 'c'], [1, -2.5, 'true'], [1, 2, '3'])
    >>> read_vocabulary('["a", "b,c"]'), read_vocabulary("[]")
    (['a', 'b,c'], ['[', ']'])
    """
    if text.endswith((TEXT, LIST)):
        return _from_file(Path(text))
    require_unicode(text, "--vocab")
    if text.startswith("[") and "," in text:
        with contextlib.suppress(ValueError):
            listed = json.loads(text)
            if isinstance(listed, list) and all(map(is_atom, listed)):
                return listed
    return list(text) if "," not in text else _separated(text, "--vocab")


#: A count of a token: ``+: 1``, ``+: 0..2``, ``+: 1..``. A token may be in double quotes.
_COUNT = re.compile(r'\s*("[^"]*"|[^,:]*[^,:\\\s]|[,:])\s*:\s*(\d{1,9})(\.\.(\d{1,9})?)?\s*(?:,|$)')


def read_condition(text: str, vocabulary: Sequence[Atom] | None) -> Any:
    """Return a condition on inputs: counts of tokens (``+: 1, -: 0..2``), or a regular expression.

    >>> read_condition("+: 1, -: 0..2, 3: 1..", ["+", "-", "3"])
    {'+': 1, '-': (0, 2), '3': (1, None)}
    >>> read_condition("(ab)*", "abc").automaton().accepts("abab")
    True
    """
    counts: dict[Atom, Any] = {}
    place = 0
    while match := _COUNT.match(text, place):
        token, low, span, high = match.groups()
        known = token if token in (vocabulary or ()) else literal(token)
        ends = int(low), int(high) if high else None
        counts[known] = ends if span else int(low)
        place = match.end()
    if counts and place == len(text):
        return counts
    from locum.languages import regular

    if vocabulary is None:
        raise InputError("--inputs: expected --vocab with it, got --numeric")
    return regular.read(text, [str(token) for token in vocabulary])


def _from_file(path: Path) -> list[Atom]:
    if path.suffix == TEXT:
        return [literal(line) for line in read_text(path, LIMIT).splitlines() if line.strip()]
    tokens = read_json(path, LIMIT)
    require_unicode(tokens, str(path))
    if not isinstance(tokens, list) or not all(is_atom(token) for token in tokens):
        raise InputError(f"the vocabulary {path}: expected a list of strings, or of numbers")
    return tokens


def _separated(text: str, option: str) -> list[Atom]:
    parts = text.split(",")
    if not text.strip():
        raise InputError(f"{option}: expected tokens, got an empty text")
    if any(not part.strip() for part in parts):
        raise InputError(f"{option}: expected a token between two commas, got {text[:40]!r}")
    return [literal(part) for part in parts]


def literal(text: str) -> Atom:
    """Return the value of one token: a number or boolean of RASP, a quoted string, or the text itself.

    >>> literal("007"), literal("1e3"), literal("a b"), literal('"1"'), literal("- 2"), literal("True")
    (7, 1000.0, 'a b', '1', -2, True)
    """
    from locum.rasp.text.reader import grammar

    text = text.strip()
    match [(str(token.type), str(token)) for token in grammar().lex(text)]:
        case [("INTEGER", digits)]:
            return _integer(digits)
        case [("FLOAT", digits)]:
            return float(digits)
        case [("MINUS", _), ("INTEGER", digits)]:
            return -_integer(digits)
        case [("MINUS", _), ("FLOAT", digits)]:
            return -float(digits)
        case [("STRING", quoted)] if quoted == text:
            return quoted[1:-1]
        case [("NAME", "True" | "False")]:
            return text == "True"
    return text


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python limits the number of digits of an integer
        raise InputError(f"an integer of {len(digits)} digits is too long") from None


def read_tokens(text: str, model: CompiledTransformer) -> Any:
    """Return an input of the model from command-line syntax: JSON as in ``locum run``, or plain text.

    If the tokens of the model are strings, ``hello`` means five characters, and ``one,two`` means two
    words if both are tokens. If they are numbers, ``1,2.5`` means two numbers.
    """
    vocabulary = model.config.vocabulary
    strings = vocabulary is not None and isinstance(vocabulary[0], str)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, list) and any(isinstance(token, list) for token in data) and not strings:
        raise InputError("--input: expected one sequence, got several; try one of them")
    if isinstance(data, list) and data and all(isinstance(t, str) == strings for t in data):
        return read_input(text)
    if isinstance(data, str):
        return read_input(text)
    if isinstance(data, list) and strings and "[" not in (vocabulary or ()):
        raise InputError(
            f"--input: expected tokens that are strings, got {text[:40]!r}; "
            "try abc, or a JSON list of strings"
        )
    if not strings:
        return _separated(text, "--input")
    words = text.split(",")
    if len(words) > 1 and all(word in (vocabulary or ()) for word in words):
        return words
    return text
