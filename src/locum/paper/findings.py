"""Collect the findings on each item: heads counted, an instance checked, claims proven or refuted.

- *Proven*: the claim holds for all inputs at the named shapes. Theorems for all shapes are in proofs/
  (``make coq``).
- *Refuted*: a counterexample shows that the claim as printed is wrong, and the corrected claim is
  proven.
- *Measured*: the result is compared with a direct computation on numbers. This is not a proof.
- *Counted*: the numbers of heads and layers are equal to the numbers that the paper claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from locum.paper.as_printed import stated
from locum.paper.item import ClaimInstance, Item
from locum.paper.items import ITEMS
from locum.proofs.claims.claim import Claim
from locum.proofs.prover.prove import Verdict, prove

#: A function that is called with the number of finished claims or items, the number of all claims or
#: items, and a name.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Finding:
    """The findings on an item; proofs and refutations are empty unless they were requested."""

    item: Item
    #: Counted heads per layer, by the name of the program.
    heads: dict[str, list[int]]
    #: Whether the check on an instance succeeded.
    checked: bool
    proofs: tuple[Verdict, ...] = ()
    #: The verdicts on claims as printed, by erratum.
    refutations: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Whether the paper claims numbers of heads, and the first program has these numbers."""
        claimed = self.item.claimed_heads
        return claimed is not None and list(claimed) == next(iter(self.heads.values()))

    @property
    def holds(self) -> bool:
        """Whether all findings agree with the item and its errata."""
        return (
            self.checked
            and (self.item.claimed_heads is None or self.counted)
            and all(proof.holds for proof in self.proofs)
            and all(verdict.holds is False for verdict in self.refutations.values())
        )

    @property
    def verdict(self) -> str:
        """A short verdict on the paper's claim."""
        if not self.holds:
            return "does not hold"
        return "right as corrected" if self.item.errata else "right"

    @property
    def status(self) -> list[str]:
        """The kinds of evidence for the item with their outcomes, such as "proven" and "counted"."""
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
        """Return the counts and the result of the check as a JSON-compatible dictionary."""
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
        """Return :meth:`to_dict` with the proofs and refutations, as a JSON-compatible dictionary."""
        return self.to_dict() | {
            "status": self.status,
            "proven": [proof.to_dict() for proof in self.proofs],
            "refuted": {number: verdict.to_dict() for number, verdict in self.refutations.items()},
        }


def examine(item: Item) -> Finding:
    """Count the heads of an item's programs, and run its check."""
    heads = {recipe: program.architecture.heads for recipe, program in item.programs().items()}
    return Finding(item, heads, item.check())


def examine_all(progress: Progress | None = None) -> list[Finding]:
    """Count the heads of every item, and run its check."""
    findings = []
    for done, item in enumerate(ITEMS.values()):
        if progress is not None:
            progress(done, len(ITEMS), item.operation)
        findings.append(examine(item))
    return findings


@dataclass(frozen=True)
class Work:
    """The claims of an item to prove, and claims to be refuted."""

    proofs: tuple[ClaimInstance, ...]
    refutations: Mapping[str, Claim]


def work(everything: bool) -> dict[str, Work]:
    """Return the claims of every item, at a few shapes or, with ``everything``, at all its shapes."""
    return {
        key: Work(item.proofs if everything else item.quick_proofs, {}) for key, item in ITEMS.items()
    }


def prove_all(
    everything: bool = False,
    progress: Progress | None = None,
    keys: Collection[str] | None = None,
) -> list[Finding]:
    """Count the heads of every item, run its check, and prove or refute its claims.

    Claims are proven at a few shapes or, with ``everything``, at all shapes of the item. If ``keys`` is
    given, only the items with these keys are included.
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
        refutations = {n: verdict(printed) for n, printed in job.refutations.items()}
        findings.append(replace(examine(ITEMS[key]), proofs=proofs, refutations=refutations))
    return findings
