"""The programs of Tracr's library and test suite as s-ops, for tests and benchmarks.

Tracr's ``None``, the value of an aggregate that selects no key, has no counterpart: ``shift_by`` gives
``""`` instead, which differs from every token. Tracr's encodings do not change values and are omitted.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from functools import reduce

from locum import SOp, aggregate, full, indicator, indices, length, select, selector_width, tokens
from locum.graph import Atom, Node, build, postorder

BRACKETS = ("()", "{}", "[]")

up_to_here = select(indices, indices, "<=")
hist = selector_width(select(tokens, tokens, "=="))
counted_length = selector_width(full)
reverse = aggregate(select(indices, length - indices - 1, "=="), tokens)
count_a = selector_width(select(tokens, "a", "=="))
count_less_freq_2 = selector_width(select(hist, 2, "<="))


def frac_prevs(token: str) -> SOp:
    """The share of a token among the tokens so far."""
    return aggregate(up_to_here, indicator(tokens == token))


def shift_by(offset: int) -> SOp:
    """Return the token a number of positions earlier, or "" if there is none."""
    return aggregate(select(indices + offset, indices, "=="), tokens, "")


def detect_pattern(pattern: str) -> SOp:
    """Whether the pattern ends here."""
    matches = [shift_by(i) == letter for i, letter in enumerate(reversed(pattern))]
    return reduce(operator.and_, reversed(matches))


def sort_unique(values: SOp, keys: SOp) -> SOp:
    """Values by keys, which are distinct."""
    place = selector_width(select(keys, keys, "<"))
    return aggregate(select(place, indices, "=="), values)


def sort(values: SOp, keys: SOp, max_length: int) -> SOp:
    """Values by integer keys; ties keep their order."""
    return sort_unique(values, keys + 1 * indices / max_length)


def pair_balance(opening: str, closing: str) -> SOp:
    """The share of opening brackets so far, minus the share of closing brackets."""
    return frac_prevs(opening) - frac_prevs(closing)


def shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Whether each type of bracket is balanced in the whole input."""
    balances = [pair_balance(opening, closing) for opening, closing in map(tuple, pairs)]
    negative = reduce(operator.or_, [balance < 0 for balance in balances])
    zero = reduce(operator.and_, [balance == 0 for balance in balances])
    zero_at_the_end = aggregate(select(indices, length - 1, "=="), zero, False)
    return zero_at_the_end & ~aggregate(full, indicator(negative))


#: The programs of the library, for a maximum input length.
LIBRARY: dict[str, Callable[[int], SOp]] = {
    "length": lambda n: counted_length,
    "length_numerical": lambda n: counted_length,
    "reverse": lambda n: reverse,
    "hist": lambda n: hist,
    "count_a": lambda n: count_a,
    "count_less_freq_2": lambda n: count_less_freq_2,
    "frac_prevs_a": lambda n: frac_prevs("a"),
    "shift_by_1": lambda n: shift_by(1),
    "detect_pattern_ab": lambda n: detect_pattern("ab"),
    "detect_pattern_abc": lambda n: detect_pattern("abc"),
    "sort_unique": lambda n: sort_unique(tokens, tokens),
    "sort": lambda n: sort(tokens, tokens, n),
    "sort_freq": lambda n: sort(tokens, -hist, n),
    "pair_balance": lambda n: pair_balance("(", ")"),
    "shuffle_dyck1": lambda n: shuffle_dyck(BRACKETS[:1]),
    "shuffle_dyck2": lambda n: shuffle_dyck(BRACKETS[:2]),
    "shuffle_dyck3": lambda n: shuffle_dyck(BRACKETS),
    "nary_sequencemap": lambda n: tokens + tokens - indices,
}
#: Their vocabularies, if not a, b, c and d; ``sort_unique`` has a token for each position.
VOCABULARIES: dict[str, tuple[Atom, ...]] = {
    "sort": (1, 2, 3, 4),
    "sort_freq": (1, 2, 3, 4),
    "pair_balance": ("(", ")", "a", "b"),
    "shuffle_dyck1": tuple("()"),
    "shuffle_dyck2": tuple("(){}"),
    "shuffle_dyck3": tuple("(){}[]"),
    "nary_sequencemap": (1, 2, 3),
}

#: Entries of the test suite that have a name of their own there.
VARIANTS: dict[str, Callable[[int], SOp]] = {
    "frac_prevs_1": lambda n: frac_prevs("l"),
    "frac_prevs_2": lambda n: frac_prevs("("),
    "frac_prevs_3": lambda n: frac_prevs(")"),
    "shift_by_one": lambda n: shift_by(1),
    "shift_by_two": lambda n: shift_by(2),
    "detect_pattern_a": lambda n: detect_pattern("a"),
    "detect_pattern_ab_2": lambda n: detect_pattern("ab"),
    "detect_pattern_ab_3": lambda n: detect_pattern("ab"),
    "sort_unique_1": lambda n: sort_unique(tokens, tokens),
    "sort_unique_2": lambda n: sort_unique(tokens, 1 - indices),
    "sort_1": lambda n: sort(tokens, tokens, n),
    "sort_2": lambda n: sort(tokens, 1 - indices, n),
    "sort_3": lambda n: sort(tokens, tokens, n),
    "pair_balance_1": lambda n: pair_balance("(", ")"),
    "make_nary_sequencemap_1": lambda n: tokens + tokens - indices,
    "make_nary_sequencemap_2": lambda n: indices * indices / tokens,
    "selector_width": lambda n: counted_length,
    **{
        f"length_{k}_{i}": lambda n: counted_length
        for k in ("categorical", "numerical")
        for i in (1, 2, 3)
    },
    **{
        f"make_count_less_freq_{k}_{i}": lambda n: count_less_freq_2
        for k in ("categorical", "numerical")
        for i in (1, 2)
    },
    **{f"make_count_{i}": lambda n: count_a for i in (1, 2, 3)},
    **{f"reverse_{i}": lambda n: reverse for i in (1, 2, 3, 4)},
    **{f"shuffle_dyck2_{i}": lambda n: shuffle_dyck(BRACKETS[:2]) for i in (1, 2, 3)},
    **{f"shuffle_dyck3_{i}": lambda n: shuffle_dyck(BRACKETS) for i in (1, 2, 3)},
}
PROGRAMS = LIBRARY | VARIANTS


def vocabulary_of(name: str, max_length: int) -> tuple[Atom, ...]:
    """The vocabulary of a program of the library."""
    every = tuple(range(1, max_length + 1)) if name == "sort_unique" else tuple("abcd")
    return VOCABULARIES.get(name, every)


def draw(name: str, chance: random.Random, vocabulary: Sequence[Atom], size: int) -> list[Atom]:
    """A random input of a program of the library."""
    if name == "sort_unique":
        return chance.sample(list(vocabulary), size)
    if name.startswith("shuffle_dyck"):
        return _draw_brackets(chance, vocabulary, size)
    return chance.choices(vocabulary, k=size)


def _draw_brackets(chance: random.Random, vocabulary: Sequence[Atom], size: int) -> list[Atom]:
    """Brackets: balanced (half of them), balanced but for one bracket (a quarter), or any.

    If the length is odd, balanced sequences have one additional closing bracket.
    """
    kind = chance.randrange(4)
    if kind == 0:
        return chance.choices(vocabulary, k=size)
    kinds = [(vocabulary[i], vocabulary[i + 1]) for i in range(0, len(vocabulary), 2)]
    open_now: list[Atom] = []
    brackets: list[Atom] = []
    while len(brackets) + len(open_now) < size:
        if open_now and (chance.random() < 0.5 or len(brackets) + len(open_now) + 2 > size):
            brackets.append(open_now.pop(chance.randrange(len(open_now))))
        elif len(brackets) + len(open_now) + 2 > size:
            brackets.append(chance.choice(kinds)[1])
        else:
            opening, closing = chance.choice(kinds)
            brackets.append(opening)
            open_now.append(closing)
    brackets += chance.sample(open_now, len(open_now))
    if kind == 1:
        brackets[chance.randrange(size)] = chance.choice(vocabulary)
    return brackets


def causal(program: SOp) -> SOp:
    """Return what a causal mask makes of a program: no selector looks ahead."""
    new: dict[Node, Node] = {}
    for node in postorder(program.node):
        inputs = [new[i] for i in node.inputs]
        if node.op in ("aggregate", "selector_width"):
            inputs[0] = build("selector_and", inputs[0], up_to_here.node)
        new[node] = build(node.op, *inputs, **node.attributes)
    return SOp(new[program.node])
