"""Make and verify completion codes, with which students submit solutions without a server.

A code contains the student's name, the key of the exercise and the program. Verification runs the
program again on every input of the exercise. A verified code therefore shows that its program passes
the check. The code does not show who wrote the program, because students can type any name and copy
programs.

>>> code = hand_in(EXERCISES["shift"], EXERCISES["shift"].solution, "Ada")["code"]
>>> code[:7], verify(code, None)["solved"]
('locum1.', True)
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from locum.errors import InputError, LocumError
from locum.interface.playground import share
from locum.interface.playground.exercises import EXERCISES, Exercise, check
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import tokens
from locum.rasp import stable_hash

_PARTS = re.compile(r"locum1\.([A-Za-z0-9_-]+)\.([0-9a-f]{8})")
#: Fields of a code, whose values are texts.
_FIELDS = ("by", "exercise", "source")
#: Maximum number of characters of a name.
LONGEST_NAME = 100


def hand_in(exercise: Exercise, source: str, by: str) -> dict[str, Any]:
    """Check the solution ``source``, and return the verdict with a code for the student ``by``."""
    verdict = check(exercise, source)
    if not verdict["solved"]:
        raise InputError("expected a program that solves the exercise, got a wrong one; try Check")
    content = {"by": by.strip(), "exercise": exercise.key, "source": source}
    packed = share.fragment(content).removeprefix(share.PREFIX)
    return {**verdict, "code": f"locum1.{packed}.{_checksum(packed)}"}


def verify(code: str, exercise: Exercise | None) -> dict[str, Any]:
    """Run the program in a completion code on its exercise again, and return the verdict.

    For a program without errors, ``program`` in the result is a hash that is the same for equal
    programs. If ``exercise`` is None, the code must belong to a built-in exercise.
    """
    content = read(code)
    if exercise is None:
        exercise = EXERCISES.get(content["exercise"])
        if exercise is None:
            raise InputError(
                "code: expected a code of a built-in exercise, got a code of a custom exercise; try "
                "--exercise LINK, or open the exercise on the page"
            )
    if content["exercise"] != exercise.key:
        named = (
            EXERCISES[content["exercise"]].title
            if content["exercise"] in EXERCISES
            else "another exercise"
        )
        raise InputError(
            f"code: expected a code of the exercise {exercise.title}, got a code of {named}"
        )
    reply: dict[str, Any] = {"by": content["by"], "title": exercise.title, "source": content["source"]}
    try:
        verdict = check(exercise, content["source"])
        program = Program(content["source"], tokens(exercise.example)).sop(None)[1]
    except LocumError as error:
        return {**reply, "solved": False, "problem": str(error)}
    return {**reply, **verdict, "program": stable_hash(program)[:12]}


def read(code: str) -> dict[str, str]:
    """Return the content of a completion code; raise ``InputError`` if the code is damaged."""
    parts = _PARTS.fullmatch("".join(code.split()))
    if parts is None or _checksum(parts[1]) != parts[2]:
        raise InputError(
            "code: expected a completion code (locum1.…), complete and unchanged, got "
            f"{code.strip()[:40]!r}"
        )
    try:
        content = share.state(share.PREFIX + parts[1])
    except InputError:
        raise InputError(
            f"code: expected a completion code with an object in it, got {code.strip()[:40]!r}"
        ) from None
    if set(content) != {*_FIELDS} or not all(isinstance(content[name], str) for name in _FIELDS):
        raise InputError(f"code: expected the texts {', '.join(_FIELDS)} in it, got other fields")
    if len(content["by"]) > LONGEST_NAME:
        length = len(content["by"])
        raise InputError(f"code: expected a name of at most {LONGEST_NAME} characters, got {length:,}")
    return content


def _checksum(packed: str) -> str:
    return hashlib.sha256(packed.encode()).hexdigest()[:8]
