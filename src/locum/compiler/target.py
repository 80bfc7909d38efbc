"""What to compile for: which inputs, which kind of network, how exact.

The fields of :class:`Target` are the options of ``locum.compile``, declared here and nowhere else.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias

from locum.errors import CompileError
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, is_atom, sequence_type
from locum.graph.atoms import EXACT_INTEGERS, identity

#: The types of number that a target may have, and up to where each holds every integer.
EXACT_WHOLE = {dtype: EXACT_INTEGERS[dtype] for dtype in ("float64", "float32")}

ATTENTIONS = ("hard", "softmax")
FEED_FORWARDS = ("relu", "gelu", "glu", "exact")
#: What errors say of programs that hidden units cannot compute.
REFERENCE = "feed_forward='exact', a reference for analysis, not weights"

#: (low, high) for all positions, or one pair for each.
Ranges: TypeAlias = "tuple[tuple[float, float], ...]"

#: The numbers that programs compute with while they are compiled.
DOMAIN = FloatDomain()


@dataclass(frozen=True, kw_only=True)
class Target:
    """The options of ``compile``, checked and in one form.

    >>> Target(length=3, vocabulary="aba").vocabulary
    ('a', 'b')
    """

    #: Number of tokens of the longest input.
    length: int
    #: The tokens that may occur, in the order of W_E's rows …
    vocabulary: tuple[Atom, ...] | None = None
    #: … or any real numbers.
    numeric: bool = False
    #: Whether all inputs have ``length`` tokens; else any number from 1 on.
    fixed: bool = False
    #: Whether it is a decoder: causal masks in all heads, and a begin marker as sink.
    causal: bool = False
    #: "hard" (average-hard) or "softmax".
    attention: str = "hard"
    #: Hidden units, "relu", "gelu" or "glu"; or "exact": instructions, a reference for analysis.
    feed_forward: str = "relu"
    #: The error allowed in the whole network, where something has to be approximated.
    tolerance: float | None = None
    #: Between which numbers real-valued tokens lie: (low, high), or one pair for each position.
    ranges: Any = None
    #: Real numbers that are compared are equal, or differ by at least this.
    separation: float | None = None
    #: The type of all weights: "float64" or "float32".
    dtype: str = "float64"
    #: Whether a slot that nobody reads any more is erased and used again; else it keeps its meaning.
    reuse_slots: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", _plain(self.length))
        if type(self.length) is not int or self.length < 1:
            raise CompileError(
                f"length: expected an integer ≥ 1 (number of tokens), got {self.length!r}"
            )
        for name in ("numeric", "fixed", "reuse_slots", "causal"):
            if not isinstance(getattr(self, name), bool):
                raise CompileError(f"{name}: expected True or False, got {getattr(self, name)!r}")
        if self.numeric and self.vocabulary is not None:
            raise CompileError("expected either vocabulary=… or numeric=True, got both")
        if not self.numeric and self.vocabulary is None:
            raise CompileError(
                "expected the tokens: try vocabulary=… to list them, or numeric=True for real numbers"
            )
        # NumPy's types are classes with a name, and those of torch are written as torch.float32.
        named = getattr(self.dtype, "__name__", str(self.dtype))
        object.__setattr__(self, "dtype", named.rsplit(".", 1)[-1])
        for name, choices in (
            ("attention", ATTENTIONS),
            ("feed_forward", FEED_FORWARDS),
            ("dtype", tuple(EXACT_WHOLE)),
        ):
            if getattr(self, name) not in choices:
                shown = f"{', '.join(choices[:-1])} or {choices[-1]}"
                raise CompileError(f"{name}: expected {shown}, got {getattr(self, name)!r}")
        for name in ("tolerance", "separation"):
            number = getattr(self, name)
            if number is not None and not (isinstance(number, (int, float)) and 0 < number < math.inf):
                raise CompileError(f"{name}: expected a positive number, got {number!r}")
        object.__setattr__(self, "ranges", _ranges(self.ranges, self.length))
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", _vocabulary(self.vocabulary))

    @classmethod
    def read(cls, **options: Any) -> Target:
        """Read options by name; an unknown one is an error that names the nearest.

        >>> Target.read(length=3, vocab="ab")
        Traceback (most recent call last):
        ...
        locum.errors.CompileError: unknown option 'vocab'; did you mean 'vocabulary'?
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, cutoff=0.6)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise CompileError(f"unknown option {name!r}; {hint}")
        for field in fields(cls):
            if field.default is MISSING and field.name not in options:
                raise CompileError(
                    f"missing option {field.name!r}: the number of tokens of the longest input"
                )
        return cls(**options)

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
        everywhere = all(pair == (-math.inf, math.inf) for pair in self.ranges)
        unlimited = self.feed_forward == "exact" or everywhere or self.vocabulary is not None
        return None if unlimited else self.ranges


def _plain(value: Any) -> Any:
    """Return a number, string or boolean of NumPy as one of Python; all else as it is."""
    return (
        value.item() if type(value).__module__ == "numpy" and not getattr(value, "ndim", 1) else value
    )


def _vocabulary(listed: Sequence[Atom]) -> tuple[Atom, ...]:
    is_list = isinstance(listed, Iterable) and getattr(listed, "ndim", 1) != 0
    if isinstance(listed, (bytes, bytearray)) or not is_list:
        raise CompileError(f"vocabulary: expected a list of tokens, got {listed!r}")
    atoms = [_plain(token) for token in listed]
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


def _ranges(ranges: Any, length: int) -> Ranges:
    """Read (low, high) for every token, or a list of such pairs; also {"tokens": …}."""
    if ranges is None:
        return ((-math.inf, math.inf),)
    value = ranges
    if isinstance(ranges, Mapping):
        value = ranges["tokens"] if set(ranges) == {"tokens"} else ()
    try:
        rows = value if hasattr(value[0], "__len__") else [value]
        pairs = [(float(low), float(high)) for low, high in rows]
    except (LookupError, TypeError, ValueError):
        pairs = []
    sound = pairs and all(low <= high for low, high in pairs)
    if not sound or len(pairs) not in (1, length):
        raise CompileError(
            f"ranges: expected (low, high) for all tokens, or one such pair for each of the {length} "
            f"positions, got {ranges!r}"
        )
    return tuple(pairs)
