"""Options of ``compile`` that make no sense are refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from locum import compiler, tokens
from locum.errors import CompileError


@pytest.mark.parametrize("vocabulary", [5, [[1]], [{}], [None], [b"a"]])
def test_what_is_no_vocabulary(vocabulary: Any) -> None:
    with pytest.raises(CompileError, match="the vocabulary"):
        compiler.compile(tokens, length=2, vocabulary=vocabulary)


@pytest.mark.parametrize("ranges", [(), [], 5, "ab", [[1]], {}, {"tokens": ()}, (2, 1)])
def test_what_are_no_ranges(ranges: Any) -> None:
    with pytest.raises(CompileError, match="ranges are"):
        compiler.compile(tokens, length=2, numeric=True, ranges=ranges)
