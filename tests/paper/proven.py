"""The proofs and refutations of the paper's items at a few shapes, searched for once in a process."""

from __future__ import annotations

from functools import cache

from locum.paper.findings import Finding, Progress, work
from locum.paper.findings import prove_all as search
from locum.paper.item import ClaimInstance
from locum.proofs.prover.prove import Verdict


@cache
def proven() -> tuple[Finding, ...]:
    """Prove and refute everything."""
    return tuple(search())


def verdicts() -> dict[ClaimInstance, Verdict]:
    """Return the verdict on each claim at each shape."""
    jobs = work(everything=False).values()
    return {
        instance: verdict
        for job, finding in zip(jobs, proven(), strict=True)
        for instance, verdict in zip(job.proofs, finding.proofs, strict=True)
    }


def prove_all(everything: bool = False, progress: Progress | None = None) -> list[Finding]:
    """Stand in for ``findings.prove_all``: say the same again."""
    assert not everything
    spoken = [v for finding in proven() for v in (*finding.proofs, *finding.refutations.values())]
    for done, verdict in enumerate(spoken, start=1):
        if progress is not None:
            progress(done, len(spoken), verdict.claim.title)
    return list(proven())
