"""Run the heads of a program as attention: score keys for each query, and average the selected values.

The fast executor rewrites programs; this executor runs their heads. Only *live* rows are run: the query
positions of a head whose results are read later. A family of heads has live rows for each of its
members. A row is scored against all N keys by products of exact codes of queries and keys. The keys
that reach the full score of each product are the selected keys of a conjunction, and their mean value
is the result. A row is also skipped if a comparison that does not depend on the key excludes every key.
One product of 64×64 matrices thus needs 10⁸ scores, compared with 3·10¹¹ in dense execution.

Integers are exact in int64. Real numbers have the type of the input if the input is a NumPy array or a
torch tensor of float32 or float64. Strings are compared by their ranks and moved by their indices;
tensors cannot contain strings. Except in IEEE 754 arithmetic, the executor raises an error for every
undefined value that it computes. Values that are not read are not computed, so a division by zero in
such a value is not reported.

>>> import numpy as np
>>> from locum.graph import build
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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array

from locum.errors import ExecutionError, InputError
from locum.execution.arrays import Array, Arrays
from locum.execution.dense import Names, called
from locum.execution.domains import Domain, Value
from locum.execution.heads import head_numbers, head_strings
from locum.execution.heads.head_attention import default_memory
from locum.execution.heads.head_evaluation import Evaluation, Progress, Report, Tokens
from locum.execution.heads.head_numbers import ElementError
from locum.execution.heads.points import Statics
from locum.execution.heads.support import PointDemand
from locum.graph import Node, abbreviate
from locum.graph.atoms import INT64_LIMIT
from locum.graph.wellformed import require_program


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
    mixed: Collection[Node] = (),
) -> Array:
    """Run the heads of ``root`` on an array of tokens, and return the values of ``root``.

    ``positions`` is an ascending sequence of the positions of the returned values, by default all
    positions. ``dtype`` ("float32" or "float64") is the type of real numbers, by default the type of
    the tokens, or float64 if the tokens are not floats. ``memory`` is the maximum number of bytes for a
    chunk of scores. ``progress`` is called after each block of rows with the name of the head and the
    number of pairs scored for the block. ``report`` collects statistics. ``mixed`` contains the s-ops
    that compute integers and floats in one array of floats.

    Static numbers, which depend only on positions and heads, are computed and compared in float64, even
    if ``dtype`` has a lower precision. In operations with values that depend on tokens, static floats
    are rounded to ``dtype``.
    """
    if not (is_numpy_array(tokens) or is_torch_array(tokens)) or tokens.ndim != 1:
        raise InputError(
            "heads.evaluate: expected the tokens as an array or a tensor with one axis, "
            f"got {type(tokens).__name__}; try numpy.array(tokens).ravel()"
        )
    chosen = _positions(positions, tokens.shape[0])
    arrays = Arrays(tokens, dtype)
    if arrays.float_name not in ("float32", "float64"):
        raise InputError(
            f"expected tokens of float32 or float64, got {arrays.float_name}; "
            "try heads.evaluate(…, dtype='float32')"
        )
    if memory is not None and memory < 1:
        raise InputError(
            f"memory for a chunk of scores: expected a positive number of bytes, got {memory}"
        )
    run = _Run({root: chosen}, _reader(tokens, arrays), tokens.shape[0], arrays, names, mixed)
    return run.values(memory, progress, report)[0]


def evaluate_all(
    roots: Mapping[Node, range],
    tokens: Array,
    names: Names | None = None,
    *,
    report: Report | None = None,
) -> list[Array]:
    """Run several roots at once in IEEE 754 arithmetic, and return the values of each root at its
    positions.
    """
    arrays = Arrays(tokens, ieee=True)
    chosen = {root: _positions(positions, tokens.shape[0]) for root, positions in roots.items()}
    return _Run(chosen, _reader(tokens, arrays), tokens.shape[0], arrays, names).values(report=report)


def execute(
    root: Node,
    tokens: Any,
    domain: Domain,
    names: Names | None = None,
    *,
    positions: range | None = None,
    mixed: Collection[Node] = (),
) -> Any:
    """Run a program for ``executor="heads"`` on a list, an array or a tensor.

    Lists are converted to NumPy arrays. ``positions`` is the range of positions to return, by default
    all. ``mixed`` contains the s-ops that compute integers and floats in one array of floats.
    """
    if domain.name != "float":
        problem = f"heads compute with floats, not in the {domain.name} domain"
        raise ExecutionError(problem, abbreviate(root), kind="refused")
    if is_numpy_array(tokens) or is_torch_array(tokens):
        return evaluate(root, tokens, positions=positions, names=names, mixed=mixed)
    chosen = _positions(positions, len(tokens))
    arrays = Arrays(np.zeros(0))
    reader = _list_reader(tokens, arrays)
    (value,) = _Run({root: chosen}, reader, len(tokens), arrays, names, mixed).values()
    return value if value.ndim == 2 else value.tolist()


@dataclass(frozen=True)
class _Run:
    """The roots of a program with the positions to compute, the tokens, and the options of the run."""

    roots: Mapping[Node, np.ndarray[Any, Any]]
    tokens: Tokens
    length: int
    arrays: Arrays
    names: Names | None
    mixed: Collection[Node] = ()

    def values(
        self,
        memory: int | None = None,
        progress: Progress | None = None,
        report: Report | None = None,
    ) -> list[Array]:
        """Return each root's values at its positions, and add statistics of the run to ``report``."""
        for root in self.roots:
            require_program(root)
        report = Report() if report is None else report
        started = time.perf_counter()
        memory = memory or default_memory(self.arrays)
        try:
            statics = Statics(self.roots, self.length, self.called, self.arrays.ieee)
            demand = PointDemand(self.roots, statics)
            run = Evaluation(
                self.tokens, self.arrays, demand, self.called, memory, report, progress, self.mixed
            )
            with np.errstate(all="ignore"):
                values = run.run(self.roots)
        except ElementError as error:  # raised while comparing positions, before any head is run
            root = next(iter(self.roots))
            raise ExecutionError(str(error), abbreviate(root, self.called()), kind=error.kind) from None
        self.arrays.wait()
        report.seconds += time.perf_counter() - started
        return values

    def called(self) -> Mapping[Node, str]:
        """Return the names of nodes for error messages."""
        return called(self.names)


def _positions(positions: range | Sequence[int] | None, length: int) -> np.ndarray[Any, Any]:
    if length == 0:
        raise InputError("expected at least one token, got an empty input")
    if positions is None:
        return np.arange(length, dtype=np.int64)
    chosen = np.asarray(positions).reshape(-1)
    whole = chosen.size > 0 and chosen.dtype.kind in "iu"
    if not whole or chosen[0] < 0 or chosen[-1] >= length or bool((np.diff(chosen) <= 0).any()):
        raise InputError(
            f"expected ascending positions from 0 to {length - 1}, one or more, got {positions!r:.60}"
        )
    return chosen.astype(np.int64)


def _numbers(tokens: Array, arrays: Arrays) -> Array:
    """Convert an array of tokens to booleans, int64, or the float type of ``arrays``."""
    kinds = ("bool", "integral", "real floating")
    if arrays.on_torch or tokens.dtype.kind in "bifu":
        known = bool(arrays.xp.isdtype(tokens.dtype, kinds))
    else:
        known = False
    if not known:
        raise InputError(f"heads.evaluate: expected an array of numbers, got one of {tokens.dtype}")
    if arrays.is_bool(tokens):
        return tokens
    if not arrays.is_int(tokens):
        return arrays.to_float(tokens)
    whole = arrays.to_int(tokens)
    unsigned = bool(arrays.xp.isdtype(tokens.dtype, "unsigned integer"))
    wrapped = unsigned and bool(arrays.xp.any(whole < 0))
    if wrapped or head_numbers.largest(arrays, whole) >= INT64_LIMIT:
        raise InputError("the tokens have an integer of more than 62 bits, too many for heads")
    return whole


def _reader(tokens: Array, arrays: Arrays) -> Tokens:
    """Return a function that reads and casts the tokens of an array of numbers or NumPy strings."""
    if not arrays.on_torch and tokens.dtype.kind == "U":
        return _list_reader(tokens.tolist(), arrays)
    numbers = tokens if arrays.ieee else _numbers(tokens, arrays)

    def read(positions: np.ndarray[Any, Any], cast: str) -> Array:
        if cast != "str":
            return head_numbers.cast(arrays, numbers[arrays.put(positions)], cast)
        head_strings.require_strings(arrays)
        return head_strings.cast_values(tokens[positions].tolist(), cast)

    return read


def _list_reader(tokens: Sequence[Value], arrays: Arrays) -> Tokens:
    """Return a function that reads and casts the tokens of a list."""
    types = set(map(type, tokens))

    def read(positions: np.ndarray[Any, Any], cast: str) -> Array:
        if cast == "asis" or (str not in types and cast != "str"):
            return head_numbers.cast(arrays, head_strings.array_of(tokens)[positions], cast)
        return head_strings.cast_values([tokens[place] for place in positions.tolist()], cast)

    return read


__all__ = ["Report", "evaluate", "evaluate_all", "execute"]
