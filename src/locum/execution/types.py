"""Infer the types that the values of a program may have, and the single type of its result.

Dense execution computes with Python objects. In the float domain, a value is a ``bool``, an ``int``, a
``float`` or a ``str``. A sequence may mix the first three types. For example, ``aggregate`` returns the
unchanged value of a single key, a float for the mean of several keys, and the default if no key is
selected. The other executors return values of one type: the join of all types that the program may
return on the given types of tokens. A ``bool`` joined with an ``int`` is an ``int``, and a number
joined with a ``float`` is a ``float``, as in NumPy.

>>> from locum.graph import build
>>> i, tokens = build("indices"), build("tokens", cast="asis")
>>> before = build("select", i, i, predicate="<")
>>> means = build("aggregate", before, tokens, default=0)
>>> result_type(means, frozenset([int])).__name__
'float'
>>> here = build("select", i, i, predicate="==")
>>> result_type(build("aggregate", here, tokens, default=0), frozenset([int])).__name__
'int'
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import permutations, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from locum.errors import ExecutionError
from locum.execution.arrays import floating, is_floating, is_tensor, largest
from locum.execution.domains.floats import FloatDomain
from locum.execution.elementwise import MEANINGS
from locum.graph import Node, abbreviate, postorder, size_of
from locum.graph.atoms import LARGEST_EXACT, short

_FLOATS = FloatDomain()
#: The types that a value may have at some position.
Types: TypeAlias = frozenset[type]


def _giving(kind: str | None) -> frozenset[str]:
    return frozenset(op for op, meaning in MEANINGS.items() if meaning.kind == kind)


#: Elementwise operations with boolean results.
BOOLEAN = _giving("bool")
_INTEGER = _giving("int") | {"indices", "length", "selector_width", "family"}
_REAL = _giving("float")
_DTYPES: Mapping[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_CASTS: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
#: Operations whose result type follows from the types of all inputs, unlike operations that return an
#: operand or an entry of a table.
MIXING = _giving(None) - {"minimum", "maximum", "if_else", "lookup"}
#: The bound that represents arbitrarily large integers.
UNBOUNDED = 2**64
#: Operations that return values unchanged (or means, which are floats).
_MOVING = ("aggregate", "if_else", "minimum", "maximum")


def types_of(values: Any) -> Types:
    """Return the types of some atoms, or of the values of an array or a tensor.

    >>> sorted(t.__name__ for t in types_of([1, 2.5, 3])), types_of(np.arange(3))
    (['float', 'int'], frozenset({<class 'int'>}))
    """
    if isinstance(values, np.ndarray):
        return frozenset([_DTYPES[values.dtype.kind]])
    if is_tensor(values):
        is_bool = str(values.dtype) == "torch.bool"
        return frozenset([float if is_floating(values) else bool if is_bool else int])
    return frozenset(map(type, values))


def has_strings(root: Node) -> bool:
    """Return whether strings occur in a program: casts, constants, defaults, or entries of tables and
    sets.

    >>> from locum.graph import build
    >>> has_strings(build("tokens", cast="asis")), has_strings(build("tokens", cast="str"))
    (False, True)
    """
    return any(
        node.cast == "str" if node.op == "tokens" else str in types_of(atoms(node))
        for node in postorder(root)
    )


def atoms(node: Node) -> list[object]:
    """Return the atoms in a node: a constant, a default, or the entries of a set or a table."""
    match node.op:
        case "constant":
            return [node.value]
        case "aggregate":
            return [node.default]
        case "member":
            return list(node.members)
        case "lookup":
            return [atom for pair in node.table for atom in pair]
    return []


def averages_booleans(possible: Mapping[Node, Types]) -> str | None:
    """Return a message if an s-op may average values that are all booleans, else None.

    Dense execution rejects such a mean. Other executors detect only tokens and s-ops whose values must
    be booleans, so these are not considered here.
    """
    for node in possible:
        # Tokens that are all booleans are detected.
        if node.op == "aggregate" and node.inputs[1].op != "tokens":
            values = possible[node.inputs[1]]
            if bool in values and values != {bool} and float in possible[node]:
                return "values that may be booleans are averaged"
    return None


def rounds_integers(possible: Mapping[Node, Types], length: int) -> str | None:
    """Return a message if floats may round an integer of the program, else None.

    Floats may round an integer that exceeds 2⁵³ if the program also contains floats. Large integers
    that depend on tokens, or are converted from floats, may be missed.
    """
    if has_large_integers(possible, length) and any(float in types for types in possible.values()):
        return "floats may round an integer of the program"
    return None


def has_large_integers(possible: Mapping[Node, Types], length: int) -> bool:
    """Return whether an integer of the program may exceed 2⁵³ if all integer tokens are 0.

    Integers that are converted from floats or strings are ignored.
    """
    atoms_of_all = (atom for node in possible for atom in atoms(node))
    bounds = _integer_bounds(possible, length, 0).values()
    return max(_largest(atoms_of_all), *bounds, 0) > LARGEST_EXACT


def computed_mixtures(
    possible: Mapping[Node, Types], length: int, token: int = UNBOUNDED
) -> frozenset[Node]:
    """Return the s-ops that may compute both integers and floats, if a float may round such an integer.

    Arrays store these integers as floats. ``token`` is the largest absolute value of an integer token.
    """
    bounds = _integer_bounds(possible, length, token)
    return frozenset(
        node
        for node, types in possible.items()
        if {int, float} <= types
        and (node.op in MIXING or node.op == "sum_over")
        and bounds[node] >= LARGEST_EXACT
    )


def _integer_bounds(possible: Mapping[Node, Types], length: int, token: int) -> dict[Node, int]:
    """Return bounds of the absolute values of the integers of all nodes, limited to ``UNBOUNDED``.

    ``token`` is the largest absolute value of a token. If ``token`` is 0, integers that are converted
    from floats or strings are ignored.
    """
    bounds: dict[Node, int] = {}
    for node, types in possible.items():
        below = [bounds[i] for i in node.inputs]
        bound = _largest_integer(node, below, possible, length, token)
        bounds[node] = min(bound, UNBOUNDED) if types & {bool, int} else 0
    return bounds


def _largest_integer(
    node: Node, below: list[int], possible: Mapping[Node, Types], length: int, token: int
) -> int:
    """Return a bound of the absolute value of the integers of an s-op, from the bounds of its
    inputs.
    """
    unknown = UNBOUNDED if token else 0
    match node.op:
        case "indices" | "length" | "selector_width":
            return length
        case "family":
            return size_of(node)
        case "constant" | "lookup":
            return _largest(atoms(node))
        case "tokens":
            return token if node.cast == "asis" else unknown
        case "aggregate":
            return max(below[1], _largest(atoms(node)))
        case "if_else":
            return max(below[1:])
        case "minimum" | "maximum":
            return max(below)
        case "add" | "subtract":
            return sum(below)
        case "multiply":
            return below[0] * below[1]
        case "power":
            base, exponent = below
            return base if base <= 1 else base ** min(exponent, UNBOUNDED.bit_length())
        case "negate" | "absolute" | "floor_divide":
            return below[0]
        case "modulo":
            return below[1]
        case "floor" | "round":
            return max(below[0], unknown if float in possible[node.inputs[0]] else 0)
        case "sum_over":
            return below[0] * prod(map(size_of, node.inputs[1:]))
    return 1 if possible[node] <= {bool} or node.op == "indicator" else unknown


def _largest(values: Iterable[object]) -> int:
    return max((abs(value) for value in values if isinstance(value, int)), default=0)


def largest_token(tokens: Any) -> int:
    """Return the largest absolute value of the integers among the tokens.

    >>> largest_token([-3, 2.5, True]), largest_token(np.array([1.5]))
    (3, 0)
    """
    if isinstance(tokens, np.ndarray) or is_tensor(tokens):
        return 0 if float in types_of(tokens) or str in types_of(tokens) else int(largest(tokens))
    return _largest(tokens)


def moved_atoms(root: Node, tokens: Iterable[object]) -> list[object]:
    """Return the atoms that may be returned unchanged: constants, defaults, values of tables, and
    tokens after their casts.

    Tokens that cannot be cast are omitted.

    >>> from locum.graph import build
    >>> moved_atoms(build("aggregate", build("select", *[build("indices")] * 2, predicate="<"),
    ...     build("tokens", cast="asis"), default=7), "ab")
    [7, 'a', 'b']
    """
    moved: list[object] = []
    for node in handed_on(root):
        match node.op:
            case "aggregate" | "constant":
                moved += atoms(node)
            case "lookup":
                moved += [value for _, value in node.table]
            case "tokens":
                moved += _cast_tokens(node.cast, tokens)
    return moved


def _cast_tokens(how: str, tokens: Iterable[object]) -> list[object]:
    """Cast tokens as ``tokens_<how>`` does; omit tokens that cannot be cast."""
    found: list[object] = []
    for token in tokens:
        with contextlib.suppress(ArithmeticError, TypeError, ValueError):
            found.append(_FLOATS.token(token, how))
    return found


def only_moves(root: Node) -> bool:
    """Return whether a program returns only tokens, constants, defaults, table values, booleans,
    positions, lengths, counts, head indices, indicators, and means of such values.
    """
    moved = (*_MOVING, "constant", "lookup", "tokens", *BOOLEAN)
    small = ("indices", "length", "selector_width", "family", "indicator")
    return all(node.op in (*moved, *small) for node in handed_on(root))


def handed_on(root: Node) -> list[Node]:
    """Return the program and the s-ops whose values it may return unchanged."""
    reached = {root: None}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.op in _MOVING:
            values = node.inputs if node.op in ("minimum", "maximum") else node.inputs[1:]
            stack += [value for value in values if value not in reached]
            reached.update(dict.fromkeys(values))
    return list(reached)


def possible_types(root: Node, tokens: Types, *roots: Node) -> dict[Node, Types]:
    """Return the possible types of each node of some programs, inputs first.

    ``tokens`` contains the possible types of the input tokens.
    """
    possible: dict[Node, Types] = {}
    keys = _Keys(possible)
    for node in postorder(root, *roots):
        possible[node] = _possible(node, [possible[i] for i in node.inputs], tokens, keys.single)
        keys.add(node)
    return possible


def result_type(root: Node, tokens: Types) -> type:
    """Return the single type of all values of a program, for executors other than dense.

    ``tokens`` contains the possible types of the input tokens.
    """
    return join(possible_types(root, tokens)[root])


def join(types: Types) -> type:
    """Return the type that represents values of all these types, as in NumPy.

    Strings are ignored if there are numbers, because no sequence contains both.

    >>> join(frozenset([bool, int])), join(frozenset([bool, int, float])), join(frozenset([str, int]))
    (<class 'int'>, <class 'float'>, <class 'int'>)
    """
    return next((kind for kind in (float, int, bool) if kind in types), str)


def cast(values: Any, kind: type, root: Node) -> Any:
    """Convert the values of an s-op, in a list, an array or a tensor, to values of one type.

    Strings remain strings. An integer that a float would round raises :class:`ExecutionError`. In a
    list or a NumPy array, so does the conversion to integers of a float that is not an integer or is
    2⁵³ or more in absolute value. Converted to integers, a tensor of floats is rounded. If it contains
    NaN or absolute values above 2⁵³, it is returned unchanged instead.

    >>> from locum.graph import build
    >>> cast([0, 1, 1.5], float, build("indices"))
    [0.0, 1.0, 1.5]
    """
    if isinstance(values, list):
        if any(isinstance(value, str) for value in values):
            return values
        _require_equal(values, kind, root)
        return list(map(kind, values))
    on_tensor = is_tensor(values)
    if not on_tensor and values.dtype.kind not in "biuf":
        return values
    if kind is bool:
        return values != 0
    if kind is float:
        if not is_floating(values) and largest(values) > LARGEST_EXACT:
            _require_equal(values.tolist(), kind, root)
        return floating(values)
    if on_tensor:
        if not is_floating(values):
            return values.long()
        # Beyond 2⁵³, and for infinities and NaN, int64 may not have this integer.
        return values.round().long() if largest(values) <= LARGEST_EXACT else values
    if is_floating(values) and not is_whole(values):
        raise _inexact(next(value for value in values.tolist() if not is_whole(value)), kind, root)
    return values if values.dtype.kind in "iu" else values.astype(np.int64)


def is_whole(values: Any) -> bool:
    """Return whether all numbers are integers with absolute values below 2⁵³."""
    return bool(np.all((np.rint(values) == values) & (np.abs(values) < LARGEST_EXACT)))


def _require_equal(values: Iterable[Any], kind: type, root: Node) -> None:
    """Raise an error for a value that a conversion to this type would change.

    A conversion to an integer also raises the error for a float whose absolute value is 2⁵³ or more.
    """
    for value in values:
        try:
            is_equal = type(value) is kind or kind(value) == value
        except (OverflowError, ValueError):
            is_equal = False
        if not is_equal or (kind is int and not isinstance(value, int) and not is_whole(value)):
            raise _inexact(value, kind, root)


def _inexact(value: Any, kind: type, root: Node) -> ExecutionError:
    shown = short(value) if isinstance(value, int) else repr(value)
    return ExecutionError(
        f"expected values that the type {kind.__name__} holds exactly, got {shown}; try "
        'executor="dense"',
        abbreviate(root),
        kind="refused",
    )


class _Keys:
    """The selectors of a program that select at most one key, and the nodes that imply this."""

    def __init__(self, possible: Mapping[Node, Types]) -> None:
        self.possible = possible
        #: Selectors that select at most one key for each query.
        self.single: set[Node] = set()
        #: S-ops with a different integer at each position, and constant integer s-ops.
        self.distinct: set[Node] = set()
        self.uniform: set[Node] = set()
        #: Selectors of the keys before the query in a strict order of all positions.
        self.orders: set[Node] = set()

    def add(self, node: Node) -> None:
        """Classify a node; all its inputs must have been added before."""
        inputs = node.inputs
        match node.op:
            case "indices":
                self.distinct.add(node)
            case "length" | "family":
                self.uniform.add(node)
            case "constant" if type(node.value) is int:
                self.uniform.add(node)
            case "add" | "subtract" | "negate" if self.uniform.issuperset(inputs):
                self.uniform.add(node)
            case "negate" if inputs[0] in self.distinct:
                self.distinct.add(node)
            case "add" | "subtract" if any(
                a in self.distinct and b in self.uniform for a, b in permutations(inputs)
            ):
                self.distinct.add(node)
            case "selector_width" if inputs[0] in self.orders:
                self.distinct.add(node)
            case "select" if node.predicate == "==" and inputs[0] in self.distinct:
                self.single.add(node)
            case "select" if node.predicate in ("<", ">") and inputs[0] is inputs[1] in self.distinct:
                self.orders.add(node)
            case "selector_or" if any(self._breaks_ties(a, b) for a, b in permutations(inputs)):
                self.orders.add(node)
            case "selector_and" if not self.single.isdisjoint(inputs):
                self.single.add(node)
            case "best" if inputs[0] in self.single or inputs[1] in self.distinct:
                self.single.add(node)

    def _breaks_ties(self, less: Node, tie: Node) -> bool:
        """Return whether ``less`` orders positions by an s-op, and ``tie`` orders positions where the
        s-op has equal values.

        NaN is neither equal to nor less than any value, so the s-op must not contain floats.
        """
        if less.op != "select" or less.predicate not in ("<", ">") or tie.op != "selector_and":
            return False
        a, b = less.inputs
        return (
            a is b
            and float not in self.possible[a]
            and any(
                equal.op == "select"
                and equal.predicate == "=="
                and equal.inputs == less.inputs
                and order in self.orders
                for equal, order in permutations(tie.inputs)
            )
        )


def _possible(node: Node, below: list[Types], tokens: Types, single: set[Node]) -> Types:
    op = node.op
    if op in BOOLEAN:
        return frozenset([bool])
    if op in _INTEGER:
        return frozenset([int])
    if op in _REAL:
        return frozenset([float])
    if op in ("negate", "absolute"):
        return _combined(op, below[0], frozenset([int]))
    if op in MIXING:
        combined = _combined(op, below[0], below[1])
        inverse = op == "power" and int in combined and not _is_natural(node.inputs[1])
        return combined | {float} if inverse else combined
    match op:
        case "tokens":
            return tokens if node.cast == "asis" else frozenset([_CASTS[node.cast]])
        case "constant":
            return types_of(atoms(node))
        case "lookup":
            return types_of(value for _, value in node.table)
        case "if_else":
            return below[1] | below[2]
        case "minimum" | "maximum":
            return below[0] | below[1]
        case "sum_over":
            return _combined("add", frozenset([int]), below[0])
        case "aggregate":
            moves = node.inputs[0] in single
            mean = set() if moves or not below[1] & {int, float} else {float}
            return below[1] | types_of(atoms(node)) | mean
    return frozenset()  # a selector


@cache
def _combined(op: str, left: Types, right: Types) -> Types:
    """Return the possible types of ``op`` on two values; int and float if ``op`` is always an error."""
    results = [_result(op, a, b) for a, b in product(left, right)]
    return frozenset(kind for kind in results if kind is not None) or frozenset([int, float])


def _result(op: str, a: type, b: type) -> type | None:
    if str not in (a, b):
        return float if float in (a, b) else int
    if op == "add":
        return str if a is b else None
    return str if op == "multiply" and not {a, b} <= {str, float} else None


def _is_natural(node: Node) -> bool:
    return node.op == "constant" and isinstance(node.value, int) and node.value >= 0
