"""Define the class of the paper's items, which ``items.py`` lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from locum.rasp.handles import SOp


class ClaimInstance(NamedTuple):
    """A named claim, or the claim of a listing, at one shape; ``recipe=None`` is the default recipe."""

    name: str
    shape: tuple[int, ...]
    recipe: str | None = None


@dataclass(frozen=True)
class Item:
    """One item of the paper: its claim, Locum's functions for it, and checks of both.

    Other tables refer to an item by ``key``. ``errata`` and ``listings`` contain keys of
    ``errata.ERRATA`` and names of ``listings.names()``.
    """

    key: str
    #: The location in the paper, such as a lemma and a listing.
    paper: str
    operation: str
    #: Names of Locum's functions and classes, in ``locum``, its constructions, simulators and languages,
    #: or this package.
    functions: tuple[str, ...]
    #: The paper's claim.
    claim: str
    #: A function that checks the construction on some inputs.
    check: Callable[[], bool]
    #: A function that returns the programs whose heads are counted, by name. The heads of the first
    #: program are compared with ``claimed_heads``.
    programs: Callable[[], dict[str, SOp]] = dict
    #: Numbers of heads per layer that the paper claims, or None without such a claim.
    claimed_heads: tuple[int, ...] | None = None
    #: Claims at single shapes that are proven for all inputs.
    proofs: tuple[ClaimInstance, ...] = ()
    #: Theorems for all shapes, each written as the file in proofs/, a dot, and the name.
    theorems: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    listings: tuple[str, ...] = ()
    #: A command that demonstrates the item.
    command: str = "locum paper items"

    @property
    def quick_proofs(self) -> tuple[ClaimInstance, ...]:
        """A few proofs, at small shapes if possible.

        The proofs include each claim of the item at least once. The recipe ``paper`` is preferred.
        """
        small = [instance for instance in self.proofs if sum(instance.shape) <= 7]
        printed = [instance for instance in small if instance.recipe == "paper"]
        each = {instance.name: instance for instance in (*reversed(self.proofs), *small, *printed)}
        return tuple(dict.fromkeys((*small[-2:], *each.values())))

    @property
    def all_shapes(self) -> list[dict[str, str]]:
        """The names of the theorems for all shapes, each with its file."""
        pairs = (theorem.split(".") for theorem in self.theorems)
        return [{"theorem": name, "file": f"proofs/{file}.v"} for file, name in pairs]

    @property
    def measured(self) -> str:
        """The comparison that the check on an instance makes, from the first line of its docstring."""
        lines = (self.check.__doc__ or "").splitlines()
        return lines[0].removeprefix("Check ").rstrip(".") if lines else ""

    @property
    def row(self) -> str:
        """The item as a row of the table in docs/paper.md."""
        functions = ", ".join(f"`{name}`" for name in self.functions)
        listings = ", ".join(f"`{name}`" for name in self.listings)
        cells = (self.paper, functions, listings, ", ".join(self.errata), f"`{self.command}`")
        return f"| {' | '.join(cells)} |"
