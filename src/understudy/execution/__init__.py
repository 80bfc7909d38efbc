"""Running a program: executors (how), domains (on what kind of number), inputs (on what)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from understudy.errors import UnderstudyError
from understudy.execution import dense, heads, inputs
from understudy.execution.domains import Domain
from understudy.execution.exact import ExactDomain
from understudy.execution.floats import FloatDomain
from understudy.graph import Node, Sort, sort_of

#: What ``domain=`` may say.
DOMAINS: Mapping[str, Domain] = {domain.name: domain for domain in (FloatDomain(), ExactDomain())}
#: What ``executor=`` may say.
EXECUTORS: Mapping[str, Callable[..., dense.Result]] = {
    "dense": dense.evaluate,
    "heads": heads.execute,
}


def run(
    program: Node,
    given: object,
    *,
    executor: str = "dense",
    domain: str = "float",
    names: Mapping[Node, str] | None = None,
) -> Any:
    """The value of a program on an input, or on each of a batch.

    An s-op gives a list (an array, if the input was one); a selector a boolean array
    [query, key]; a batch one of these for each of its sequences.

    >>> from understudy.graph import build
    >>> run(build("divide", build("indices"), build("length")), "ab")
    [0.0, 0.5]
    """
    evaluate = _choice(EXECUTORS, executor, "executor")
    numbers = _choice(DOMAINS, domain, "domain")
    read = inputs.read(given, numbers)
    results: list[Any] = []
    for sequence in read.sequences:
        value = evaluate(program, sequence, numbers, names)
        results.append([numbers.result(v) for v in value] if isinstance(value, list) else value)
    if sort_of(program) is Sort.SELECTOR:
        return np.array(results) if read.batch else results[0]
    answer = results if read.batch else results[0]
    return np.array(answer) if read.array else answer


def _choice(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise UnderstudyError(f"there is no {what} {name!r}: choose one of {', '.join(table)}")
    return table[name]


__all__ = ["DOMAINS", "EXECUTORS", "Domain", "run"]
