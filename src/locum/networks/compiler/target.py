"""Define the options of ``locum.compile``: inputs, kind of network, accuracy.

The fields of :class:`Target` declare the options. The command ``locum compile`` and the requests of
the playground use the same declarations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

from locum.errors import CompileError
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, is_atom, sequence_type
from locum.graph.atoms import EXACT_INTEGERS, identity
from locum.networks.compiler.compile_limits import DEFAULTS, Limit, read_limit
from locum.networks.compiler.input_reading import EXPECTED, read_inputs
from locum.networks.transformer.config import ATTENTIONS, DTYPES, FEED_FORWARDS
from locum.settings import Setting, normalise_settings, read_settings, settings_of, to_python

#: For each floating-point type, the largest number up to which it represents every integer.
EXACT_WHOLE = {dtype: EXACT_INTEGERS[dtype] for dtype in DTYPES}

#: Advice in errors about programs for which no other options were found in time.
REFERENCE = "feed_forward='exact' (symbolic feed-forwards, executed as code)"

#: Default limit of the error bound of a network with hidden units whose output is a number.
DEFAULT_TOLERANCE = 1e-3

#: One pair (low, high) for all positions, or one pair for each position.
Ranges: TypeAlias = "tuple[tuple[float, float], ...]"
EVERYWHERE: Ranges = ((-math.inf, math.inf),)

#: The arithmetic of constants during compilation.
DOMAIN = FloatDomain()


def _vocabulary(listed: Any) -> tuple[Atom, ...]:
    if isinstance(listed, (bytes, bytearray)) or not isinstance(listed, Iterable):
        raise TypeError
    atoms = [to_python(token) for token in listed]
    for token in atoms:
        if not is_atom(token):
            raise CompileError(
                f"vocabulary: expected booleans, numbers or strings as tokens, got {token!r}"
            )
    # 1, 1.0 and True are three different tokens, since they print differently.
    tokens = tuple({identity(token): token for token in atoms}.values())
    if not tokens:
        raise CompileError("vocabulary: expected one token or more, got none")
    for token in tokens:
        if isinstance(token, float) and not math.isfinite(token):
            raise CompileError(
                f"vocabulary: expected numbers within the range of floats, got {token!r}"
            )
    if sequence_type(tokens) is None:
        raise CompileError(
            "vocabulary: expected only strings or only numbers, got both; try "
            "[str(token) for token in vocabulary]"
        )
    return tokens


def _ranges(value: Any) -> Ranges:
    """Return pairs (low, high): one pair for all tokens, or one for each position.

    ``value`` may also be a mapping {"tokens": …}. None means unlimited tokens.
    """
    if value is None:
        return EVERYWHERE
    if isinstance(value, Mapping):
        value = value["tokens"] if set(value) == {"tokens"} else ()
    if not len(value):
        raise ValueError
    rows = value if hasattr(value[0], "__len__") else [value]
    pairs = tuple((float(low), float(high)) for low, high in rows)
    if not all(low <= high for low, high in pairs):
        raise ValueError
    return pairs


def _dtype(value: Any) -> str:
    # NumPy's types are classes with a name; PyTorch's types print as "torch.float32".
    return str(getattr(value, "__name__", value)).rsplit(".", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Validated options of ``compile``.

    >>> Target(length=3, vocabulary="aba").vocabulary
    ('a', 'b')
    """

    length: Annotated[
        int, Setting("an integer", "Number of tokens of the longest input.", least=1, most=100_000)
    ]
    vocabulary: Annotated[
        tuple[Atom, ...] | None,
        Setting("a list of tokens", "Tokens, in the order of the rows of W_E.", convert=_vocabulary),
    ] = None
    numeric: Annotated[bool, Setting("true or false", "Accept real numbers as tokens.")] = False
    fixed: Annotated[bool, Setting("true or false", "All inputs have exactly the given length.")] = (
        False
    )
    causal: Annotated[
        bool, Setting("true or false", "Compile to a decoder with causal masks and a begin marker.")
    ] = False
    attention: Annotated[str, Setting("a text", "Kind of attention heads.", choices=ATTENTIONS)] = (
        "hard"
    )
    feed_forward: Annotated[
        str,
        Setting("a text", "Hidden units, or exact for a symbolic feed-forward.", choices=FEED_FORWARDS),
    ] = "relu"
    tolerance: Annotated[float | None, Setting("a number", "Maximum approximation error.", above=0)] = (
        None
    )
    prefer: Annotated[
        str | None,
        Setting("a text", "Prefer lookup tables, or smaller networks.", choices=("exact", "small")),
    ] = None
    ranges: Annotated[
        Any,
        Setting(
            "(low, high) for all tokens, or one such pair for each position",
            "Range of real-valued tokens.",
            convert=_ranges,
        ),
    ] = EVERYWHERE
    separation: Annotated[
        float | None,
        Setting("a number", "Smallest difference between unequal compared numbers.", above=0),
    ] = None
    dtype: Annotated[
        str, Setting("a text", "Data type of the weights.", choices=DTYPES, convert=_dtype)
    ] = "float64"
    reuse_slots: Annotated[
        bool, Setting("true or false", "Reuse slots whose values are no longer read.")
    ] = True
    fold: Annotated[
        bool, Setting("true or false", "Compute functions of token or position by embedding.")
    ] = True
    limit: Annotated[
        Limit,
        Setting(
            "bounds for units, width, seconds or memory by name, or None",
            "Bounds of units, width, seconds and memory.",
            convert=read_limit,
        ),
    ] = DEFAULTS
    inputs: Annotated[
        Any, Setting(EXPECTED, "Condition that every input satisfies.", convert=lambda given: given)
    ] = None

    def __post_init__(self) -> None:
        normalise_settings(self, CompileError)
        if self.numeric and self.vocabulary is not None:
            raise CompileError("expected either vocabulary=… or numeric=True, got both")
        if not self.numeric and self.vocabulary is None:
            raise CompileError(
                "expected vocabulary=… or numeric=True, got neither; try vocabulary=… for a list of "
                "tokens, or numeric=True for real numbers"
            )
        if len(self.ranges) not in (1, self.length):
            raise CompileError(
                f"ranges: expected (low, high) for all tokens, or one such pair for each of the "
                f"{self.length} positions, got {len(self.ranges)} pairs"
            )
        object.__setattr__(self, "inputs", read_inputs(self.inputs, self.vocabulary, self.length))

    @classmethod
    def read(cls, **options: Any) -> Target:
        """Return the target with these options; raise CompileError for an unknown option.

        If the name of an option is similar to the unknown name, the error suggests this option.

        >>> Target.read(length=3, vocab="ab")
        Traceback (most recent call last):
        ...
        locum.errors.CompileError: options: expected length, ..., got 'vocab'; try vocabulary
        """
        return cls(**read_settings(options, settings_of(cls), "options", CompileError))

    def options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as arguments for ``Target.read``."""
        declared = settings_of(type(self)).items()
        values = {name: (getattr(self, name), setting.default) for name, setting in declared}
        if self.inputs is not None:
            values["inputs"] = [asdict(condition) for condition in self.inputs], None
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def shortest(self) -> int:
        """Number of tokens of the shortest input."""
        return self.length if self.fixed else 1

    @property
    def longest(self) -> int:
        """Number of tokens of the longest input."""
        return self.length

    @property
    def low(self) -> tuple[float, ...]:
        """Lower bounds of real-valued tokens: one for all positions, or one for each position."""
        return tuple(low for low, _ in self.ranges)

    @property
    def high(self) -> tuple[float, ...]:
        """Upper bounds of real-valued tokens: one for all positions, or one for each position."""
        return tuple(high for _, high in self.ranges)

    @property
    def bounded(self) -> bool:
        """Whether all tokens are in a finite range."""
        return self.vocabulary is not None or all(map(math.isfinite, (*self.low, *self.high)))

    @property
    def served(self) -> Ranges | None:
        """Ranges of real-valued tokens for which the network is correct; None if there is no limit.

        For real-valued tokens, the option ``ranges`` is the limit, unless feed-forwards are symbolic.
        Hidden units approximate functions only on a range.
        """
        everywhere = {*self.ranges} == {*EVERYWHERE}
        unlimited = self.feed_forward == "exact" or everywhere or self.vocabulary is not None
        return None if unlimited else self.ranges
