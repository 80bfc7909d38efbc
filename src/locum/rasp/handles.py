"""Represent s-ops and selectors as Python objects with operators and displays.

A handle represents one interned node. Handles are also interned, so equal programs are the same object.
A handle can be called on an input, printed, displayed in a notebook and combined with other handles.
Operators build the graph without computing values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex, TypeAlias, cast, overload
from weakref import WeakValueDictionary

from locum.errors import GraphError, LocumError
from locum.files import write_file
from locum.graph import (
    COMPARISONS,
    Atom,
    Node,
    Sort,
    abbreviate,
    build,
    is_atom,
    postorder,
    sequence_type,
    sort_of,
)
from locum.graph.architecture import Architecture
from locum.graph.architecture import architecture as _architecture
from locum.graph.labels import give_name
from locum.rasp import echo
from locum.settings import Setting
from locum.shared_state import Lock
from locum.text import CELL, HEAD, ON, row, table

if TYPE_CHECKING:
    from locum.execution.fast import Plan


def sop_html(title: str, tokens: Sequence[object], values: Sequence[object], kind: str) -> str:
    """Return an HTML table of the input and output of an s-op, with one column per position."""
    return table(
        f"s-op {title}",
        [
            row("input", [(echo.scalar(token), HEAD) for token in tokens]),
            row(f"output ({kind}s)", [(echo.scalar(value), CELL) for value in values]),
        ],
    )


def selector_html(title: str, tokens: Sequence[object], pattern: Sequence[Sequence[bool]]) -> str:
    """Return an HTML table that shows a selector as a grid with the tokens on both axes."""
    labels = [echo.scalar(token) for token in tokens]
    rows = [row("query \\ key", [(label, HEAD) for label in labels])]
    for label, selected in zip(labels, pattern, strict=True):
        rows.append(row(label, [("1", ON) if here else ("", CELL) for here in selected]))
    return table(f"selector {title}", rows)


def message_html(title: str, message: str) -> str:
    """Return an HTML table that shows a message, for a program without an example."""
    return table(title, [row("", [(message, CELL)])])


@dataclass(frozen=True)
class Picture:
    """An SVG picture, which notebooks display.

    >>> Picture("<svg/>", "nothing")
    a picture of nothing (SVG); save(path) writes it
    """

    svg: str = field(repr=False)
    subject: str

    def save(self, path: str | Path) -> None:
        """Write the picture to a file at ``path``."""
        write_file(path, self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"a picture of {self.subject} (SVG); save(path) writes it"


#: Operations whose results are booleans.
_BOOLEANS = {"and", "or", "not", "member", *(row.operation for row in COMPARISONS.values())}

#: Types that are accepted as an s-op. An atom denotes an s-op with this value at every position.
Operand: TypeAlias = "SOp | Atom"

#: Inputs on which ``repr`` runs the program, in order, until a run succeeds.
EXAMPLES: tuple[Any, ...] = ("hello", [3, 1, 4, 1, 5])
#: Programs with more nodes or heads than this are shown without an example.
_REPR_LIMIT = 2_000

_handles: WeakValueDictionary[Node, Handle] = WeakValueDictionary()
_lock = Lock()


class Handle:
    """A callable, printable object that represents a program's node and supports operators."""

    __slots__ = ("__weakref__", "node")
    node: Node
    _sorts: tuple[Sort, ...]
    # NumPy scalars on the left of an operator defer to the handle.
    __array_ufunc__ = None

    def __new__(cls, node: Node) -> Self:
        """Return the unique handle that represents ``node``; raise GraphError for a node of the wrong
        sort.
        """
        if sort_of(node) not in cls._sorts:
            kind = cls._sorts[0].value
            raise GraphError(f"a handle for {kind}s got a node of another kind: {node!r}")
        with _lock:
            handle = _handles.get(node)
            if handle is None:
                handle = super().__new__(cls)
                object.__setattr__(handle, "node", node)
                _handles[node] = handle
        return cast(Self, handle)

    def __call__(
        self, tokens: object, *, executor: str = "dense", domain: str = "float", strict: bool = False
    ) -> Any:
        """Run the program on a sequence or a batch of sequences.

        A sequence is a string, an iterable such as a list, or a 1-d array or tensor. A batch is a list
        of lists, which may have different lengths, or a 2-d array or tensor. ``executor`` is "dense",
        "fast", "heads" or "auto". With ``strict``, the fast executor raises an error instead of falling
        back to dense execution.
        """
        from locum.execution import run  # NumPy is imported with the first run

        return run(self.node, tokens, executor=executor, domain=domain, strict=strict)

    def named(self, name: str) -> Self:
        """Name this s-op or selector in figures and in labels of compiled networks, and return it.

        The name is not part of the program. A later name for the same program replaces an earlier name.

        >>> import locum
        >>> previous = locum.select(locum.indices, locum.indices - 1, "==").named("previous")
        >>> shift = locum.aggregate(previous, locum.tokens, "?").named("shift")
        >>> model = locum.compile(shift, length=4, vocabulary="ab")
        >>> model.config.heads, model.where(shift)[0].label
        ((('previous',),), 'shift')
        """
        if not (isinstance(name, str) and name.strip()):
            raise GraphError(
                f"named: expected a string that is not empty, got {name!r}; try .named('previous')"
            )
        give_name(self.node, name)
        return self

    @property
    def depth(self) -> int:
        """Number of operations on the longest path from a leaf, such as ``tokens``, to the result."""
        return self.node.depth

    @property
    def architecture(self) -> Architecture:
        """The layers and heads that the program needs."""
        return _architecture(self.node)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"programs are immutable: cannot set {name}")

    def __bool__(self) -> NoReturn:
        raise GraphError(
            f"{self._sorts[0].value} {abbreviate(self.node)} has no single truth value, but one at "
            "each position: use & | ~ instead of and or not, where(…) instead of if, and two "
            "comparisons instead of a < b < c"
        )

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, tuple[Node]]:
        return wrap, (self.node,)

    def __repr__(self) -> str:
        shown = self._example()
        return f"{self._title}\n" + (f"  {shown}" if isinstance(shown, str) else self._on(*shown))

    def _repr_html_(self) -> str:
        shown = self._example()
        if isinstance(shown, str):
            return message_html(self._title, shown)
        return self._html_on(*shown)

    @property
    def _title(self) -> str:
        return f"{self._sorts[0].value} {abbreviate(self.node)}"

    # This is not an ABC, since ``isinstance`` would be slow and is called very often.
    def _on(self, example: Any, value: Any) -> str:
        """Format the program's value on an example input as text."""
        raise NotImplementedError

    def _html_on(self, example: Any, value: Any) -> str:
        """Format the program's value on an example input as HTML for a notebook."""
        raise NotImplementedError

    def _example(self) -> tuple[Any, Any] | str:
        """Return an example input and the program's value on it, or the reason why there is none."""
        if self.node.free:
            return "part of a family of heads: close it with sum_over to run it"
        nodes = sum(1 for _ in zip(postorder(self.node), range(_REPR_LIMIT + 1), strict=False))
        if nodes > _REPR_LIMIT or sum(self.architecture.heads) > _REPR_LIMIT:
            return f"depth {self.depth}; too large to be shown on an example"
        reason = ""
        for example in EXAMPLES:
            try:
                return example, self(example)
            except LocumError as error:
                reason = reason or str(error)
        return f"no value on {echo.quoted(EXAMPLES[0])}: {reason}"


class SOp(Handle):
    """A sequence operator (s-op): a program that computes one value at each position.

    >>> import locum
    >>> double = 2 * locum.indices
    >>> double("abc"), (double == 2)("abc")
    ([0, 2, 4], [False, True, False])
    >>> double
    s-op 2 * indices
      on "hello": [0, 2, 4, 6, 8] (ints)
    """

    __slots__ = ()
    _sorts = (Sort.SOP, Sort.FAMILY)

    if TYPE_CHECKING:  # the result is a list for a list, and a list of lists for a list of lists

        @overload
        def __call__(
            self,
            tokens: Sequence[list[Any] | tuple[Any, ...]],
            *,
            executor: str = ...,
            domain: str = ...,
            strict: bool = ...,
        ) -> list[list[Any]]: ...
        @overload
        def __call__(
            self,
            tokens: str | Sequence[Any],
            *,
            executor: str = ...,
            domain: str = ...,
            strict: bool = ...,
        ) -> list[Any]: ...
        @overload
        def __call__(
            self, tokens: object, *, executor: str = ..., domain: str = ..., strict: bool = ...
        ) -> Any: ...
        def __call__(self, tokens: object, **options: Any) -> Any:
            """Run the s-op on a sequence or a batch."""

    def draw(self, tokens: Any = EXAMPLES[0], name: str = "out") -> Picture:
        """Draw the heads of the s-op on an input, and return a picture that notebooks display.

        >>> from locum.rasp.python import aggregate, full, indices
        >>> aggregate(full, indices).draw("abc")
        a picture of out on 'abc' (SVG); save(path) writes it
        """
        from locum.rasp.drawing.flow import flow_svg

        return Picture(flow_svg(self.node, tokens, name), f"{name} on {tokens!r}")

    def plan(
        self,
        length: int,
        *,
        positions: range | None = None,
        segments: Sequence[int | tuple[int, ...]] | None = None,
        like: Any = None,
        strict: bool = False,
    ) -> Plan:
        """Return the plan that the fast executor uses to run the s-op on ``length`` tokens.

        ``.explain()`` returns the steps of the plan as text, and ``.counts`` contains the number of
        operations of each kind. See :func:`locum.execution.fast.plan` for the options.
        """
        from locum.execution import fast

        return fast.plan(
            self.node, length, positions=positions, segments=segments, like=like, strict=strict
        )

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

    def __xor__(self, other: Operand) -> SOp:
        return SOp(build("not_equal", _boolean_node(self), _boolean_node(other)))

    __rxor__ = __xor__

    def __invert__(self) -> SOp:
        return apply("not", self)

    def __getitem__(self, place: SupportsIndex) -> SOp:
        """Return an s-op that is constant: its value at every position is the value of this s-op at
        ``place``.

        A negative ``place`` counts from the end. If the input has no such position, the value is 0.
        """
        index: int = Setting("an integer").read(place, "index of an s-op", GraphError)
        position: Operand = index if index >= 0 else SOp(build("length")) + index
        keys = build("select", build("indices"), sop_node(position, "index"), predicate="==")
        return SOp(build("aggregate", keys, self.node, default=0))

    __iter__ = None  # with __getitem__ alone, Python would iterate without end

    def _on(self, example: Any, values: Any) -> str:
        return f"  on {echo.quoted(example)}: {echo.sequence(values)}"

    def _html_on(self, example: Any, values: Any) -> str:
        kind = sequence_type(values) or "value"
        return sop_html(abbreviate(self.node), list(example), values, kind)


class Selector(Handle):
    """An attention pattern: a boolean for each query (row) and key (column).

    >>> import locum
    >>> before = locum.select(locum.indices, locum.indices, "<")
    >>> (before | ~before)("ab").tolist()
    [[True, True], [True, True]]
    """

    __slots__ = ()
    _sorts = (Sort.SELECTOR,)

    def __and__(self, other: Selector) -> Selector:
        return _combine("selector_and", self, other)

    def __or__(self, other: Selector) -> Selector:
        return _combine("selector_or", self, other)

    def __xor__(self, other: Selector) -> Selector:
        return (self & ~other) | (~self & other)

    def __invert__(self) -> Selector:
        return _combine("selector_not", self)

    def _refuse(self, *_: object) -> NoReturn:
        raise GraphError(
            f"expected s-ops in arithmetic or an ordering, got the selector {abbreviate(self.node)}; "
            "try & | ~ to combine selectors, or aggregate(…) or selector_width(…) for an s-op"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refuse
    __neg__ = __abs__ = __round__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def _on(self, example: Any, pattern: Any) -> str:
        return echo.grid(pattern, example)

    def _html_on(self, example: Any, pattern: Any) -> str:
        return selector_html(abbreviate(self.node), list(example), pattern)


def wrap(node: Node) -> Any:
    """Return the :class:`SOp` or :class:`Selector` of a node."""
    return Selector(node) if sort_of(node) is Sort.SELECTOR else SOp(node)


# Conversion of operands -----------------------------------------------------------------------------


def apply(op: str, *operands: object) -> SOp:
    """Return the s-op that applies the elementwise operation named ``op`` to s-ops or atoms."""
    return SOp(build(op, *(sop_node(operand, op) for operand in operands)))


def _combine(op: str, *selectors: object) -> Selector:
    return Selector(build(op, *(selector_node(selector, op) for selector in selectors)))


def sop_node(operand: object, op: str) -> Node:
    """Return the node of an s-op, or a constant node for an atom; ``op`` is named in error messages."""
    if isinstance(operand, SOp):
        return operand.node
    if isinstance(operand, Selector):
        raise GraphError(
            f"{op}: expected an s-op, got the selector {abbreviate(operand.node)}; "
            "try aggregate(selector, values), sum(selector, values) or selector_width(selector)"
        )
    return build("constant", value=plain_atom(operand, op))


def _boolean_node(operand: object) -> Node:
    """Return the node of a boolean operand of ``^``, or raise an error that suggests ``**``."""
    node = sop_node(operand, "^")
    kind = node.attributes.get("cast", node.attributes.get("value"))
    if node.op in _BOOLEANS or kind == "bool" or kind is True or kind is False:
        return node
    raise GraphError(f"^: expected booleans, got {abbreviate(node)}; try ** for powers, != for others")


def selector_node(operand: object, op: str) -> Node:
    """Return the node of a selector; raise GraphError for other operands."""
    if isinstance(operand, Selector):
        return operand.node
    shown = f"the s-op {abbreviate(operand.node)}" if isinstance(operand, SOp) else repr(operand)
    raise GraphError(f'{op}: expected a selector, got {shown}; try select(keys, queries, "==")')


def plain_atom(value: object, op: str) -> Atom:
    """Return an atom unchanged, or a NumPy scalar as an atom; raise GraphError for other values."""
    if is_atom(value):
        return value
    scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    plain = value.item() if scalar else None  # type: ignore[attr-defined]
    if is_atom(plain):  # a NumPy scalar
        return plain
    raise GraphError(f"{op}: expected an s-op or an atom (bool, int, float, string), got {value!r}")
