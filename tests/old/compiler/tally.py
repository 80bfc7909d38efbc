"""What became of many programs: compiled and right, or refused for a reason that is allowed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from locum import SOp
from locum.errors import CompileError, LocumError
from locum.graph import Node
from locum.networks import compiler
from locum.rasp import to_rasp
from tests.compiler.agreement import fingerprint, is_close, others

#: Why a program may be refused.
REASONS = (
    "the s-op is undefined at position",
    "expected tokens with a text, got real-valued tokens",
    "expected numbers within the range of floats",
    "for an operation on strings or integers beyond 2^53, got too many to list",
    "for an operation on strings or integers beyond 2^24, got too many to list",
    "expected values that differ in float",
    "expected a table with an entry for some value that is looked up",
    "the s-op is undefined for every input",
    "expected a number as the default",
    "expected numbers to average",
    "the keys and queries cannot be compared",
    "expected only strings or only numbers in a comparison",
    "logits can distinguish, got strings and numbers",
    "expected strings whose possible values can be listed",
    "expected weights within the range of float32",
    "expected integers that float",
    "limit: expected at most",
)
#: Why a network may refuse an input on which the program has a value: the range of floats, always.
LIMITS = (
    "expected a finite number that float",
    "a number exceeds the range of floats",
    "is undefined, or its value exceeds the range of floats",
    "is undefined for this token",
)


class Tally:
    """Compiles programs in all ways, runs them beside dense execution, and counts."""

    def __init__(
        self,
        tolerance: float = 1e-12,
        dtype: str = "float64",
        inputs: int = 4,
        *,
        causal: bool = False,
    ) -> None:
        self.tolerance = tolerance
        self.causal = causal
        self.dtype = dtype
        self.inputs = inputs
        #: Networks that were made, refusals of programs with a value, runs, runs refused.
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        #: The layers of each network, and the types of all answers.
        self.layers: list[int] = []
        self.answers: set[type] = set()

    def check(self, node: Node, inputs: Sequence[Any], vocabulary: Sequence[Any], seed: int) -> None:
        """One program for a vocabulary and for numbers, for one length or all lengths up to it.

        A wrong answer is an AssertionError that shows it.
        """
        program = SOp(node)
        assert isinstance(program, SOp)
        self.counts["programs"] += 1
        inputs = list(inputs)
        chance = random.Random(seed)
        for options in _ways(vocabulary):
            fixed = chance.random() < 0.3
            self._check(program, inputs, vocabulary, options | {"fixed": fixed}, chance)

    def _check(
        self,
        program: SOp,
        inputs: list[Any],
        vocabulary: Sequence[Any],
        options: dict[str, Any],
        chance: random.Random,
    ) -> None:
        try:
            model = compiler.compile(
                program,
                length=len(inputs),
                dtype=self.dtype,
                causal=self.causal,
                **options,
                feed_forward="exact",
            )
        except CompileError as error:
            assert any(reason in str(error) for reason in REASONS), (str(error), to_rasp(program))
            if _value(program, inputs) is not None:
                self.counts["refused"] += 1
                self.reasons[error.problem] += 1
            return
        self.counts["networks"] += 1
        self.layers.append(len(model.weights.layers))
        before = fingerprint(model)
        shortest = len(inputs) if options["fixed"] else 1
        longest = [*inputs[:1], *chance.choices(list(vocabulary), k=len(inputs) - 1)]
        for tokens in (inputs, *others(longest, chance, self.inputs, shortest=shortest)):
            expected = _value(program, tokens)
            if expected is None:
                continue
            self.counts["runs"] += 1
            try:
                actual = model(tokens)
            except LocumError as error:
                assert any(limit in str(error) for limit in LIMITS), (
                    str(error),
                    to_rasp(program),
                    tokens,
                )
                self.counts["runs refused"] += 1
                continue
            assert self._agrees(actual, expected, program, tokens), (
                f"{options} on {tokens}: {actual}, not {expected}\n{to_rasp(program)}"
            )
            self.answers |= set(map(type, actual))
            assert len(set(map(type, actual))) == 1, (
                f"{options} on {tokens}: expected one type, got {actual}\n{to_rasp(program)}"
            )
        assert fingerprint(model) == before

    def _agrees(self, actual: list[Any], expected: list[Any], program: SOp, tokens: list[Any]) -> bool:
        """Like dense; or like exact arithmetic, where it is dense that rounds (1e300 + x − 1e300)."""
        if is_close(actual, expected, self.tolerance):
            return True
        try:
            exact = program(tokens, domain="exact")
        except LocumError:
            return False
        return is_close(actual, [v if isinstance(v, str) else float(v) for v in exact], self.tolerance)

    def require(self, *, refused: float, runs_refused: float, programs: int) -> None:
        """At most these shares of networks and runs refused, and at least so many programs."""
        made, counts = self.counts["networks"], self.counts
        assert counts["programs"] >= programs, counts
        assert counts["refused"] <= refused * (made + counts["refused"]), (counts, self.reasons)
        assert counts["runs refused"] <= runs_refused * counts["runs"], counts
        assert counts["runs"] >= 2 * made, counts


def _ways(vocabulary: Sequence[Any]) -> Iterator[dict[str, Any]]:
    yield {"vocabulary": list(vocabulary)}
    if not any(isinstance(token, str) for token in vocabulary):
        yield {"numeric": True}


def _value(program: SOp, tokens: list[Any]) -> list[Any] | None:
    try:
        result: list[Any] = program(tokens)
    except LocumError:
        return None
    return result
