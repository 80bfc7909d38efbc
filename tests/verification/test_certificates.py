"""Certificates are accepted; changed ones are rejected, whether or not the digest was mended."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from locum.verification import Proof, RejectedError, check, prove
from locum.verification.prover.certificate import digest

CLAIMS = [
    ("matmul", (2, 2, 2)),
    ("softmax", (1, 3)),
    ("relu", (2,)),
    ("groupsort", (3, 3)),
    ("inverse", (2,)),
    ("match2", (2, 3)),
    ("attention", (2, 1, 1)),
    ("encoder", (2, 1, 1, 1, 1)),
]


def certificate(name: str, shape: tuple[int, ...]) -> Any:
    verdict = prove(name, *shape)
    assert isinstance(verdict, Proof)
    return json.loads(json.dumps(verdict.certificate()))


@pytest.mark.parametrize(("name", "shape"), CLAIMS)
def test_certificates_are_accepted(name: str, shape: tuple[int, ...]) -> None:
    content = certificate(name, shape)
    assert check(content).cases == content["cases"]


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all numbers in a certificate, those in strings that are coefficients included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from numbers(part, (*path, place))
    elif type(value) in (int, float) or (isinstance(value, str) and value.lstrip("-").isdigit()):
        yield path


def changed(content: Any, path: tuple[Any, ...]) -> Any:
    result = copy.deepcopy(content)
    *way, last = path
    part = result
    for step in way:
        part = part[step]
    part[last] = str(int(part[last]) + 1) if isinstance(part[last], str) else part[last] + 1
    return result


@pytest.mark.parametrize(("name", "shape"), CLAIMS)
def test_any_changed_number_is_noticed(name: str, shape: tuple[int, ...]) -> None:
    content = certificate(name, shape)
    paths = list(numbers(content))
    assert len(paths) > 10
    for path in paths:
        with pytest.raises(RejectedError):
            check(changed(content, path))


@pytest.mark.parametrize(("name", "shape"), [("softmax", (1, 3)), ("groupsort", (3, 3))])
def test_forgeries_with_a_mended_digest(name: str, shape: tuple[int, ...]) -> None:
    """A forger can at most write down another valid proof of the same statement."""
    content = certificate(name, shape)
    rejected = 0
    for path in numbers(content):
        forged = changed(content, path)
        forged["digest"] = digest(forged)
        try:
            found = check(forged)
        except RejectedError:
            rejected += 1
        else:
            assert found.statement == content["statement"]
            assert path[0] == "polynomials" or path[0] == "functions"
    assert rejected > 20


def test_a_missing_case_is_noticed() -> None:
    content = certificate("relu", (2,))
    content["trees"][0]["cases"]["answers"].pop()
    content["digest"] = digest(content)
    with pytest.raises(RejectedError, match="two answers"):
        check(content)


def test_a_possible_case_cannot_be_called_impossible() -> None:
    content = certificate("relu", (2,))
    content["trees"][0]["cases"]["answers"][0] = {"impossible": [[0, 1]]}
    content["cases"] -= 1
    content["digest"] = digest(content)
    with pytest.raises(RejectedError, match="called impossible"):
        check(content)


def test_a_missing_tree_is_noticed() -> None:
    content = certificate("relu", (2,))
    content["trees"].pop()
    content["digest"] = digest(content)
    with pytest.raises(RejectedError, match="does not show entries"):
        check(content)


@pytest.mark.parametrize("content", [None, [], {}, {"format": "locum certificate 1"}])
def test_no_certificates(content: Any) -> None:
    with pytest.raises(RejectedError):
        check(content)
