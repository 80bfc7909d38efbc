"""Represent evidence about printed statements, and derive verdicts from it.

>>> found = [Evidence("Algorithm 2 as printed", "right at 6 of 36 shapes", False, erratum="E7")]
>>> decide(found, {"E7": "A"}).status
'wrong'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

#: The subjects of evidence: the statement as printed, the corrected statement, Locum's construction,
#: and context, which does not influence the verdict.
PRINTED, CORRECTED, OURS, CONTEXT = "printed", "corrected", "ours", "context"
#: The verdicts, with their descriptions in the report.
STATUSES = {
    "right": "right",
    "wording": "right up to notation or wording",
    "partly": "partly wrong as printed",
    "wrong": "wrong as printed",
    "unchecked": "not checked",
    "unclaimed": "future work",
    "nothing": "no separate statement",
    "fails": "does not hold",
}
#: Largest difference that is considered a rounding error, relative to the larger of 1 and the largest
#: absolute expected number.
TOLERANCE = 1e-12


class Evidence(NamedTuple):
    """The result of one or more runs, and whether the statement holds in these runs."""

    what: str
    result: str
    holds: bool
    about: str = PRINTED
    #: The number of the erratum that explains why the statement does not hold, or "".
    erratum: str = ""


class Decision(NamedTuple):
    """The verdict on a statement: a key of ``STATUSES``, and a sentence for the report."""

    status: str
    sentence: str


def decide(
    evidence: Iterable[Evidence],
    severities: Mapping[str, str] | None = None,
    *,
    proven: bool = False,
    unchecked: bool = False,
    reading: str = "",
    claimed: bool = True,
) -> Decision:
    """Derive the verdict on a statement from evidence.

    ``severities`` maps errata to their severities. If every failure has severity C, and some part of
    the statement or its correction holds, the statement is right up to notation or wording. ``proven``
    states that some of the evidence is a proof for all inputs. ``unchecked`` states that a part of the
    statement cannot be checked here. ``reading`` is the reading of the statement to which the verdict
    refers. ``claimed`` states that the paper claims the statement.
    """
    found = list(evidence)
    about = {kind: [e for e in found if e.about == kind] for kind in (PRINTED, CORRECTED, OURS)}
    printed, wrong = about[PRINTED], find_wrong(found)
    letters = {(severities or {}).get(each.erratum, "") for each in wrong}
    if not all(each.holds for each in about[CORRECTED] + about[OURS]):
        status = "fails"
    elif letters == {"C"} and (len(wrong) < len(printed) or about[CORRECTED]):
        status = "wording"
    elif wrong:
        status = "wrong" if len(wrong) == len(printed) else "partly"
    elif printed:
        status = "right"
    elif about[OURS] or not claimed:
        status = "unclaimed"
    else:
        status = "unchecked" if unchecked else "nothing"
    sentence = STATUSES[status]
    if status in ("partly", "wrong") and about[CORRECTED]:
        sentence += ", right as corrected"
    if status in ("right", "wording") and proven:
        sentence += ", proven for all inputs at these shapes"
    elif status == "right":
        sentence += " in every run"
    if reading:
        sentence += f"; {reading}"
    return Decision(status, sentence)


def find_wrong(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence that the statement as printed does not hold."""
    return [each for each in evidence if each.about == PRINTED and not each.holds]


def compare(
    what: str, pairs: Iterable[tuple[Any, Any]], about: str = PRINTED, erratum: str = ""
) -> Evidence:
    """Compare pairs of results and expected numbers, up to rounding errors.

    >>> compare("sums", [(0.1 + 0.2, 0.3)])
    Evidence(what='sums', result='1 case, largest error 6e-17', holds=True, about='printed', erratum='')
    """
    count, worst = 0, 0.0
    for actual, expected in pairs:
        count += 1
        worst = max(worst, measure_error(actual, expected))
    error = f"largest error {worst:.0e}" if worst else "no error"
    cases = f"{count} case{'' if count == 1 else 's'}"
    return Evidence(what, f"{cases}, {error}", worst <= TOLERANCE, about, erratum)


def measure_error(actual: Any, expected: Any) -> float:
    """Return the largest difference, relative to the larger of 1 and the largest absolute expected
    number.

    The error is infinite if the shapes differ or if a result is not finite.
    """
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    if actual.shape != expected.shape or not np.isfinite(actual).all():
        return math.inf
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return float(np.abs(actual - expected).max(initial=0.0)) / scale


def count_equal(
    what: str, pairs: Iterable[tuple[Any, Any, Any]], about: str = PRINTED, erratum: str = ""
) -> Evidence:
    """Count the triples (case, answer, expected answer) whose answers are equal.

    >>> count_equal("parity", [("1", False, False), ("11", False, True)]).result
    '1 of 2 cases right; wrong: 11'
    """
    total, wrong = 0, []
    for case, actual, expected in pairs:
        total += 1
        if actual != expected:
            wrong.append(case)
    if not wrong:
        return Evidence(what, f"{total:,} cases, all right", True, about)
    result = f"{total - len(wrong):,} of {total:,} cases right; wrong: {wrong[0]}"
    return Evidence(what, result, False, about, erratum)


#: The shape of an algorithm's input, such as (r, c).
Shape = tuple[int, ...]


def try_shapes(shapes: Iterable[Shape], run: Callable[[Shape], tuple[Any, Any]]) -> dict[Shape, str]:
    """Run a construction at every shape, and return a mapping from shapes to outcomes.

    ``run`` returns the result and the expected result. An outcome is ``"right"``, ``"wrong"`` or
    ``"undefined"``. The outcome is ``"undefined"`` if ``run`` raises an ``IndexError``, ``KeyError``,
    ``NameError`` or ``ValueError``.
    """
    outcomes = {}
    for shape in shapes:
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                actual, expected = run(shape)
        except (IndexError, KeyError, ValueError, NameError):
            outcomes[shape] = "undefined"
        else:
            outcomes[shape] = "right" if measure_error(actual, expected) <= TOLERANCE else "wrong"
    return outcomes


def summarise(
    what: str,
    outcomes: Mapping[Shape, str],
    names: str,
    condition: tuple[str, Callable[..., bool]] | None = None,
    about: str = PRINTED,
    erratum: str = "",
) -> Evidence:
    """Describe the shapes at which a construction is correct.

    ``names`` are the names of the sizes of a shape. ``condition`` is a phrase with a function of the
    sizes. If some shapes are not correct, the phrase is used if the function is true exactly for the
    correct shapes.

    >>> outcomes = {(1, 1): "right", (1, 2): "wrong"}
    >>> summarise("softmax", outcomes, "r, c", ("r = c", lambda r, c: r == c)).result
    'right at 1 of 2 shapes, exactly where r = c; wrong at 1. First: (r, c) = (1, 2)'
    """
    right = [shape for shape, outcome in outcomes.items() if outcome == "right"]
    if len(right) == len(outcomes):
        return Evidence(what, f"right at all {len(right)} shapes", True, about)
    parts = [f"right at {len(right)} of {len(outcomes)} shapes"]
    if condition and right == [shape for shape in outcomes if condition[1](*shape)]:
        parts[0] += f", exactly where {condition[0]}"
    counts = {
        kind: sum(outcome == kind for outcome in outcomes.values()) for kind in ("wrong", "undefined")
    }
    parts += [f"{kind} at {count}" for kind, count in counts.items() if count]
    first = next(shape for shape, outcome in outcomes.items() if outcome != "right")
    place = ", ".join(map(str, first))
    where = f"({names}) = ({place})" if len(first) > 1 else f"{names} = {place}"
    return Evidence(what, f"{'; '.join(parts)}. First: {where}", False, about, erratum)
