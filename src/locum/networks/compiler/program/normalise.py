"""Expand the families of a program, specialise programs to constant tokens, and read names of nodes.

Equal parts of different heads become one node, since nodes are interned.

>>> from locum import family, indices, sum_over
>>> l = family(2)
>>> normalise(sum_over(l, indices * l).node)
<add: (indices * 0) + (indices * 1)>
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import CompileError
from locum.execution.dense import evaluate
from locum.execution.domains.floats import FloatDomain
from locum.graph import Atom, Node, Sort, abbreviate, build, members, postorder, size_of, sort_of
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.families import opened
from locum.graph.labels import names_given
from locum.graph.operations import constant
from locum.graph.traversal import replace_families, with_inputs
from locum.networks.compiler.program.integer_sums import plain_sum

#: Maximum number of nodes made by a stage that are written as text in search of the text of an error.
_MAX_TEXTS = 10_000


class Origins:
    """The nodes of a program, and the nodes by which the stages of the compiler replaced them."""

    def __init__(self, root: Node) -> None:
        self._of: dict[Node, Node] = {node: node for node in postorder(root)}
        #: For each node of the program, the node that currently replaces it.
        self._now: dict[Node, Node] = dict(self._of)
        self._replaced: dict[Node, list[Node]] | None = None

    def of(self, node: Node) -> Node | None:
        """Return the node of the program from which a node was made, or None if it is not recorded."""
        return self._of.get(node)

    def of_all(self, node: Node) -> list[Node]:
        """Return the node of the program from which ``node`` was made, and all nodes that ``node``
        replaced.
        """
        if self._replaced is None:
            self._replaced = {}
            for old, new in self._now.items():
                self._replaced.setdefault(new, []).append(old)
        origin = self._of.get(node)
        first = [] if origin is None else [origin]
        return list(dict.fromkeys([*first, *self._replaced.get(node, ())]))

    def replaced(self, new: Mapping[Node, Node]) -> None:
        """Record the replacements of nodes by one stage, as a mapping from old to new nodes."""
        self._now = {origin: new.get(node, node) for origin, node in self._now.items()}
        self._replaced = None

    def rename(self, names: Mapping[Node, str]) -> dict[Node, str]:
        """Return the names of nodes, extended to the nodes that currently replace them."""
        return {self._now.get(node, node): name for node, name in names.items()} | dict(names)

    def text_of(self, text: str, owners: Mapping[Node, Node]) -> str:
        """Return the text of the expression of the program for which a stage made the expression
        ``text``.

        Return ``text`` itself if it is an expression of the program, or if its origin is not known.
        ``owners`` maps nodes that a stage made, such as squares of scores, to the nodes for which they
        were made.
        """
        made_by_stages = islice(owners.items(), _MAX_TEXTS)
        of = {node: self._of.get(owner, owner) for node, owner in made_by_stages} | self._of
        made = {abbreviate(node): origin for node, origin in of.items() if node is not origin}
        own = text in {abbreviate(node) for node, origin in self._of.items() if node is origin}
        return text if own or text not in made else abbreviate(made[text])

    def rewrote(self, old: Node, new: Node) -> None:
        """Record that a stage replaced ``old`` by ``new``; parts of ``old`` must be recorded before."""
        origin = self._of.get(old, old)
        for part in postorder(new, into=lambda node: node not in self._of):
            self._of.setdefault(part, origin)

    def renamed(self, old: Node, new: Node) -> None:
        """Record that ``new`` is the graph ``old`` with other names of families."""
        waiting, seen = [(old, new)], {new}
        while waiting:
            before, after = waiting.pop()
            self._of.setdefault(after, self._of.get(before, before))
            self._now[before] = after
            for pair in zip(before.inputs, after.inputs, strict=True):
                if pair[1] not in seen:
                    seen.add(pair[1])
                    waiting.append(pair)


#: Maximum number of terms of all ``sum_over`` of a program together.
MAX_MEMBERS = 100_000


def normalise(
    root: Node, *, numeric: bool = False, real_sums: bool = False, origins: Origins | None = None
) -> Node:
    """Expand every ``sum_over`` of a program, and write casts of real-valued tokens as arithmetic.

    ``numeric`` means that tokens are real numbers. With ``real_sums``, a ``locum.sum`` that may add
    real numbers becomes a product of count and mean, without the rounding of integer sums.
    Replacements are recorded in ``origins``.
    """
    if sort_of(root) is not Sort.SOP:
        raise CompileError(
            "expected an s-op to compile, got a selector; try aggregate(selector, tokens) or "
            "selector_width(selector)",
            abbreviate(root),
        )
    if root.free:
        raise CompileError(
            "expected a program without free families, got one with families that are not summed over; "
            "try sum_over(family, program)",
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
            same = plain_sum(same) or same
        new[node] = same
        if origins is not None:
            origins.rewrote(node, same)
    if origins is not None:
        origins.replaced(new)
    return new[root]


def _cast(node: Node) -> Node:
    """Return a cast of real-valued tokens as arithmetic."""
    token, zero = build("tokens", cast="asis"), constant(0)
    match node.cast:
        case "bool":
            return build("not_equal", token, zero)
        case "int":
            towards_zero = build("negate", build("floor", build("negate", token)))
            return build("if_else", build("less", token, zero), towards_zero, build("floor", token))
        case "str":
            raise CompileError(
                "expected tokens with a text, got real-valued tokens; try vocabulary=…",
                abbreviate(node),
            )
        case _:
            return token


def _written_out(node: Node) -> Node:
    body, *families = node.inputs
    total: Node | None = None
    for member in members(families):
        term = replace_families(body, {family: constant(value) for family, value in member.items()})
        total = term if total is None else build("add", total, term)
    assert total is not None
    return total


def read_names(names: Mapping[Any, str] | None, root: Node) -> dict[Node, str]:
    """Return the names of s-ops and selectors by node.

    Raise CompileError if a key of ``names`` is not a part of the program, or if a name is not unique. A
    part that is not in ``names`` has the name given by ``.named()``, if any.

    >>> from locum import indices, tokens
    >>> last = indices == 3
    >>> read_names({last: "last"}, (last & (tokens == "a")).node) == {last.node: "last"}
    True
    """
    names = {} if names is None else names
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
    for node, name in names_given(root).items():
        if node not in read and named.setdefault(name, node) is not node:
            raise CompileError(
                f"names: expected one part for each name, got {name!r} for {abbreviate(node)} and for "
                f"{abbreviate(named[name])}; try .named(…) with a different name for one of them"
            )
        read.setdefault(node, name)
    return read


Mask = NDArray[np.bool_]
#: Operations that are undefined for some numbers, such as 0 or −1. For each operand that may cause
#: this, by index: a value for which the operation is defined.
_UNDEFINED: Mapping[str, Mapping[int, float]] = {
    "divide": {1: 1}, "modulo": {1: 1}, "floor_divide": {1: 1}, "power": {0: 1, 1: 1},
    "log": {0: 1}, "sqrt": {0: 1},
}  # fmt: skip


def specialise(
    root: Node, length: int, known: Mapping[int, float], answers: Iterable[int]
) -> tuple[Node, int]:
    """Return the program for inputs with some constant tokens, and the remaining number of tokens.

    Inputs have ``length`` tokens. ``known`` maps positions to constant tokens, and ``answers`` are the
    positions of the needed outputs. The other tokens keep their positions. Tokens after the last
    position that is read or needed are removed, unless the program reads the length of the input.
    """
    return _Specialisation(normalise(root, numeric=True), length, known).of(answers)


class _Specialisation:
    """A program for inputs with some constant tokens, and the positions at which each node is known."""

    def __init__(self, root: Node, length: int, known: Mapping[int, float]) -> None:
        self.root, self.length = root, length
        # Unknown tokens have arbitrary values, since no kept value depends on them. Most of the values
        # differ, so that programs rarely divide by a difference of 0.
        self.tokens = [known.get(place, 0.5 + place * 0.37 % 1) for place in range(length)]
        self.values: dict[Node, Any] = {}
        self.order = list(postorder(root))
        #: Nodes that depend on a token. Only these nodes are replaced by tables of values.
        self.reading: set[Node] = set()
        self.known: dict[Node, Mask] = {}
        self.patterns: dict[Node, Mask] = {}
        for node in self.order:
            if node.op == "tokens" or not self.reading.isdisjoint(node.inputs):
                self.reading.add(node)
            self.known[node] = self._known(node, known)

    def of(self, answers: Iterable[int]) -> tuple[Node, int]:
        """Return the program whose outputs are needed at ``answers``, and its number of tokens."""
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
        """Return the specialised form of a node, given the specialised forms of its inputs in ``new``.

        ``asked`` is a mask of the positions at which the node is needed.
        """
        if self._is_table(node, asked):
            return self._table(node, asked)
        if node.op == "tokens" and (self.known[node] & asked).any():
            held = self.known[node] & asked
            return build("if_else", _at(held), self._table(node, held), node)
        if node.op == "if_else" and (branch := self._branch(node, asked)) is not None:
            return new[branch]
        inputs = [new[each] for each in node.inputs]
        if node in self.reading and node.op in _UNDEFINED and not asked.all():
            # At other positions, the value is not needed, but it must be defined: programs are strict.
            for place, harmless in _UNDEFINED[node.op].items():
                inputs[place] = build("if_else", _at(asked), inputs[place], constant(harmless))
        return with_inputs(node, tuple(inputs))

    # Known values ---------------------------------------------------------------------------------

    def _known(self, node: Node, known: Mapping[int, float]) -> Mask:
        """Return a mask of the positions at which an s-op is known.

        For a selector, return a mask of the known pairs [query, key].
        """
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
                # One false operand decides ``and``, and one true operand decides ``or``.
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
        """Return a mask of the queries for which the values at all selected keys are known."""
        return np.asarray(~(self._pattern(selector) & ~values[None, :]).any(axis=1))

    def _pattern(self, selector: Node) -> Mask:
        """Return the pattern of a selector; only its known entries are meaningful."""
        if selector not in self.patterns:
            self.patterns[selector] = np.asarray(self._value(selector), dtype=bool)
        return self.patterns[selector]

    def _value(self, node: Node) -> Any:
        """Return the value of a node at each position; only its known entries are meaningful."""
        for each in postorder(node, into=lambda one: one not in self.values):
            if each not in self.values:
                self.values[each] = evaluate(each, self.tokens, FloatDomain(), known=self.values)
        return self.values[node]

    # Demand ----------------------------------------------------------------------------

    def _ask(self, node: Node, demand: Mapping[Node, Mask]) -> None:
        """Pass the demand of a node to its inputs.

        The demand is a mask of the positions at which a node is needed; for a selector, of its queries.
        """
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
        """Return the pairs [query, key] that a selector may select."""
        return self._pattern(selector) | ~self.known[selector]

    def _branch(self, node: Node, asked: Mask) -> Node | None:
        """Return the branch of ``if_else`` that is taken at all needed positions, or None."""
        condition, yes, no = node.inputs
        if not self.known[condition][asked].all():
            return None
        taken = np.asarray(self._value(condition), dtype=bool)[asked]
        return yes if taken.all() else no if not taken.any() else None

    # Remaining program ----------------------------------------------------------------------------

    def _is_table(self, node: Node, asked: Mask) -> bool:
        """Return whether an s-op depends on tokens and is known at all needed positions."""
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
        """Return the number of tokens up to the last position that is read or needed.

        Return the full length if the program reads the length of the input.
        """
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
    """Return the s-op that is true exactly at the positions of a mask."""
    places = canonical_set(np.flatnonzero(mask).tolist())
    return build("member", build("indices"), values=places)


def _end(mask: Mask) -> int:
    """Return the number of positions up to the last true entry of a mask."""
    places = np.flatnonzero(mask)
    return int(places[-1]) + 1 if len(places) else 0
