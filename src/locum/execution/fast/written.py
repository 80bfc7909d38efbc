"""Write the steps of a plan out as one Python function, so that a run has no loop over them.

A small U computes for 30 µs; looking up each step, its registers and those to be freed would take 10 %
of that. The text of the function is made of numbers alone: ``t2 = f2(t0, t1)``, ``del t0``.

>>> import operator
>>> run = written([RegisterInstruction(operator.add, (0, 1), 2, (0, 1))], {}, [0, 1], (2,))
>>> run([3, 4], None)
(7,)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

#: The number of the register that holds the types of the tokens.
TOKEN_TYPES = -1


class RegisterInstruction(NamedTuple):
    """A step as it is run: the registers it reads, the one it writes, those no longer needed then."""

    function: Callable[..., Any]
    reads: tuple[int, ...]
    writes: int
    done: tuple[int, ...]


def written(
    instructions: Sequence[RegisterInstruction],
    constants: Mapping[int, Any],
    arguments: Sequence[int | None],
    results: Sequence[int],
) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """Return the function of a sequence of arrays, and of the types of the tokens, that runs all steps.

    ``arguments`` are the registers of the arrays (None: not read), ``results`` those of the values.
    """
    lines = [f"def run(arrays, {_name(TOKEN_TYPES)}):"]
    if arguments:
        names = ["_" if number is None else _name(number) for number in arguments]
        lines.append(f"    {', '.join(names)}, = arrays")
    scope: dict[str, Any] = {_name(number): value for number, value in constants.items()}
    for number, (function, reads, writes, done) in enumerate(instructions):
        scope[f"f{number}"] = function
        lines.append(f"    {_name(writes)} = f{number}({', '.join(map(_name, reads))})")
        finished = [_name(register) for register in done if register not in constants]
        if finished:
            lines.append(f"    del {', '.join(finished)}")
    lines.append(f"    return ({''.join(f'{_name(result)}, ' for result in results)})")
    exec("\n".join(lines), scope)
    run: Callable[[Sequence[Any], Any], tuple[Any, ...]] = scope["run"]
    return run


def replace_functions(
    run: Callable[[Sequence[Any], Any], tuple[Any, ...]], functions: Mapping[int, Callable[..., Any]]
) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """Return the function of :func:`written` with other functions for some instructions.

    >>> import operator
    >>> run = written([RegisterInstruction(operator.add, (0, 1), 2, (0, 1))], {}, [0, 1], (2,))
    >>> replace_functions(run, {0: operator.mul})([3, 4], None)
    (12,)
    """
    scope: dict[str, Any] = dict(run.__globals__)
    scope.update((f"f{number}", function) for number, function in functions.items())
    return FunctionType(run.__code__, scope)


def _name(register: int) -> str:
    return "token_types" if register == TOKEN_TYPES else f"t{register}"
