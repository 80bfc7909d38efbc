"""Hash the programs of the paper's items and of its claims.

``python -m tests.paper.program_hashes`` writes program_hashes.txt again, after a deliberate change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path

from locum.graph.serialize import stable_hash
from locum.paper.as_printed import stated
from locum.paper.items import ITEMS

FILE = Path(__file__).with_name("program_hashes.txt")


def compute_hashes() -> list[str]:
    """Return a line for each item and form, claim and recipe; one hash covers all shapes."""
    hashes: dict[str, list[str]] = defaultdict(list)
    for item in ITEMS.values():
        if item.key == "lipschitz":  # its constants are values of sin, which differ between machines
            continue
        for form, sop in item.programs().items():
            hashes[f"item {item.key}: {form}"].append(stable_hash(sop.node))
        for instance in item.proofs:
            claim = stated(instance)
            recipe = f" ({claim.recipe})" if claim.recipe else ""
            hashes[f"claim {claim.name}{recipe}"].append(claim.hash)
    return [
        f"{name} × {len(every)}: {hashlib.sha256(' '.join(every).encode()).hexdigest()[:16]}"
        for name, every in hashes.items()
    ]


if __name__ == "__main__":
    FILE.write_text("\n".join(compute_hashes()) + "\n", encoding="utf-8")
