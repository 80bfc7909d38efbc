"""Write selectors in negation normal form: comparisons of keys with queries, joined by *and* and *or*.

*Not* occurs only directly before a comparison or ``best``. For numbers other than NaN, a negated
comparison is equivalent to the opposite comparison. All order comparisons with NaN are false, so
negations are kept. Common parts of selectors become shared parts of formulas. No function is recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from locum.graph import COMPARISONS, Node, postorder
from locum.graph.traversal import walk as graph_walk

#: Maximum number of parts of a nested conjunction or disjunction that is flattened. The cost of
#: flattening is quadratic.
_FLAT = 64


@dataclass(frozen=True, eq=False)
class Literal:
    """A comparison key[k] ? query[q] in the formula of a selector, or its negation."""

    key: Node
    query: Node
    predicate: str
    negated: bool

    @property
    def ordered(self) -> str:
        """The predicate without negation that is equivalent for all numbers except NaN."""
        return COMPARISONS[self.predicate].negation if self.negated else self.predicate


@dataclass(frozen=True, eq=False)
class Best:
    """The keys with the highest score among the keys that a formula selects; if negated, all other
    keys.
    """

    selected: Formula
    score: Node
    negated: bool


@dataclass(frozen=True, eq=False)
class AllOf:
    """A conjunction: every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class AnyOf:
    """A disjunction: at least one part holds."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = "Literal | Best | AllOf | AnyOf"
_T = TypeVar("_T")


def formula_of(selector: Node) -> Formula:
    """Return the negation normal form of a selector."""
    formulas: dict[tuple[Node, bool], Formula] = {}
    for node in postorder(selector, into=lambda n: n.op in _SELECTORS):
        for holds in (True, False):
            formulas[node, holds] = _one(node, holds, formulas)
    return formulas[selector, True]


_SELECTORS = ("select", "selector_and", "selector_or", "selector_not", "best")


def _one(node: Node, holds: bool, formulas: dict[tuple[Node, bool], Formula]) -> Formula:
    if node.op == "select":
        key, query = node.inputs
        return Literal(key, query, node.predicate, negated=not holds)
    if node.op == "selector_not":
        return formulas[node.inputs[0], not holds]
    if node.op == "best":
        selected, score = node.inputs
        return Best(formulas[selected, True], score, negated=not holds)
    kind = AllOf if (node.op == "selector_and") == holds else AnyOf
    return kind(tuple(p for i in node.inputs for p in _flattened(formulas[i, holds], kind)))


def _flattened(part: Formula, kind: type[AllOf] | type[AnyOf]) -> tuple[Formula, ...]:
    if isinstance(part, kind) and len(part.parts) <= _FLAT:
        return part.parts
    return (part,)


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """Return the direct subformulas of a formula."""
    if isinstance(formula, Literal):
        return ()
    return (formula.selected,) if isinstance(formula, Best) else formula.parts


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield every subformula of a formula once, parts before the formulas that contain them."""
    return graph_walk((formula,), parts_of)


def literals(formula: Formula) -> list[Literal]:
    """Return all comparisons that occur in a formula."""
    return [part for part in walk(formula) if isinstance(part, Literal)]


def bests(formula: Formula) -> list[Best]:
    """Return all ``best`` subformulas of a formula, inner ones before outer ones."""
    return [part for part in walk(formula) if isinstance(part, Best)]


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """Return the parts of a conjunction; any other formula is its own single conjunct."""
    return formula.parts if isinstance(formula, AllOf) else (formula,)


def bound(
    formula: Formula,
    literal: Callable[[Literal], _T | None],
    both: Callable[[_T, _T], _T],
    either: Callable[[_T, _T], _T],
) -> _T | None:
    """Return a bound for a formula, given a function ``literal`` that returns bounds for its literals.

    A bound that is None is unknown.

    ``both`` combines bounds of parts of a conjunction, and ``either`` combines bounds of parts of a
    disjunction. Conjunctions and disjunctions are monotone in their parts, so bounds for the parts
    imply a bound. The bound of a ``best`` is the bound of the keys that it ranks; a negated ``best``
    has none.
    """
    known: dict[int, _T | None] = {}
    for part in walk(formula):
        value: _T | None = None
        if isinstance(part, Literal):
            value = literal(part)
        elif isinstance(part, Best):
            value = None if part.negated else known[id(part.selected)]
        else:
            inner = [known[id(p)] for p in part.parts]
            values = [v for v in inner if v is not None]
            if values and (isinstance(part, AllOf) or len(values) == len(inner)):
                join = both if isinstance(part, AllOf) else either
                value = values[0]
                for other in values[1:]:
                    value = join(value, other)
        known[id(part)] = value
    return known[id(formula)]
