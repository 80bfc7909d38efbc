"""Of few keys the best is not always the best of all: what is compared must be there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from locum import SOp, aggregate, best, full, indices, select, selector_width, tokens
from locum.networks import compiler
from tests.compiler.agreement import is_close, others

_ONE = select(indices, indices // 2, "==")
_PAIR = select(indices // 2, indices // 2, "==")
_PROGRAMS = {
    "width": selector_width(_ONE & best(full, tokens)),
    "aggregate": aggregate(_ONE & best(full, tokens), tokens, -9),
    "best before": aggregate(_PAIR & best(select(indices, indices, "<="), tokens), tokens, -9),
    "best of the pair": aggregate(best(_PAIR, tokens), indices * 1.5, -9),
    "not the best": selector_width(_PAIR & ~best(full, tokens)),
    "one of two": selector_width(_PAIR & (best(full, tokens) | select(tokens, tokens, "<"))),
    "first of the best": selector_width(_PAIR & best(best(full, tokens), -indices)),
    "best of some of the best": aggregate(best(_PAIR & best(full, tokens), -indices), tokens, 0),
}


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("options", [{"numeric": True}, {"vocabulary": [1.5, 2.0, 3.0, -1.0]}])
@pytest.mark.parametrize("program", _PROGRAMS.values(), ids=_PROGRAMS)
def test_the_best_of_all_among_few(program: SOp, options: dict[str, Any], fixed: bool) -> None:
    model = compiler.compile(program, length=8, fixed=fixed, **options, feed_forward="exact")
    sequence = [1.5, 2.0, 3.0, -1.0, 1.5, 2.0, 3.0, -1.0]
    for inputs in others(sequence, random.Random(3), 24, shortest=8 if fixed else 1):
        assert is_close(model(inputs), program(inputs)), inputs
