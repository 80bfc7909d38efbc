"""Find the floating-point type of each step of a plan whose arrays have different types.

Steps follow torch's rules of type promotion, so the types are known before the plan is run.
"""

from __future__ import annotations

import functools

from locum.execution.fast.steps.step import Step
from locum.graph.operations import ROUNDINGS

#: Steps that have the type of their first input.
_MOVING = (
    *("view", "reshape", "permute", "expand", "gather", "fetch", "take_rows"),
    *("sum", "maximum", "minimum"),
    *("softmax", "attention", "biased_product", "gelu", "silu", "layer_norm"),
)


class StepTypes:
    """The types of steps; a step is asked for after its inputs."""

    def __init__(self) -> None:
        self._known: dict[Step, str] = {}

    def of(self, step: Step) -> str:
        """Return the name of the type, such as "float32"; "" where no rule gives one."""
        if step not in self._known:
            self._known[step] = self._find(step)
        return self._known[step]

    def _find(self, step: Step) -> str:
        if step.boolean:
            return "bool"
        if step.op == "input":
            return str(step.settings[1])
        if step.value is not None:
            return step.value.dtype.name
        if step.op == "to_float":
            return "float64"
        if step.op in ("argmax", "positions"):
            return "int64"
        if step.op == "scatter":
            return self.of(step.inputs[1])
        if step.op in _MOVING:
            return self.of(step.inputs[0])
        if step.op == "apply":
            op = str(step.settings[0])
            if op in ROUNDINGS:
                return op
            return self._promoted(step.inputs[1:] if op == "if_else" else step.inputs)
        if step.op in ("matmul", "concatenate", "assemble", "join"):
            return self._promoted(step.inputs)
        return ""

    def _promoted(self, steps: tuple[Step, ...]) -> str:
        names = [self.of(step) for step in steps]
        if "" in names:
            return ""
        kinds = ((name, not step.shape) for step, name in zip(steps, names, strict=True))
        return functools.reduce(promote, kinds)[0]


#: The name of a type, and whether it is the type of a single number.
Kind = tuple[str, bool]


@functools.cache
def promote(one: Kind, other: Kind) -> Kind:
    """Return the type that torch promotes two to.

    >>> promote(("float32", False), ("float64", True))
    ('float32', False)
    """
    import torch

    first, second = (
        torch.empty(() if single else (1,), dtype=getattr(torch, name), device="meta")
        for name, single in (one, other)
    )
    dtype = torch.result_type(first, second)
    return str(dtype).removeprefix("torch."), one[1] and other[1]
