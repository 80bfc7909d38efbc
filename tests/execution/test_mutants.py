"""A mutation test of lowering: with any rule broken, random programs come out wrong."""

from __future__ import annotations

import warnings

import pytest

from locum.errors import LocumError
from locum.execution import fast
from locum.execution.fast import FallbackWarning
from tests.execution.mutants import Mutant, in_force
from tests.execution.test_fast import differs

#: Programs that are tried before a mutant is said to have survived; first those that notice a mutant
#: at little cost.
TELLING = (12, 7, 47, 5, 976, 33, 333, 11, 40, 28, 111, 256, 379, 80, 1953, 31, 43, 100, 8, 3)
TRIES = 6_000

MUTANTS = [
    # Positions.
    Mutant(
        "affine", "return quotient + wraps, rest - wraps * base", "return quotient, rest - wraps * base"
    ),
    Mutant("affine", "return quotient + wraps, rest - wraps * base", "return quotient + wraps, rest"),
    Mutant("affine", "if wraps == greatest // base:", "if True:"),
    # Guards.
    Mutant(
        "solving",
        "if decided is False:\n            return None",
        "if decided is False:\n            continue",
    ),
    Mutant("solving", 'Guard(quotient + first, "==")', 'Guard(quotient, "==")'),
    Mutant("solving", 'return Guard(quotient + least // base, ">=")', 'return Guard(quotient, ">=")'),
    Mutant("solving", "value = guard.e.without(v) * -k", "value = guard.e.without(v) * k"),
    Mutant(
        "solving",
        "return free.substitute(v, value).guarded(within)",
        "return free.substitute(v, value)",
    ),
    Mutant(
        "solving",
        "return free.substitute(v, first + u).guarded(within)",
        "return free.substitute(v, first + u)",
    ),
    Mutant("solving", "for e in upper if e == first + (size - 1)", "for e in upper"),
    Mutant("solving", "for e in lower if e == first)", "for e in lower)"),
    # Conditions.
    Mutant("solving", 'Guard(e - 1, ">="),),))', 'Guard(e, ">="),),))'),
    Mutant("solving", "rest = both(negation(a), b)", "rest = b"),
    Mutant("solving", "(*case[:place], other)", "(other,)"),
    Mutant("solving", "if any(holds is False for _, holds in decided):", "if False:"),
    # Heads.
    Mutant(
        "symbolic_lowering",
        "term.coefficient * Fraction(1, total) if total > 1",
        "term.coefficient if total > 1",
    ),
    Mutant(
        "symbolic_lowering",
        "return (*terms, *self.default(default, conditioned[0].guards))",
        "return tuple(terms)",
    ),
    Mutant(
        "symbolic_lowering",
        "term.guards, term.factors).guarded(k.guards)",
        "term.guards, term.factors)",
    ),
    Mutant(
        "rerolling",
        "    if values is score:\n        return 1",
        "    if values is score:\n        return -1",
    ),
    Mutant(
        "symbolic_lowering",
        "if len(conditioned) > 1 and any(k.guards for k in conditioned):",
        "if False:",
    ),
    Mutant("symbolic_lowering", "inner = tuple(g for g in k.guards if g not in outer)", "inner = ()"),
    Mutant("symbolic_lowering", "place = 1 if holds.value else 2", "place = 2 if holds.value else 1"),
    Mutant(
        "symbolic_lowering",
        "Term(term.coefficient, term.sums + variables, term.guards, term.factors)",
        "Term(term.coefficient, term.sums, term.guards, term.factors)",
    ),
    # Products, pieces, buffers.
    Mutant(
        "terms",
        "Term(coefficient, (), a.guards, a.factors + b.factors).guarded(b.guards)",
        "Term(coefficient, (), a.guards, a.factors + b.factors)",
    ),
    Mutant("affine", "return below + [e + at for e in above]", "return below + above"),
    Mutant("affine", "return first + [e + whole for e in rest]", "return first"),
    Mutant(
        "affine",
        "return [h * low + l for h in highs for l in lows]",
        "return [h * low for h in highs for l in lows]",
    ),
    Mutant(
        "planning",
        "self.start, self.stop = min(self.start, start), max(self.stop, stop)",
        "self.start, self.stop = max(self.start, start), max(self.stop, stop)",
    ),
    Mutant("planning", "address = position - hull.start", "address = position"),
    Mutant("planning", "address = address + head * step", "address = address + head"),
    Mutant(
        "rerolling",
        "while stop < len(alike) and _difference(numbers[stop - 1], numbers[stop]) == step:",
        "while stop < len(alike):",
    ),
    # Steps.
    Mutant("emission", "coefficient = coefficient * self.box[v]", "coefficient = coefficient"),
    Mutant("emission", "sign, coefficient = -1, -coefficient", "sign, coefficient = 1, -coefficient"),
    Mutant(
        "emission",
        "now = [v for v in sums if v in a.axes and v in b.axes and v not in needed]",
        "now = [v for v in sums if v in a.axes and v in b.axes]",
    ),
    Mutant(
        "indexing",
        "return divided(a, b.constant, scope.box)[0]",
        "return divided(a, b.constant, scope.box)[1]",
    ),
    Mutant("indexing", 'is_same = (value.constant == 1) == (predicate == "==")', "is_same = True"),
    Mutant("indexing", "opposite = solving.negation(holds)", "opposite = holds"),
    Mutant(
        "fusion",
        'return steps.make("softmax", (scores,), step.shape)',
        'return steps.make("softmax", (shifted,), step.shape) if False else scores',
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.module}: {m.there[:40]}")
def test_every_broken_rule_is_noticed(mutant: Mutant) -> None:
    with warnings.catch_warnings(), in_force(mutant):
        warnings.simplefilter("ignore", FallbackWarning)
        assert any(map(_is_noticed, (*TELLING, *range(TRIES)))), "the mutant survived"


def _is_noticed(seed: int) -> bool:
    fast.forget_plans()
    try:
        return differs(seed) not in (None, "no value")
    except LocumError:
        return True
    except Exception:  # a broken rule may break anything
        return True
    finally:
        fast.forget_plans()
