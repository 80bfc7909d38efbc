"""Selectors in negation normal form: comparisons of keys with queries, joined by *and* and *or*.

*Not* remains before comparisons and before ``best`` only. A negated comparison is another comparison of
numbers that have an order; of nan it is not (no order holds of it, so every negated one does), and so
it is kept as it was. Formulas are as shared as the selectors they come from, and nothing recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from locum.graph import COMPARISONS, Node, postorder
from locum.graph.traversal import walk as graph_walk

#: Nested conjunctions are flattened up to so many parts (no more: a long chain would cost its square).
_FLAT = 64


@dataclass(frozen=True, eq=False)
class Literal:
    """key[k] ? query[q]; or, negated, that this is not so."""

    key: Node
    query: Node
    predicate: str
    negated: bool

    @property
    def ordered(self) -> str:
        """The predicate that says the same of all numbers but nan."""
        return COMPARISONS[self.predicate].negation if self.negated else self.predicate


@dataclass(frozen=True, eq=False)
class Best:
    """Of the keys a formula selects, those of greatest score; or, negated, all the others."""

    selected: Formula
    score: Node
    negated: bool


@dataclass(frozen=True, eq=False)
class AllOf:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class AnyOf:
    """Some part holds."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = "Literal | Best | AllOf | AnyOf"
_T = TypeVar("_T")


def formula_of(selector: Node) -> Formula:
    """Return the formula that a selector is."""
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
    """Return what a formula is made of."""
    if isinstance(formula, Literal):
        return ()
    return (formula.selected,) if isinstance(formula, Best) else formula.parts


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield every formula in it once, parts first."""
    return graph_walk((formula,), parts_of)


def literals(formula: Formula) -> list[Literal]:
    """Return all its comparisons."""
    return [part for part in walk(formula) if isinstance(part, Literal)]


def bests(formula: Formula) -> list[Best]:
    """Return all its ``best``, inner ones first."""
    return [part for part in walk(formula) if isinstance(part, Best)]


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """Return formulas that all hold where this one does."""
    return formula.parts if isinstance(formula, AllOf) else (formula,)


def bound(
    formula: Formula,
    literal: Callable[[Literal], _T | None],
    both: Callable[[_T, _T], _T],
    either: Callable[[_T, _T], _T],
) -> _T | None:
    """Return what a formula implies, given what its literals imply (None: nothing is known).

    Formulas are monotone in their literals, so a bound for each gives one for all.
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
