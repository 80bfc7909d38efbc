"""Tables: whatever is finite, as a function of one number.

Several numbers are looked up at once by their mixed-radix *code*, which is a linear form: each is
multiplied by a factor large enough that no two combinations of values have the same sum. S-ops and the
values they take come in; a :class:`Recipe` for a gate comes out, or a linear combination that will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from locum.compiler.network.forms import Form
from locum.compiler.network.gates import Recipe, Table
from locum.compiler.program.codes import Codes
from locum.compiler.program.value_tables import each, meaning
from locum.compiler.scoring.linear import Linear, term
from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate
from locum.graph.atoms import short


def table_of_inputs(node: Node, domains: Sequence[Sequence[Atom]], codes: Codes) -> Linear | Recipe:
    """An operation by a look-up of its inputs, of which ``domains`` has all values."""
    values = each(meaning(node), list(zip(*product(*domains), strict=True)))
    return table(node, node.inputs, domains, values, codes)


def table(
    node: Node,
    by: Sequence[Node],
    domains: Sequence[Sequence[Atom]],
    values: Sequence[Atom | None],
    codes: Codes,
) -> Linear | Recipe:
    """Realise an s-op as a lookup table over ``by``; ``values`` lists its value for every combination.

    A table whose values lie on a line is that line, and needs no units.
    """
    where = abbreviate(node)
    code = Linear()
    keys = np.zeros(1)
    reach, least = 0.0, 0.0
    for source, domain in zip(reversed(by), reversed(domains), strict=True):
        numbers = np.array([codes.number(v, where) for v in domain])
        if len(numbers) > 1:
            gap = float(np.diff(np.sort(numbers)).min())
            if gap <= 0:
                same = numbers[np.flatnonzero(np.diff(np.sort(numbers)) <= 0)[0]]
                values_at = [short(v) for v, n in zip(domain, numbers, strict=True) if n == same]
                raise CompileError(
                    f"a table cannot tell apart {' and '.join(values_at[:2])}, which are one number in "
                    "the stream; try a vocabulary without one of them, or feed_forward='exact'",
                    where,
                )
            factor = float(math.ceil((reach + least) / gap)) if reach else 1.0
            least = least or gap
            span = float(numbers.max() - numbers.min())
            reach += factor * span
            code = code.plus(term(source, factor))
        else:
            factor = 0.0
        keys = (factor * numbers[:, None] + keys[None]).ravel()
    found = [None if v is None else codes.number(v, where) for v in values]
    rows = sorted({k: v for k, v in zip(keys.tolist(), found, strict=True) if v is not None}.items())
    if not rows:
        raise CompileError("it has no value for any input", where)
    at, heights = np.array([k for k, _ in rows]), np.array([v for _, v in rows])
    if len(set(heights.tolist())) == 1:
        return Linear(constant=float(heights[0]))
    slopes = np.diff(heights) / np.diff(at)
    if np.ptp(slopes) == 0 and float(slopes[0]).is_integer():
        return code.times(float(slopes[0])).plus(Linear(constant=float(heights[0] - slopes[0] * at[0])))
    return Recipe((code,), lambda x: Table(x, at, heights))


def rounded(node: Node, known: Sequence[Atom], codes: Codes) -> Recipe:
    """The nearest of few whole numbers, where the argument is one of them up to rounding."""
    numbers = np.array(sorted(codes.number(v, abbreviate(node)) for v in known))
    return Recipe((term(node.inputs[0]),), lambda x: Table(x, numbers, numbers), rounds=True)


def counting(numbers: Sequence[int], share: Form, sink: bool) -> Table:
    """How many keys there are, one of these numbers, from the share of attention that one key gets.

    That is 1/(1 + m) where the sink is counted with them, else 1/m.
    """
    rows = sorted((1 / (m + sink), float(m)) for m in numbers)
    return Table(share, np.array([k for k, _ in rows]), np.array([v for _, v in rows]))
