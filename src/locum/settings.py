"""Declare settings (type, default, help text and bounds), and check their values with uniform error
messages.

A setting annotates a field of a dataclass, ``length: Annotated[int, Setting(…)]``, or belongs to a name
in a mapping. Such declarations are used to check command-line options, requests, sweep specifications
and saved configurations. NumPy numbers and arrays are accepted as numbers and lists.

>>> Setting("an integer", least=1, most=32).read(99, "length")
Traceback (most recent call last):
locum.errors.InputError: length: expected an integer from 1 to 32, got 99
>>> read_settings({"seed": 3}, {"seed": Setting("an integer"), "rate": Setting("a number", default=1)})
{'seed': 3, 'rate': 1.0}
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints

from locum.errors import InputError, LocumError

Error: TypeAlias = "type[LocumError]"
#: The default of a setting that is required.
REQUIRED: Any = object()


def to_python(value: Any) -> Any:
    """Convert a NumPy number or array to a Python number or list; return other values unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def show(value: Any) -> str:
    """Return the text that an error message shows for ``value``, of at most 60 characters."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    try:
        text = repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # an integer with more digits than Python prints, or a deeply nested list
        return f"a {type(value).__name__} that is too long to print"
    return text if len(text) <= 60 else text[:59] + "…"


def _bound(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def has_surrogates(text: str) -> bool:
    """Return whether a text contains unpaired surrogates and is therefore not valid Unicode."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> int | float:
    if isinstance(value, (bool, str)) or not math.isfinite(value):
        raise TypeError
    # 0, 0.0 and -0.0 are the same setting. Large integers are not converted: a float would round them.
    return value if abs(value) > 2**53 else float(value) + 0.0


def _text(value: Any) -> str:
    if not isinstance(value, str) or has_surrogates(value):
        raise TypeError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "an integer": _integer,
    "a number": _number,
    "a text": _text,
    "true or false": _boolean,
}
_ITEMS = {f"a list of {kind.split()[1]}s": kind for kind in ("an integer", "a number", "a text")}


@dataclass(frozen=True)
class Setting:
    """A declaration of one setting.

    ``type`` is "an integer", "a number", "a text", "true or false", or a list type such as "a list of
    numbers". With ``convert``, ``type`` can be any description. Bounds and choices apply to a value, or
    to each item of a list.
    """

    type: str
    #: A noun phrase for help texts.
    help: str = ""
    default: Any = REQUIRED
    choices: Collection[Any] | None = None
    #: Inclusive lower and upper bounds, and an exclusive lower bound.
    least: float | None = None
    most: float | None = None
    above: float | None = None
    #: Maximum number of characters or items.
    longest: int | None = None
    #: Function that returns a value in normal form, or raises TypeError, ValueError or a LocumError.
    convert: Callable[[Any], Any] | None = None

    @property
    def is_list(self) -> bool:
        """Whether the values of this setting are lists."""
        return self.type in _ITEMS

    @property
    def is_required(self) -> bool:
        """Whether the setting must be given because it has no default."""
        return self.default is REQUIRED

    @property
    def expected(self) -> str:
        """A description of the expected value for messages: its choices, or its type and bounds."""
        if self.choices is not None:
            return ("items of " if self.is_list else "one of ") + ", ".join(map(str, self.choices))
        words = "a finite number" if self.type == "a number" and self.most is None else self.type
        if self.longest is not None and self.is_list:
            words = words.replace("a list of", f"a list of at most {self.longest:,}")
        elif self.longest is not None:
            words += f" of at most {self.longest:,} characters"
        if self.least is not None and self.most is not None:
            return f"{words} from {_bound(self.least)} to {_bound(self.most)}"
        bounds = (("≥", self.least), (">", self.above), ("≤", self.most))
        limits = " and ".join(f"{sign} {_bound(n)}" for sign, n in bounds if n is not None)
        return f"{words} {limits}".rstrip()

    def read(self, value: Any, name: str, error: Error = InputError) -> Any:
        """Check a value and return it in normal form; None is accepted if it is the default.

        An invalid value raises ``error``, whose message begins with ``name``. A :class:`LocumError`
        that ``convert`` raises is not replaced.

        >>> Setting("a number").read(-0.0, "seconds"), Setting("a list of numbers").read([1], "rates")
        (0.0, [1.0])
        """
        plain = to_python(value)
        if plain is None and self.default is None:
            return None
        try:
            return self.normalise(plain)
        except LocumError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise error(f"{name}: expected {self.expected}, got {show(value)}") from None

    def normalise(self, value: Any) -> Any:
        """Return a value in normal form; for example, 1 given as "a number" becomes 1.0.

        An invalid value raises TypeError, ValueError, OverflowError or an error of ``convert``.
        """
        if self.convert is not None:
            value = self.convert(value)
        if self.is_list:
            if not isinstance(value, (list, tuple)):
                raise TypeError
            items = [_TYPES[_ITEMS[self.type]](item) for item in value]
            result: Any = type(value)(items)
        else:
            result = _TYPES[self.type](value) if self.type in _TYPES else value
            items = [result]
        if self.longest is not None and len(result) > self.longest:
            raise ValueError
        if not all(map(self._is_within, items)):
            raise ValueError
        return result

    def _is_within(self, item: Any) -> bool:
        return (
            (self.choices is None or item in self.choices)
            and (self.least is None or item >= self.least)
            and (self.most is None or item <= self.most)
            and (self.above is None or item > self.above)
        )


# Settings of dataclasses and mappings --------------------------------------------------------------


def settings_of(record: Any) -> dict[str, Setting]:
    """Return a mapping from the names of the annotated fields of a dataclass to their settings, with
    the defaults of the fields.
    """
    return _read_annotations(record)


@functools.lru_cache(maxsize=64)
def _read_annotations(record: Any) -> dict[str, Setting]:
    hints = get_type_hints(record, include_extras=True)
    settings = {}
    for field in dataclasses.fields(record):
        for declared in getattr(hints[field.name], "__metadata__", ()):
            default = REQUIRED if field.default is dataclasses.MISSING else field.default
            settings[field.name] = dataclasses.replace(declared, default=default)
    return settings


def normalise_settings(record: Any, error: Error = InputError) -> None:
    """Check the settings of a frozen dataclass and replace them by their normal forms.

    Call this in ``__post_init__``.
    """
    for name, declared in settings_of(type(record)).items():
        object.__setattr__(record, name, declared.read(getattr(record, name), name, error))


def require_known(
    names: Iterable[str], known: Iterable[str], what: str, error: Error = InputError
) -> None:
    """Raise an error for the first of ``names`` that is not in ``known``, and suggest a similar known
    name if there is one.
    """
    listed = list(known)
    for name in names:
        if name not in listed:
            near = difflib.get_close_matches(name, listed, 1, cutoff=0.6)
            hint = f"; try {near[0]}" if near else ""
            raise error(f"{what}: expected {', '.join(listed) or 'none'}, got {show(name)}{hint}")


def read_settings(
    given: Mapping[str, Any],
    settings: Mapping[str, Setting],
    what: str = "settings",
    error: Error = InputError,
) -> dict[str, Any]:
    """Check the values ``given`` and return the values of all settings in normal form; missing settings
    have their defaults.

    Unknown names and missing required settings raise ``error``.
    """
    require_known(given, settings, what, error)
    for name, declared in settings.items():
        if declared.is_required and name not in given:
            meaning = f" ({declared.help.rstrip('.')})" if declared.help else ""
            raise error(f"{name}: expected {declared.expected}{meaning}, got nothing")
    return {
        name: declared.read(given.get(name, declared.default), name, error)
        for name, declared in settings.items()
    }


# Single values -------------------------------------------------------------------------------------


def require_integer(value: Any, name: str, least: int = 1, error: Error = InputError) -> int:
    """Return ``value`` as an integer, or raise ``error`` if it is not an integer or is less than
    ``least``.
    """
    return int(Setting("an integer", least=least).read(value, name, error))


def require_number(
    value: Any,
    name: str,
    above: float | None = None,
    most: float | None = None,
    error: Error = InputError,
) -> float:
    """Return ``value`` as a float, or raise ``error`` if it is not a finite number within the bounds.

    ``above`` is an exclusive lower bound, and ``most`` is an inclusive upper bound.
    """
    return float(Setting("a number", above=above, most=most).read(value, name, error))


def require_choice(value: Any, choices: Collection[Any], name: str, error: Error = InputError) -> None:
    """Raise ``error`` if ``value`` is not one of ``choices``, which are strings or None."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise error(f"{name}: expected one of {', '.join(map(str, choices))}, got {show(value)}")
