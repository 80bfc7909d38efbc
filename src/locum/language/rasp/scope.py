"""Names: where they are looked up, and which may not be set."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from locum.language.rasp.mistakes import RaspError


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

    def get(self, name: str) -> Any:
        """The value of a name, from the nearest scope that has it."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        known = {known for scope in self.chain() for known in scope.names}
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise RaspError("undefined-variable", f"Undefined variable: {name}{hint}")

    def set(self, name: str, value: Any) -> None:
        """Give a name a value in this scope."""
        self.require_settable(name)
        self.names.pop(name, None)  # names stand in the order of their last definition
        self.names[name] = value

    def assign(self, values: Iterable[tuple[str, Any]]) -> None:
        """Give several names values, one after the other, up to one that cannot be set."""
        for name, value in values:
            self.set(name, value)

    def remember(self, value: Any) -> None:
        """Keep a value as ``out``, if this is a scope that does."""
        if self.remembers:
            self.names["out"] = value

    def require_settable(self, name: str) -> None:
        """Refuse the names that belong to the language."""
        if name in self.reserved:
            raise RaspError("reserved-name", f"Cannot set reserved name: {name}")

    def chain(self) -> Iterator[Scope]:
        """This scope and its parents."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent
