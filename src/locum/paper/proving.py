"""What ``make prove`` consists of, as cases of a sweep: proofs, refutations, certified errors.

The functions are those of the kinds ``proof``, ``refutation`` and ``certificate``
(``sweeps/sweep_kinds.py``), and the lists are what the kinds call "all" and "quick".

>>> refute("E2")["holds"]
True
"""

from __future__ import annotations

from typing import Any

from locum.errors import InputError
from locum.graph import stable_hash
from locum.paper.as_printed import stated
from locum.paper.errata import ERRATA
from locum.paper.findings import Work, work
from locum.paper.item import ClaimInstance
from locum.proofs.prover.prove import Proof, Refutation, prove

Settings = list[dict[str, Any]]

#: Random inputs for the certified error, in so many parts.
INPUTS, PARTS = 500, 10
#: The limit of CPU time of one proof.
SECONDS = 3600.0


def prove_and_check(claim: str, shape: list[int], recipe: str | None) -> dict[str, Any]:
    """Prove a claim at a shape; ``prove`` has the certificate checked before it says so."""
    what = stated(ClaimInstance(claim, tuple(shape), recipe))
    verdict = prove(what, seconds=SECONDS)
    remark, checking = str(verdict), 0.0
    if isinstance(verdict, Proof):
        remark = f"{verdict.cases} case{'' if verdict.cases == 1 else 's'}"
        checking = verdict.checking
    return {
        "title": what.title,
        "holds": isinstance(verdict, Proof),
        "remark": remark,
        "hashes": {"program": stable_hash(what.program)},
        "timings": {"proving": verdict.seconds, "checking": checking},
    }


def refute(erratum: str) -> dict[str, Any]:
    """Refute an erratum, the paper's statement as it is printed, by numbers."""
    refutable = ERRATA[erratum].refutable if erratum in ERRATA else None
    if refutable is None:
        numbers = ", ".join(number for number, entry in ERRATA.items() if entry.refutable)
        raise InputError(f"expected an erratum that can be refuted ({numbers}), got {erratum!r}")
    claim = refutable.claim()
    verdict = prove(claim)
    return {
        "title": f"refuted: {erratum}",
        "holds": isinstance(verdict, Refutation),
        "remark": str(verdict).splitlines()[-1],
        "hashes": {"program": stable_hash(claim.program)},
        "timings": {"proving": verdict.seconds, "checking": 0.0},
    }


def measure(first: int, count: int) -> dict[str, Any]:
    """Compare certified and observed errors of U on random T and X of order (8, 8, 8)."""
    import numpy as np

    from locum.proofs.certified.certify import certify
    from locum.simulators import Attention, UniversalSimulator

    U, certified, observed, holds = UniversalSimulator(8, 8, 8), 0.0, 0.0, True
    for seed in range(first, first + count):
        A, V, X = np.random.default_rng(seed).normal(size=(3, 8, 8))
        result = certify(U, Attention(A, V), X)
        seen = result.seen(U(Attention(A, V), X, executor="dense"))
        certified, observed = max(certified, result.error), max(observed, seen)
        holds = holds and seen <= result.error
    return {"certified": certified, "observed": observed, "holds": bool(holds)}


# Lists of cases, by their settings ---------------------------------------------------------------


def proofs() -> Settings:
    """List every claim at every shape, in the order of the paper's items."""
    return _proofs(work(everything=True))


def quick_proofs() -> Settings:
    """List every claim at a shape or two."""
    return _proofs(work(everything=False))


def _proofs(jobs: dict[str, Work]) -> Settings:
    return [
        {"claim": instance.name, "shape": list(instance.shape), "recipe": instance.recipe}
        for job in jobs.values()
        for instance in job.proofs
    ]


def refutations() -> Settings:
    """List every erratum that is a wrong result."""
    return [{"erratum": number} for job in work(everything=True).values() for number in job.refutations]


def certificates() -> Settings:
    """List the random inputs whose errors are certified, in parts."""
    size = INPUTS // PARTS
    return [{"first": part * size, "count": size} for part in range(PARTS)]
