"""Run FLEQ machines: one looped block interprets an instruction set of matrix functions.

An instruction (a, b, c, function, flag, target) sets register c to the function of registers a and b.
The machine then continues at ``target`` if entry (0, 0) of register ``flag`` is at most 0, and at the
next instruction otherwise. This entry must be an integer. Registers contain r × r matrices. The
functions are T(a) = aᵀ, MUL(a, b) = aᵀb and SUB(a, b) = b − a.

This machine is a reconstruction. The published interpreter has 9 layers plus the layers of the largest
function, 13 in total, but its layout is not published. The reconstruction has 8 layers of at most 3
heads. The layers compute all functions and keep the requested result. The first r² positions are the
workspace, with one position for each entry (i, j). The next position is empty. The remaining positions
contain the columns of the registers, with r positions per register, and then the instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from locum.errors import InputError
from locum.networks.looped.block import (
    Floats,
    Head,
    LoopedBlock,
    Slots,
    Units,
    bits_for,
    code,
    decode,
    layer,
    real_matrix,
)
from locum.networks.transformer.weights import LayerWeights
from locum.settings import require_integer, require_number

#: Functions of a and b, in the order of their flags in an instruction.
FUNCTIONS = ("T", "MUL", "SUB")
_ERROR = 1e-16
#: Groups of slots with temporary results, which are cleared at the end of each pass.
_TEMPORARY = (
    "fetched", "A", "B", "entry", "swapped", "row", "product", "transposed", "result", "buffer", "flag",
    "following",
)  # fmt: skip


class Instruction(NamedTuple):
    """One FLEQ instruction: mem[c] = function(mem[a], mem[b]); if mem[flag][0, 0] ≤ 0, go to
    ``target``.
    """

    a: int
    b: int
    c: int
    function: str
    flag: int
    target: int


class FleqMachine(LoopedBlock):
    """A looped block that runs FLEQ programs with given numbers of r × r registers and instructions."""

    def __init__(
        self, order: int, registers: int, instructions: int, *, delta: float = 3e-6, bound: float = 1e3
    ) -> None:
        """Create a machine with ``registers`` registers of ``order`` × ``order`` for ``instructions``
        instructions.

        ``delta`` is the scale δ of the softmax scores in the product aᵀb (see ``Product`` with two
        heads). ``bound`` must exceed the absolute value of all entries of registers and of aᵀb, which
        the machine computes for every instruction.
        """
        order, registers = require_integer(order, "the order"), require_integer(registers, "registers")
        instructions = require_integer(instructions, "instructions")
        bound = require_number(bound, "bound", 0.0, 1e5)
        delta = require_number(delta, "delta", 1e-12, 1e-2 / bound)
        self.order, self.registers, self.instructions = order, registers, instructions
        self.delta, self.bound = delta, bound
        r, R, C, P = order, bits_for(registers), bits_for(order), bits_for(instructions)
        self.workspace = r * r
        positions = r * r + 1 + registers * r + instructions
        W = bits_for(r * r)
        self.bits = {"register": R, "column": C, "program": P, "work": W}
        slots = Slots(
            data=r, instruction=4 * R + P + 3, fetched=4 * R + P + 3,  # a, b, c, flag, target, function
            A=r, B=r, entry=1, swapped=1, row=r, product=r, transposed=r, result=r, buffer=r, flag=1,
            following=P, counter=P, address=P, own=R + C, is_row=r, is_column=r, work=W, mirror=W,
            group=C, start=C, one=1, working=1, empty=1, excluded=1, memory=1,
        )  # fmt: skip
        super().__init__(slots, _layers(self, slots), positions, f"FLEQ of order {r}")

    def state(self, registers: Sequence[Any], program: Sequence[Instruction]) -> Floats:
        """Return the residual stream before the first instruction."""
        self._check(program)
        r, slots, bits = self.order, self.slots, self.bits
        if len(registers) != self.registers:
            raise InputError(f"expected {self.registers} registers, got {len(registers)}")
        stream = np.zeros((self.positions, slots.size))
        stream[:, slots["one"][0]] = 1.0
        stream[r * r + 1 :, slots["excluded"][0]] = 1.0

        def put(place: int, name: str, values: Any) -> None:
            stream[place, list(slots[name])] = values

        for c in range(r * r):
            i, j = divmod(c, r)
            stream[c, slots["is_row"][i]] = 1.0
            put(c, "working", 1.0)
            stream[c, slots["is_column"][j]] = 1.0
            put(c, "excluded", float(i > 0))
            put(c, "work", code(c, bits["work"]))
            put(c, "mirror", code(j * r + i, bits["work"]))
            put(c, "group", code(j, bits["column"]))
            put(c, "start", code(0, bits["column"]))
            put(c, "counter", code(0, bits["program"]))
        put(r * r, "empty", 1.0)
        for number, register in enumerate(registers):
            matrix = real_matrix(register, f"register {number}", (r, r))
            if not np.abs(matrix).max() < self.bound:
                raise InputError(
                    f"expected entries below {self.bound:g} in register {number}, got "
                    f"{np.abs(matrix).max():.3g}; try a larger bound=…"
                )
            for j in range(r):
                place = r * r + 1 + number * r + j
                put(place, "data", matrix[:, j])
                put(place, "memory", 1.0)
                put(
                    place,
                    "own",
                    np.concatenate([code(number, bits["register"]), code(j, bits["column"])]),
                )
        for number, step in enumerate(program):
            place = r * r + 1 + self.registers * r + number
            put(place, "address", code(number, bits["program"]))
            codes = [
                code(register, bits["register"]) for register in (step.a, step.b, step.c, step.flag)
            ]
            kind = [float(step.function == name) for name in FUNCTIONS]
            put(
                place, "instruction", np.concatenate([*codes, code(step.target, bits["program"]), kind])
            )
        return stream

    def execute(
        self, registers: Sequence[Any], program: Sequence[Instruction], passes: int
    ) -> tuple[list[Floats], int]:
        """Return the registers and the index of the next instruction after ``passes`` passes."""
        state = self.read(self.state(registers, program))
        for following in self.passes(registers, program, passes):
            state = following
        return state

    def passes(
        self, registers: Sequence[Any], program: Sequence[Instruction], passes: int
    ) -> Iterator[tuple[list[Floats], int]]:
        """Yield the registers and the index of the next instruction after each pass.

        ``InputError`` is raised before a pass in which an entry of a, b or aᵀb would reach ``bound``.
        In such a pass, the hidden units that select one function would not fully suppress the other
        functions. ``InputError`` is also raised for a flag that is not close to an integer, and if the
        run continues after the last instruction.
        """
        stream = self.state(registers, program)
        held, counter = self.read(stream)
        for _ in range(require_integer(passes, "passes", 0)):
            step = program[counter]
            a, b = held[step.a], held[step.b]
            largest = max(np.abs(matrix).max() for matrix in (a, b, a.T @ b))
            if not largest < self.bound:
                raise InputError(
                    f"expected numbers below {self.bound:g}, got {largest:.3g} in {step.function} of "
                    f"instruction {counter}; try a larger bound=…"
                )
            stream, done = self.run(stream), counter
            held, counter = self.read(stream)
            value = float(held[step.flag][0, 0])
            if abs(value - round(value)) > 0.2:
                raise InputError(
                    f"expected an integer as the flag of instruction {done}, got {value:.3g} in "
                    f"register {step.flag}"
                )
            if round(value) > 0 and done + 1 == len(program):
                raise InputError(
                    f"expected a program of {len(program)} instructions, got a "
                    "run past its last instruction; try a last instruction that jumps to itself"
                )
            yield held, counter

    def read(self, stream: Floats) -> tuple[list[Floats], int]:
        """Return the registers and the index of the next instruction from a residual stream."""
        r = self.order
        start = r * r + 1
        columns = stream[start : start + self.registers * r, list(self.slots["data"])]
        registers = [columns[k * r : (k + 1) * r].T for k in range(self.registers)]
        counter = stream[0, list(self.slots["counter"])]
        return registers, decode(counter)

    def _check(self, program: Sequence[Instruction]) -> None:
        if len(program) != self.instructions:
            raise InputError(f"expected {self.instructions} instructions, got {len(program)}")
        for number, step in enumerate(program):
            if not isinstance(step, Instruction):
                raise InputError(f"expected an Instruction, got {step!r} as instruction {number}")
            if step.function not in FUNCTIONS:
                raise InputError(
                    f"expected {', '.join(FUNCTIONS)}, got {step.function!r} in instruction {number}"
                )
            registers = (step.a, step.b, step.c, step.flag)
            known = all(require_integer(k, "a register", 0) < self.registers for k in registers)
            if not known or require_integer(step.target, "a target", 0) >= len(program):
                raise InputError(
                    f"expected {self.registers} registers and targets below {len(program)}, got "
                    f"{step} as instruction {number}"
                )


def _layers(machine: FleqMachine, slots: Slots) -> list[LayerWeights]:
    """Return the layers of the block, which execute one instruction per pass."""
    r, delta, bound = machine.order, machine.delta, machine.bound
    R, P = machine.bits["register"], machine.bits["program"]
    positions = r * r + 1 + machine.registers * r + machine.instructions
    scale = float(np.log(positions / _ERROR))
    eye = np.eye(slots.size)
    fetched, own, buffer = slots["fetched"], slots["own"], slots["buffer"]
    a, b, c, flag = (fetched[k * R : (k + 1) * R] for k in range(4))
    target = fetched[4 * R : 4 * R + P]
    asked = {name: eye[fetched[4 * R + P + k]] for k, name in enumerate(FUNCTIONS)}
    working, flagged = slots.unit("working"), slots.unit("flag")

    def head(
        query: Sequence[int], key: Sequence[int], source: str, place: Sequence[int], factor: float = 1.0
    ) -> Head:
        return Head(
            scale * eye[:, list(query)], eye[:, list(key)], slots.map(slots[source], place, factor)
        )

    def only_in_workspace(units: Units, group: Sequence[int], most: float) -> None:
        # At other positions, the query is 0 and attention is uniform, so the output of the head is
        # removed.
        for slot in group:
            units.gated(eye[slot], -working, 1.0, slot, most, -1.0)

    # 1. Every position of the workspace reads the instruction.
    read = Units(slots)
    only_in_workspace(read, fetched, 8.0)

    # 2. Position (i, j) reads column j of both operands. SUB is computed here; for T, the position
    # keeps entry (i, j) of a.
    operands = Units(slots)
    only_in_workspace(operands, (*slots["A"], *slots["B"]), bound)
    for i in range(r):
        operands.gated(slots.unit("A", i), slots.unit("is_row", i), 0.0, slots["entry"][0], bound)
        difference = slots.unit("B", i) - slots.unit("A", i)
        operands.gated(difference, asked["SUB"], 0.0, slots["result"][i], 2 * bound)

    # 3. For T, position (i, j) reads the entry of position (j, i). For MUL, the two heads of Product
    # attend to the positions (0, j).
    sink = float(np.log(r / (delta * 1e-12)))

    def product(sign: float) -> Head:
        query, key = np.zeros((slots.size, r + 1)), np.zeros((slots.size, r + 1))
        query[:, :r] = sign * delta * eye[:, list(slots["B"])]
        key[:, :r] = eye[:, list(slots["A"])]
        query[slots["one"][0], r] = 1.0
        key[slots["empty"][0], r], key[slots["excluded"][0], r] = sink, -sink
        factor = sign * np.exp(sink) / (2 * delta)
        return Head(query, key, slots.map(slots["is_column"], slots["product"], factor))

    spread = Units(slots)
    for i in range(r):
        spread.gated(slots.unit("swapped"), slots.unit("is_row", i), 0.0, slots["row"][i], bound)
        spread.gated(slots.unit("product", i), asked["MUL"], 0.0, slots["result"][i], bound)

    # 4. For T, column j of the transpose is r times the mean over the positions (i, j).
    transpose = Units(slots)
    for i in range(r):
        transpose.gated(slots.unit("transposed", i), asked["T"], 0.0, slots["result"][i], bound)
    transpose.add_one_more({"counter": 1.0}, slots["following"], slots["working"][0], 2.0 ** (P + 4))

    # 5. Result: column j of register c attends to the workspace. The key of the workspace is the
    # address of the column, scaled slightly above the key of the column itself.
    keys = eye[:, list(own)].copy()
    keys[[*c, *slots["group"]], range(len(own))] = 1 + 1 / len(own)
    stored = slots.map(slots["data"], buffer) + slots.map(slots["result"], buffer)
    write = Units(slots)
    write.move(buffer, slots["data"], slots.unit("memory"), 0.0, 2 * bound)
    write.clear(buffer)

    # 6. Flag: 1 if the tested entry is at most 1/4, and 0 if it is at least 3/4.
    test = Units(slots)
    for offset, factor in ((0.75, 2.0), (0.25, -2.0)):
        test.add(bound * working - eye[buffer[0]], offset - bound, {"flag": factor})

    # 7. and 8. The counter becomes the address of the next instruction, rounded to ±1, and all
    # temporary slots are cleared.
    branch = Units(slots)
    branch.move(target, slots["counter"], flagged, 0.0, 8.0)
    branch.move(slots["following"], slots["counter"], working - flagged, 0.0, 8.0)
    tidy = Units(slots)
    tidy.round_codes(slots["counter"])
    for name in _TEMPORARY:
        tidy.clear(slots[name])

    return [
        layer(slots, [head(slots["counter"], slots["address"], "instruction", fetched)], read),
        layer(
            slots,
            [
                head((*a, *slots["group"]), own, "data", slots["A"]),
                head((*b, *slots["group"]), own, "data", slots["B"]),
            ],
            operands,
        ),
        layer(
            slots,
            [
                head(slots["mirror"], slots["work"], "entry", slots["swapped"]),
                product(1.0),
                product(-1.0),
            ],
            spread,
        ),
        layer(
            slots,
            [head(slots["group"], slots["group"], "row", slots["transposed"], float(r))],
            transpose,
        ),
        layer(slots, [Head(scale * eye[:, list(own)], keys, stored)], write),
        layer(slots, [head((*flag, *slots["start"]), own, "data", buffer)], test),
        layer(slots, units=branch),
        layer(slots, units=tidy),
    ]
