"""Tokens as they were given, their types, and the arrays that plans and the structured tier read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from locum.execution.fast.structured import Series, Unstructured, tokens_array
from locum.execution.fast.structured.columns import texts_of_few
from locum.execution.fast.structured.series import arrays_for, integers, series
from locum.execution.inputs import is_tensor
from locum.execution.types import LEAVES, Types, types_of
from locum.graph import Node, build, postorder
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.traversal import transform

_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_CASTS: dict[str, Callable[[Any], Any]] = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Tokens:
    """One sequence: a list of atoms, an array or a tensor, and the types of its values."""

    values: Any
    types: Types
    is_array: bool

    @classmethod
    def read(cls, values: Any, types: Types | None = None) -> Tokens:
        """Return the tokens with their types, which are found unless they are given.

        >>> Tokens.read([1, 2.5]).types == {int, float}, Tokens.read(np.arange(3)).types == {int}
        (True, True)
        """
        if is_tensor(values):
            return cls(values, frozenset([_tensor_type(values)]), True)
        if isinstance(values, np.ndarray):
            return cls(values, frozenset([_TYPES[values.dtype.kind]]), True)
        return cls(values, types_of(values) if types is None else types, False)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def numbers(self) -> Any:
        """The tokens in floating point; None if they are not numbers, or floats would round them."""
        if not self.types <= {bool, int, float} or self.types == {bool}:
            return None
        if self.is_array or self.types == {int}:
            array = self.values if self.is_array else self.whole
            exact = array is not None and (int not in self.types or largest(array) <= LARGEST_EXACT)
            return floating(array) if exact else None
        # Looked at as integers: 2⁵³ + 1 as a float would be 2⁵³.
        if any(type(value) is int and abs(value) > LARGEST_EXACT for value in self.values):
            return None
        return np.array(self.values, dtype=np.float64)

    @cached_property
    def whole(self) -> Any:
        """The tokens in an array of int64; None if they are not integers, or do not fit."""
        if self.types != {int} or is_tensor(self.values):
            return None
        if self.is_array:
            is_small = np.can_cast(self.values.dtype, np.int64)
            return self.values.astype(np.int64, copy=False) if is_small else None
        return integers(self.values)

    @cached_property
    def is_finite(self) -> bool:
        """Whether there is no infinity and no NaN among them."""
        return self.numbers is None or float not in self.types or is_finite(self.numbers)

    def for_plan(self, root: Node) -> tuple[Node, Any, Types] | None:
        """Return a program and an array of tokens that a plan can run in place of ``root``.

        A measure that reads nothing but the types of the tokens is run on these, as 0 and 1.
        """
        if self.numbers is None or len(self.types) == 1:
            return None if self.numbers is None else (root, self.numbers, self.types)
        leaves = {node for node in postorder(root) if node.op == "tokens"}
        typed = leaves.intersection(LEAVES.values())
        if not typed:
            return root, self.numbers, self.types
        if len(leaves) > 1:
            return None
        read = build("tokens", cast="asis")
        on_types = transform(root, lambda node: read if node in typed else node)
        return on_types, self._leaf(typed.pop()).data.astype(np.float64), frozenset([int])

    def series(self, nodes: Iterable[Node]) -> tuple[Any, dict[Node, Any]]:
        """Return the tokens for the structured tier, and what ``tokens_str`` and the like see of them.

        Casts are computed from the tokens themselves: the text of 1 is "1", and that of 1.0 is "1.0".
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
        for kind, leaf in LEAVES.items():
            if node is leaf:
                return tokens_array([int(type(value) is kind) for value in self.values])
        if node.cast == "asis":
            return tokens_array(self.values)
        try:
            return tokens_array([_CASTS[node.cast](value) for value in self.values])
        except (ValueError, OverflowError) as error:
            raise Unstructured(f"a token cannot be cast: {error}") from None


def _tensor_type(tensor: Any) -> type:
    if tensor.dtype.is_floating_point:
        return float
    return bool if str(tensor.dtype) == "torch.bool" else int


def is_floating(array: Any) -> bool:
    """Return whether an array or a tensor holds floating-point numbers."""
    return bool(array.dtype.is_floating_point if is_tensor(array) else array.dtype.kind == "f")


def floating(array: Any) -> Any:
    """Return an array or a tensor of numbers in floating point."""
    if is_floating(array):
        return array
    return array.double() if is_tensor(array) else array.astype(np.float64)


def is_finite(array: Any) -> bool:
    """Return whether an array or a tensor has no infinity and no NaN in it."""
    return bool(array.isfinite().all() if is_tensor(array) else np.isfinite(array).all())


def largest(array: Any) -> float:
    """Return the largest absolute value (of int64's least number, too), infinite if there is a NaN."""
    if not math.prod(array.shape):
        return 0.0
    if is_floating(array):
        greatest = float(abs(array).max())
        return math.inf if math.isnan(greatest) else greatest
    return max(-int(array.min()), int(array.max()))
