"""The syntactic monoid of a regular language: aperiodic or not, its groups, its R-classes.

The syntactic monoid is the monoid of transformations that words make on the states of the minimal
automaton. The language is star-free if and only if it is aperiodic: no word permutes states in a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from locum.errors import LimitError
from locum.languages.automata import DFA, Letter, components

#: The image of each state: bytes while states are few, which Python composes quickly.
Transformation: TypeAlias = "bytes | tuple[int, ...]"

MAX_ELEMENTS = 100_000
#: The most entries of all transformations together.
MAX_ENTRIES = 10_000_000


def compose(first: Transformation, then: Transformation) -> Transformation:
    """Return the transformation ``first``, and ``then`` the other."""
    if isinstance(first, bytes) and isinstance(then, bytes):
        return first.translate(then.ljust(256, b"\0"))
    return tuple(then[state] for state in first)


@dataclass(frozen=True)
class Group:
    """A group in a monoid: the words that permute the image of an idempotent."""

    #: The states that are permuted.
    states: tuple[int, ...]
    #: The permutations, as images of ``states``.
    permutations: frozenset[tuple[int, ...]]
    #: A word that permutes them without leaving all in place.
    word: tuple[Letter, ...]

    @property
    def order(self) -> int:
        """Return the number of permutations."""
        return len(self.permutations)

    @cached_property
    def _generators(self) -> list[tuple[int, ...]]:
        """A few permutations of 0, 1, … that make all others."""
        place = {state: i for i, state in enumerate(self.states)}
        return _generating({tuple(place[image] for image in row) for row in self.permutations})

    @cached_property
    def is_solvable(self) -> bool:
        """Whether commutators of commutators … are trivial in the end."""
        generators, order = self._generators, self.order
        while order > 1:
            derived = _commutators(generators)
            if len(derived) == order:
                return False
            generators, order = _generating(derived), len(derived)
        return True

    @property
    def is_abelian(self) -> bool:
        """Whether any two permutations commute."""
        some = self._generators
        return all(_product(x, y) == _product(y, x) for x in some for y in some)


def _product(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(y[i] for i in x)


def _inverse(x: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(x)
    for i, image in enumerate(x):
        inverse[image] = i
    return tuple(inverse)


def _closure(generators: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return all products of some permutations."""
    kept = list(dict.fromkeys(generators))
    closure = set(kept)
    order = list(kept)
    for element in order:
        for generator in kept:
            product = _product(element, generator)
            if product not in closure:
                closure.add(product)
                order.append(product)
    return closure


def _generating(group: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Choose permutations that make a whole group; each at least doubles what was made before."""
    chosen: list[tuple[int, ...]] = []
    generated: set[tuple[int, ...]] = set()
    for element in sorted(group):
        if element not in generated:
            chosen.append(element)
            generated = _closure(chosen)
            if len(generated) == len(group):
                break
    return chosen


def _commutators(generators: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return the least normal subgroup with the commutators of the generators: all commutators."""
    some = [
        _product(_product(_inverse(x), _inverse(y)), _product(x, y))
        for x in generators
        for y in generators
    ]
    group = _closure(some)
    while True:
        conjugates = {_product(_product(_inverse(x), n), x) for x in generators for n in some} - group
        if not conjugates:
            return group
        some += [min(conjugates)]
        group = _closure(some)


class Monoid:
    """All transformations of the words of an automaton, each with a shortest word."""

    def __init__(self, automaton: DFA) -> None:
        size = len(automaton)
        self.alphabet = automaton.alphabet
        kind = bytes if size <= 256 else tuple
        letters: list[Transformation] = [
            kind(row[i] for row in automaton.transitions) for i in range(len(automaton.alphabet))
        ]
        identity: Transformation = kind(range(size))
        self.elements: list[Transformation] = [identity]
        numbers = {identity: 0}
        #: For each element, the elements that it becomes by one more letter.
        self.products: list[list[int]] = []
        self._came: list[tuple[int, int]] = [(0, -1)]
        most = min(MAX_ELEMENTS, MAX_ENTRIES // size)
        padded = [g.ljust(256, b"\0") if isinstance(g, bytes) else g for g in letters]
        for number, element in enumerate(self.elements):
            row = []
            for place, letter in enumerate(padded):
                product = (
                    element.translate(letter)  # type: ignore[arg-type]
                    if isinstance(element, bytes)
                    else compose(element, letter)
                )
                if product not in numbers:
                    if len(numbers) >= most:
                        raise LimitError(
                            f"the syntactic monoid has more than {most:,} elements, the limit; "
                            "try a smaller language"
                        )
                    numbers[product] = len(self.elements)
                    self.elements.append(product)
                    self._came.append((number, place))
                row.append(numbers[product])
            self.products.append(row)

    def __len__(self) -> int:
        return len(self.elements)

    def word(self, number: int) -> tuple[Letter, ...]:
        """Return a shortest word that makes an element."""
        letters: list[Letter] = []
        while number:
            number, place = self._came[number]
            letters.append(self.alphabet[place])
        return tuple(reversed(letters))

    @cached_property
    def idempotents(self) -> list[int]:
        """Return the elements that are their own squares."""
        return [
            number
            for number, element in enumerate(self.elements)
            if compose(element, element) == element
        ]

    @cached_property
    def is_aperiodic(self) -> bool:
        """Whether xⁿ⁺¹ = xⁿ for every x and some n: no group but the trivial ones."""
        for element in self.elements:
            power, size = element, 1
            while size < len(element):
                power, size = compose(power, power), 2 * size
            if compose(power, element) != power:
                return False
        return True

    @cached_property
    def r_equivalent_idempotents(self) -> tuple[int, int] | None:
        """Return two different idempotents that generate the same right ideal, if there are any."""
        idempotents = set(self.idempotents)
        for part in components(self.products):
            both = [number for number in part if number in idempotents]
            if len(both) > 1:
                return both[0], both[1]
        return None

    def groups(self) -> list[Group]:
        """Return the groups that are not trivial, a maximal one for each image that is permuted."""
        by_elements: dict[tuple[int, ...], Group] = {}
        for idempotent in self.idempotents:
            image = tuple(sorted(set(self.elements[idempotent])))
            if len(image) > 1 and image not in by_elements:
                group = self._group(idempotent, image)
                if group is not None:
                    by_elements[image] = group
        return list(by_elements.values())

    def _group(self, idempotent: int, image: Sequence[int]) -> Group | None:
        states = set(image)
        rows: dict[tuple[int, ...], int] = {}
        for number, element in enumerate(self.elements):
            row = tuple(element[state] for state in image)
            if row not in rows and set(row) == states:
                rows[row] = number
        if len(rows) < 2:
            return None
        moving = next(number for row, number in rows.items() if row != tuple(image))
        return Group(tuple(image), frozenset(rows), self.word(moving))
