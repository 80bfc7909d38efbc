"""Every claim of the paper, and what has become of it: proven, refuted, measured or counted.

The rows are those of ``locum catalogue``. *Proven*: for all inputs, at the shapes named.
*Refuted*: by numbers, with the corrected claim proven. *Measured*: compared with direct computation
on numbers, which is no proof. *Counted*: heads and layers, by ``analysis.architecture``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from locum.paper.as_printed import ERRATA
from locum.paper.checks_of_u import ITEMS as ABOUT_U
from locum.paper.items import ITEMS, Finding, findings
from locum.verification.claims.named import claim
from locum.verification.prover.prove import Verdict, prove

#: Name, shape, recipe (None: the default).
Named: TypeAlias = "tuple[str, tuple[int, ...], str | None]"


def _each(name: str, shapes: Iterable[tuple[int, ...]], *recipes: str) -> list[Named]:
    return [(name, shape, recipe) for shape in shapes for recipe in recipes or (None,)]


def _upto(*sizes: int) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(1, size + 1) for size in sizes)))


_ORDERS = [(2, 2, 2), (3, 2, 2), (2, 3, 3), (3, 3, 3)]

#: What is proven under each item of the paper: all of it by ``make prove``.
PROVEN: dict[str, list[Named]] = {
    "Lemma transposition, Algorithm 1, Listing 1": _each("transpose", _upto(5, 5), "paper", "view"),
    "Lemma softmax, Algorithm 2, Listing 2": _each("softmax", _upto(4, 4), "plain", "stable"),
    "Lemma matmul, Algorithm 3, Listing 3": _each("matmul", _upto(4, 4, 4), "paper", "fetch", "tiled", "scatter"),
    "Listing 4; remark on activations": _each("relu", _upto(8), "feed-forward", "maxmin"),
    "Lemma MaxMin, Algorithm 4, Listing 5": [
        *_each("maxmin", [(n,) for n in (2, 4, 6, 8)], "partner", "paper"),
        *_each("groupsort", [(n, g) for g in (2, 3, 4) for n in range(g, 9, g)]),
    ],
    "Lemma multi-head, snippets": [
        *_each("identify", [(5, i, k) for i in range(1, 6) for k in range(1, 7 - i)]),
        *_each("shift", [(5, t) for t in range(1, 6)]),
    ],
    "Lemma multi-head": [
        *_each("multihead_transpose", [(h, r, k) for h in (1, 2, 3) for r, k in ((2, 2), (2, 3))]),
        *_each("multihead_matmul", [(h, 2, 2, 2) for h in (1, 2, 3)]),
    ],
    "Lemma inversion, Listing 7": _each("cofactor", [(2,), (3,), (4,)]),
    "Lemma inversion, Algorithm 5, Listing 8": _each("determinant", [(2,), (3,), (4,)], "frugal", "paper"),
    "Lemma inversion": [
        *_each("inverse", [(2,), (3,), (4,)], "cofactor"),
        ("inverse", (3,), "paper"),
    ],
    "Introduction, Listing 6": _each("match2", [(2, 3), (2, 5), (3, 5)]),
    "Theorem 1": _each("attention", _ORDERS, "fetch", "paper", "tiled", "width-1"),
    "Corollary encoder": _each("encoder", [(2, 2, 2, 2, 2)]),
    "Remark Linformer and linear attention": [
        ("linformer", (2, 2, 2), None),
        ("linear", (2, 2, 2), None),
    ],
    "Corollary hierarchy": _each("hierarchy", [(1, 1, 1, 2, 1, 1), (2, 2, 2, 3, 3, 3)]),
    "Theorem H heads": _each("multihead_attention", [(2, 2, 2, 2)]),
    "Appendix, equation inv": _each("attention", [(2, 2, 2), (3, 3, 3)], "inverse"),
}  # fmt: skip

#: One or two of each, for those who do not want to wait.
QUICK: dict[str, list[Named]] = {
    paper: ([n for n in named if sum(n[1]) <= 7][-2:] or named[:1]) for paper, named in PROVEN.items()
}

#: The errata of severity A under each item.
REFUTED = {
    "Lemma softmax, Algorithm 2, Listing 2": ("E1", "E7"),
    "Lemma MaxMin, Algorithm 4, Listing 5": ("E2",),
    "Introduction, Listing 6": ("E3",),
    "Lemma matmul, Algorithm 3, Listing 3": ("E6",),
    "Lemma multi-head, snippets": ("E11",),
    "Corollary hierarchy": ("E15", "E16"),
}


@dataclass
class Row:
    """An item of the paper, and what is known of it."""

    finding: Finding
    proofs: list[Verdict] = field(default_factory=list)
    refutations: dict[str, Verdict] = field(default_factory=dict)

    @property
    def status(self) -> list[str]:
        """Proven, refuted, measured, counted: all that apply."""
        found = []
        if self.proofs:
            found.append("proven" if all(proof.holds for proof in self.proofs) else "not proven")
        if self.refutations:
            wrong = all(verdict.holds is False for verdict in self.refutations.values())
            found.append("refuted as printed" if wrong else "not refuted")
        if not self.proofs:
            found.append("measured")
        if self.finding.item.claimed is not None:
            found.append("counted")
        return found

    @property
    def holds(self) -> bool:
        """Whether everything is as the errata and the catalogue say."""
        return (
            self.finding.holds
            and all(proof.holds for proof in self.proofs)
            and all(verdict.holds is False for verdict in self.refutations.values())
        )

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "paper": self.finding.item.paper,
            "claim": self.finding.item.claim,
            "status": self.status,
            "proven": [v.to_dict() for v in self.proofs],
            "refuted": {number: v.to_dict() for number, v in self.refutations.items()},
            "counted_heads": self.finding.counted,
            "holds": self.holds,
        }


def rows(
    everything: bool = False, progress: Callable[[int, int, str], None] | None = None
) -> list[Row]:
    """All items, proven and refuted anew: at representative shapes, or at all."""
    chosen = PROVEN if everything else QUICK
    total = sum(map(len, chosen.values())) + len(ERRATA)
    done = 0

    def tell(title: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total, title)

    result = []
    for finding in findings([*ITEMS, *ABOUT_U]):
        row = Row(finding)
        for name, shape, recipe in chosen.get(finding.item.paper, []):
            stated = claim(name, *shape, recipe=recipe)
            row.proofs.append(prove(stated))
            tell(stated.title)
        for number in REFUTED.get(finding.item.paper, ()):
            row.refutations[number] = prove(ERRATA[number].claim())
            name, shape = ERRATA[number].corrected
            row.proofs.append(prove(name, *shape))
            tell(number)
        result.append(row)
    return result
