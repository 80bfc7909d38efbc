"""Represent C-RASP programs as machines that make one step for each symbol.

The state of a machine contains the counts. The same code computes with numbers, in order to run words,
and with the terms of a solver (``solver.py``). A mapping of type :data:`Meanings` defines the
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

from locum.errors import InputError
from locum.graph import Node
from locum.graph.operations import COMPARISONS
from locum.languages.automata import Letter
from locum.languages.counting import (
    as_count,
    counts_ahead,
    is_remainder,
    is_symbol,
    parts_of,
    require,
)
from locum.languages.recogniser import END, MARKER, Recogniser

#: Maps operations to functions.
Meanings = Mapping[str, Callable[..., Any]]
#: A function from a state and a symbol to the next state, and to whether the program accepts there.
Step = Callable[[Sequence[Any], Letter], tuple[tuple[Any, ...], Any]]

PLAIN: Meanings = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a: -a,
    "minimum": min,
    "maximum": max,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "if_else": lambda condition, a, b: a if condition else b,
    **{row.operation: row.holds for row in COMPARISONS.values()},
}


@dataclass(frozen=True)
class Register:
    """One integer in the state of a machine."""

    #: "count", "memory" (the value of a condition ``index`` steps ago) or "remainder".
    kind: str
    node: Node
    #: For a memory, the number of steps ago; for a remainder, the period.
    index: int


class CounterMachine:
    """The machine of a C-RASP program; its state is a tuple with one entry for each register."""

    def __init__(self, program: Recogniser) -> None:
        root = program.sop.node
        require(root)
        if counts_ahead(root):
            raise InputError("expected counts of earlier positions, got a count of later positions")
        self.program = program
        self.alphabet = program.alphabet
        order = parts_of(root)
        registers: dict[Register, None] = {}
        for node in order:
            counted = as_count(node)
            if counted is not None and counted.distance is None:
                registers[Register("count", node, 0)] = None
            elif counted is not None:
                for ago in range(1, (counted.distance or 0) + 1):
                    registers[Register("memory", counted.condition, ago)] = None
            elif is_remainder(node):
                registers[Register("remainder", node, _number(node.inputs[1]))] = None
        self.registers: tuple[Any, ...] = tuple(registers)
        places = {register: i for i, register in enumerate(self.registers)}
        number = {node: i for i, node in enumerate(order)}
        #: The steps for each symbol, in order: operation, parameters, operands.
        self._steps = [_instruction(node, number, places) for node in order]
        #: For each memory, its condition and the memory of the same condition with an ``index`` smaller
        #: by 1, or None if the ``index`` is 1.
        self._memories = {
            place: (number[r.node], places.get(Register("memory", r.node, r.index - 1)))
            for r, place in places.items()
            if r.kind == "memory"
        }
        #: The meanings of the last step, and the program compiled with them.
        self._latest: tuple[Meanings, Step] | None = None

    @property
    def start(self) -> tuple[int, ...]:
        """The state before the first symbol."""
        return tuple(
            _offset(register.node) % register.index if register.kind == "remainder" else 0
            for register in self.registers
        )

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Read a symbol, and return the next state and whether the program accepts at this symbol."""
        latest = self._latest
        if latest is None or latest[0] is not meanings:
            named = {f"do_{name}": function for name, function in meanings.items()}
            named |= {f"known_{at}": detail for at, (_, detail, _) in enumerate(self._steps)}
            exec(self._code, named)
            latest = self._latest = meanings, named["step"]
        return latest[1](state, letter)

    @cached_property
    def _code(self) -> CodeType:
        """The program as compiled Python code, which runs faster than an interpreter of the program.

        The code refers to symbols and constants by variables, because users provide them.
        """
        lines = ["def step(state, letter):"]
        following = [f"state[{place}]" for place in range(len(self.registers))]
        for at, (kind, detail, parts) in enumerate(self._steps):
            operands = ", ".join(f"v{part}" for part in parts)
            match kind:
                case "symbol":
                    value = f"letter == known_{at}"
                case "constant":
                    value = f"known_{at}"
                case "count":
                    value = f"state[{detail}] + do_if_else({operands}, 1, 0)"
                    following[detail] = f"v{at}"
                case "here":
                    value = f"do_if_else({operands}, 1, 0)"
                case "memory":
                    value = f"state[{detail}]"
                case "remainder":
                    place, period = detail
                    value = f"state[{place}]"
                    following[place] = f"do_if_else(do_equal(v{at}, {period - 1}), 0, v{at} + 1)"
                case _:
                    value = f"do_{kind}({operands})"
            lines.append(f"    v{at} = {value}")
        for place, (condition, before) in self._memories.items():
            remembered = f"do_if_else(v{condition}, 1, 0)" if before is None else f"state[{before}]"
            following[place] = remembered
        state = "".join(f"{value}, " for value in following)
        lines.append(f"    return ({state}), v{len(self._steps) - 1}")
        return compile("\n".join(lines), "<a C-RASP program>", "exec")

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Return the answer for the word that led to ``state``; ``accepted`` is the answer at its last
        symbol.
        """
        if self.program.accept == END:
            return self.step(state, MARKER, meanings)[1]
        return accepted


def _instruction(
    node: Node, number: Mapping[Node, int], places: Mapping[Register, int]
) -> tuple[str, Any, tuple[int, ...]]:
    counted = as_count(node)
    if is_symbol(node):
        return "symbol", node.inputs[1].attributes["value"], ()
    if node.op == "constant":
        return "constant", node.attributes["value"], ()
    if counted is not None:
        condition = (number[counted.condition],)
        if counted.distance is None:
            return "count", places[Register("count", node, 0)], condition
        if counted.distance == 0:
            return "here", None, condition
        return "memory", places[Register("memory", counted.condition, counted.distance)], condition
    if is_remainder(node):
        period = _number(node.inputs[1])
        return "remainder", (places[Register("remainder", node, period)], period), ()
    return node.op, None, tuple(number[part] for part in node.inputs)


def _number(node: Node) -> int:
    value = node.attributes["value"]
    assert isinstance(value, int)
    return value


def _offset(node: Node) -> int:
    """Return the index of the first position in the periodic predicate ``node``."""
    position = node.inputs[0]
    return 0 if position.op == "indices" else _number(position.inputs[1])
