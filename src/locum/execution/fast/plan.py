"""A plan: the steps of a program for given shapes, bound to a backend, ready to be run many times."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution.fast import structured
from locum.execution.fast.explaining import explained
from locum.execution.fast.planning import Blueprint
from locum.execution.fast.steps.backends import Backend, Function
from locum.execution.fast.steps.fusion import fused, in_order
from locum.execution.fast.steps.magnitude import greatest_whole
from locum.execution.fast.steps.step import Step, Steps
from locum.graph import Node, abbreviate


class Instruction(NamedTuple):
    """A step as it is run: the registers it reads, the one it writes, those no longer needed then."""

    function: Function
    reads: tuple[int, ...]
    writes: int
    done: tuple[int, ...]


class Plan:
    """Runs a program's steps on arrays of the shapes it was made for.

    >>> from locum import tokens
    >>> plan = (tokens * 2).plan(3)
    >>> plan(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """

    def __init__(
        self,
        blueprint: Blueprint,
        steps: Steps,
        backend: Backend,
        names: Mapping[Node, str],
        strict: bool = False,
    ) -> None:
        self.backend, self.blueprint, self.names, self.strict = backend, blueprint, names, strict
        result = fused(blueprint.result, steps, attention=backend.has_attention)
        self.steps = in_order(result)
        place = {step: n for n, step in enumerate(self.steps)}
        last = {place[i]: n for n, step in enumerate(self.steps) for i in step.inputs}
        self._start = [None if s.value is None else backend.constant(s.value) for s in self.steps]
        self._inputs = [(place.get(step), step.shape) for step in blueprint.inputs]
        self._program = []
        for n, step in enumerate(self.steps):
            if step.value is None and step.op != "input":
                reads = tuple(place[i] for i in step.inputs)
                done = tuple(r for r in dict.fromkeys(reads) if last[r] == n)
                self._program.append(Instruction(self._function(step), reads, n, done))
        self._result = place[result]
        self._copies = _is_seen_elsewhere(result)
        #: What each structured step counted in its last run.
        self._structured: dict[Step, Counter[str]] = {}

    def _function(self, step: Step) -> Function:
        if step.op != "structured":
            return self.backend.function(step)
        node, *below = (n for n in step.settings if isinstance(n, Node))

        def evaluate(tokens: Any, *values: Any) -> Any:
            counts: Counter[str] = Counter()
            known = dict(zip(below, values, strict=True))
            masks = not self.strict
            found = structured.evaluate(node, tokens, known=known, counts=counts, allow_masks=masks)
            self._structured[step] = counts
            return found

        return evaluate

    def __call__(self, *parts: Any) -> Any:
        """The result on tokens that come in these arrays, of the shapes that were planned for."""
        registers = self._start.copy()
        self._read(parts, registers)
        if self.backend.name != "numpy":
            return self._run(registers)
        try:
            # Errors that dense execution would report must not pass as infinities.
            with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
                return self._run(registers)
        except FloatingPointError as error:
            raise self._error(f"floating-point error: {error}", "FloatingPointError") from None

    def _error(self, problem: str, kind: str) -> ExecutionError:
        return ExecutionError(problem, abbreviate(self.blueprint.root, self.names), kind=kind)

    def _run(self, registers: list[Any]) -> Any:
        try:
            for function, reads, writes, done in self._program:
                registers[writes] = function(*[registers[r] for r in reads])
                for r in done:
                    registers[r] = None
        except structured.Unstructured as reason:
            raise self._error(str(reason), "not fast") from None
        result = registers[self._result]
        return self.backend.copied(result) if self._copies else result

    def _read(self, parts: Sequence[Any], registers: list[Any]) -> None:
        if len(parts) != len(self._inputs):
            raise InputError(f"the plan takes {len(self._inputs)} arrays of tokens, not {len(parts)}")
        for part, (register, shape) in zip(parts, self._inputs, strict=True):
            self.backend.check(part, shape)
            if register is not None:
                registers[register] = part

    @property
    def counts(self) -> Mapping[str, int]:
        """How many products, gathers, masks… the plan has (of its structured steps: the last run).

        Fused attention counts as the two products that it is.
        """
        found = Counter(step.op for step in self.steps)
        found["matmul"] += 2 * found["attention"]
        found["softmax"] += found["attention"]
        found["mask"] = sum(_is_mask(step) for step in self.steps)
        return sum(self._structured.values(), found)

    @property
    def opaque(self) -> Mapping[Node, str]:
        """The s-ops that the structured tier runs, and why."""
        return self.blueprint.opaque

    def explain(self) -> str:
        """The plan as readable steps, with the program's names where it has them."""
        return explained(self.steps, self.blueprint, self.names)

    def named(self, names: Mapping[Node, str]) -> Plan:
        """The same plan, which calls nodes by these names when it explains itself."""
        plan = copy.copy(self)
        plan.names = names
        return plan

    def whole_bound(self, largest: float) -> float:
        """No whole number in a run on whole tokens up to ``largest`` exceeds this."""
        return greatest_whole(self.steps, largest)

    def __repr__(self) -> str:
        return f"<plan of {len(self._program)} steps, {self.backend.name}>"


def _is_seen_elsewhere(step: Step) -> bool:
    """Whether a result is memory of the input or of the plan, or repeats itself: then it is copied."""
    while step.op in ("view", "reshape", "permute", "expand"):
        if step.op == "expand":
            return True
        (step,) = step.inputs
    return step.op == "input" or step.value is not None


def _is_mask(step: Step) -> bool:
    return step.op == "apply" and step.settings == ("if_else",) and step.inputs[0].value is not None
