"""Stage *normalise*: rewrite a program without families; substitute values; keep names.

What is the same in two heads is one node afterwards, since nodes are interned.

>>> from locum import family, indices, sum_over
>>> l = family(2)
>>> normalise(sum_over(l, indices * l).node)
<add: (indices * 0) + (indices * 1)>
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.execution.dense import evaluate
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, Node, Sort, abbreviate, build, members, postorder, size_of, sort_of
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.families import opened
from locum.graph.operations import constant
from locum.graph.traversal import replace_families, with_inputs


class Origins:
    """The nodes of a program, and what became of them."""

    def __init__(self, root: Node) -> None:
        self._of: dict[Node, Node] = {node: node for node in postorder(root)}

    def of(self, node: Node) -> Node | None:
        """Return the node of the program that a node comes from, if a stage has said so."""
        return self._of.get(node)

    def rewrote(self, old: Node, new: Node) -> None:
        """Note that a stage made ``new`` in the place of ``old``, after all that ``old`` is made of."""
        origin = self._of.get(old, old)
        for part in postorder(new, into=lambda node: node not in self._of):
            self._of.setdefault(part, origin)

    def renamed(self, old: Node, new: Node) -> None:
        """Note that two graphs of one shape are the same program, as after renaming families."""
        waiting, seen = [(old, new)], {new}
        while waiting:
            before, after = waiting.pop()
            self._of.setdefault(after, self._of.get(before, before))
            for pair in zip(before.inputs, after.inputs, strict=True):
                if pair[1] not in seen:
                    seen.add(pair[1])
                    waiting.append(pair)


#: A network of more heads than this is not worth writing down as weights.
MAX_MEMBERS = 100_000


def normalise(
    root: Node, *, numeric: bool = False, real_sums: bool = False, origins: Origins | None = None
) -> Node:
    """Expand every ``sum_over`` of ``root``, and write casts of ``numeric`` tokens as arithmetic.

    ``real_sums``: what ``locum.sum`` adds are real numbers, so that it need not be rounded.
    """
    if sort_of(root) is not Sort.SOP:
        raise CompileError(
            "expected an s-op to compile, got a selector; try aggregate or selector_width",
            abbreviate(root),
        )
    if root.free:
        raise CompileError(
            "expected a whole program, got one with families that are not summed over; try sum_over",
            abbreviate(root),
        )
    original, root = root, opened(root)
    if origins is not None:
        origins.renamed(original, root)
    members_in_all = sum(
        math.prod(size_of(f) for f in {*node.inputs[1:], *node.free})
        for node in postorder(root)
        if node.op == "sum_over"
    )
    if members_in_all > MAX_MEMBERS:
        raise CompileError(
            f"expected families of at most {MAX_MEMBERS:,} heads in all, got {members_in_all:,}; try a "
            "smaller shape",
            abbreviate(root),
        )
    new: dict[Node, Node] = {}
    for node in postorder(root):
        same = with_inputs(node, tuple(new[i] for i in node.inputs))
        if same.op == "sum_over":
            same = _written_out(same)
        elif same.op == "tokens" and numeric:
            same = _cast(same)
        elif same.op == "if_else" and real_sums:
            same = _unrounded(same)
        new[node] = same
        if origins is not None:
            origins.rewrote(node, same)
    return new[root]


def _cast(node: Node) -> Node:
    """Return real-valued tokens, cast."""
    token, zero = build("tokens", cast="asis"), constant(0)
    match node.cast:
        case "bool":
            return build("not_equal", token, zero)
        case "int":
            towards_zero = build("negate", build("floor", build("negate", token)))
            return build("if_else", build("less", token, zero), towards_zero, build("floor", token))
        case "str":
            raise CompileError(
                "real-valued tokens have no text: compile with a vocabulary instead", abbreviate(node)
            )
        case _:
            return token


def _unrounded(node: Node) -> Node:
    """Return the product that ``locum.sum`` rounds if all that it adds are whole numbers.

    Then the two differ by rounding alone. Real numbers are not known to be whole.
    """
    condition, rounded, total = node.inputs
    if rounded.op != "round" or rounded.inputs[0] is not total or total.op != "multiply":
        return node
    mean = total.inputs[1]
    if mean.op != "aggregate":
        return node
    selector, values = mean.inputs
    fraction = build("not_equal", build("modulo", values, constant(1)), constant(0))
    some = build("aggregate", selector, build("indicator", fraction), default=0)
    return total if condition is build("equal", some, constant(0)) else node


def _written_out(node: Node) -> Node:
    body, *families = node.inputs
    total: Node | None = None
    for member in members(families):
        term = replace_families(body, {family: constant(value) for family, value in member.items()})
        total = term if total is None else build("add", total, term)
    assert total is not None
    return total


def read_names(names: Mapping[Any, str] | None, root: Node) -> dict[Node, str]:
    """Return the names by node; every key must be a part of the program, every name a new one.

    >>> from locum import indices, tokens
    >>> last = indices == 3
    >>> read_names({last: "last"}, (last & (tokens == "a")).node) == {last.node: "last"}
    True
    """
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise CompileError(
            "names: expected a dict from s-ops and selectors to their names, got "
            f"{type(names).__name__}; try names={{s_op: 'name'}}"
        )
    parts = set(postorder(root))
    read: dict[Node, str] = {}
    named: dict[str, Node] = {}
    for key, name in names.items():
        node = key if isinstance(key, Node) else getattr(key, "node", None)
        if not isinstance(node, Node):
            raise CompileError(
                f"names: expected an s-op or a selector as the key, got {key!r}; "
                f"try names={{s_op: {key if isinstance(key, str) else 'name'!r}}}"
            )
        if not (isinstance(name, str) and name.strip()):
            raise CompileError(
                f"names: expected a string that is not empty for {abbreviate(node)}, got {name!r}; "
                "try names={s_op: 'name'}"
            )
        if node not in parts:
            raise CompileError(
                f"names: expected parts of the program, got {abbreviate(node)} for {name!r}, which the "
                "program does not use; try without this key"
            )
        if read.setdefault(node, name) != name or named.setdefault(name, node) is not node:
            raise CompileError(
                f"names: expected one name for each part and one part for each name, got {name!r} for "
                f"{abbreviate(node)} and {read[node]!r} for {abbreviate(named.get(name, node))}; "
                "try a different name, or without one of the two keys"
            )
    return read


Mask = NDArray[np.bool_]
#: Operations that have no value for some operands: operands with which they have one, by place.
_UNDEFINED: Mapping[str, Mapping[int, float]] = {
    "divide": {1: 1}, "modulo": {1: 1}, "floor_divide": {1: 1}, "power": {0: 1, 1: 1},
    "log": {0: 1}, "sqrt": {0: 1},
}  # fmt: skip


def specialise(
    root: Node, length: int, known: Mapping[int, float], answers: Iterable[int]
) -> tuple[Node, int]:
    """Return the program that is left for inputs of ``length`` tokens, and how many tokens it needs.

    ``known`` has the tokens that never change, by position; the program answers at ``answers``. It
    expects the other tokens where they were. If all known tokens stand behind what is still read, they
    are no longer part of the input.
    """
    return _Specialisation(normalise(root, numeric=True), length, known).of(answers)


class _Specialisation:
    """What is known of each node, and what is asked of it."""

    def __init__(self, root: Node, length: int, known: Mapping[int, float]) -> None:
        self.root, self.length = root, length
        # What stands at the positions that are not known does not matter: no value that is kept depends
        # on it. These numbers differ, so that hardly any program divides by a difference that is 0.
        self.tokens = [known.get(place, 0.5 + place * 0.37 % 1) for place in range(length)]
        self.values: dict[Node, Any] = {}
        self.order = list(postorder(root))
        #: Nodes that read a token; the others stay as they are.
        self.reading: set[Node] = set()
        self.known: dict[Node, Mask] = {}
        self.patterns: dict[Node, Mask] = {}
        for node in self.order:
            if node.op == "tokens" or not self.reading.isdisjoint(node.inputs):
                self.reading.add(node)
            self.known[node] = self._known(node, known)

    def of(self, answers: Iterable[int]) -> tuple[Node, int]:
        """Return the program for these answers."""
        demand = {node: np.zeros(self.length, bool) for node in self.order}
        demand[self.root][list(answers)] = True
        for node in reversed(self.order):
            if demand[node].any() and not self._is_table(node, demand[node]):
                self._ask(node, demand)
        new: dict[Node, Node] = {}
        for node in self.order:
            if demand[node].any():
                new[node] = self._left_of(node, demand[node], new)
        left = new[self.root]
        return left, self._shortest(left, demand)

    def _left_of(self, node: Node, asked: Mask, new: Mapping[Node, Node]) -> Node:
        """Return what is left of a node, given what is left of its inputs."""
        if self._is_table(node, asked):
            return self._table(node, asked)
        if node.op == "tokens" and (self.known[node] & asked).any():
            held = self.known[node] & asked
            return build("if_else", _at(held), self._table(node, held), node)
        if node.op == "if_else" and (branch := self._branch(node, asked)) is not None:
            return new[branch]
        inputs = [new[each] for each in node.inputs]
        if node in self.reading and node.op in _UNDEFINED and not asked.all():
            # Nobody asks for the value elsewhere, but there has to be one: a program is strict.
            for place, harmless in _UNDEFINED[node.op].items():
                inputs[place] = build("if_else", _at(asked), inputs[place], constant(harmless))
        return with_inputs(node, tuple(inputs))

    # What is known --------------------------------------------------------------------------------

    def _known(self, node: Node, known: Mapping[int, float]) -> Mask:
        """Return where an s-op is known, or of a selector which pairs [query, key] are."""
        inputs = [self.known[each] for each in node.inputs]
        everywhere = np.ones(self.length, bool)
        match node.op:
            case "tokens":
                return np.array([place in known for place in range(self.length)])
            case "select":
                keys, queries = inputs
                return queries[:, None] & keys[None, :]
            case "selector_not":
                return inputs[0]
            case "selector_and" | "selector_or":
                # One operand decides alone where it is false, or true.
                decides = node.op == "selector_or"
                alone = [
                    mask & (self._pattern(each) == decides)
                    for mask, each in zip(inputs, node.inputs, strict=True)
                ]
                return np.asarray((inputs[0] & inputs[1]) | alone[0] | alone[1])
            case "best":
                pairs, scores = inputs
                rows = pairs.all(axis=1) & self._selected_known(node.inputs[0], scores)
                return np.asarray(rows[:, None] | (pairs & ~self._pattern(node.inputs[0])))
            case "aggregate":
                pairs, values = inputs
                return pairs.all(axis=1) & self._selected_known(node.inputs[0], values)
            case "selector_width":
                return np.asarray(inputs[0].all(axis=1))
            case _:
                return np.asarray(np.logical_and.reduce([everywhere, *inputs]))

    def _selected_known(self, selector: Node, values: Mask) -> Mask:
        """Return for which queries the values at all selected keys are known."""
        return np.asarray(~(self._pattern(selector) & ~values[None, :]).any(axis=1))

    def _pattern(self, selector: Node) -> Mask:
        """Return what a selector selects; only what is known of it means anything."""
        if selector not in self.patterns:
            self.patterns[selector] = np.asarray(self._value(selector), dtype=bool)
        return self.patterns[selector]

    def _value(self, node: Node) -> Any:
        """Return the value of a node; only what is known of it means anything."""
        for each in postorder(node, into=lambda one: one not in self.values):
            if each not in self.values:
                self.values[each] = evaluate(each, self.tokens, FloatDomain(), known=self.values)
        return self.values[node]

    # What is asked for ----------------------------------------------------------------------------

    def _ask(self, node: Node, demand: Mapping[Node, Mask]) -> None:
        """Pass the demand of a node on to its inputs; that of a selector is one of queries."""
        asked = demand[node]
        if node.op == "if_else" and (branch := self._branch(node, asked)) is not None:
            demand[branch][asked] = True
            return
        match node.op:
            case "select":
                keys, queries = node.inputs
                demand[keys][:] = True
                demand[queries][asked] = True
            case "aggregate" | "best":
                selector, values = node.inputs
                demand[selector][asked] = True
                demand[values][self._possible(selector)[asked].any(axis=0)] = True
            case _:
                for each in node.inputs:
                    demand[each][asked] = True

    def _possible(self, selector: Node) -> Mask:
        """Return the pairs that may be selected."""
        return self._pattern(selector) | ~self.known[selector]

    def _branch(self, node: Node, asked: Mask) -> Node | None:
        """Return the branch of ``if_else`` that is taken wherever it is asked for, if it is one."""
        condition, yes, no = node.inputs
        if not self.known[condition][asked].all():
            return None
        taken = np.asarray(self._value(condition), dtype=bool)[asked]
        return yes if taken.all() else no if not taken.any() else None

    # What is left ---------------------------------------------------------------------------------

    def _is_table(self, node: Node, asked: Mask) -> bool:
        """Say whether an s-op that reads tokens is known wherever it is asked for."""
        return (
            node in self.reading and sort_of(node) is Sort.SOP and bool(self.known[node][asked].all())
        )

    def _table(self, node: Node, asked: Mask) -> Node:
        values = self._value(node)
        kept = {values[place] for place in np.flatnonzero(asked)}
        if len(kept) == 1:
            return constant(kept.pop())
        table: dict[Atom, Atom] = {
            place: values[place] if asked[place] else 0 for place in range(self.length)
        }
        return build("lookup", build("indices"), table=canonical_table(table))

    def _shortest(self, left: Node, demand: Mapping[Node, Mask]) -> int:
        """Return the length up to which anything is read or asked for, if the rest can be left out."""
        if any(node.op == "length" for node in postorder(left)):
            return self.length
        needed = _end(demand[self.root])
        for node in self.reading:
            asked = demand[node]
            if not asked.any() or self._is_table(node, asked):
                continue
            needed = max(needed, _end(asked))
            if node.op in ("aggregate", "best", "selector_width"):
                keys = np.asarray(self._possible(node.inputs[0])[asked].any(axis=0))
                needed = max(needed, _end(keys))
        return needed


def _at(mask: Mask) -> Node:
    """Return the s-op that holds at these positions."""
    places = canonical_set(np.flatnonzero(mask).tolist())
    return build("member", build("indices"), values=places)


def _end(mask: Mask) -> int:
    """Return how many positions there are up to the last one that is set."""
    places = np.flatnonzero(mask)
    return int(places[-1]) + 1 if len(places) else 0
