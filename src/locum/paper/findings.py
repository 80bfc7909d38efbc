"""What is known of each item: heads counted, an instance checked, claims proven or refuted.

*Proven*: for all inputs, at the shapes named; theorems for all shapes are in proofs/ (``make coq``). *Refuted*: by numbers, with the corrected claim proven.
*Measured*: compared with direct computation on numbers, which is not a proof. *Counted*: the heads and
layers are those that the paper claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from locum.paper.as_printed import stated
from locum.paper.errata import ERRATA, Refutable
from locum.paper.item import ClaimInstance, Item
from locum.paper.items import ITEMS
from locum.proofs.claims.claim import Claim
from locum.proofs.prover.prove import Verdict, prove

#: Told of every claim that is done: how many are done, of how many, and which.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Finding:
    """What came of an item; ``proofs`` and ``refutations`` are empty unless it was proven, too."""

    item: Item
    #: Heads per layer, by recipe.
    heads: dict[str, list[int]]
    #: Whether the instance agrees with direct computation.
    checked: bool
    proofs: tuple[Verdict, ...] = ()
    #: Number of an erratum → what came of the claim as printed.
    refutations: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Tell whether the paper claims a number of heads and its recipe has that number."""
        claimed = self.item.claimed_heads
        return claimed is not None and list(claimed) == next(iter(self.heads.values()))

    @property
    def holds(self) -> bool:
        """Tell whether everything is as the item and its errata say."""
        return (
            self.checked
            and (self.item.claimed_heads is None or self.counted)
            and all(proof.holds for proof in self.proofs)
            and all(verdict.holds is False for verdict in self.refutations.values())
        )

    @property
    def verdict(self) -> str:
        """Say in a few words whether the paper is right."""
        if not self.holds:
            return "does not hold"
        return "right as corrected" if self.item.errata else "right"

    @property
    def status(self) -> list[str]:
        """List what was done with the item: proven, refuted, measured, counted."""
        status = []
        if self.proofs:
            status.append("proven" if all(proof.holds for proof in self.proofs) else "not proven")
        if self.refutations:
            wrong = all(verdict.holds is False for verdict in self.refutations.values())
            status.append("refuted as printed" if wrong else "not refuted")
        if not self.proofs:
            status.append("measured")
        if self.counted:
            status.append("counted")
        return status

    def to_dict(self) -> dict[str, Any]:
        """Give what was counted and checked as plain data, for scripts."""
        item = self.item
        claimed = None if item.claimed_heads is None else list(item.claimed_heads)
        return {
            "key": item.key,
            "paper": item.paper,
            "operation": item.operation,
            "functions": list(item.functions),
            "listings": list(item.listings),
            "errata": list(item.errata),
            "claim": item.claim,
            "claimed_heads": claimed,
            "counted_heads": self.heads,
            "all_shapes": item.all_shapes,
            "holds": self.holds,
            "verdict": self.verdict,
        }

    def claim_dict(self) -> dict[str, Any]:
        """Give what was proven and refuted, too."""
        return self.to_dict() | {
            "status": self.status,
            "proven": [proof.to_dict() for proof in self.proofs],
            "refuted": {number: verdict.to_dict() for number, verdict in self.refutations.items()},
        }


def examine(item: Item) -> Finding:
    """Count the heads of an item's programs and check its instance."""
    heads = {recipe: program.architecture.heads for recipe, program in item.programs().items()}
    return Finding(item, heads, item.check())


def examine_all(progress: Progress | None = None) -> list[Finding]:
    """Count and check every item."""
    findings = []
    for done, item in enumerate(ITEMS.values()):
        if progress is not None:
            progress(done, len(ITEMS), item.operation)
        findings.append(examine(item))
    return findings


@dataclass(frozen=True)
class Work:
    """The claims of one item that are to be proven, and the errata whose printed form is to be refuted."""

    proofs: tuple[ClaimInstance, ...]
    refutations: Mapping[str, Refutable]


def work(everything: bool) -> dict[str, Work]:
    """List the work for every item: at a few shapes, or (``everything``) at all of them.

    An erratum that several items name is refuted under the first of them; its corrected claim is proven
    there, too. What is among the item's own claims already is listed once.
    """
    remaining = {number: e.refutable for number, e in ERRATA.items() if e.refutable is not None}
    jobs = {}
    for key, item in ITEMS.items():
        refutations = {n: remaining.pop(n) for n in item.errata if n in remaining}
        proofs = item.proofs if everything else item.quick_proofs
        corrected = (refutable.corrected for refutable in refutations.values())
        jobs[key] = Work(tuple(dict.fromkeys((*proofs, *corrected))), refutations)
    return jobs


def prove_all(
    everything: bool = False,
    progress: Progress | None = None,
    keys: Collection[str] | None = None,
) -> list[Finding]:
    """Count, check, prove and refute every item: at a few shapes, or (``everything``) at all of them.

    ``keys``: only the items of these keys.
    """
    jobs = {key: job for key, job in work(everything).items() if keys is None or key in keys}
    total = sum(len(job.proofs) + len(job.refutations) for job in jobs.values())
    done = 0

    def verdict(claim: Claim) -> Verdict:
        nonlocal done
        result = prove(claim)
        done += 1
        if progress is not None:
            progress(done, total, claim.title)
        return result

    findings = []
    for key, job in jobs.items():
        proofs = tuple(verdict(stated(instance)) for instance in job.proofs)
        refutations = {n: verdict(refutable.claim()) for n, refutable in job.refutations.items()}
        findings.append(replace(examine(ITEMS[key]), proofs=proofs, refutations=refutations))
    return findings
