"""Define the meaning of programs by literal execution.

A selector is a boolean matrix [query, key]. ``aggregate`` computes a mean for each row of this matrix.
A family is expanded head by head. This executor is deliberately simple, since it is the specification
against which other executors, rewrites and compiled networks are tested.

Dense execution is as strict as RASP. Both branches of ``if_else`` are computed at every position, so an
error in the branch that is not chosen is also raised. Sequences that mix strings with
numbers, means of strings, and order comparisons of a string with a number are errors. An
:class:`~locum.errors.ExecutionError` names the s-op or the selector and, if it is known, the position.

Graphs may be deep, so no function is recursive. The evaluation of a node is a generator that *requests*
the values of its inputs (``yield node, heads``), and ``_evaluated`` sends them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from locum.budget import Budget
from locum.errors import ExecutionError
from locum.execution.domains import (
    AverageError,
    Domain,
    MissingError,
    NotRealError,
    PairError,
    Pattern,
    Value,
)
from locum.execution.domains.floats import describe_failure
from locum.execution.metering import Meter
from locum.graph import OPERATIONS, Node, abbreviate, members, size_of
from locum.graph.printer import family_name
from locum.graph.traversal import depends_on, postorder
from locum.graph.wellformed import require_program

#: The value of a node: one scalar per position, or a pattern [query, key].
Result: TypeAlias = "list[Value] | Pattern"
#: The current head of each family.
Heads: TypeAlias = Mapping[Node, int]
#: Names of nodes in error messages, or a function that collects these names when they are needed.
Names: TypeAlias = Mapping[Node, str] | Callable[[], Mapping[Node, str]]
#: The evaluation of a node: yields (node, heads), receives values, returns the result.
Evaluation: TypeAlias = Generator[tuple[Node, Heads], Result, Result]

#: The operations that ``_Run`` implements; the domain implements the elementwise ones.
STRUCTURAL = frozenset(row.name for row in OPERATIONS.values() if not row.elementwise)

#: Limits of dense execution: cells of one pattern (memory), and heads in total (time).
MAX_CELLS = 2**28
MAX_HEADS = 10**6

_WRONG = (ArithmeticError, TypeError, ValueError)


def evaluate(
    root: Node,
    tokens: Sequence[Value],
    domain: Domain,
    names: Names | None = None,
    *,
    known: Mapping[Node, Result] | None = None,
    max_heads: int = MAX_HEADS,
    budget: Budget | None = None,
) -> Result:
    """Return the value of ``root`` on one input: a list of scalars, or a pattern for a selector.

    ``names`` maps nodes to their names in errors. ``known`` maps nodes without free families to their
    values on this input. ``budget`` is charged for work and memory.
    """
    (value,) = evaluate_all(
        [root], tokens, domain, names, known=known, max_heads=max_heads, budget=budget
    )
    return value


def evaluate_all(
    roots: Sequence[Node],
    tokens: Sequence[Value],
    domain: Domain,
    names: Names | None = None,
    *,
    known: Mapping[Node, Result] | None = None,
    max_heads: int = MAX_HEADS,
    budget: Budget | None = None,
) -> list[Result]:
    """Return the values of several roots on one input; shared parts without free families are evaluated
    once.
    """
    for root in roots:
        require_program(root)
    run = _Run(roots, tokens, domain, names or {}, known or {}, Meter(budget, len(tokens)))
    left = [root for root in roots if root not in run.known]
    heads_in_all = expansion(*left, known=run.known)
    if heads_in_all > max_heads:
        heads = f"{heads_in_all:,}" if heads_in_all < 10**30 else "more than 10^30"
        problem = f"its families expand to {heads} heads; the limit here is {max_heads:,}"
        raise ExecutionError(problem, run.place(roots[0], {}), kind="too large")
    try:
        return [_evaluated(run, root) for root in roots]
    finally:
        run.close()


def _evaluated(run: _Run, root: Node) -> Result:
    known = run.recall(root, {})
    if known is not None:
        return known
    evaluations: list[Evaluation] = [run.meaning(root, {})]
    answer: Result | None = None
    while evaluations:
        try:
            node, heads = evaluations[-1].send(answer)  # type: ignore[arg-type]  # None starts it
        except StopIteration as done:
            evaluations.pop()
            answer = done.value
        else:
            answer = None
            evaluations.append(run.meaning(node, heads))
    assert answer is not None
    return answer


def expansion(*roots: Node, known: Container[Node] = ()) -> int:
    """Return the number of heads to which the families of programs expand; 0 without families.

    Parts of the programs whose values are ``known`` are not counted.

    >>> from locum.graph import build, family, sum_over
    >>> l = family(300)
    >>> expansion(sum_over([l], build("add", l, build("indices"))))
    300
    """
    if not any(root.height for root in roots):
        return 0
    return sum(
        math.prod(size_of(family) for family in {*node.free, *node.inputs[1:]})
        for node in postorder(*roots, into=lambda node: node not in known)
        if node.op == "sum_over"
    )


class _Run:
    """One evaluation of a program on one input, with its intermediate values."""

    def __init__(
        self,
        roots: Sequence[Node],
        tokens: Sequence[Value],
        domain: Domain,
        names: Names,
        known: Mapping[Node, Result],
        meter: Meter,
    ) -> None:
        self.tokens = tokens
        self.domain = domain
        self.names = names
        self.known = known
        self.meter = meter
        #: For each node, its values by the current heads of its free families.
        self.memory: dict[Node, dict[tuple[int, ...], Result]] = {}
        self.uses_left = self.count_uses(roots)

    def recall(self, node: Node, heads: Heads) -> Result | None:
        if node in self.known:
            return self.known[node]
        values = self.memory.get(node)
        return None if values is None else values.get(_member(node, heads))

    def meaning(self, node: Node, heads: Heads) -> Evaluation:
        if node.op == "sum_over":
            value: Result = yield from self.sum_over(node, heads)
        else:
            inputs = []
            for i in node.inputs:
                known = self.recall(i, heads)
                inputs.append((yield i, heads) if known is None else known)
            self.meter.start(node, inputs)
            value = self.apply(node, inputs, heads)
        self.meter.keep(value)
        self.memory.setdefault(node, {})[_member(node, heads)] = value
        self.release_inputs(node)
        return value

    def sum_over(self, node: Node, heads: Heads) -> Evaluation:
        """Sum the body of a family over all heads: 0 + body at the first head + body at the second head
        + …
        """
        body, *families = node.inputs
        inside = list(postorder(body, into=depends_on(families)))
        of_one_head = [local for local in inside if local.free.issuperset(families)]
        total: list[Value] = [self.domain.constant(0)] * len(self.tokens)
        for member in members(families):
            here = {**heads, **member}
            value = self.recall(body, here)
            if value is None:
                value = yield body, here
            assert isinstance(value, list)
            self.meter.start(node, [total, value])
            total = self.each(node, self.domain.meanings["add"], [total, value], here)
            for local in of_one_head:  # other heads do not need these values
                self.forget(local)
        for local in inside:
            self.forget(local)
        return self.legal(node, total, heads)

    def apply(self, node: Node, inputs: list[Result], heads: Heads) -> Result:
        """Apply one operation to the values of its inputs."""
        if node.op not in STRUCTURAL:
            return self.legal(node, self.elementwise(node, inputs, heads), heads)
        domain, size = self.domain, len(self.tokens)
        value: Result
        match node.op, inputs:
            case "tokens", []:
                cast = partial(domain.token, cast=node.cast)
                value = self.each(node, cast, [list(self.tokens)], heads)
            case "indices", []:
                value = [domain.constant(position) for position in range(size)]
            case "length", []:
                value = [domain.constant(size)] * size
            case "constant", []:
                atom = node.value
                value = self.whole(node, lambda: [domain.constant(atom)] * size, heads)
            case "family", []:
                value = [domain.constant(heads[node])] * size
            case "selector_and", [np.ndarray() as a, np.ndarray() as b]:
                return self.whole(node, lambda: a & b, heads)
            case "selector_or", [np.ndarray() as a, np.ndarray() as b]:
                return self.whole(node, lambda: a | b, heads)
            case "selector_not", [np.ndarray() as a]:
                return self.whole(node, lambda: ~a, heads)
            case "select", [list(keys), list(queries)]:
                if size * size > MAX_CELLS:
                    problem = f"a pattern of {size:,} × {size:,} cells is too large for dense execution"
                    raise ExecutionError(problem, self.place(node, heads), kind="too large")
                predicate = node.predicate
                return self.whole(node, lambda: domain.select(keys, queries, predicate), heads)
            case "best", [np.ndarray() as selected, list(scores)]:
                return self.whole(node, lambda: domain.best(selected, scores), heads)
            case "selector_width", [np.ndarray() as selected]:
                value = self.whole(node, lambda: domain.widths(selected), heads)
            case "aggregate", [np.ndarray() as selected, list(values)]:
                atom = node.default
                value = self.whole(
                    node, lambda: domain.aggregate(selected, values, domain.constant(atom)), heads
                )
        return self.legal(node, value, heads)

    def elementwise(self, node: Node, inputs: list[Result], heads: Heads) -> list[Value]:
        """Apply an elementwise operation, which the domain defines."""
        op, domain = node.op, self.domain
        if op in domain.refusals:
            problem = f"{op} has no meaning in the {domain.name} domain: {domain.refusals[op]}"
            raise ExecutionError(problem, self.place(node, heads), kind="refused")
        function = domain.meanings[op]
        if node.attributes:
            function = partial(function, **node.attributes)
        return self.each(node, function, inputs, heads)

    def each(
        self, node: Node, function: Callable[..., Value], inputs: Sequence[Result], heads: Heads
    ) -> list[Value]:
        """Apply ``function`` at every position; an error names the position."""
        try:
            return list(map(function, *inputs))
        except _WRONG:
            pass
        value = []
        for position, scalars in enumerate(zip(*inputs, strict=True)):
            try:
                value.append(function(*scalars))
            except _WRONG as error:
                problem = describe_failure(error, node.op, scalars)
                place = self.place(node, heads)
                raise ExecutionError(problem, place, position, kind=error_kind(error)) from None
        return value

    def whole(self, node: Node, compute: Callable[[], Result], heads: Heads) -> Result:
        """Compute all values of a node at once; an error refers to a query or to the whole sequence."""
        try:
            return compute()
        except _WRONG as error:
            position = error.query if isinstance(error, PairError) else None
            problem = describe_failure(error, node.op, ())
            place = self.place(node, heads)
            raise ExecutionError(problem, place, position, kind=error_kind(error)) from None

    def legal(self, node: Node, value: Result, heads: Heads) -> Result:
        """Return ``value``, or raise an error if it mixes types that a sequence may not mix."""
        problem = self.domain.mixture(value) if isinstance(value, list) else None
        if problem is None:
            return value
        raise ExecutionError(problem, self.place(node, heads), kind="mixture")

    def count_uses(self, roots: Sequence[Node]) -> dict[Node, int]:
        """Return how often each node is used by the nodes that must be evaluated; a root has one more
        use.
        """
        uses = dict.fromkeys(roots, 1)
        known = self.known
        for node in postorder(*roots, into=(lambda node: node not in known) if known else None):
            for i in node.inputs:
                uses[i] = uses.get(i, 0) + 1
        return uses

    def release_inputs(self, node: Node) -> None:
        """Delete the values of inputs of ``node`` that are not needed again, since patterns are large.

        If ``node`` depends on a family, its inputs are kept for the other heads of the family.
        """
        if node.free:
            return
        uses_left = self.uses_left
        for i in node.inputs:
            uses_left[i] -= 1
            if uses_left[i] == 0 and not i.free:
                self.forget(i)

    def forget(self, node: Node) -> None:
        """Delete the values of a node and release their memory."""
        for value in self.memory.pop(node, {}).values():
            self.meter.drop(value)

    def close(self) -> None:
        """Delete all values at the end of the run."""
        for node in list(self.memory):
            self.forget(node)

    def place(self, node: Node, heads: Heads) -> str:
        """Describe a node and its current heads for error messages."""
        families = sorted(node.free, key=lambda family: family.name)
        which = ", ".join(f"{family_name(family)} = {heads[family]}" for family in families)
        return abbreviate(node, called(self.names)) + (f" (head {which})" if which else "")


def called(names: Names | None) -> Mapping[Node, str]:
    """Return the names of nodes for error messages; if ``names`` is a function, it is called."""
    return names() if callable(names) else names or {}


def _member(node: Node, heads: Heads) -> tuple[int, ...]:
    free = node.free
    return tuple([heads[family] for family in free]) if free else ()


def error_kind(error: Exception) -> str:
    """Return the kind of an error: the violated rule, or the name of the Python exception."""
    special = {
        AverageError: "average",
        NotRealError: "not real",
        MissingError: "missing",
        PairError: "TypeError",
    }
    return special.get(type(error), type(error).__name__)
