"""Names of s-ops in labels, and where s-ops are found in a network."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import pytest

import locum
from locum import aggregate, full, indices, select, tokens
from locum.errors import CompileError, GraphError
from locum.graph.labels import names_given

OPTIONS: dict[str, Any] = {"length": 4, "vocabulary": "ab", "attention": "softmax"}


def shift(by: int) -> locum.SOp:
    return aggregate(select(indices, indices - by, "=="), tokens, f"?{by}")


def labels(model: locum.CompiledTransformer, kind: str = "o") -> list[str]:
    return [node.label for node in model.circuit.nodes if node.kind == kind]


def test_names_are_given_by_sop_by_node_and_by_named() -> None:
    """D4: keys that are s-ops were ignored."""
    previous = shift(1)
    for names in ({previous: "prev"}, {previous.node: "prev"}):
        assert labels(locum.compile(previous, **OPTIONS, names=names)) == ["prev"]
    assert labels(locum.compile(previous, **OPTIONS)) != ["prev"]
    assert previous.named("earlier") is previous
    assert labels(locum.compile(previous, **OPTIONS)) == ["earlier"]
    assert labels(locum.compile(previous, **OPTIONS, names={previous: "prev"})) == ["prev"]
    assert labels(locum.compile(previous.named("again"), **OPTIONS)) == ["again"]
    assert "again" in str(locum.compile(previous, **OPTIONS).report())


def test_names_that_say_nothing_are_rejected() -> None:
    one, two = shift(2), shift(3)
    both = locum.where(one == "a", one, two)
    for names in ({"prev": one}, {shift(4): "prev"}, {one: "prev", two: "prev"}, {one: ""}, "prev"):
        with pytest.raises(CompileError, match=r"names: expected .*; try "):
            locum.compile(both, **OPTIONS, names=names)  # type: ignore[arg-type]
    for name in ("", " ", None):
        with pytest.raises(GraphError, match=r"named: expected a string .*; try "):
            one.named(name)  # type: ignore[arg-type]
    one.named("same")
    two.named("same")
    with pytest.raises(CompileError, match=r"got 'same' for .*; try .named"):
        locum.compile(both, **OPTIONS)
    two.named("other")
    assert {"same", "other"} <= set(labels(locum.compile(both, **OPTIONS)))


def test_names_are_kept_as_long_as_their_programs() -> None:
    program = shift(7).named("seventh").node
    assert names_given(program) == {program: "seventh"}
    del program
    gc.collect()
    assert not names_given(shift(7).node)


@pytest.mark.parametrize("longest", [4, 10])
def test_a_sum_that_is_rewritten_is_found_by_its_parts(longest: int) -> None:
    total = locum.sum(full, tokens)
    options = OPTIONS | {"vocabulary": range(10), "length": longest, "names": {total: "total"}}
    model = locum.compile(total + indices, **options)
    found = model.where(total)
    assert found.how == "combined"
    assert {node.kind for node in found} == {"o", "units"}
    assert all(node.label.startswith("part ") for node in found if node.kind == "units")
    for label in labels(model, "units"):
        assert label.endswith(" of total")
    # All parts, changed together, change the sum as in the program.
    clean, other = [1, 2, 3], [4, 0, 9]
    patched = model.patch(clean, other, list(found))
    assert patched == [13 + i for i in range(3)]
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.how) == (found, "combined")


def test_where_says_how_an_sop_is_found() -> None:
    previous = shift(1)
    starts = tokens != previous
    last = locum.best(select(starts, True, "==") & select(indices, indices, "<="), indices)
    begin = aggregate(last, indices)
    run = indices - begin
    model = locum.compile(aggregate(locum.best(full, run), run), **OPTIONS)
    assert [model.where(each).how for each in (previous, begin, last)] == ["computed"] * 3
    assert model.where(run).how == "combined"
    assert {node.id for node in model.where(run)} >= {node.id for node in model.where(begin)}
    assert (model.where(starts).how, len(model.where(starts))) == ("merged", 1)
    assert model.where(starts)[0].id == model.where(last)[0].id
