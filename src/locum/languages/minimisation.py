"""Make a C-RASP program smaller by repeatedly removing parts and proving equivalence.

A Boolean part is replaced by true or by false. A conjunction, a disjunction or a conditional is also
replaced by one of its Boolean operands. Each smaller program is proven equivalent, but the result need
not be the smallest equivalent program.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from locum.errors import InputError
from locum.graph import Node, build
from locum.graph.operations import constant
from locum.graph.traversal import with_inputs
from locum.languages import c_rasp
from locum.languages.counting import as_count, count, is_boolean, is_symbol, parts_of
from locum.languages.equivalence import EQUIVALENT, equivalent
from locum.languages.named_languages import Language
from locum.languages.recogniser import Recogniser
from locum.rasp.handles import SOp, wrap


def minimise(program: Recogniser, *, seconds: float = 60.0, each: float = 3.0) -> Recogniser:
    """Return an equivalent program with fewer counts, or with as many counts and fewer parts.

    If no such program is found in time, the result is the same program with a new text. ``seconds``
    limits the CPU time of the search, and ``each`` limits the CPU time of one comparison.

    >>> redundant = c_rasp.parse('x = #"a" > #"b" && #"a" >= 0')
    >>> print(c_rasp.show(minimise(redundant)))
    #accept last
    accepted = (#"a" > #"b")
    <BLANKLINE>
    """
    if program.dialect != "C-RASP":
        raise InputError(f"expected a C-RASP program to minimise, got one of {program.dialect}")
    if not program.causal:
        raise InputError(
            "expected a program without counts of later positions to minimise, got one with "
            "#import future; try locum language equivalent to compare it with a smaller program"
        )
    end = time.process_time() + seconds
    smallest = program
    improved = True
    while improved and time.process_time() < end:
        improved = False
        for candidate in _smaller(smallest):
            left = end - time.process_time()
            if left <= 0:
                break
            if _same(program, candidate, min(each, left)):
                smallest, improved = candidate, True
                break
    return replace(smallest, text=c_rasp.show(smallest))


def _same(one: Recogniser, other: Recogniser, seconds: float) -> bool:
    languages = (Language("c-rasp", "", None, program) for program in (one, other))
    return equivalent(*languages, seconds=seconds).verdict == EQUIVALENT


def size(program: Recogniser) -> tuple[int, int]:
    """Return the number of counts and the number of all parts of a program."""
    parts = parts_of(program.sop.node)
    return sum(as_count(part) is not None for part in parts), len(parts)


def _smaller(program: Recogniser) -> Iterator[Recogniser]:
    """Yield the smaller programs that result from replacing one Boolean part, the smallest first."""
    root = program.sop.node
    candidates: dict[Node, Recogniser] = {}
    for part in parts_of(root):
        if not is_boolean(part) or part.op == "constant":
            continue
        instead = [constant(True), constant(False)]
        if part is root:
            instead.append(root)  # the same program, simplified
        if part.op in ("and", "or", "if_else"):
            instead += [inner for inner in part.inputs if is_boolean(inner)]
        for other in instead:
            changed = _replaced(root, part, other)
            handle = wrap(changed)
            if changed not in candidates and isinstance(handle, SOp) and is_boolean(changed):
                candidates[changed] = replace(program, sop=handle, text="", names={})
    own = size(program)
    sized = sorted(candidates.values(), key=size)
    return (candidate for candidate in sized if size(candidate) < own)


def _replaced(root: Node, part: Node, other: Node) -> Node:
    """Replace ``part`` by ``other`` in the program ``root``, and simplify."""
    new: dict[Node, Node] = {}
    for node in (*parts_of(other), *parts_of(root)):
        if node is part and other is not part:
            new[node] = other
            continue
        counted = as_count(node)
        if counted is not None:
            condition = wrap(new[counted.condition])
            assert isinstance(condition, SOp)
            new[node] = count(condition, counted.distance).node
        elif is_symbol(node) or any(below not in new for below in node.inputs):
            new[node] = node
        else:
            new[node] = _simplified(with_inputs(node, tuple(new[below] for below in node.inputs)))
    return new[root]


def _simplified(node: Node) -> Node:
    true, false = constant(True), constant(False)
    if node.op in ("and", "or"):
        neutral, decided = (true, false) if node.op == "and" else (false, true)
        one, other = node.inputs
        if decided in (one, other):
            return decided
        return other if one is neutral else one if other is neutral else node
    if node.op == "not" and node.inputs[0] in (true, false):
        return false if node.inputs[0] is true else true
    if node.op == "if_else" and node.inputs[0] in (true, false):
        return node.inputs[1] if node.inputs[0] is true else node.inputs[2]
    if node.op in ("add", "subtract", "multiply"):
        one, other = node.inputs
        neutral = constant(1 if node.op == "multiply" else 0)
        if other is neutral:
            return one
        return other if one is neutral and node.op != "subtract" else node
    if node.op == "not" and node.inputs[0].op == "not":
        return node.inputs[0].inputs[0]
    return build(node.op, *node.inputs, **node.attributes)
