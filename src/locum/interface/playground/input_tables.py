"""Run an s-op on a table of inputs with expected outputs, and compare two programs on many inputs.

>>> [row["holds"] for row in table("x = indices;", None, ["ab", "ab"], ["01", "10"])["rows"]]
[True, False]
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from locum.errors import InputError, LocumError
from locum.interface.playground.exercises import equal, size
from locum.interface.playground.panes import texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.rasp import echo
from locum.rasp.handles import SOp

#: Maximum number of short inputs and number of random inputs for a comparison, and the range of lengths
#: of random inputs.
SHORT, RANDOM, LONGER = 400, 100, (5, 20)
#: Maximum number of symbols of the inputs for a comparison.
SYMBOLS = 4


def table(source: str, name: str | None, inputs: list[str], expected: list[str]) -> dict[str, Any]:
    """Run an s-op on each input, and compare the output with the expected output if there is one.

    An expected output is a JSON list, or one character for each value, with T and F for booleans. An
    empty text means that no output is expected.
    """
    if len(inputs) != len(expected):
        raise InputError(
            f"expected: expected as many outputs as inputs ({len(inputs)}), got {len(expected)}"
        )
    program, rows = None, []
    for typed, wanted in zip(inputs, expected, strict=True):
        try:
            word = tokens(typed)
            if program is None:
                program = Program(source, word)
                program.require_right()
                name, value = program.sop(name)
            rows.append(_row(program, value, word, wanted))
        except InputError as error:
            if program is not None and program.errors:
                raise
            rows.append({"input": [], "values": None, "holds": False, "problem": str(error)})
    return {"name": name, "rows": rows}


def _row(program: Program, value: SOp, word: Any, wanted: str) -> dict[str, Any]:
    values, problem = _run(program, value, word)
    row: dict[str, Any] = {
        "input": texts(word), "values": None if values is None else texts(values), "problem": problem
    }  # fmt: skip
    if not wanted:
        return row | {"holds": None}
    outputs = tokens(wanted)
    if len(outputs) != len(word):
        raise InputError(f"expected one output for each of {len(word)} tokens, got {len(outputs)}")
    if isinstance(outputs, str):  # one character for each value, as on the page
        places = [
            values is not None and echo.scalar(value) == output
            for value, output in zip(values or word, outputs, strict=True)
        ]
    else:
        places = [
            values is not None and _matches(value, output)
            for value, output in zip(values or word, outputs, strict=True)
        ]
    return row | {"expected": texts(outputs), "places": places, "holds": all(places)}


def _matches(value: Any, output: Any) -> bool:
    """Return whether a value is correct as in exercises.

    If ``output`` is a float, a float that equals ``output`` after rounding to three decimals is also
    correct.
    """
    return equal(value, output) or (
        isinstance(value, float) and isinstance(output, float) and round(value, 3) == output
    )


def compare(source: str, other: str, typed: str) -> dict[str, Any]:
    """Compare the last s-ops of two programs: values, sizes, and the first input on which they differ.

    The programs are compared on all short inputs over the first symbols of the input, and on random
    longer inputs, as far as both programs accept them. Programs that agree on these inputs may differ
    on other inputs.
    """
    word = tokens(typed)
    sides = []
    for number, text in enumerate((source, other)):
        program = Program(text, word)
        try:
            program.require_right()
            name, value = program.sop(None)
        except InputError as error:
            raise InputError(f"program {'AB'[number]}: {error}") from None
        sides.append((program, name, value))
    shown = []
    for program, name, value in sides:
        values, problem = _run(program, value, word)
        values_shown = None if values is None else texts(values)
        shown.append({"name": name, "values": values_shown, "problem": problem, **size(value)})
    checked, difference = 0, None
    for each in _words(word):
        if not all(_is_input(program, each) for program, _, _ in sides):
            continue
        checked += 1
        (one, why), (two, why_not) = (_run(program, value, each) for program, _, value in sides)
        same = one is not None and two is not None and all(map(equal, one, two))
        if not same and (one is not None or two is not None):
            difference = {
                "input": texts(each),
                "typed": each if isinstance(each, str) else json.dumps(each),
                "values": [None if side is None else texts(side) for side in (one, two)],
                "problems": [why, why_not],
            }
            break
    return {"input": texts(word), "sides": shown, "checked": checked, "difference": difference}


def _run(program: Program, value: SOp, word: Any) -> tuple[list[Any] | None, str]:
    """Return the values on an input, or None and the error message."""
    try:
        return program.run(value, word), ""
    except LocumError as error:
        return None, str(error)


def _is_input(program: Program, word: Any) -> bool:
    try:
        program.require_input(word)
    except InputError:
        return False
    return True


def _words(word: Sequence[Any]) -> Iterator[Any]:
    """Yield all short inputs over the first symbols of ``word``, then ``word`` and random longer
    inputs.
    """
    symbols: list[Any] = []
    for token in word:
        if len(symbols) < SYMBOLS and not any(equal(token, other) for other in symbols):
            symbols.append(token)

    def made(parts: Sequence[Any]) -> Any:
        return "".join(parts) if isinstance(word, str) else list(parts)

    count, length = 0, 1
    while (count := count + len(symbols) ** length) <= SHORT and length <= LONGER[0] * 2:
        yield from map(made, itertools.product(symbols, repeat=length))
        length += 1
    yield word
    generator = random.Random(0)
    for _ in range(RANDOM):
        yield made(generator.choices(symbols, k=generator.randint(*LONGER)))
