"""What an item of the paper consists of; ``items.py`` lists them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from locum.rasp.handles import SOp


class ClaimInstance(NamedTuple):
    """A claim of ``verification.claims.named`` at one shape; ``recipe=None`` is its default recipe."""

    name: str
    shape: tuple[int, ...]
    recipe: str | None = None


@dataclass(frozen=True)
class Item:
    """One item of the paper: what it claims, our functions for it, and how both are checked.

    Other tables refer to an item by ``key``; ``errata`` and ``listings`` are keys of ``errata.ERRATA``
    and of ``listings.names()``.
    """

    key: str
    #: Where the paper has it.
    paper: str
    operation: str
    #: Names of our functions, of ``locum.constructions``, ``locum.simulators`` or this package.
    functions: tuple[str, ...]
    #: The paper's claim in its own words.
    claim: str
    #: Check our construction on one instance, against NumPy or the plain definition.
    check: Callable[[], bool]
    #: Build the programs whose heads are counted, by recipe: the paper's recipe first.
    programs: Callable[[], dict[str, SOp]] = dict
    #: Heads per layer that the paper claims for its recipe; None where it claims no number.
    claimed_heads: tuple[int, ...] | None = None
    #: Instances that are proven for all inputs.
    proofs: tuple[ClaimInstance, ...] = ()
    #: Theorems for all shapes, each as the name of its file in proofs/, a dot, and its own.
    theorems: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    listings: tuple[str, ...] = ()
    #: A command that shows the item at work.
    command: str = "locum paper items"

    @property
    def quick_proofs(self) -> tuple[ClaimInstance, ...]:
        """Choose from ``proofs`` for each claim a few that take seconds: the paper's recipe, and the last."""
        small = [instance for instance in self.proofs if sum(instance.shape) <= 7]
        printed = [instance for instance in small if instance.recipe == "paper"]
        each = {instance.name: instance for instance in (*reversed(self.proofs), *small, *printed)}
        return tuple(dict.fromkeys((*small[-2:], *each.values())))

    @property
    def all_shapes(self) -> list[dict[str, str]]:
        """List the theorems of ``theorems``, each with its file."""
        pairs = (theorem.split(".") for theorem in self.theorems)
        return [{"theorem": name, "file": f"proofs/{file}.v"} for file, name in pairs]

    @property
    def measured(self) -> str:
        """Say what the check on an instance compares: the first line of its documentation."""
        lines = (self.check.__doc__ or "").splitlines()
        return lines[0].removeprefix("Check ").rstrip(".") if lines else ""

    @property
    def row(self) -> str:
        """Write the item as a row of docs/paper.md."""
        functions = ", ".join(f"`{name}`" for name in self.functions)
        listings = ", ".join(f"`{name}`" for name in self.listings)
        cells = (self.paper, functions, listings, ", ".join(self.errata), f"`{self.command}`")
        return f"| {' | '.join(cells)} |"
