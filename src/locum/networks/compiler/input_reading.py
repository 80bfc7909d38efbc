"""Read the option ``inputs`` of ``compile``: conditions that every input of a network satisfies.

A condition is one of the following:

- a mapping from tokens to counts;
- a language of :mod:`locum.languages`, another object with an automaton, or an automaton;
- an s-op that is true at every position;
- a pair of such an s-op and a list of example inputs, which are checked;
- a condition that was read before, as an object or as saved data.

A list of conditions requires all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from locum.errors import CompileError, ExecutionError, InputError
from locum.execution.types import possible_types, types_of
from locum.graph import Atom, Node, Sort, abbreviate, dumps, is_atom, sort_of
from locum.graph.atoms import identity, short
from locum.graph.node import node_of
from locum.networks.transformer.input_conditions import (
    InputCondition,
    TokenAutomaton,
    check_conditions,
    read_condition,
)
from locum.settings import show, to_python

#: Description of valid values of ``inputs``.
EXPECTED = (
    "counts of tokens such as {'+': 1} or {'+': (0, 2)}, a language of locum.languages, an s-op that "
    "is true at every position (or a pair with a list of examples), or a list of these"
)
#: Maximum number of transitions of an automaton that is saved with the weights.
MAX_TRANSITIONS = 2**18


def read_inputs(
    given: Any, vocabulary: Sequence[Atom] | None, length: int
) -> tuple[InputCondition, ...] | None:
    """Return the conditions that the option ``inputs`` describes, or None if there are no conditions.

    >>> read_inputs({"+": 1}, ("1", "+"), 8)[0].text
    "an input with exactly one '+'"
    """
    if given is None:
        return None
    conditions = tuple(_conditions(given, vocabulary, length))
    try:
        check_conditions(conditions, vocabulary)
    except InputError as error:
        raise CompileError(str(error)) from None
    return conditions or None


def _conditions(given: Any, vocabulary: Sequence[Atom] | None, length: int) -> Iterable[InputCondition]:
    if isinstance(given, InputCondition):
        yield given
    elif isinstance(given, Mapping):
        if isinstance(given.get("text"), str):
            yield read_condition(given)
        else:
            for token, count in given.items():
                yield _counted(token, count, _require_vocabulary(vocabulary), length)
    elif isinstance(given, (list, tuple)) and _has_examples(given):
        predicate, examples = given
        condition = _of_program(node_of(predicate), vocabulary)
        _check_examples(condition, examples, vocabulary, length)
        yield condition
    elif isinstance(given, (list, tuple)):
        for part in given:
            yield from _conditions(part, vocabulary, length)
    elif (automaton := _automaton(given)) is not None:
        yield _of_automaton(automaton, getattr(given, "text", ""), _require_vocabulary(vocabulary))
    elif _is_program(given):
        yield _of_program(node_of(given), vocabulary)
    else:
        hint = "; try locum.languages.language(…)" if isinstance(given, str) else ""
        if callable(given):
            hint = "; a function of Python cannot be saved with the weights"
        raise CompileError(f"inputs: expected {EXPECTED}, got {show(given)}{hint}")


def _require_vocabulary(vocabulary: Sequence[Atom] | None) -> Sequence[Atom]:
    if vocabulary is None:
        raise CompileError(
            "inputs: expected an s-op that is true at every position, since tokens are real numbers, "
            "got counts or a language; try vocabulary=…"
        )
    return vocabulary


# Counts ------------------------------------------------------------------------------------------


def _counted(token: Any, count: Any, vocabulary: Sequence[Atom], length: int) -> InputCondition:
    """Return the condition that the number of occurrences of a token is within bounds."""
    places = [i for i, known in enumerate(vocabulary) if identity(known) == identity(token)]
    places = places or [i for i, known in enumerate(vocabulary) if known == token]
    if not places:
        listed = ", ".join(map(repr, vocabulary[:8])) + (", …" if len(vocabulary) > 8 else "")
        raise CompileError(f"inputs: expected tokens of the vocabulary ({listed}), got {show(token)}")
    low, high = _bounds(count, token)
    most = length if high is None else min(high, length)
    if low > most:
        raise CompileError(
            f"inputs: expected a count of {short(token)} that an input of at most {length} tokens can "
            f"have, got {show(count)}"
        )
    return InputCondition(
        f"an input with {_in_words(low, high)} {token!r}",
        count_automaton(places, low, most if most < length else None, len(vocabulary)),
    )


def _bounds(count: Any, token: Any) -> tuple[int, int | None]:
    """Return the minimum and maximum of a count; a maximum of None means no maximum."""
    count = to_python(count)
    ends = (count, count) if _is_count(count) else count
    if isinstance(ends, (list, tuple)) and len(ends) == 2:
        low, high = map(to_python, ends)
        if _is_count(low) and (high is None or (_is_count(high) and low <= high)):
            return low, high
    raise CompileError(
        f"inputs: expected a number of occurrences of {short(token)}, such as 1 or (0, 2), or "
        f"(1, None) for one or more, got {show(count)}"
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _in_words(low: int, high: int | None) -> str:
    if low == high:
        return {0: "no", 1: "exactly one"}.get(low, f"exactly {low}")
    if high is None:
        return f"at least {low or 'no'}" if low != 1 else "at least one"
    return f"{low} to {high}" if low else "at most one" if high == 1 else f"at most {high}"


def count_automaton(
    tokens: Iterable[int], low: int, high: int | None, vocabulary: int
) -> TokenAutomaton:
    """Return the automaton of inputs with a number of occurrences between ``low`` and ``high``.

    The occurrences of all token ids in ``tokens`` are counted together. ``vocabulary`` is the number of
    tokens in the vocabulary, and ``high=None`` means no maximum.

    >>> count_automaton([1], 1, 1, 2)
    TokenAutomaton(transitions=((0, 1), (1, 2), (2, 2)), accepting=(1,))
    """
    counted = set(tokens)
    last = low if high is None else high + 1
    rows = (
        tuple(min(state + 1, last) if token in counted else state for token in range(vocabulary))
        for state in range(last + 1)
    )
    if (last + 1) * vocabulary > MAX_TRANSITIONS:
        raise CompileError(
            f"inputs: expected an automaton of at most {MAX_TRANSITIONS:,} transitions, got "
            f"{(last + 1) * vocabulary:,}; try smaller counts"
        )
    return TokenAutomaton(tuple(rows), tuple(range(low, last + (high is None))))


# Languages and programs --------------------------------------------------------------------------


def _automaton(given: Any) -> Any:
    """Return the automaton of a language, or the given automaton; return None for other objects."""
    own = getattr(given, "automaton", given)
    made = own() if own is not given and callable(own) else own
    known = all(hasattr(made, name) for name in ("alphabet", "transitions", "accepting"))
    return made if known else None


def _of_automaton(automaton: Any, text: Any, vocabulary: Sequence[Atom]) -> InputCondition:
    """Return the condition that an automaton accepts the input.

    The letters of the automaton are compared with the tokens converted to strings.
    """
    letters = {letter: place for place, letter in enumerate(automaton.alphabet)}
    texts = [str(token) for token in vocabulary]
    unknown = [letter for letter in letters if letter not in texts]
    if unknown:
        raise CompileError(
            f"inputs: expected a language over tokens of the vocabulary, got the letter {unknown[0]!r}"
        )
    rows, dead = [tuple(row) for row in automaton.transitions], len(automaton.transitions)
    rows.append((dead,) * len(letters))
    if len(rows) * len(texts) > MAX_TRANSITIONS:
        raise CompileError(
            f"inputs: expected an automaton of at most {MAX_TRANSITIONS:,} transitions, got "
            f"{len(rows) * len(texts):,}; try a smaller language"
        )
    transitions = tuple(
        tuple(row[letters[text]] if text in letters else dead for text in texts) for row in rows
    )
    return InputCondition(
        f"an input of the language {text or 'of inputs=…'}",
        TokenAutomaton(transitions, tuple(sorted(automaton.accepting))),
    )


def _is_program(given: Any) -> bool:
    return isinstance(getattr(given, "node", given), Node)


def _has_examples(given: Sequence[Any]) -> bool:
    """Return whether a value is a pair of an s-op and a list of example inputs."""
    if len(given) != 2 or not _is_program(given[0]) or not isinstance(given[1], (list, tuple)):
        return False
    return all(
        isinstance(example, str) or (isinstance(example, (list, tuple)) and all(map(is_atom, example)))
        for example in given[1]
    )


def _check_examples(
    condition: InputCondition,
    examples: Sequence[Any],
    vocabulary: Sequence[Atom] | None,
    length: int,
) -> None:
    """Raise CompileError if an example violates the condition or the condition is undefined for it.

    The error is also raised for an example that is empty or too long, or that contains unknown tokens.
    """
    for example in examples:
        if len(example) > length:
            raise CompileError(
                f"inputs: expected examples of at most {length} tokens, got {len(example)}"
            )
        unknown = [token for token in example if vocabulary is not None and token not in vocabulary]
        if unknown or not example:
            got = repr(unknown[0]) if unknown else "an empty input"
            raise CompileError(f"inputs: expected examples of tokens of the vocabulary, got {got}")
        try:
            accepted = condition.accepts([list(example)], np.zeros((1, 0), dtype=np.int64)).all()
        except ExecutionError as error:
            raise CompileError(
                f"inputs: the s-op is undefined on the example {show(example)}: {error}"
            ) from None
        if not accepted:
            raise CompileError(
                f"inputs: expected {condition.text} as an example, got {show(example)}; try another "
                "condition or another example"
            )


def _of_program(root: Node, vocabulary: Sequence[Atom] | None) -> InputCondition:
    """Return the condition that an s-op is true at every position of the input.

    Raise CompileError for a selector, an s-op with free families, and an s-op whose values may not be
    booleans.
    """
    if sort_of(root) is not Sort.SOP or root.free:
        raise CompileError("inputs: expected an s-op, got a selector or an s-op with free families")
    tokens = frozenset([float]) if vocabulary is None else types_of(vocabulary)
    types = possible_types(root, tokens)[root]
    if types != {bool}:
        kinds = ", ".join(sorted(kind.__name__ for kind in types))
        raise CompileError(
            f"inputs: expected an s-op that is true or false, got values of type {kinds}; try a "
            "comparison",
            abbreviate(root),
        )
    return InputCondition(
        f"an input on which {abbreviate(root)} is true everywhere", program=dumps(root)
    )
