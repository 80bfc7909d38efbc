"""What is known of a program, in one object that every stage takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from locum.compiler.program.codes import Codes
from locum.compiler.program.values import Values
from locum.compiler.scoring.scores import Scores
from locum.compiler.scoring.selectors import Selectors
from locum.compiler.target import Target
from locum.graph import Atom, Node


@dataclass(frozen=True)
class Known:
    """What a program is compiled for, and what is known of it before it is a network."""

    target: Target
    #: Which values each s-op can take.
    values: Values
    #: Which keys each selector selects, and the scores that stand for it.
    selectors: Selectors
    #: The number that stands for each string.
    codes: Codes

    @classmethod
    def of(
        cls, target: Target, root: Node, scores: Mapping[Node, Scores] = MappingProxyType({})
    ) -> Known:
        """Look at a program without families; ``scores`` are of selectors that RASP cannot say."""
        selectors = Selectors(target).knowing({}, scores)
        values = selectors.values
        return cls(target, values, selectors, Codes(values, root))

    def knowing(
        self,
        values: Mapping[Node, Sequence[Atom]] = MappingProxyType({}),
        scores: Mapping[Node, Scores] = MappingProxyType({}),
    ) -> Known:
        """Copy that also knows the values of s-ops and the scores of selectors."""
        selectors = self.selectors.knowing(values, scores)
        return replace(self, values=selectors.values, selectors=selectors)

    def of_program(self, root: Node) -> Known:
        """Copy with codes for all strings of a program that this one was rewritten to."""
        return replace(self, codes=Codes(self.values, root))
