"""Define the cases of ``make prove``: proofs, refutations and certified errors.

The sweep kinds ``proof``, ``refutation`` and ``certificate`` (``experiments/sweeps/sweep_kinds.py``)
run these functions. The lists of cases are the choices "all" of these kinds, and "quick" of ``proof``.

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

#: Number of random inputs for certified errors, and number of cases into which they are divided.
INPUTS, PARTS = 500, 10
#: Limit of the CPU time of one proof, in seconds.
SECONDS = 3600.0


def prove_and_check(claim: str, shape: list[int], recipe: str | None) -> dict[str, Any]:
    """Prove a claim at a shape and check its certificate; return the outcome and the times."""
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
    """Refute the printed statement that an erratum corrects; return the outcome and the times."""
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
    """Return the largest certified and observed errors of U on random T and X of order (8, 8, 8).

    The result also states whether every observed error is within its bound. The seeds are ``count``
    consecutive integers from ``first``.
    """
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
    """Return the settings of every claim at every shape, in the order of the paper's items."""
    return _proofs(work(everything=True))


def quick_proofs() -> Settings:
    """Return the settings of a few proofs for every item with claims, at small shapes if possible."""
    return _proofs(work(everything=False))


def _proofs(jobs: dict[str, Work]) -> Settings:
    return [
        {"claim": instance.name, "shape": list(instance.shape), "recipe": instance.recipe}
        for job in jobs.values()
        for instance in job.proofs
    ]


def refutations() -> Settings:
    """Return the settings of every erratum that the prover can refute."""
    return [{"erratum": number} for job in work(everything=True).values() for number in job.refutations]


def certificates() -> Settings:
    """Return the settings of the cases into which the inputs for certified errors are divided."""
    size = INPUTS // PARTS
    return [{"first": part * size, "count": size} for part in range(PARTS)]
