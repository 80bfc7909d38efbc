"""Compiled networks give the answers of the reference interpreter, or are refused with a CompileError."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

import locum
from tests.core.programs import DISCRETE, grow, to_locum
from tests.core.reference import Undefined, run

VOCABULARIES = {"number": [0, 1, 3], "text": ["a", "b", "c"]}
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "softmax": {"attention": "softmax"},
    "gelu": {"feed_forward": "gelu"},
    "glu": {"feed_forward": "glu"},
    "float32": {"dtype": "float32"},
    "fixed": {"fixed": True},
    "causal": {"causal": True},
    "unfolded": {"fold": False},
}


def agree(found: list[Any], wanted: list[Any], tolerance: float) -> bool:
    return len(found) == len(wanted) and all(
        f == w if isinstance(f, str) or isinstance(w, str) else abs(f - w) <= tolerance * max(1, abs(w))
        for f, w in zip(found, wanted, strict=True)
    )


def check(program: Any, kind: str, vocabulary: list[Any], length: int, **options: Any) -> str:
    """Compile a program and run it on inputs; say what happened."""
    try:
        model = locum.compile(to_locum(program), length=length, vocabulary=vocabulary, **options)
    except locum.CompileError:
        return "refused"
    tolerance = max(1e-3 if options.get("dtype") == "float32" else 1e-9, 0)
    lengths = [length] if options.get("fixed") else range(1, length + 1)
    rng, told = random.Random(0), "compiled"
    for n in lengths:
        inputs = [list(t) for t in itertools.product(vocabulary, repeat=n)]
        for tokens in rng.sample(inputs, min(5, len(inputs))):
            try:
                wanted = run(program, tokens)
            except Undefined:
                with pytest.raises(locum.LocumError):
                    model(tokens)
                told = "partly undefined"
                continue
            assert agree(list(model(tokens)), wanted, tolerance), (program, tokens, wanted)
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs(kind: str) -> None:
    """Forty programs for each kind of network; a fifth may be refused (half where it must be causal)."""
    seen: Counter[str] = Counter()
    for seed in range(24):
        tokens = ("number", "text")[seed % 2]
        program = grow(100 + seed, 5, DISCRETE, 1.0, tokens)
        seen[check(program, kind, VOCABULARIES[tokens], 4, **KINDS[kind])] += 1
    assert seen["refused"] <= (20 if kind == "causal" else 6), seen


PREVIOUS = ("select", ("indices",), ("subtract", ("indices",), ("constant", 1)), "==")
LIBRARY: dict[str, tuple[Any, list[Any]]] = {
    "reverse": (
        (
            "aggregate",
            (
                "select",
                ("indices",),
                ("subtract", ("subtract", ("length",), ("constant", 1)), ("indices",)),
                "==",
            ),
            ("tokens", "asis"),
            0,
        ),
        ["a", "b", "c"],
    ),
    "histogram": (
        ("selector_width", ("select", ("tokens", "asis"), ("tokens", "asis"), "==")),
        ["a", "b", "c"],
    ),
    "previous": (("aggregate", PREVIOUS, ("tokens", "asis"), "?"), ["a", "b"]),
    "share": (
        (
            "aggregate",
            ("select", ("indices",), ("indices",), "<="),
            ("indicator", ("equal", ("tokens", "asis"), ("constant", "a"))),
            0,
        ),
        ["a", "b"],
    ),
    "largest": (
        (
            "aggregate",
            ("best", ("select", ("indices",), ("indices",), "<="), ("tokens", "asis")),
            ("tokens", "asis"),
            0,
        ),
        [0, 1, 2, 5],
    ),
    "sort": (
        (
            "aggregate",
            (
                "select",
                (
                    "selector_width",
                    (
                        "selector_or",
                        ("select", ("tokens", "asis"), ("tokens", "asis"), "<"),
                        (
                            "selector_and",
                            ("select", ("tokens", "asis"), ("tokens", "asis"), "=="),
                            ("select", ("indices",), ("indices",), "<"),
                        ),
                    ),
                ),
                ("indices",),
                "==",
            ),
            ("tokens", "asis"),
            0,
        ),
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("kind", ["default", "softmax", "gelu", "float32"])
def test_library(name: str, kind: str) -> None:
    program, vocabulary = LIBRARY[name]
    assert check(program, kind, vocabulary, 6, **KINDS[kind]) == "compiled"


def test_reals_stay_within_the_bound() -> None:
    """With real tokens, the error of the network is at most `error_bound`."""
    x = locum.tokens
    programs = [x * x, x * locum.aggregate(locum.full, x), locum.aggregate(locum.select(locum.indices, locum.indices, "<="), x),
                locum.maximum(x, 0.25) - locum.minimum(x, locum.aggregate(locum.full, x)), locum.where(locum.indices > 1, x, -x),
                locum.aggregate(locum.best(locum.full, x), locum.indices)]  # fmt: skip
    rng = random.Random(3)
    for program in programs:
        for attention in ("hard", "softmax"):
            try:
                model = locum.compile(
                    program,
                    length=4,
                    numeric=True,
                    ranges=(-2, 2),
                    separation=0.01,
                    tolerance=0.05,
                    attention=attention,
                )
            except locum.CompileError:
                continue
            for _ in range(10):
                tokens = [round(rng.uniform(-2, 2), 2) for _ in range(rng.randint(1, 4))]
                if len(set(tokens)) < len(tokens):
                    continue
                wanted, found = program(tokens), model(tokens)
                assert (
                    max(abs(f - w) for f, w in zip(found, wanted, strict=True))
                    <= model.error_bound + 1e-12
                )


def test_exports_and_files(tmp_path: Any) -> None:
    """A saved network, and the PyTorch and TransformerLens forms, have the answers of the network."""
    torch = pytest.importorskip("torch")
    program = to_locum(LIBRARY["sort"][0])
    for attention in ("hard", "softmax"):
        model = locum.compile(program, length=5, vocabulary=[0, 1, 2], attention=attention)
        model.save(tmp_path / attention) if hasattr(model, "save") else locum.save(
            model, tmp_path / attention
        )
        again = locum.load(tmp_path / attention)
        for tokens in ([2, 0, 1], [1, 1, 0, 2, 0]):
            assert again(tokens) == model(tokens) == sorted(tokens)
    assert torch is not None
