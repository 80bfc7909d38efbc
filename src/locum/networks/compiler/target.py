"""The options of ``locum.compile``: which inputs, which kind of network, how exact.

The fields of :class:`Target` declare the options, here and nowhere else: ``locum compile``, requests of
the playground and saved configurations read these declarations.
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
from locum.networks.compiler.input_reading import EXPECTED, read_inputs
from locum.networks.transformer.config import ATTENTIONS, DTYPES, FEED_FORWARDS
from locum.settings import Setting, normalise_settings, read_settings, settings_of, to_python

#: Up to where each type of number holds every integer.
EXACT_WHOLE = {dtype: EXACT_INTEGERS[dtype] for dtype in DTYPES}

#: What errors say of programs that hidden units cannot compute.
REFERENCE = "feed_forward='exact', a reference for analysis, not weights"

#: The error of the whole network where units have to approximate and none was asked for.
DEFAULT_TOLERANCE = 1e-3

#: (low, high) for all positions, or one pair for each.
Ranges: TypeAlias = "tuple[tuple[float, float], ...]"
EVERYWHERE: Ranges = ((-math.inf, math.inf),)

#: The numbers that programs compute with while they are compiled.
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
    # 1, 1.0 and True are three tokens: they print differently.
    tokens = tuple({identity(token): token for token in atoms}.values())
    if not tokens:
        raise CompileError("vocabulary: expected one token or more, got none")
    for token in tokens:
        if isinstance(token, float) and not math.isfinite(token):
            raise CompileError(
                f"vocabulary: expected finite numbers, which weights hold, got {token!r}"
            )
    if sequence_type(tokens) is None:
        raise CompileError(
            "vocabulary: expected strings or numbers, got both; an input cannot mix them, either"
        )
    return tokens


def _ranges(value: Any) -> Ranges:
    """Read (low, high) for every token, or a list of such pairs; also {"tokens": …}."""
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
    # NumPy's types are classes with a name, and those of torch are written as torch.float32.
    return str(getattr(value, "__name__", value)).rsplit(".", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The options of ``compile``, checked and in one form.

    >>> Target(length=3, vocabulary="aba").vocabulary
    ('a', 'b')
    """

    length: Annotated[
        int, Setting("an integer", "Number of tokens of the longest input.", least=1, most=100_000)
    ]
    vocabulary: Annotated[
        tuple[Atom, ...] | None,
        Setting("a list of tokens", "Tokens, in the order of W_E's rows.", convert=_vocabulary),
    ] = None
    numeric: Annotated[bool, Setting("true or false", "Tokens are any real numbers.")] = False
    fixed: Annotated[bool, Setting("true or false", "Inputs of exactly this length.")] = False
    causal: Annotated[bool, Setting("true or false", "A decoder: causal masks, begin marker.")] = False
    attention: Annotated[str, Setting("a text", "Attention of the heads.", choices=ATTENTIONS)] = "hard"
    feed_forward: Annotated[
        str,
        Setting("a text", "Hidden units; exact: instructions, for analysis.", choices=FEED_FORWARDS),
    ] = "relu"
    tolerance: Annotated[
        float | None, Setting("a number", "Maximum error of approximations.", above=0)
    ] = None
    prefer: Annotated[
        str | None,
        Setting("a text", "Tables or smaller approximations.", choices=("exact", "small")),
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
        float | None, Setting("a number", "Smallest gap between different numbers compared.", above=0)
    ] = None
    dtype: Annotated[str, Setting("a text", "Type of all weights.", choices=DTYPES, convert=_dtype)] = (
        "float64"
    )
    reuse_slots: Annotated[bool, Setting("true or false", "Reuse slots that nothing reads.")] = True
    inputs: Annotated[
        Any, Setting(EXPECTED, "Condition that every input satisfies.", convert=lambda given: given)
    ] = None

    def __post_init__(self) -> None:
        normalise_settings(self, CompileError)
        if self.numeric and self.vocabulary is not None:
            raise CompileError("expected either vocabulary=… or numeric=True, got both")
        if not self.numeric and self.vocabulary is None:
            raise CompileError(
                "expected the tokens: try vocabulary=… to list them, or numeric=True for real numbers"
            )
        if len(self.ranges) not in (1, self.length):
            raise CompileError(
                f"ranges: expected (low, high) for all tokens, or one such pair for each of the "
                f"{self.length} positions, got {len(self.ranges)} pairs"
            )
        object.__setattr__(self, "inputs", read_inputs(self.inputs, self.vocabulary, self.length))

    @classmethod
    def read(cls, **options: Any) -> Target:
        """Read options by name; an unknown one is an error that names the nearest.

        >>> Target.read(length=3, vocab="ab")
        Traceback (most recent call last):
        ...
        locum.errors.CompileError: options: expected length, ..., got 'vocab'; try vocabulary
        """
        return cls(**read_settings(options, settings_of(cls), "options", CompileError))

    def options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults; ``Target.read`` takes them again."""
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
        """Least real-valued token, for all positions or for each."""
        return tuple(low for low, _ in self.ranges)

    @property
    def high(self) -> tuple[float, ...]:
        """Greatest real-valued token, for all positions or for each."""
        return tuple(high for _, high in self.ranges)

    @property
    def bounded(self) -> bool:
        """Whether tokens are known to lie in a finite range."""
        return self.vocabulary is not None or all(map(math.isfinite, (*self.low, *self.high)))

    @property
    def served(self) -> Ranges | None:
        """Which tokens the network is right for, or None for all of them: units have ranges."""
        everywhere = {*self.ranges} == {*EVERYWHERE}
        unlimited = self.feed_forward == "exact" or everywhere or self.vocabulary is not None
        return None if unlimited else self.ranges
