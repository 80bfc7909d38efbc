"""The honest network: every demanded row of every head run as real attention.

``fast`` executes a program by rewriting it; here its heads are run. Each query row that somebody reads
(each *live* row of each member of each family) is scored against all N keys by products of exact
position codes; the keys of full score are its hard maximum, and the mean of their values its result.
Rows that nobody reads, or that a comparison empties whatever the keys, are not run. So one matrix
product of 64×64 matrices takes 10⁸ scores instead of dense execution's 3·10¹¹, and not one fewer than
its heads need.

Numbers only: whole ones exactly in int64, real ones in the type of the input (NumPy arrays and torch
tensors alike). It is as strict as RASP where it computes, and does not compute what nobody reads: a
division by zero there goes unnoticed.

>>> import numpy as np
>>> from understudy.graph import build
>>> i, tokens = build("indices"), build("tokens", cast="asis")
>>> mean_so_far = build("aggregate", build("select", i, i, predicate="<="), tokens, default=0)
>>> report = Report()
>>> evaluate(mean_so_far, np.array([1.0, 2.0, 6.0]), report=report).tolist()
[1.0, 1.5, 3.0]
>>> report.heads, report.rows, report.pairs
(1, 3, 9)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array

from understudy.errors import ExecutionError, InputError
from understudy.execution.domains import Domain, Value
from understudy.execution.heads import elementwise
from understudy.execution.heads.arrays import Array, Backend
from understudy.execution.heads.demand import Demand
from understudy.execution.heads.elementwise import ElementError
from understudy.execution.heads.evaluate import Evaluation, Progress
from understudy.execution.heads.report import Report
from understudy.execution.heads.statics import Statics
from understudy.graph import Node, abbreviate
from understudy.graph.wellformed import require_program

Names = Mapping[Node, str] | Callable[[], Mapping[Node, str]]


def evaluate(
    root: Node,
    tokens: Array,
    *,
    positions: range | Sequence[int] | None = None,
    dtype: str | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
    names: Names | None = None,
) -> Array:
    """The value of ``root`` at ``positions`` (ascending; all by default), on an array of tokens.

    ``dtype`` ("float32", "float64") is the type of real numbers, by default that of the tokens;
    ``memory`` bounds, in bytes, what a chunk of scores may take; ``progress`` is called with the name
    of a head and how many pairs it has just scored; ``report`` collects what was run.
    """
    if not (is_numpy_array(tokens) or is_torch_array(tokens)) or tokens.ndim != 1:
        raise InputError("heads.evaluate takes the tokens as one array or tensor with one axis")
    if tokens.shape[0] == 0:
        raise InputError("the input is empty: a program needs at least one token")
    if is_numpy_array(tokens) and tokens.dtype.kind not in "bifu":
        raise InputError(f"heads.evaluate takes an array of numbers, not of {tokens.dtype}")
    backend = Backend(tokens, dtype)
    if backend.real_name not in elementwise.EXACT_WHOLE:
        known = " or ".join(elementwise.EXACT_WHOLE)
        raise InputError(f"heads compute in {known}, not in {backend.real_name}: say dtype=…")
    whole = backend.is_whole(tokens) and not backend.is_bool(tokens)
    given = backend.to_int(tokens) if whole else tokens
    given = given if backend.is_whole(given) else backend.to_real(given)
    if memory is not None and memory < 1:
        raise InputError(
            f"the memory for a chunk of scores is a positive number of bytes, not {memory}"
        )
    wanted = _positions(positions, tokens.shape[0])
    return _run(
        root,
        lambda: given,
        tokens.shape[0],
        backend,
        wanted,
        memory or backend.memory,
        progress,
        report or Report(),
        names,
    )


def execute(
    root: Node,
    tokens: Any,
    domain: Domain,
    names: Names | None = None,
    *,
    positions: range | None = None,
) -> Any:
    """For ``executor="heads"``: arrays and tensors as :func:`evaluate`, lists of numbers on NumPy."""
    if domain.name != "float":
        problem = f"heads compute with floats, not in the {domain.name} domain"
        raise ExecutionError(problem, abbreviate(root), kind="refused")
    if is_numpy_array(tokens) or is_torch_array(tokens):
        return evaluate(root, tokens, positions=positions, names=names)
    backend = Backend(np.zeros(0))
    value = _run(
        root,
        lambda: _array_of(tokens),  # only if they are read: a program may run on strings without
        len(tokens),
        backend,
        np.asarray(positions or range(len(tokens)), dtype=np.int64),
        backend.memory,
        None,
        Report(),
        names,
    )
    return value if value.ndim == 2 else value.tolist()


def _run(
    root: Node,
    tokens: Callable[[], Array],
    length: int,
    backend: Backend,
    positions: np.ndarray[Any, Any],
    memory: int,
    progress: Progress | None,
    report: Report,
    names: Names | None,
) -> Array:
    require_program(root)
    started = time.perf_counter()

    def called() -> Mapping[Node, str]:
        return names() if callable(names) else names or {}

    demand = Demand(root, positions, Statics(root, length, called))
    run = Evaluation(tokens, backend, demand, called, memory, report, progress)
    with np.errstate(all="ignore"):
        value = run.run(root, positions)
    backend.wait()
    report.seconds += time.perf_counter() - started
    return value


def _positions(positions: range | Sequence[int] | None, length: int) -> np.ndarray[Any, Any]:
    if positions is None:
        return np.arange(length, dtype=np.int64)
    found = np.asarray(positions, dtype=np.int64).reshape(-1)
    if found.size == 0 or found[0] < 0 or found[-1] >= length or bool((np.diff(found) <= 0).any()):
        raise InputError(f"positions are ascending whole numbers from 0 to {length - 1}, at least one")
    return found


def _array_of(tokens: Sequence[Value]) -> Array:
    """Python's numbers as an array that holds them exactly."""
    types = set(map(type, tokens))
    for token in tokens:
        elementwise.number(token)
    if types == {bool}:
        return np.array(tokens, dtype=np.bool_)
    if float not in types:
        return np.array(tokens, dtype=np.int64)
    if any(abs(token) > 2**53 for token in tokens if type(token) is not float):
        raise ElementError("it mixes floats with whole numbers that floats would round", "refused")
    return np.array(tokens, dtype=np.float64)


__all__ = ["Report", "evaluate", "execute"]
