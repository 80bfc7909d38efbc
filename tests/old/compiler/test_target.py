"""Options of ``compile`` that make no sense are refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from locum import tokens
from locum.errors import CompileError
from locum.networks import compiler
from locum.networks.compiler.target import Target


@pytest.mark.parametrize("vocabulary", [5, [[1]], [{}], [None], [b"a"]])
def test_what_is_no_vocabulary(vocabulary: Any) -> None:
    with pytest.raises(CompileError, match="vocabulary: expected"):
        compiler.compile(tokens, length=2, vocabulary=vocabulary)


def test_unknown_options_name_the_nearest() -> None:
    for option, hint in (
        ("vocab", "; try vocabulary$"),
        ("feedforward", "; try feed_forward$"),
        ("share_positions", "$"),
    ):
        options: dict[str, Any] = {option: True}
        with pytest.raises(CompileError, match=f"options: expected length, .*, got '{option}'{hint}"):
            compiler.compile(tokens, length=2, **options)
    with pytest.raises(CompileError, match=r"length: expected .*longest input.*, got nothing"):
        compiler.compile(tokens, vocabulary="ab")


@pytest.mark.parametrize("ranges", [(), [], 5, "ab", [[1]], {}, {"tokens": ()}, (2, 1)])
def test_what_are_no_ranges(ranges: Any) -> None:
    with pytest.raises(CompileError, match="ranges: expected"):
        compiler.compile(tokens, length=2, numeric=True, ranges=ranges)


def test_numbers_and_types_of_numpy() -> None:
    plain = Target.read(length=4, vocabulary=[1, 2], dtype="float32")
    assert Target.read(length=np.int64(4), vocabulary=np.array([1, 2]), dtype=np.float32) == plain
    assert Target.read(length=2, vocabulary=np.array(["a", "b"])).vocabulary == ("a", "b")
    for wrong in (b"ab", np.array(5), np.eye(2)):
        with pytest.raises(CompileError, match="vocabulary: expected"):
            Target.read(length=2, vocabulary=wrong)
    with pytest.raises(CompileError, match="length: expected an integer"):
        Target.read(length=np.float64(3), vocabulary="ab")
