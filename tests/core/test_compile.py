"""Compiled networks give the values of the reference interpreter, or raise a CompileError."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import locum
from tests.core.programs import (
    ALIKE,
    BEFORE,
    DISCRETE,
    INDICES,
    PREVIOUS,
    REVERSED,
    TOKENS,
    examples,
    programs,
    to_locum,
)
from tests.core.reference import UndefinedError, run
from tests.core.test_meaning import close

VOCABULARIES: dict[str, list[Any]] = {"number": [0, 1, 3], "text": ["a", "b", "c"]}
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "softmax": {"attention": "softmax"},
    "gelu": {"feed_forward": "gelu"},
    "glu": {"feed_forward": "glu"},
    "symbolic": {"feed_forward": "exact"},
    "float32": {"dtype": "float32"},
    "fixed": {"fixed": True},
    "causal": {"causal": True},
    "unfolded": {"fold": False},
    "small": {"prefer": "small"},
}


def check(program: Any, vocabulary: list[Any], length: int, **options: Any) -> str:
    """Compile a program and compare the network with the reference; return what happened."""
    try:
        model = locum.compile(to_locum(program), length=length, vocabulary=vocabulary, **options)
    except locum.CompileError:
        return "rejected"
    tolerance = 1e-9 + (0 if model.config.outputs else min(model.error_bound, 1e-3))
    lengths = [length] if options.get("fixed") else range(1, length + 1)
    rng, result = random.Random(0), "compiled"
    for n in lengths:
        inputs = [list(row) for row in itertools.product(vocabulary, repeat=n)]
        for tokens in rng.sample(inputs, min(5, len(inputs))):
            try:
                wanted = run(program, tokens)
            except UndefinedError:
                with pytest.raises(locum.LocumError):
                    model(tokens)
                result = "partly undefined"
                continue
            found = model(tokens)
            assert close(found, wanted, tolerance), tokens
            assert len(set(map(type, found))) == 1, "outputs of several types"
    return result


@pytest.mark.fuzz
@pytest.mark.parametrize("inputs", VOCABULARIES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs(kind: str, inputs: str) -> None:
    """Most random programs compile to each kind of network, and have the same values."""
    seen: Counter[str] = Counter()

    @examples(10)
    @given(programs(6, operations=DISCRETE, typed=1.0, kind=inputs))
    def check_one(program: Any) -> None:
        seen[check(program, VOCABULARIES[inputs], 4, **KINDS[kind])] += 1

    check_one()
    if kind != "causal":  # a decoder cannot read later tokens, as most programs do
        assert seen["compiled"] > seen.total() / 3, seen


SMALLER = ("selector_and", ALIKE, ("select", INDICES, INDICES, "<"))
RANK = ("selector_width", ("selector_or", ("select", TOKENS, TOKENS, "<"), SMALLER))
SHARE = ("aggregate", BEFORE, ("indicator", ("equal", TOKENS, ("constant", "a"))), 0)
LIBRARY: dict[str, tuple[Any, list[Any]]] = {
    "reverse": (("aggregate", REVERSED, TOKENS, 0), ["a", "b", "c"]),
    "histogram": (("selector_width", ALIKE), ["a", "b", "c"]),
    "previous": (("aggregate", PREVIOUS, TOKENS, "?"), ["a", "b"]),
    "share": (SHARE, ["a", "b"]),
    "largest": (("aggregate", ("best", BEFORE, TOKENS), TOKENS, 0), [0, 1, 2, 5]),
    "sort": (("aggregate", ("select", RANK, INDICES, "=="), TOKENS, 0), [0, 1, 2]),
}


MUST_COMPILE = [
    *((name, kind) for name in LIBRARY for kind in ("default", "softmax", "gelu", "float32")),
    *((name, "causal") for name in ("previous", "share", "largest")),
]


@pytest.mark.parametrize(("name", "kind"), MUST_COMPILE)
def test_library(name: str, kind: str) -> None:
    """Programs that must compile."""
    program, vocabulary = LIBRARY[name]
    assert check(program, vocabulary, 6, **KINDS[kind]) == "compiled"


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_saved_networks(attention: str, tmp_path: Path) -> None:
    """A network from a folder has the same weights, program and answers."""
    sort = to_locum(LIBRARY["sort"][0])
    model = locum.compile(sort, length=5, vocabulary=[0, 1, 2], attention=attention)
    locum.save(model, tmp_path / attention)
    again = locum.load(tmp_path / attention)
    assert again.hash == model.hash
    assert again.program is sort.node
    assert again.error_bound == model.error_bound
    for tokens in ([2, 0, 1], [1, 1, 0, 2, 0]):
        assert again(tokens) == model(tokens) == sorted(tokens)
