"""Tasks that published benchmarks of circuits are made of, each written here anew as an s-op.

Counting, moving, comparing, replacing: what collections of compiled models ask of a network, in our own
words. Tokens are letters (:data:`LETTERS`) or small numbers (:data:`NUMBERS`).

>>> TASKS["has_duplicate"].program("abca")
[True, False, False, True]
>>> TASKS["swap_neighbours"].program("abcd")
['b', 'a', 'd', 'c']
"""

from __future__ import annotations

from locum.graph import Atom
from locum.language.everyday import Task
from locum.language.handles import SOp
from locum.language.python import (
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
