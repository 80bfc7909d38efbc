"""What is to be compiled for: which inputs, which kind of network, how exact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locum.errors import CompileError
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, is_atom, sequence_type
from locum.graph.atoms import EXACT_INTEGERS, identity

#: The types of number that a target may have, and up to where each holds every integer.
EXACT_WHOLE = {dtype: EXACT_INTEGERS[dtype] for dtype in ("float64", "float32")}

ATTENTIONS = ("hard", "softmax")
FEED_FORWARDS = ("exact", "glu", "gelu", "relu")


@dataclass(frozen=True)
class Target:
    """The inputs and the network, checked."""

    #: The shortest and the longest input.
    shortest: int
    longest: int
    #: The tokens there may be; None: any real number.
    vocabulary: tuple[Atom, ...] | None
    attention: str
    feed_forward: str
    dtype: str
    #: The error allowed in the whole network, where something has to be approximated.
    tolerance: float | None
    #: Between which numbers real-valued tokens lie: for all positions, or one pair for each.
    low: tuple[float, ...]
    high: tuple[float, ...]
    #: Real numbers that are compared differ by at least this, or are equal; None: nothing is known.
    separation: float | None
    #: Whether positional encodings that differ by a factor and a constant share a slot.
    share_positions: bool = True

    @property
    def fixed(self) -> bool:
        """Whether all inputs have one length."""
        return self.shortest == self.longest

    @property
    def bounded(self) -> bool:
        """Whether tokens are known to lie in a range."""
        return self.vocabulary is not None or all(map(math.isfinite, (*self.low, *self.high)))


def target(
    length: int,
    vocabulary: Sequence[Atom] | None = None,
    *,
    numeric: bool = False,
    fixed: bool = False,
    attention: str = "hard",
    feed_forward: str = "exact",
    tolerance: float | None = None,
    ranges: Any = None,
    separation: float | None = None,
    dtype: str = "float64",
    share_positions: bool = True,
) -> Target:
    """The options of ``compile`` as a :class:`Target`, or an error that says what is wrong."""
    if type(length) is not int or length < 1:
        raise CompileError(f"length is a whole number of tokens, one or more, not {length!r}")
    if numeric and vocabulary is not None:
        raise CompileError("tokens are either numbers (numeric=True) or of a vocabulary, not both")
    if not numeric and vocabulary is None:
        raise CompileError(
            "say which tokens there are: vocabulary=… lists them, numeric=True takes any real numbers"
        )
    _one_of(attention, ATTENTIONS, "attention")
    _one_of(feed_forward, FEED_FORWARDS, "feed_forward")
    dtype = str(dtype).rsplit(".", 1)[-1]
    _one_of(dtype, tuple(EXACT_WHOLE), "dtype")
    for name, number in (("tolerance", tolerance), ("separation", separation)):
        if number is not None and not (isinstance(number, (int, float)) and 0 < number < math.inf):
            raise CompileError(f"{name} is a positive number, not {number!r}")
    low, high = _ranges(ranges, length)
    return Target(
        length if fixed else 1,
        length,
        None if vocabulary is None else _vocabulary(vocabulary),
        attention,
        feed_forward,
        dtype,
        tolerance,
        low,
        high,
        separation,
        share_positions,
    )


def _one_of(value: object, choices: tuple[str, ...], name: str) -> None:
    if value not in choices:
        raise CompileError(f"{name} is one of {', '.join(choices)}, not {value!r}")


def _vocabulary(given: Sequence[Atom]) -> tuple[Atom, ...]:
    if not isinstance(given, Iterable):
        raise CompileError(f"the vocabulary is a list of tokens, not {given!r}")
    listed = list(given)
    for token in listed:
        if not is_atom(token):
            raise CompileError(f"the vocabulary has {token!r}: tokens are bools, numbers or strings")
    # 1, 1.0 and True are three tokens: they print differently.
    tokens = tuple({identity(token): token for token in listed}.values())
    if not tokens:
        raise CompileError("the vocabulary is empty: a program needs tokens")
    for token in tokens:
        if isinstance(token, float) and not math.isfinite(token):
            raise CompileError(f"the vocabulary has {token!r}: weights hold finite numbers only")
    if sequence_type(tokens) is None:
        raise CompileError("the vocabulary mixes strings with numbers; an input could not, either")
    return tokens


def _ranges(given: Any, length: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(low, high) for every token, or for each position; also {"tokens": …}."""
    if given is None:
        return (-math.inf,), (math.inf,)
    if isinstance(given, Mapping):
        if set(given) != {"tokens"}:
            raise CompileError(
                f'ranges are of tokens: (low, high), or {{"tokens": (low, high)}}, not {given!r}'
            )
        given = given["tokens"]
    try:
        pairs = (
            [tuple(map(float, pair)) for pair in given]
            if _nested(given)
            else [tuple(map(float, given))]
        )
    except (IndexError, TypeError, ValueError):
        pairs = []
    sound = pairs and all(len(pair) == 2 and pair[0] <= pair[1] for pair in pairs)
    if not sound or len(pairs) not in (1, length):
        raise CompileError(
            f"ranges are (low, high) for all tokens, or one such pair for each of the {length} "
            f"positions, not {given!r}"
        )
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _nested(given: Any) -> bool:
    return hasattr(given[0], "__len__")


#: The numbers programs compute with while they are compiled.
DOMAIN = FloatDomain()
