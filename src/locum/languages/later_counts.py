"""Reduce programs that count later positions to automata, or to programs without such counts.

The answer is read at the last position, where a count of the positions to the end is 1 or 0. Such
counts may still occur inside other counts. If every comparison then compares one count with a small
integer, the program is converted to a formula of temporal logic. For example, "at least k positions so
far" becomes k nested operators O. Other programs are not reduced, because the logic with both kinds of
counts defines more languages, such as PARITY.

>>> from locum.languages import c_rasp
>>> program = c_rasp.parse('''
... z = #("a" && #[j >= i] "b" >= 1) >= 2
... ''')
>>> automaton = without_later_counts(program)
>>> [automaton.accepts(word) for word in ("aab", "aba")]
[True, False]
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

from locum.errors import LimitError
from locum.graph import Node, build
from locum.graph.operations import COMPARISONS
from locum.graph.operations import constant as constant_node
from locum.graph.traversal import with_inputs
from locum.languages.automata import DFA
from locum.languages.counting import (
    as_count,
    as_sop,
    counts_ahead,
    is_boolean,
    is_remainder,
    is_symbol,
    parts_of,
)
from locum.languages.formulas import (
    FALSE,
    TRUE,
    Formula,
    atom,
    conjunction,
    disjunction,
    negation,
)
from locum.languages.ltl import LAST as AT_LAST
from locum.languages.ltl import LTL, unary
from locum.languages.recogniser import END, MARKER, Recogniser

#: Maximum number of nested operators O or F for one count. A count is compared with integers up to this
#: number minus 2.
MAX_THRESHOLD = 12
#: Maximum number of cases of a count with conditionals.
MAX_CASES = 16

_COMPARISONS = {row.operation: row.holds for row in COMPARISONS.values()}


def without_later_counts(program: Recogniser) -> Recogniser | DFA | None:
    """Return an equivalent program without counts of later positions, or an equivalent automaton.

    The result is None if the program cannot be reduced or the automaton is too large.
    """
    root = _at_answer(program.sop.node)
    if not counts_ahead(root):
        return Recogniser("C-RASP", as_sop(root), program.alphabet, program.accept)
    formula = _formula(root)
    if formula is None:
        return None
    try:
        if program.accept != END:
            return LTL(formula, program.alphabet, AT_LAST).automaton()
        marked = LTL(formula, (*program.alphabet, MARKER), AT_LAST).automaton()
    except LimitError:
        return None
    rows, accepting = marked.transitions, marked.accepting
    ends = frozenset(state for state, row in enumerate(rows) if row[-1] in accepting)
    return DFA(program.alphabet, tuple(row[:-1] for row in rows), ends).minimal()


def _at_answer(root: Node) -> Node:
    """Replace counts of later positions by their value at the position where the answer is read.

    Counts inside counts of earlier positions are not replaced.
    """
    new: dict[Node, Node] = {}
    for node in parts_of(root):
        counted = as_count(node)
        if counted is not None and counted.ahead:
            new[node] = build("if_else", new[counted.condition], constant_node(1), constant_node(0))
        elif counted is not None or is_symbol(node) or is_remainder(node) or not node.inputs:
            new[node] = node
        else:
            new[node] = with_inputs(node, tuple(new[part] for part in node.inputs))
    return new[root]


# Formulas -------------------------------------------------------------------------------------------

#: A condition, and the value under this condition: a sum of counts with factors, and a constant.
Case = tuple[Formula, Mapping[Node, int], int]


def _formula(root: Node) -> Formula | None:
    """Return the formula of a program, or None if some part cannot be converted."""
    formulas: dict[Node, Formula] = {}
    sums: dict[Node, list[Case]] = {}
    for node in parts_of(root):
        if is_boolean(node):
            found = _boolean(node, formulas, sums)
            if found is None:
                return None
            formulas[node] = found
        else:
            cases = _cases(node, formulas, sums)
            if cases is None or len(cases) > MAX_CASES:
                return None
            sums[node] = cases
    return formulas[root]


def _cases(
    node: Node, formulas: Mapping[Node, Formula], sums: Mapping[Node, list[Case]]
) -> list[Case] | None:
    if as_count(node) is not None:
        return [(TRUE, {node: 1}, 0)]
    zero: list[Case] = [(TRUE, {}, 0)]
    match node.op:
        case "constant":
            return [(TRUE, {}, int(str(node.attributes["value"])))]
        case "negate":
            return _combine(zero, sums[node.inputs[0]], -1)
        case "add" | "subtract":
            one, other = (sums[part] for part in node.inputs)
            return _combine(one, other, 1 if node.op == "add" else -1)
        case "multiply":
            constants = [part.op == "constant" for part in node.inputs]
            factor, rest = node.inputs if constants[0] else node.inputs[::-1]
            return _combine(zero, sums[rest], int(str(factor.attributes["value"])))
        case "if_else":
            condition = formulas[node.inputs[0]]
            return [
                (conjunction(chosen, guard), counts, number)
                for chosen, part in zip((condition, negation(condition)), node.inputs[1:], strict=True)
                for guard, counts, number in sums[part]
            ]
        case _:
            return None


def _combine(one: Sequence[Case], other: Sequence[Case], factor: int) -> list[Case]:
    cases: list[Case] = []
    for guard, counts, number in one:
        for other_guard, other_counts, other_number in other:
            total = Counter(counts)
            for node, value in other_counts.items():
                total[node] += factor * value
            both = conjunction(guard, other_guard)
            if both is not FALSE:
                left = {node: value for node, value in total.items() if value}
                cases.append((both, left, number + factor * other_number))
    return cases


def _boolean(
    node: Node, formulas: Mapping[Node, Formula], sums: Mapping[Node, list[Case]]
) -> Formula | None:
    if is_symbol(node):
        return atom(str(node.inputs[1].attributes["value"]))
    match node.op:
        case "constant":
            return TRUE if node.attributes["value"] else FALSE
        case "not":
            return negation(formulas[node.inputs[0]])
        case "and" | "or":
            parts = [formulas[part] for part in node.inputs]
            return conjunction(*parts) if node.op == "and" else disjunction(*parts)
        case "if_else":
            condition, one, other = (formulas[part] for part in node.inputs)
            return disjunction(conjunction(condition, one), conjunction(negation(condition), other))
        case _:
            holding = []
            left, right = (sums[part] for part in node.inputs)
            for guard, counts, number in _combine(left, right, -1):
                holds = _compared(node.op, counts, number, formulas)
                if holds is None:
                    return None
                holding.append(conjunction(guard, holds))
            return disjunction(*holding)


def _compared(
    operation: str, counts: Mapping[Node, int], number: int, formulas: Mapping[Node, Formula]
) -> Formula | None:
    """Return the formula that holds where ``factor * count + number`` compares with 0 by ``operation``.

    The result is None if there are several counts, or if the count is compared with a large number.
    """
    if not counts:
        return TRUE if _COMPARISONS[operation](number, 0) else FALSE
    ((node, factor), *others) = counts.items()
    most = abs(number) // abs(factor) + 2  # for larger counts, the answer is constant
    if others or most > MAX_THRESHOLD:
        return None
    answers = [_COMPARISONS[operation](factor * size + number, 0) for size in range(most + 1)]
    counted = as_count(node)
    assert counted is not None
    condition = formulas[counted.condition]
    if counted.distance is not None:
        at = condition
        for _ in range(counted.distance):
            at = unary("Y", at)
        exactly = [negation(at), at]
    else:
        somewhere, beyond = ("F", "X") if counted.ahead else ("O", "Y")
        at_least = [TRUE, unary(somewhere, condition)]
        while len(at_least) <= most:
            at_least.append(unary(somewhere, conjunction(condition, unary(beyond, at_least[-1]))))
        exactly = [
            conjunction(least, negation(more)) for least, more in itertools.pairwise(at_least)
        ] + at_least[-1:]
    return disjunction(*(each for each, holds in zip(exactly, answers, strict=False) if holds))
