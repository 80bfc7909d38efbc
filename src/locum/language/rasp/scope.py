"""Names: where they are looked up, and which may not be set."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from locum.budget import Budget
from locum.language.rasp.mistakes import RaspError, cut

#: Longer names, and names beyond this number, are not suggested for a misspelt one.
_LONGEST_HINT, _MOST_HINTS = 30, 500


class Scope:
    """Names of one function call, comprehension or session; unknown ones are the parent's."""

    def __init__(
        self,
        parent: Scope | None = None,
        reserved: frozenset[str] = frozenset(),
        remembers: bool = False,
    ) -> None:
        self.parent = parent
        #: Whether ``out`` holds the last value computed here, as it does at top level.
        self.remembers = remembers
        #: Names that cannot be set here: the parent's, and those given.
        self.reserved = reserved | (parent.passed_on if parent else frozenset())
        #: Names that nested scopes cannot set either (the base names: indices, True, …).
        self.passed_on: frozenset[str] = parent.passed_on if parent else frozenset()
        self.names: dict[str, Any] = {}
        #: Names that were set, the last one last, since whoever asks emptied it.
        self.changed: dict[str, None] = {}

    def get(self, name: str, budget: Budget) -> Any:
        """Return the value of a name, from the nearest scope that has it."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        hint = self._hint(name, budget)
        raise RaspError("undefined-variable", f"Undefined variable: {cut(name)}{hint}")

    def _hint(self, name: str, budget: Budget) -> str:
        """Suggest the name that was probably meant, among those of about its length."""
        known = {
            known
            for scope in self.chain()
            for known in scope.names
            if abs(len(known) - len(name)) <= 2 and len(known) <= _LONGEST_HINT
        }
        if len(known) > _MOST_HINTS:
            return ""
        budget.spend(4 * len(known))
        close = difflib.get_close_matches(name, known, n=1)
        return f" (did you mean {close[0]}?)" if close else ""

    def set(self, name: str, value: Any) -> None:
        """Give a name a value in this scope."""
        self.require_settable(name)
        self.names.pop(name, None)  # names stand in the order of their last definition
        self.names[name] = value
        self.changed.pop(name, None)
        self.changed[name] = None

    def remember(self, value: Any) -> None:
        """Keep a value as ``out``, if this is a scope that does."""
        if self.remembers:
            self.names["out"] = value

    def require_settable(self, name: str) -> None:
        """Refuse the names that belong to the language."""
        if name in self.reserved:
            owner = "the language" if name in self.passed_on else "the language or its library"
            raise RaspError(
                "reserved-name",
                f"Cannot set reserved name: {name} (it belongs to {owner}; try another name, such as "
                f"my_{name})",
            )

    def chain(self) -> Iterator[Scope]:
        """Return this scope and its parents."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent
