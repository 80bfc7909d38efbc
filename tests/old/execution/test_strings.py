"""Programs with strings on every kind of input: the values of dense execution."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from hypothesis import given

from locum import LocumError, SOp
from locum.execution import run
from locum.execution.fast import FallbackWarning
from locum.execution.types import has_strings
from locum.rasp import Session
from tests.old.execution.one_type import agrees
from tests.old.execution.texts import inputs, programs


def outcome(program: SOp, values: Any, executor: str) -> list[Any] | LocumError:
    """The value of a program, or the error with which it was refused; nothing else may come out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        try:
            result: list[Any] = run(program.node, values, executor=executor)
            return result
        except LocumError as error:
            return error


def test_random_texts_with_strings_by_every_executor() -> None:
    seen: Counter[str] = Counter()

    @given(programs(), inputs)
    def check(text: str, values: Any) -> None:
        try:
            ((_, program),) = Session().script(text)
        except LocumError:
            seen["not a program"] += 1
            return
        if not isinstance(program, SOp):
            return
        expected = outcome(program, values, "dense")
        for executor in ("fast", "auto", "heads"):
            result = outcome(program, values, executor)
            if isinstance(result, LocumError):
                word = "no value" if isinstance(expected, LocumError) else "refused"
            elif isinstance(expected, LocumError):
                # What nobody reads is not computed by heads, nor by plans, which run numbers alone.
                assert executor == "heads" or not has_strings(program.node), f"{result}: {expected}"
                word = "unseen error"
            else:
                assert agrees(result, expected, program, values), (
                    f"{executor}: {result}, dense: {expected}"
                )
                word = "agreed"
            seen[f"{executor} {word}"] += 1

    check()
    assert seen["fast agreed"] > seen["fast refused"]
    assert seen["heads agreed"] > 20 * seen["heads refused"]
