"""One list of the paper's items: every key in use exists, and everything is reached by an item."""

from __future__ import annotations

import inspect

import pytest

import locum
from locum import constructions, simulators
from locum.interface.cli.main import run
from locum.languages import first_and_parity
from locum.paper import as_printed, figure2, listings
from locum.paper.as_printed import LISTINGS, stated
from locum.paper.errata import ERRATA, SEVERITIES
from locum.paper.findings import Finding, examine, work
from locum.paper.item import ClaimInstance
from locum.paper.items import ITEMS
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.named import FAMILIES

PROOFS = [instance for item in ITEMS.values() for instance in item.proofs]
REFUTABLE = {number: e.refutable for number, e in ERRATA.items() if e.refutable is not None}


def test_keys_are_unique_and_plain() -> None:
    assert all(key == item.key and key.replace("-", "").isalnum() for key, item in ITEMS.items())
    assert len({item.paper for item in ITEMS.values()}) == len(ITEMS)
    assert [erratum.number for erratum in ERRATA.values()] == [f"E{n}" for n in range(1, 42)]


def test_every_erratum_is_reached_and_exists() -> None:
    assert {number for item in ITEMS.values() for number in item.errata} == ERRATA.keys()
    assert {erratum.severity for erratum in ERRATA.values()} == SEVERITIES.keys()
    assert {n for n, erratum in ERRATA.items() if erratum.severity == "A"} <= REFUTABLE.keys()


def test_every_wrong_claim_is_refuted_by_an_erratum() -> None:
    printed = {
        function
        for _, function in inspect.getmembers(as_printed, inspect.isfunction)
        if function.__module__ == as_printed.__name__ and not function.__name__.startswith("_")
    }
    assert printed - {stated} == {refutable.claim for refutable in REFUTABLE.values()}


def test_every_listing_is_reached_and_exists() -> None:
    named = [name for item in ITEMS.values() for name in item.listings]
    assert sorted(named) == listings.names()


def test_every_claim_that_can_be_proven_is_reached_and_exists() -> None:
    assert {instance.name for instance in PROOFS} == {*FAMILIES, *LISTINGS}
    assert len(set(PROOFS)) == len(PROOFS)


@pytest.mark.parametrize("instance", {i.name: i for i in PROOFS}.values(), ids=str)
def test_instances_can_be_stated(instance: ClaimInstance) -> None:
    assert isinstance(stated(instance), Claim)


def test_every_function_exists() -> None:
    homes = (constructions, simulators, first_and_parity, figure2, locum)
    for item in ITEMS.values():
        for function in item.functions:
            name, *attributes = function.split(".")
            home = next(home for home in homes if hasattr(home, name))
            assert all(hasattr(getattr(home, name), attribute) for attribute in attributes)


def test_claimed_heads_belong_to_programs() -> None:
    for item in ITEMS.values():
        assert item.claimed_heads is None or item.programs(), item.key


def test_work_has_every_proof_and_each_refutation_once() -> None:
    everything = work(everything=True)
    assert everything.keys() == ITEMS.keys()
    proofs = [instance for job in everything.values() for instance in job.proofs]
    assert set(proofs) == {*PROOFS, *(refutable.corrected for refutable in REFUTABLE.values())}
    refuted = [number for job in everything.values() for number in job.refutations]
    assert sorted(refuted) == sorted(REFUTABLE)
    quick = [instance for job in work(everything=False).values() for instance in job.proofs]
    assert set(quick) < set(proofs)


def test_quick_proofs_have_every_claim_in_the_recipe_of_the_paper() -> None:
    for item in ITEMS.values():
        quick = set(item.quick_proofs)
        assert {instance.name for instance in quick} == {instance.name for instance in item.proofs}
        for instance in item.proofs:
            if instance.recipe == "paper" and sum(instance.shape) <= 7:
                assert (instance.name, "paper") in {(each.name, each.recipe) for each in quick}


def test_a_wrong_count_or_a_wrong_instance_does_not_hold() -> None:
    good = examine(ITEMS["transpose"])
    assert good.holds
    assert good.status == ["measured", "counted"]
    assert not Finding(good.item, {"paper": [1, 2]}, True).holds
    assert Finding(good.item, good.heads, False).verdict == "does not hold"


@pytest.mark.parametrize(
    "line", sorted({item.command for item in ITEMS.values()} - {"locum paper items"})
)
def test_commands_of_the_items_run(line: str) -> None:
    program, *arguments = line.split()
    assert program == "locum"
    assert run(arguments) == 0
