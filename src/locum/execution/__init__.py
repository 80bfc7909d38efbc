"""Run programs on inputs, with a choice of executor and number domain.

- ``dense`` defines the meaning of programs, and computes every attention pattern and every mean
  literally, in any domain;
- ``fast`` computes the same values, up to rounding, with views, matrix products and other array
  operations;
- ``auto`` is ``fast`` if possible, and ``dense`` otherwise;
- ``heads`` runs the heads of a program as attention, for all queries whose results are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from locum.errors import ExecutionError, InputError, LocumError
from locum.execution import dense, inputs
from locum.execution.domains import Domain
from locum.execution.domains.floats import FloatDomain
from locum.execution.domains.ieee import IeeeDomain
from locum.graph import Node, Sort, abbreviate, sort_of

#: Maximum number of heads that ``heads`` runs; the arrays of more heads would fill the memory.
_MOST_HEADS = 2**25


class _Domains(Mapping[str, Domain]):
    """The number domains by name; the exact domain is created, and flint imported, on first use."""

    def __init__(self) -> None:
        self._made: dict[str, Domain] = {"float": FloatDomain(), "ieee": IeeeDomain()}

    def __getitem__(self, name: str) -> Domain:
        if name == "exact" and name not in self._made:
            from locum.execution.domains.exact import ExactDomain

            self._made[name] = ExactDomain()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("float", "exact", "ieee"))

    def __len__(self) -> int:
        return 3


#: The values of ``domain=``.
DOMAINS: Mapping[str, Domain] = _Domains()


def _dense(
    program: Node,
    tokens: Any,
    domain: Domain,
    names: dense.Names | None = None,
    *,
    positions: range,
    strict: bool,
) -> Any:
    values = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    value = dense.evaluate(program, values, domain, names)
    return value[positions.start : positions.stop] if isinstance(value, list) else value


def _fast(
    program: Node, tokens: Any, domain: Domain, names: dense.Names | None = None, **options: Any
) -> Any:
    from locum.execution import fast  # imported on first use, so that `import locum` is fast

    return fast.evaluate(program, tokens, domain, names, **options)


def _auto(
    program: Node, tokens: Any, domain: Domain, names: dense.Names | None = None, **options: Any
) -> Any:
    if domain.name == "float" and sort_of(program) is Sort.SOP:
        return _fast(program, tokens, domain, names, **options)
    options.pop("kinds", None)
    return _dense(program, tokens, domain, names, **options)


def _heads(
    program: Node,
    tokens: Any,
    domain: Domain,
    names: dense.Names | None = None,
    *,
    positions: range,
    strict: bool,
) -> Any:
    from locum.execution import heads, types

    number = dense.expansion(program)
    if number > _MOST_HEADS:
        problem = f"its families expand to {number:,} heads; the limit of 'heads' is {_MOST_HEADS:,}"
        raise ExecutionError(problem, abbreviate(program), kind="too large")
    possible = types.possible_types(program, types.types_of(tokens))
    reason = types.averages_booleans(possible) or types.rounds_integers(possible, len(tokens))
    if reason is not None and domain.name == "float":
        problem = f'{reason}; try executor="dense"'
        raise ExecutionError(problem, abbreviate(program), kind="refused")
    mixed = types.computed_mixtures(possible, len(tokens), types.largest_token(tokens))
    value = heads.execute(program, tokens, domain, names, positions=positions, mixed=mixed)
    if sort_of(program) is not Sort.SOP:
        return value
    return types.cast(value, types.result_type(program, types.types_of(tokens)), program)


#: The values of ``executor=``.
EXECUTORS: Mapping[str, Callable[..., Any]] = {
    "dense": _dense,
    "fast": _fast,
    "auto": _auto,
    "heads": _heads,
}


def run(
    program: Node,
    tokens: object,
    *,
    executor: str = "dense",
    domain: str = "float",
    names: Mapping[Node, str] | None = None,
    positions: range | None = None,
    strict: bool = False,
) -> Any:
    """Return the value of a program on an input, or on each sequence of a batch.

    The value of an s-op is a list, or an array or a tensor if the input is one. The value of a selector
    is a boolean array [query, key]; with ``heads``, a tensor of one dimension as input gives a tensor.
    ``positions`` is a range of positions, to which the values of an s-op are restricted. Patterns are
    restricted to these queries only by ``heads``. With ``strict``, the fast executor raises an error
    instead of falling back to dense execution. The lists of a batch may have different lengths. If they
    do, the value of a selector is a list of arrays.

    >>> from locum.graph import build
    >>> run(build("divide", build("indices"), build("length")), "ab")
    [0.0, 0.5]
    >>> run(build("length"), [["a", "b"], ["a"]])
    [[2, 2], [1]]
    """
    evaluate = _choice(EXECUTORS, executor, "executor")
    numbers = _choice(DOMAINS, domain, "domain")
    read = inputs.read(tokens, numbers)
    if positions is not None:
        shortest = min(read.lengths)
        if not 0 <= positions.start < positions.stop <= shortest or positions.step != 1:
            raise InputError(
                f"expected positions within 0 to {shortest - 1}, without gaps, got {positions}"
            )
    results: list[Any] = []
    options: dict[str, Any] = {"strict": strict}
    if evaluate in (_fast, _auto) and read.kinds is not None:
        options["kinds"] = read.kinds
    for sequence in read.sequences:
        asked = range(len(sequence)) if positions is None else positions
        value = evaluate(program, sequence, numbers, names, positions=asked, **options)
        results.append([numbers.result(v) for v in value] if isinstance(value, list) else value)
    if sort_of(program) is not Sort.SELECTOR:
        return read.answer(results)
    if not read.batch:
        return results[0]
    return np.array(results) if read.is_rectangular else results


def run_parts(
    program: Node,
    parts: Sequence[Any],
    length: int,
    *,
    executor: str = "auto",
    domain: str = "float",
    names: Mapping[Node, str] | None = None,
    positions: range | None = None,
    strict: bool = False,
) -> Any:
    """Return the value of an s-op on tokens in several arrays, followed by blanks (0) up to ``length``.

    The parts may have any shape and are read row by row. They are NumPy arrays or torch tensors, not
    both. The result contains the values at ``positions`` and is of the same kind. In a plan of the fast
    executor, most steps read the parts without concatenating them.

    >>> from locum.graph import build
    >>> run_parts(build("tokens", cast="asis"), [np.eye(2), np.ones(1)], 6)
    array([1., 0., 0., 1., 1., 0.])
    """
    asked = range(length) if positions is None else positions
    parts = inputs.arrays(parts, length)
    has_objects = any(part.dtype == object for part in parts)
    if executor in ("fast", "auto") and domain == "float" and not has_objects:
        from locum.execution import fast

        numbers = DOMAINS["float"]
        value = fast.evaluate_parts(
            program, parts, length, numbers, names, positions=asked, strict=strict
        )
        return inputs.Inputs(list(parts), batch=False, array=parts[0]).answer([value])
    options: dict[str, Any] = {"domain": domain, "names": names, "positions": asked, "strict": strict}
    return run(program, inputs.joined(parts, length), executor=executor, **options)


def run_all(
    roots: Mapping[Node, range],
    parts: Sequence[Any],
    length: int,
    *,
    executor: str = "fast",
    names: Mapping[Node, str] | None = None,
) -> list[Any]:
    """Return the values of several s-ops, each at its positions, in IEEE arithmetic on torch tensors.

    The tokens are the entries of ``parts`` in order, followed by blanks (0) up to ``length``. The fast
    executor computes in the types of the parts and of the roundings in the program. The other executors
    compute in float64, and round where the program rounds; their results are float64.
    """
    _choice({"fast": None, "dense": None, "heads": None}, executor, "executor")
    domain = DOMAINS["ieee"]
    if executor == "fast":
        from locum.execution.fast.plan_cache import plan_all

        values = plan_all(roots, length, parts).run_all(parts)
        return [value.reshape(-1) for value in values]
    import torch

    tokens = torch.cat([*(part.reshape(-1).double() for part in parts)])
    tokens = torch.nn.functional.pad(tokens, (0, length - tokens.numel()))
    if executor == "dense":
        lists = dense.evaluate_all(list(roots), tokens.tolist(), domain, names)
        found = zip(lists, roots.values(), strict=True)
        return [
            torch.tensor(list(map(float, values[at.start : at.stop])), dtype=torch.float64)
            for values, at in found
        ]
    from locum.execution import heads

    return [value.double().contiguous() for value in heads.evaluate_all(roots, tokens, names)]


def _choice(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise LocumError(f"expected one of {', '.join(table)} as the {what}, got {name!r}")
    return table[name]


__all__ = ["DOMAINS", "EXECUTORS", "Domain", "run", "run_all", "run_parts"]
