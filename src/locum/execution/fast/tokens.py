"""Represent the original tokens with their types, and convert them to arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.execution.arrays import floating, is_finite, is_tensor, largest
from locum.execution.fast.structured import Series, Unstructured, tokens_array
from locum.execution.fast.structured.columns import texts_of_few
from locum.execution.fast.structured.series import arrays_for, integers, series
from locum.execution.types import Types, types_of
from locum.graph import Node
from locum.graph.atoms import LARGEST_EXACT

_CASTS: dict[str, Callable[[Any], Any]] = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Tokens:
    """One sequence of tokens, which is a list, an array or a tensor, with the types of its values."""

    values: Any
    types: Types
    is_array: bool

    @classmethod
    def read(cls, values: Any, types: Types | None = None) -> Tokens:
        """Return the tokens with their types, which are determined from ``values`` unless given.

        >>> Tokens.read([1, 2.5]).types == {int, float}, Tokens.read(np.arange(3)).types == {int}
        (True, True)
        """
        is_array = is_tensor(values) or isinstance(values, np.ndarray)
        return cls(values, types_of(values) if types is None else types, is_array)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def numbers(self) -> Any:
        """The tokens as floats, or None.

        The value is None if the tokens are not numbers, are all booleans, or contain integers beyond
        2⁵³, which floats may round.
        """
        if not self.types <= {bool, int, float} or self.types == {bool}:
            return None
        if self.is_array or self.types == {int}:
            array = self.values if self.is_array else self.whole
            exact = array is not None and (int not in self.types or largest(array) <= LARGEST_EXACT)
            return floating(array) if exact else None
        # Compare as integers, since 2⁵³ + 1 as a float is 2⁵³.
        if any(type(value) is int and abs(value) > LARGEST_EXACT for value in self.values):
            return None
        return np.array(self.values, dtype=np.float64)

    @cached_property
    def whole(self) -> Any:
        """The tokens as a NumPy array of int64, or None.

        The value is None for a tensor, for tokens that are not all integers, for a list with integers
        beyond int64, and for an array of uint64.
        """
        if self.types != {int} or is_tensor(self.values):
            return None
        if self.is_array:
            is_small = np.can_cast(self.values.dtype, np.int64)
            return self.values.astype(np.int64, copy=False) if is_small else None
        return integers(self.values)

    @cached_property
    def is_finite(self) -> bool:
        """Whether no token is infinite or NaN; also true if ``numbers`` is None."""
        return self.numbers is None or float not in self.types or is_finite(self.numbers)

    def series(self, nodes: Iterable[Node]) -> tuple[Any, dict[Node, Any]]:
        """Return an array of tokens for the structured tier, and the values of nodes such as
        ``tokens_str``.

        If the tokens are an array or a tensor, it is returned with no values of nodes. If they are a
        list, an array of zeros is returned with the value of each ``tokens`` node in ``nodes``. Casts
        are computed from the original tokens: the text of 1 is "1", and the text of 1.0 is "1.0". If
        arrays cannot represent these values, :class:`Unstructured` is raised.
        """
        if self.is_array:
            return self.values, {}
        known = {}
        for node in nodes:
            if node.op == "tokens":
                known[node] = self._leaf(node)
        return np.zeros(len(self)), known

    def _leaf(self, node: Node) -> Series:
        if node.cast in ("asis", "str") and self.whole is not None:
            arrays = arrays_for(self.whole)
            whole = series(arrays, self.whole)
            texts = texts_of_few(arrays, whole) if node.cast == "str" else whole
            if texts is not None:
                return texts
        if node.cast == "asis":
            return tokens_array(self.values)
        try:
            return tokens_array([_CASTS[node.cast](value) for value in self.values])
        except (ValueError, OverflowError) as error:
            raise Unstructured(f"a token cannot be cast: {error}") from None
