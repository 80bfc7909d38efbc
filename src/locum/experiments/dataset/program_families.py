"""Define the named programs of the dataset in several families, each with its tokens and lengths.

A :class:`Source` is a named program with the sizes for which it is compiled. A size is small enough to
run all of its inputs, except for one long size of most programs, for which a sample is run.

>>> SOURCES["cookbook/parity"].sizes[0]
Size(length=6, tokens=2)
>>> sorted({source.family for source in SOURCES.values()})
['C-RASP', 'U', 'constructions', 'cookbook', 'published tasks']

:data:`TASKS` contains tasks of published circuit benchmarks with their programs. Tokens are letters
(:data:`LETTERS`) or small numbers (:data:`NUMBERS`).

>>> TASKS["has_duplicate"].program("abca")
[True, False, False, True]
>>> TASKS["swap_neighbours"].program("abcd")
['b', 'a', 'd', 'c']
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from locum.constructions import (
    Matrix,
    determinant,
    hardmax,
    k_parity,
    matmul,
    maxmin,
    row_sums,
    softmax,
    transpose,
)
from locum.graph import Atom
from locum.languages import c_rasp
from locum.languages.c_rasp_programs import program as c_rasp_of
from locum.languages.cookbook import COOKBOOK, Compiled
from locum.languages.recogniser import Recogniser
from locum.languages.regular import language
from locum.rasp.handles import SOp
from locum.rasp.programs import EVERYDAY, Task, load_everyday
from locum.rasp.python import (
    aggregate,
    best,
    full,
    indicator,
    indices,
    length,
    lookup,
    maximum,
    member,
    select,
    selector_width,
    tokens,
    where,
)
from locum.simulators import UniversalSimulator

LETTERS: tuple[Atom, ...] = ("a", "b", "c", "d")
NUMBERS: tuple[Atom, ...] = (0, 1, 2, 3)


_before = select(indices, indices, "<")
_up_to_here = select(indices, indices, "<=")
_behind = select(indices, indices, ">")
_same = select(tokens, tokens, "==")
_first_token = aggregate(select(indices, 0, "=="), tokens)
_last_token = aggregate(select(indices, length - 1, "=="), tokens)
_previous = aggregate(select(indices, indices - 1, "=="), tokens, "-")
_next = aggregate(select(indices, indices + 1, "=="), tokens, "-")
_previous_number = aggregate(select(indices, indices - 1, "=="), tokens, 0)
_frequency = selector_width(_same)
_is_a = tokens == "a"
_vowel = member(tokens, "ae")
_partner = where(indices % 2 == 0, indices + 1, indices - 1)
_exchanged = aggregate(select(indices, _partner, "=="), tokens, "-")


def _share(condition: SOp) -> SOp:
    return aggregate(full, indicator(condition))


def _count(condition: SOp) -> SOp:
    return selector_width(select(condition, True, "=="))


_LETTER_TASKS: dict[str, SOp] = {
    "has_duplicate": _frequency > 1,
    "appears_exactly_twice": _frequency == 2,
    "first_of_its_kind": selector_width(_same & _before) == 0,
    "last_of_its_kind": selector_width(_same & _behind) == 0,
    "occurrence_number": selector_width(_same & _up_to_here),
    "equals_the_first": tokens == _first_token,
    "equals_the_last": tokens == _last_token,
    "copy_the_first": _first_token,
    "copy_the_last": _last_token,
    "starts_and_ends_alike": _first_token == _last_token,
    "equals_the_previous": tokens == _previous,
    "differs_from_the_next": ~(tokens == _next),
    "between_equals": _previous == _next,
    "swap_neighbours": where(_exchanged == "-", tokens, _exchanged),
    "replace_vowels": where(_vowel, "-", tokens),
    "vowel_share": _share(_vowel),
    "mostly_vowels": _share(_vowel) > 0.5,
    "all_vowels": _share(_vowel) == 1,
    "any_a": _share(_is_a) > 0,
    "count_a_before": selector_width(select(_is_a, True, "==") & _before),
    "a_before_b": selector_width(select(_is_a, True, "==") & _before) * indicator(tokens == "b"),
    "more_a_than_b": _count(_is_a) > _count(tokens == "b"),
    "as_many_a_as_b": _share(_is_a) == _share(tokens == "b"),
    "even_number_of_a": _count(_is_a) % 2 == 0,
    "mask_repeats": where(selector_width(_same & _before) > 0, "-", tokens),
    "mask_frequent": where(_frequency > 1, "-", tokens),
    "rarest_token": aggregate(best(best(full, -_frequency), -indices), tokens),
    "distinct_tokens": _count(selector_width(_same & _before) == 0),
    "next_letter": lookup(tokens, {"a": "b", "b": "c", "c": "d", "d": "a"}),
    "next_of_previous": lookup(_previous, {"a": "b", "b": "c", "c": "d", "d": "a", "-": "-"}),
    "token_before_last_a": aggregate(
        best(select(aggregate(select(indices, indices + 1, "=="), tokens, "-"), "a", "=="), indices),
        tokens,
        "-",
    ),
    "middle_token": aggregate(select(indices, length // 2, "=="), tokens),
    "ends_of_runs": ~(tokens == _next) & (tokens == _previous),
    "second_half": where(indices * 2 >= length, tokens, "-"),
    "alternates": aggregate(_before, indicator(tokens == _previous)) == 0,
}

_NUMBER_TASKS: dict[str, SOp] = {
    "largest": aggregate(best(full, tokens), tokens),
    "smallest": aggregate(best(full, -tokens), tokens),
    "is_largest": tokens == aggregate(best(full, tokens), tokens),
    "largest_so_far": aggregate(best(_up_to_here, tokens), tokens),
    "distance_to_largest": aggregate(best(full, tokens), tokens) - tokens,
    "rank_from_below": selector_width(select(tokens, tokens, "<")),
    "rank_from_above": selector_width(select(tokens, tokens, ">")),
    "difference_to_previous": tokens - _previous_number,
    "sum_with_previous": tokens + _previous_number,
    "rises": tokens > _previous_number,
    "is_sorted": aggregate(full, indicator(tokens < _previous_number)) == 0,
    "greater_than_all_before": selector_width(select(tokens, tokens, ">=") & _before) == 0,
    "mean": aggregate(full, tokens),
    "above_the_mean": tokens > aggregate(full, tokens),
    "mean_so_far": aggregate(_up_to_here, tokens),
    "even_numbers": selector_width(select(tokens % 2, 0, "==")),
    "sum_modulo_3": round(length * aggregate(full, tokens)) % 3,
    "prefix_sum_modulo_2": round((indices + 1) * aggregate(_up_to_here, tokens)) % 2,
    "fetch_by_token": aggregate(select(indices, tokens, "=="), tokens, -1),
    "points_to_itself": aggregate(select(indices, tokens, "=="), tokens, -1) == indices,
    "follow_twice": aggregate(
        select(indices, aggregate(select(indices, tokens, "=="), tokens, -1), "=="), tokens, -1
    ),
    "clip_to_previous": where(tokens > _previous_number, _previous_number, tokens),
    "maximum_with_next": maximum(tokens, aggregate(select(indices, indices + 1, "=="), tokens, 0)),
    "count_of_largest": selector_width(select(tokens, aggregate(best(full, tokens), tokens), "==")),
    "smaller_before": selector_width(select(tokens, tokens, "<") & _before),
}

TASKS: dict[str, Task] = {
    **{name: Task(program, LETTERS) for name, program in _LETTER_TASKS.items()},
    **{name: Task(program, NUMBERS) for name, program in _NUMBER_TASKS.items()},
}


#: Largest number of inputs for which all inputs are run; otherwise, a sample is run.
MOST_INPUTS = 100_000
#: Largest number of inputs of a size for a check of circuits on all inputs, and of any size but the
#: long one.
_FEW, _MANY = 400, 1_500


@dataclass(frozen=True)
class Size:
    """The size of an item: the length of the longest input, and the number of tokens in the
    vocabulary.
    """

    length: int
    tokens: int


@dataclass(frozen=True)
class Source:
    """A named program, which may depend on the length, with its vocabulary and sizes."""

    family: str
    make: Callable[[int], SOp]
    vocabulary: tuple[Atom, ...]
    sizes: tuple[Size, ...]
    causal: bool = False
    fixed: bool = False
    #: Whether functions of the token alone, or of the position alone, are embedded.
    fold: bool = False


def count_inputs(tokens: int, length: int, fixed: bool = False) -> int:
    """Return the number of inputs of at most ``length`` tokens or, with ``fixed``, of exactly
    ``length``.

    ``tokens`` is the size of the vocabulary.
    """
    return sum(tokens**size for size in range(length if fixed else 1, length + 1))


def sizes_for(vocabulary: int, least: int = 2) -> tuple[Size, ...]:
    """Return sizes for a vocabulary of this size, with few and with many tokens; the last size is
    long.
    """
    sizes: list[Size] = []
    for number in sorted({min(max(2, least), vocabulary), min(max(3, least), vocabulary), vocabulary}):
        longest = max((n for n in range(2, 8) if count_inputs(number, n) <= _FEW), default=2)
        if count_inputs(number, longest) <= _MANY:
            sizes += [Size(n, number) for n in (longest - 1, longest) if n >= 2]
    long = next(n for n in range(6, 40) if count_inputs(min(vocabulary, 4), n) > MOST_INPUTS)
    return (*sizes, Size(long, min(vocabulary, 4)))


_C_RASP = {
    "majority": ('m = #"a" > #"b"', "ab"),
    "as many": ('m = #"a" == #"b"', "ab"),
    "twice as many": ('m = 2 * #"a" == #"b"', "ab"),
    "dyck": ('o = #"("\nc = #")"\naccepted = #[o < c] == 0 && o == c', "()"),
    "never behind": ('o = #"a"\nc = #"b"\naccepted = #[o < c] == 0', "ab"),
    "a then b": ('bad = "a" && #"b" > 0\naccepted = #bad == 0', "ab"),
    "a b c in order": (
        'bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0\naccepted = #bad == 0',
        "abc",
    ),
    "at most two": ('m = #"a" <= 2', "ab"),
    "exactly one": ('m = #"a" == 1', "ab"),
    "more than both": ('m = #"a" > #"b" + #"c"', "abc"),
}
_REGULAR = ("(ab+ba)*", "a*b*", "(aa)*b*", "a*ba*", "(a+b)*", "(ab)*", "a*b*a*", "b(a+b)*")


def _c_rasp() -> Iterator[tuple[str, Recogniser]]:
    for name, (text, alphabet) in _C_RASP.items():
        yield name, c_rasp.parse(text, alphabet=alphabet)
    for expression in _REGULAR:
        recogniser = c_rasp_of(language(expression))
        if recogniser is not None:
            yield expression, recogniser


def _recognisers() -> dict[str, Source]:
    sources = {}
    for name, recogniser in _c_rasp():
        alphabet = tuple(recogniser.vocabulary)
        sizes = sizes_for(len(alphabet), len(alphabet))
        sources[name] = Source("C-RASP", _always(recogniser.sop), alphabet, sizes, recogniser.causal)
    return sources


def _always(program: SOp) -> Callable[[int], SOp]:
    return lambda length: program


def _cookbook() -> dict[str, Source]:
    sources = {}
    for name, vocabulary in EVERYDAY.items():
        program = load_everyday(name).program
        least = 4 if name in ("dyck2", "binary_addition") else 2
        sources[name] = Source(
            "cookbook", _always(program), vocabulary, sizes_for(len(vocabulary), least)
        )
    for name, entry in COOKBOOK.items():
        if not isinstance(entry, Compiled):
            continue
        built = entry.built
        program = built.sop if isinstance(built, Recogniser) else built
        letters = tuple(built.vocabulary) if isinstance(built, Recogniser) else tuple(entry.alphabet)
        causal = built.causal if isinstance(built, Recogniser) else True
        sizes = sizes_for(len(letters), len(letters))
        sources[f"survey {name}"] = Source("cookbook", _always(program), letters, sizes, causal)
    return sources


def _tasks() -> dict[str, Source]:
    return {
        name: Source(
            "published tasks", _always(task.program), task.vocabulary, sizes_for(len(task.vocabulary))
        )
        for name, task in TASKS.items()
    }


def _constructions() -> dict[str, Source]:
    square = Matrix(tokens, 2, 2)
    wide, tall = Matrix(tokens, 2, 3), Matrix(tokens, 3, 2)
    programs: dict[str, tuple[Matrix, int]] = {
        "square of a matrix": (matmul(square, square), 4),
        "Gram matrix": (matmul(square, transpose(square)), 4),
        "Gram matrix of three rows": (matmul(tall, transpose(tall)), 9),
        "row sums": (row_sums(wide), 6),
        "transpose": (transpose(wide, "paper"), 6),
        "MaxMin": (maxmin(square), 4),
        "hardmax": (hardmax(square), 4),
        "softmax": (softmax(square), 4),
        "determinant": (determinant(square), 4),
    }
    numbers: tuple[Atom, ...] = (-1, 0, 1)
    sources = {
        name: Source(
            "constructions",
            _always(result.sop),
            numbers,
            tuple(Size(length, k) for k in (2, 3) if k**length <= _MANY),
            fixed=True,
        )
        for name, (result, length) in programs.items()
    }
    bits: tuple[Atom, ...] = (0, 1)
    sources["k-parity"] = Source(
        "constructions", lambda n: k_parity(tokens, range(0, n, 2)), bits, (Size(4, 2), Size(6, 2))
    )
    return sources


#: Orders and recipes of U for which every head of the network changes some answer. A softmax of one
#: number would make heads irrelevant. The paper's recipe has more layers than an item may have.
_SIMULATORS = {
    "fetch": ((2, 1, 1), (2, 1, 2), (2, 1, 3), (3, 1, 2)),
    "width-1": ((2, 1, 1), (2, 1, 2)),
}


def _simulators() -> dict[str, Source]:
    numbers: tuple[Atom, ...] = (-1, 0, 1)
    sources = {}
    for recipe, orders in _SIMULATORS.items():
        for order in orders:
            simulator = UniversalSimulator(*order, recipe=recipe, stable=False)
            name = f"U{order} {recipe}".replace(" ", "")
            sizes = tuple(Size(simulator.length, k) for k in (2, 3) if k**simulator.length <= _MANY)
            # In U, positions determine the layout of the matrices. Without embeddings, most of the
            # layers would compute functions of the position.
            program = _always(simulator.program)
            sources[name] = Source("U", program, numbers, sizes, fixed=True, fold=True)
    return sources


@functools.cache
def _sources() -> dict[str, Source]:
    families = {
        "cookbook": _cookbook(),
        "task": _tasks(),
        "c-rasp": _recognisers(),
        "construction": _constructions(),
        "simulator": _simulators(),
    }
    return {
        f"{prefix}/{name}": source
        for prefix, named in families.items()
        for name, source in named.items()
    }


#: All named programs by name.
SOURCES: dict[str, Source] = _sources()
