"""Compare the other executors with dense execution on random programs (differential fuzzing).

A seed determines the program and its input. Programs are drawn from all operations of the table. If
dense execution returns a value, another executor must return the same value or raise an error. If dense
execution raises an error, another executor may return any value, since it may not need the failing part
(docs/execution.md). The sweep kind ``fuzz`` runs these cases.

>>> compare(7)["holds"]
True
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

from locum.errors import ExecutionError, LimitError, LocumError
from locum.execution import run
from locum.graph import CASTS, PREDICATES, Atom, Node, dumps, loads, stable_hash
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.random_programs import INNER_OPERATIONS, grow

T = TypeVar("T")

#: Executors that are compared with dense execution, with their options.
EXECUTORS: dict[str, dict[str, Any]] = {
    "fast": {"executor": "fast", "strict": True},
    "auto": {"executor": "auto"},
    "heads": {"executor": "heads"},
}
#: Relative and absolute differences of floats that count as rounding.
ROUNDING = (1e-9, 1e-12)

_FLOATS = (0.0, -0.0, 0.5, -1.5, 2.0, 0.25, 1e300, math.inf)
_TEXTS = ("", "a", "b", "ab", "1", "-2.5", "é")
#: Operations on selectors, and ``aggregate``, repeated so that they are drawn more often.
_ATTENTION = (
    *("select", "selector_and", "selector_or", "selector_not", "best") * 3,
    *("aggregate",) * 6,
)


def compare(seed: int, size: int = 12, length: int = 8) -> dict[str, Any]:
    """Run the program of a seed with every executor, and report which executors agree with dense
    execution.

    ``size`` bounds the number of drawn operations of the program, to which sums over families are
    added. ``length`` bounds the number of tokens in its input. A difference is reported with the
    program, so that it can be reproduced without this generator.
    """
    draw = random.Random(seed)
    program, tokens = draw_program(draw, size), draw_input(draw, length)
    expected = _outcome(program, tokens, executor="dense")
    answers, differences = {}, {}
    for name, options in EXECUTORS.items():
        value = _outcome(loads(dumps(program)), tokens, **options)
        answers[name] = _verdict(value, expected)
        if answers[name] == "differs":
            differences[name] = {"found": _shown(value), "dense": _shown(expected)}
    result: dict[str, Any] = {
        "holds": not differences,
        "dense": "error" if isinstance(expected, LocumError) else "value",
        "answers": answers,
        "hashes": {"program": stable_hash(program)},
    }
    if differences:
        result |= {"differences": differences, "program": dumps(program), "input": _shown(tokens)}
    return result


def _outcome(program: Node, tokens: list[Atom], **options: Any) -> Any:
    """Return the value of a program as plain lists, or its execution error or limit error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fallback to dense execution agrees by definition
            value = run(program, tokens, **options)
    except (ExecutionError, LimitError) as error:
        return error
    return value.tolist() if hasattr(value, "tolist") else value


def _verdict(value: Any, expected: Any) -> str:
    if isinstance(value, LocumError):
        return "error" if isinstance(expected, LocumError) else "refused"
    if isinstance(expected, LocumError):
        return "did not read the error"
    return "agreed" if same(value, expected) else "differs"


def same(value: Any, expected: Any) -> bool:
    """Return whether two values or nested lists of values are equal; floats may differ by rounding.

    >>> same([1.0, "a"], [1, "a"]), same([0.1 + 0.2], [0.3]), same(["1"], [1])
    (True, True, False)
    """
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(same(one, other) for one, other in zip(value, expected, strict=True))
        )
    if isinstance(value, str) or isinstance(expected, str):
        return type(value) is type(expected) and bool(value == expected)
    if value == expected or (value != value and expected != expected):
        return True
    if isinstance(value, int) and isinstance(expected, int):
        return False
    return math.isclose(value, expected, rel_tol=ROUNDING[0], abs_tol=ROUNDING[1])


def _shown(value: Any) -> Any:
    """Convert a value or an error to JSON data; infinities, NaN and very large integers become text."""
    if isinstance(value, LocumError):
        return f"{type(value).__name__}: {value}"[:500]
    if isinstance(value, list):
        return [_shown(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 2_000:
        return f"an integer of {value.bit_length():,} bits"
    return value


# Drawing -----------------------------------------------------------------------------------------


def draw_input(draw: random.Random, length: int) -> list[Atom]:
    """Draw an input of up to ``length`` tokens of one kind, such as characters, booleans or integers.

    One of the kinds consists of small integers and floats.
    """
    count = draw.randint(1, length)
    pick = draw.choice(
        (
            lambda: draw.choice("abc12"),
            lambda: draw.randint(-3, 5),
            lambda: draw.choice((draw.randint(-3, 5), draw.choice(_FLOATS))),
            lambda: draw.random() < 0.5,
            lambda: draw.randint(-(2**70), 2**70),
        )
    )
    return [pick() for _ in range(count)]


def draw_atom(draw: random.Random) -> Atom:
    """Draw a constant: in two of five cases a small integer, else a float, a string or a boolean."""
    match draw.randrange(5):
        case 0:
            return draw.choice(_FLOATS)
        case 1:
            return draw.choice(_TEXTS)
        case 2:
            return draw.random() < 0.5
        case _:
            return draw.randint(-3, 5)


class SeededDraws:
    """The random choices of a program, drawn from a seeded generator."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def choice(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return self.draw.choice(options)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer between two bounds, inclusive."""
        return self.draw.randint(low, high)

    def attribute(self, name: str) -> Any:
        """Draw a value for the attribute ``name`` of an operation."""
        draw = self.draw
        match name:
            case "cast":
                return draw.choice(CASTS)
            case "predicate":
                return draw.choice(PREDICATES)
            case "values":
                return canonical_set([draw_atom(draw) for _ in range(draw.randint(0, 3))])
            case "table":
                pairs = {draw_atom(draw): draw_atom(draw) for _ in range(draw.randint(1, 3))}
                return canonical_table(pairs)
            case "value" | "default":
                return draw_atom(draw)
        raise AssertionError(f"no draw is defined for the attribute {name}")

    def has_families(self) -> bool:
        """Draw whether the program may contain families."""
        return self.draw.random() < 0.3

    def operations(self) -> Sequence[str]:
        """Draw the operations from which the program is built."""
        more = self.draw.random() >= 0.5
        return (*INNER_OPERATIONS, *_ATTENTION) if more else INNER_OPERATIONS

    def sums_now(self) -> bool:
        """Draw whether an s-op that depends on families is summed immediately."""
        return self.draw.random() < 0.25


def draw_program(draw: random.Random, size: int) -> Node:
    """Draw a well-formed program of up to ``size`` operations, and sums over its families."""
    return grow(SeededDraws(draw), size)
