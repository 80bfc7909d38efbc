"""The Python front end: s-ops and selectors as Python objects.

``tokens``, ``indices``, ``length`` and constants are s-ops; operators, functions, ``select`` and
``aggregate`` make new ones. Nothing is computed until a program is *called* on an input. The
objects are handles on interned nodes, and interned themselves: the same program is the same object.

>>> histogram = selector_width(select(tokens, tokens, "=="))
>>> histogram("hello")
[1, 1, 2, 2, 1]
>>> histogram is selector_width(key(tokens) == query(tokens))
True
>>> histogram
s-op selector_width(select(tokens, tokens, ==))
  on "hello": [1, 1, 2, 2, 1] (ints)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Self, TypeAlias, cast
from weakref import WeakValueDictionary

import understudy.graph as graph
from understudy.analysis import Architecture
from understudy.analysis import architecture as _architecture
from understudy.errors import GraphError, UnderstudyError
from understudy.graph import Atom, Node, Sort, abbreviate, build, is_atom, postorder, sequence_type
from understudy.graph.atoms import canonical_set, canonical_table
from understudy.graph.definitions import everywhere
from understudy.language import echo, notebook

#: What may stand where an s-op is wanted: an atom is the same at every position.
Operand: TypeAlias = "SOp | Atom"

#: Inputs that reprs try, in this order.
EXAMPLES: tuple[Any, ...] = ("hello", [3, 1, 4, 1, 5])
#: Programs with more nodes or heads than this are shown without an example.
_REPR_LIMIT = 2_000

_handles: WeakValueDictionary[Node, Handle] = WeakValueDictionary()


class Handle:
    """A node as a front end hands it to the user: callable, printable, with operators."""

    __slots__ = ("__weakref__", "node")
    node: Node
    _sorts: tuple[Sort, ...]
    # NumPy scalars on the left of an operator leave the work to the handle.
    __array_ufunc__ = None

    def __new__(cls, node: Node) -> Self:
        """The one handle on ``node``."""
        if graph.sort_of(node) not in cls._sorts:
            raise GraphError(f"{node!r} is no {cls._sorts[0].value}")
        found = _handles.get(node)
        if found is None:
            found = super().__new__(cls)
            object.__setattr__(found, "node", node)
            found = _handles.setdefault(node, found)
        return cast(Self, found)

    def __call__(self, given: object, *, executor: str = "dense", domain: str = "float") -> Any:
        """Run on a sequence (string, list or array) or a batch of them (list of lists, 2-d array)."""
        from understudy.execution import run  # NumPy is loaded with the first run, not before

        return run(self.node, given, executor=executor, domain=domain)

    @property
    def depth(self) -> int:
        """Operations on the longest path from an input to the result."""
        return self.node.depth

    @property
    def architecture(self) -> Architecture:
        """Layers and heads."""
        return _architecture(self.node)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"programs are immutable: cannot set {name}")

    def __bool__(self) -> NoReturn:
        raise GraphError(
            f"{self._sorts[0].value} {abbreviate(self.node)} has no truth value of its own, but one at "
            "each position: use & | ~ instead of and or not, where(…) instead of if, and two "
            "comparisons instead of a < b < c"
        )

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, tuple[Node]]:
        return wrap, (self.node,)

    def _example(self) -> tuple[Any, Any] | str:
        """An input and the value on it, or why none is shown."""
        if self.node.free:
            return "part of a family of heads: close it with sum_over to run it"
        nodes = sum(1 for _ in zip(postorder(self.node), range(_REPR_LIMIT + 1), strict=False))
        if nodes > _REPR_LIMIT or sum(self.architecture.heads) > _REPR_LIMIT:
            return f"depth {self.depth}; too large to be shown on an example"
        reason = ""
        for example in EXAMPLES:
            try:
                return example, self(example)
            except UnderstudyError as error:
                reason = reason or str(error)
        return f"no value on {_shown(EXAMPLES[0])}: {reason}"


class SOp(Handle):
    """A value at each position."""

    __slots__ = ()
    _sorts = (Sort.SOP, Sort.FAMILY)

    # Arithmetic.
    def __add__(self, other: Operand) -> SOp:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> SOp:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> SOp:
        return apply("subtract", self, other)

    def __rsub__(self, other: Operand) -> SOp:
        return apply("subtract", other, self)

    def __mul__(self, other: Operand) -> SOp:
        return apply("multiply", self, other)

    def __rmul__(self, other: Operand) -> SOp:
        return apply("multiply", other, self)

    def __truediv__(self, other: Operand) -> SOp:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Operand) -> SOp:
        return apply("divide", other, self)

    def __mod__(self, other: Operand) -> SOp:
        return apply("modulo", self, other)

    def __rmod__(self, other: Operand) -> SOp:
        return apply("modulo", other, self)

    def __floordiv__(self, other: Operand) -> SOp:
        return apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Operand) -> SOp:
        return apply("floor_divide", other, self)

    def __pow__(self, other: Operand) -> SOp:
        return apply("power", self, other)

    def __rpow__(self, other: Operand) -> SOp:
        return apply("power", other, self)

    def __neg__(self) -> SOp:
        return apply("negate", self)

    def __abs__(self) -> SOp:
        return apply("absolute", self)

    def __round__(self) -> SOp:
        return apply("round", self)

    def __floor__(self) -> SOp:
        return apply("floor", self)

    # Comparison: an s-op of bools, not a bool.
    def __eq__(self, other: object) -> SOp:  # type: ignore[override]
        return apply("equal", self, other)

    def __ne__(self, other: object) -> SOp:  # type: ignore[override]
        return apply("not_equal", self, other)

    def __lt__(self, other: Operand) -> SOp:
        return apply("less", self, other)

    def __le__(self, other: Operand) -> SOp:
        return apply("less_equal", self, other)

    def __gt__(self, other: Operand) -> SOp:
        return apply("greater", self, other)

    def __ge__(self, other: Operand) -> SOp:
        return apply("greater_equal", self, other)

    __hash__ = Handle.__hash__

    # Logic.
    def __and__(self, other: Operand) -> SOp:
        return apply("and", self, other)

    def __rand__(self, other: Operand) -> SOp:
        return apply("and", other, self)

    def __or__(self, other: Operand) -> SOp:
        return apply("or", self, other)

    def __ror__(self, other: Operand) -> SOp:
        return apply("or", other, self)

    def __invert__(self) -> SOp:
        return apply("not", self)

    def __repr__(self) -> str:
        title = f"s-op {abbreviate(self.node)}"
        match self._example():
            case str(reason):
                return f"{title}\n  {reason}"
            case (example, values):
                return f"{title}\n  on {_shown(example)}: {echo.sequence(values)}"

    def _repr_html_(self) -> str:
        match self._example():
            case str(reason):
                return notebook.message_html(f"s-op {abbreviate(self.node)}", reason)
            case (example, values):
                kind = sequence_type(values) or "value"
                return notebook.sop_html(abbreviate(self.node), list(example), values, kind)


class Selector(Handle):
    """A boolean for each query and key: who attends to whom. Rows are queries."""

    __slots__ = ()
    _sorts = (Sort.SELECTOR,)

    def __and__(self, other: Selector) -> Selector:
        return _combine("selector_and", self, other)

    def __or__(self, other: Selector) -> Selector:
        return _combine("selector_or", self, other)

    def __invert__(self) -> Selector:
        return _combine("selector_not", self)

    def __repr__(self) -> str:
        title = f"selector {abbreviate(self.node)}"
        match self._example():
            case str(reason):
                return f"{title}\n  {reason}"
            case (example, pattern):
                return f"{title}\n{echo.grid(pattern, example)}"

    def _repr_html_(self) -> str:
        match self._example():
            case str(reason):
                return notebook.message_html(f"selector {abbreviate(self.node)}", reason)
            case (example, pattern):
                return notebook.selector_html(abbreviate(self.node), list(example), pattern)


def wrap(node: Node) -> Any:
    """The handle on a node: an :class:`SOp` or a :class:`Selector`."""
    return Selector(node) if graph.sort_of(node) is Sort.SELECTOR else SOp(node)


# Leaves ---------------------------------------------------------------------------------------

#: The input as it is given, and as RASP's four casts of it.
tokens: SOp = SOp(build("tokens", cast="asis"))
tokens_str: SOp = SOp(build("tokens", cast="str"))
tokens_int: SOp = SOp(build("tokens", cast="int"))
tokens_float: SOp = SOp(build("tokens", cast="float"))
tokens_bool: SOp = SOp(build("tokens", cast="bool"))
indices: SOp = SOp(build("indices"))
length: SOp = SOp(build("length"))
#: Every query attends to every key.
full: Selector = Selector(everywhere())


def constant(value: Atom) -> SOp:
    """The same value at every position. Operators take plain atoms, so this is seldom needed.

    >>> constant(7)("abc")
    [7, 7, 7]
    """
    return SOp(build("constant", value=_atom(value, "constant")))


# Attention --------------------------------------------------------------------------------------


def select(keys: Operand, queries: Operand, predicate: str) -> Selector:
    """Row q, column k: ``keys[k] ? queries[q]``, with ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``.

    >>> select(indices, indices, "<")("ab").tolist()
    [[False, False], [True, False]]
    """
    return Selector(
        build(
            "select",
            _node(keys, "select"),
            _node(queries, "select"),
            predicate=_text(predicate, "select"),
        )
    )


def aggregate(selector: Selector, values: Operand, default: Atom = 0) -> SOp:
    """The mean of ``values`` over the keys each query selects; ``default`` where it selects none.

    One selected key passes its value unchanged, whatever its type.

    >>> aggregate(select(indices, indices, "<"), indices)("hello")
    [0, 0, 0.5, 1.0, 1.5]
    """
    selected = _selector(selector, "aggregate")
    chosen = _atom(default, "the default of aggregate")
    return SOp(build("aggregate", selected, _node(values, "aggregate"), default=chosen))


def selector_width(selector: Selector) -> SOp:
    """How many keys each query selects.

    >>> selector_width(full)("abc")
    [3, 3, 3]
    """
    return SOp(build("selector_width", _selector(selector, "selector_width")))


def best(selector: Selector, score: Operand) -> Selector:
    """Of the selected keys, those of greatest ``score``: hard attention proper.

    By position it is leftmost (score ``-indices``) or rightmost (score ``indices``) attention.

    >>> aggregate(best(full, tokens), indices)([3, 9, 4])
    [1, 1, 1]
    """
    return Selector(build("best", _selector(selector, "best"), _node(score, "best")))


class Key:
    """A value at the position attended to; compare it with a :func:`query` to make a selector."""

    def __init__(self, values: Operand) -> None:
        self.values = SOp(_node(values, "key"))

    def _with(self, other: object, predicate: str) -> Selector:
        if not isinstance(other, Query):
            raise GraphError(
                f"a key is compared with a query, key(k) {predicate} query(q), not {other!r}"
            )
        return select(self.values, other.values, predicate)

    def __eq__(self, other: object) -> Selector:  # type: ignore[override]
        return self._with(other, "==")

    def __ne__(self, other: object) -> Selector:  # type: ignore[override]
        return self._with(other, "!=")

    def __lt__(self, other: Query) -> Selector:
        return self._with(other, "<")

    def __le__(self, other: Query) -> Selector:
        return self._with(other, "<=")

    def __gt__(self, other: Query) -> Selector:
        return self._with(other, ">")

    def __ge__(self, other: Query) -> Selector:
        return self._with(other, ">=")

    __hash__ = None  # type: ignore[assignment]  # == makes a selector


class Query:
    """A value at the position that attends; stands on the right of a :func:`key`."""

    def __init__(self, values: Operand) -> None:
        self.values = SOp(_node(values, "query"))

    def __eq__(self, other: object) -> NoReturn:
        raise GraphError("write the key first: key(k) == query(q)")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]


def key(values: Operand) -> Key:
    """``key(k) == query(q)`` is ``select(k, q, "==")``; so are the other five comparisons."""
    return Key(values)


def query(values: Operand) -> Query:
    """See :func:`key`."""
    return Query(values)


# Families -----------------------------------------------------------------------------------------


def family(size: int, name: str | None = None) -> SOp:
    """A head index l ∈ {0, …, size−1}: an s-op that is the same at every position of one head.

    >>> l = family(3)
    >>> sum_over(l, l * indices)("abc")
    [0, 3, 6]
    """
    return SOp(graph.family(size, name))


def sum_over(*families_and_body: Operand) -> SOp:
    """``sum_over(l, m, body)``: the sum of ``body`` over all members of the families l and m."""
    if len(families_and_body) < 2:
        raise GraphError("sum_over needs a family and a body: sum_over(l, body)")
    *families, body = (_node(part, "sum_over") for part in families_and_body)
    return SOp(graph.sum_over(families, body))


# Elementwise functions ------------------------------------------------------------------------------


def where(condition: Operand, then: Operand, otherwise: Operand) -> SOp:
    """``then`` where the condition holds, else ``otherwise``. Both are computed everywhere.

    >>> where(indices > 1, "late", "early")("abc")
    ['early', 'early', 'late']
    """
    return apply("if_else", condition, then, otherwise)


def indicator(condition: Operand) -> SOp:
    """1 where the condition holds, else 0."""
    return apply("indicator", condition)


def member(value: Operand, of: Iterable[Atom]) -> SOp:
    """Whether the value is one of a finite set.

    >>> member(tokens, "aeiou")("hello")
    [False, True, False, False, True]
    """
    values = canonical_set(_atom(atom, "member") for atom in of)
    return SOp(build("member", _node(value, "member"), values=values))


def lookup(value: Operand, table: Mapping[Any, Atom]) -> SOp:
    """What a finite table has for the value; a value it lacks is an error.

    >>> lookup(tokens, {"(": 1, ")": -1})("(()")
    [1, 1, -1]
    """
    atoms = {_atom(key, "lookup"): _atom(found, "lookup") for key, found in table.items()}
    return SOp(build("lookup", _node(value, "lookup"), table=canonical_table(atoms)))


def minimum(a: Operand, b: Operand) -> SOp:
    """The lesser of two."""
    return apply("minimum", a, b)


def maximum(a: Operand, b: Operand) -> SOp:
    """The greater of two."""
    return apply("maximum", a, b)


def exp(value: Operand) -> SOp:
    """e to the power of the value."""
    return apply("exp", value)


def log(value: Operand) -> SOp:
    """The natural logarithm."""
    return apply("log", value)


def sqrt(value: Operand) -> SOp:
    """The square root."""
    return apply("sqrt", value)


def erf(value: Operand) -> SOp:
    """The error function."""
    return apply("erf", value)


def tanh(value: Operand) -> SOp:
    """The hyperbolic tangent."""
    return apply("tanh", value)


def floor(value: Operand) -> SOp:
    """The greatest whole number not above the value."""
    return apply("floor", value)


# Programs as text -----------------------------------------------------------------------------------


def dumps(program: Handle) -> str:
    """A program as JSON; :func:`loads` gives back the same object."""
    return graph.dumps(program.node)


def loads(text: str) -> Any:
    """The program that :func:`dumps` wrote.

    >>> loads(dumps(indices + 1)) is indices + 1
    True
    """
    return wrap(graph.loads(text))


def stable_hash(program: Handle) -> str:
    """A hash of the program's structure, the same on every machine."""
    return graph.stable_hash(program.node)


def to_rasp(program: Handle) -> str:
    """A program as RASP text.

    >>> print(to_rasp(aggregate(full, tokens_int, 7) / length))
    aggregate(select(1, 1, ==), tokens_int, 7) / length;
    """
    return graph.to_rasp(program.node)


# What was meant -------------------------------------------------------------------------------------


def apply(op: str, *operands: object) -> SOp:
    """An elementwise operation of the table by its name: what the operators above are made of."""
    return SOp(build(op, *(_node(operand, op) for operand in operands)))


def _combine(op: str, *selectors: object) -> Selector:
    return Selector(build(op, *(_selector(selector, op) for selector in selectors)))


def _node(operand: object, op: str) -> Node:
    """The node of an s-op, or of an atom as a constant one."""
    if isinstance(operand, SOp):
        return operand.node
    if isinstance(operand, Selector):
        raise GraphError(
            f"{op} needs an s-op, but got the selector {abbreviate(operand.node)}: "
            "aggregate(selector, values) or selector_width(selector) makes an s-op of it"
        )
    return build("constant", value=_atom(operand, op))


def _selector(operand: object, op: str) -> Node:
    if isinstance(operand, Selector):
        return operand.node
    shown = f"the s-op {abbreviate(operand.node)}" if isinstance(operand, SOp) else repr(operand)
    raise GraphError(f'{op} needs a selector, such as select(keys, queries, "=="), but got {shown}')


def _atom(value: object, op: str) -> Atom:
    if is_atom(value):
        return value
    plain = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else None
    if is_atom(plain):  # a NumPy scalar
        return plain
    raise GraphError(f"{op} needs an s-op or an atom (bool, int, float, string), but got {value!r}")


def _text(predicate: object, op: str) -> str:
    if isinstance(predicate, str):
        return predicate
    raise GraphError(f'{op} needs its predicate as a string, such as "==", but got {predicate!r}')


def _shown(example: object) -> str:
    return f'"{example}"' if isinstance(example, str) else repr(example)
