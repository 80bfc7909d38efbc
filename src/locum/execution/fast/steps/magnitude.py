"""Find the types of the steps of a plan, and bound the integers that the steps compute.

Dense execution uses Python's unbounded integers. A plan represents integers by floats; in float64,
integers are exact up to 2⁵³. Bounds on the integers follow from the program, the types of the tokens
and the largest token. A value that is always a float has the bound ``None``, since dense execution also
rounds it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from locum.execution.elementwise import MEANINGS
from locum.execution.fast.steps.step import Step
from locum.execution.types import BOOLEAN, MIXING, Types, atoms
from locum.graph import Node, postorder, size_of
from locum.graph.atoms import LARGEST_EXACT
from locum.graph.operations import ROUNDINGS

Bound = float | None

_MOVES = ("view", "reshape", "permute", "expand", "gather", "maximum", "minimum", "to_float")


def _arithmetic(op: str, sizes: Sequence[float]) -> float:
    """Return a bound on the result of an operation, given the bounds of its integer operands."""
    bound = MEANINGS[op].bound
    assert bound is not None
    # Compute with integers, since 2⁵³ + 1 as a float is 2⁵³.
    exact = [int(size) if size < math.inf else size for size in sizes]
    return max(map(abs, bound(*((-size, size) for size in exact))))


def greatest_integer(
    steps: Sequence[Step], tokens: Types, largest: float, opaque: Callable[[Node], Bound]
) -> float:
    """Return a bound on the integers that arithmetic in these steps computes.

    ``tokens`` contains the types of the tokens, and ``largest`` bounds their absolute values.
    ``opaque`` returns a bound for an s-op that the structured tier runs. Integers that are only moved,
    chosen or compared are exact and are not considered.
    """
    bounds: dict[Step, Bound] = {}
    greatest = 0.0
    for step in steps:
        below = [bounds[i] for i in step.inputs]
        if step.value is not None:
            bounds[step] = _constant(step)
        elif step.op == "input":
            bounds[step] = largest if tokens & {bool, int} else None
        elif step.op == "structured":
            node = step.settings[0]
            assert isinstance(node, Node)
            bounds[step] = opaque(node)
        else:
            bounds[step] = bound = _bound(step, below)
            if (
                step.op == "biased_product"
            ):  # the product before the bias may consist of integers, even if the bias does not
                greatest = max(greatest, bound or 0.0, _product(step, below[:2]) or 0.0)
            elif bound is not None and (step.op in ("sum", "matmul") or _is_arithmetic(step)):
                greatest = max(greatest, bound)
    return greatest


def _is_arithmetic(step: Step) -> bool:
    return step.op == "apply" and step.settings[0] in MIXING


def _bound(step: Step, below: list[Bound]) -> Bound:
    if step.boolean:
        return 1.0
    if step.op in _MOVES:
        return below[0]
    if step.op in ("concatenate", "assemble"):
        return _either(below)
    if step.op == "apply":
        return _elementwise(str(step.settings[0]), below)
    if any(bound is None for bound in below):
        return None
    whole = [bound for bound in below if bound is not None]
    if step.op == "sum":
        return _arithmetic("multiply", (whole[0], step.inputs[0].size // max(1, step.size)))
    if step.op == "matmul":
        return _product(step, whole)
    if step.op == "biased_product":
        product = _product(step, whole[:2])
        return None if product is None else _arithmetic("add", (product, whole[2]))
    return None


def _product(step: Step, below: Sequence[Bound]) -> Bound:
    """Return a bound on a product of matrices whose entries have the bounds ``below``."""
    sizes = [bound for bound in below if bound is not None]
    if len(sizes) < len(below):
        return None
    return _arithmetic("multiply", (_arithmetic("multiply", sizes), step.inputs[0].shape[-1]))


def _elementwise(op: str, below: list[Bound]) -> Bound:
    if op in BOOLEAN or op == "indicator":
        return 1.0
    if op == "if_else":
        return _either(below[1:])
    if op in ("minimum", "maximum"):
        return _either(below)
    if op in ("floor", "round"):
        return math.inf  # a float may be arbitrarily large
    sizes = [bound for bound in below if bound is not None]
    return _arithmetic(op, sizes) if op in MIXING and len(sizes) == len(below) else None


def _either(below: Sequence[Bound]) -> Bound:
    """Return a bound on a value that is one of several values with the bounds ``below``."""
    return max((bound for bound in below if bound is not None), default=None)


def _constant(step: Step) -> Bound:
    value = step.value
    assert value is not None
    if value.dtype == np.bool_:
        return 1.0
    if not value.size or not np.isfinite(value).all() or (value != np.floor(value)).any():
        return None
    largest = float(np.abs(value).max())
    # Larger constants are floats, since larger integers are not lowered.
    return largest if largest <= LARGEST_EXACT else None


def integer_bound(root: Node, tokens: Types, largest: float, length: int) -> Bound:
    """Return a bound on the integers of an s-op on ``length`` tokens of these types, or None.

    ``largest`` bounds the absolute values of the tokens. The result is None if no integers are found.
    """
    bounds: dict[Node, Bound] = {}
    for node in postorder(root):
        below = [bounds[i] for i in node.inputs]
        bounds[node] = _node_bound(node, below, tokens, largest, length)
    return bounds[root]


def _node_bound(node: Node, below: list[Bound], tokens: Types, largest: float, length: int) -> Bound:
    match node.op:
        case "tokens":
            cast = node.cast
            if cast == "int" and float in tokens:
                return math.inf
            if cast == "bool":
                return 1.0
            return largest if cast == "int" or (cast == "asis" and tokens & {bool, int}) else None
        case "indices" | "length" | "selector_width":
            return float(length)
        case "family":
            return float(size_of(node))
        case "constant":
            return _of_atoms(atoms(node))
        case "lookup":
            return _of_atoms(atoms(node)[1::2])
        case "aggregate":
            return _either([below[1], _of_atoms(atoms(node))])
        case "sum_over":
            body, *sizes = below
            return None if body is None else body * math.prod(size for size in sizes if size)
    return _elementwise(node.op, below)


def _of_atoms(listed: Sequence[Any]) -> Bound:
    integers = [abs(atom) for atom in listed if isinstance(atom, int)]
    return _either([float(atom) if atom <= LARGEST_EXACT else math.inf for atom in integers])


#: Operations whose result has the type of the first input.
_MOVING = (
    *("view", "reshape", "permute", "expand", "gather", "fetch", "take_rows"),
    *("sum", "maximum", "minimum"),
    *("softmax", "attention", "biased_product", "gelu", "silu", "layer_norm"),
)


class StepTypes:
    """A cache of the types of steps.

    Request the types of the inputs of a step before the type of the step, so that recursion is not
    deep.
    """

    def __init__(self) -> None:
        self._known: dict[Step, str] = {}

    def of(self, step: Step) -> str:
        """Return the name of the type of a step, such as "float32", or "" if no rule applies."""
        if step not in self._known:
            self._known[step] = self._find(step)
        return self._known[step]

    def _find(self, step: Step) -> str:
        if step.boolean:
            return "bool"
        if step.op == "input":
            return str(step.settings[1])
        if step.value is not None:
            return step.value.dtype.name
        if step.op == "to_float":
            return "float64"
        if step.op in ("argmax", "positions"):
            return "int64"
        if step.op == "scatter":
            return self.of(step.inputs[1])
        if step.op in _MOVING:
            return self.of(step.inputs[0])
        if step.op == "apply":
            op = str(step.settings[0])
            if op in ROUNDINGS:
                return op
            return self._promoted(step.inputs[1:] if op == "if_else" else step.inputs)
        if step.op in ("matmul", "concatenate", "assemble", "join"):
            return self._promoted(step.inputs)
        return ""

    def _promoted(self, steps: tuple[Step, ...]) -> str:
        names = [self.of(step) for step in steps]
        if "" in names:
            return ""
        kinds = ((name, not step.shape) for step, name in zip(steps, names, strict=True))
        return functools.reduce(promote, kinds)[0]


#: The name of a type, and whether the value is a single number.
Kind = tuple[str, bool]


@functools.cache
def promote(one: Kind, other: Kind) -> Kind:
    """Return the type to which torch promotes two types.

    Each type, also the returned one, has a flag that is True for a single number.

    >>> promote(("float32", False), ("float64", True))
    ('float32', False)
    """
    import torch

    first, second = (
        torch.empty(() if single else (1,), dtype=getattr(torch, name), device="meta")
        for name, single in (one, other)
    )
    dtype = torch.result_type(first, second)
    return str(dtype).removeprefix("torch."), one[1] and other[1]
