"""Hash the programs of the paper's lemmas, and of the claims of its statements.

``python -m tests.old.paper.program_hashes`` writes program_hashes.txt again, after a deliberate change.
"""

from __future__ import annotations

from pathlib import Path

from locum.graph.serialize import stable_hash
from locum.paper.proven_claims import state_claim
from locum.paper.statements import STATEMENTS
from tests.constructions.catalogue import programs

FILE = Path(__file__).with_name("program_hashes.txt")


def compute_hashes() -> list[str]:
    """Return a line for each program of a lemma, and for each claim."""
    hashes = {
        f"{key}: {recipe}": stable_hash(sop.node)
        for (key, recipe), sop in programs().items()
        if key != "lipschitz"  # its constants are values of sin, which differ between machines
    }
    for statement in STATEMENTS.values():
        for instance in statement.claims:
            claim = state_claim(instance)
            hashes[f"claim {claim.title}"] = stable_hash(claim.program)
    return [f"{name}: {digest[:16]}" for name, digest in hashes.items()]


if __name__ == "__main__":
    FILE.write_text("\n".join(compute_hashes()) + "\n", encoding="utf-8")
