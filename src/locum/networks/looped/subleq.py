"""Run a SUBLEQ machine, a computer with one instruction, in seven looped layers of at most two heads.

The command ``a b c`` subtracts word a from word b. If the result is at most 0, the machine continues at
command c, otherwise at the next command. Words have ``bits`` bits in two's complement and wrap around.
Position 0 is the scratchpad. Memory words and commands follow, one token each. One step of the machine
is therefore an ordinary :class:`CompiledTransformer` with the scratchpad as its sink
(:meth:`SubleqMachine.model`).

The published machine has 9 layers, and the authors' code has 10 blocks. This machine follows the same
plan with fewer layers: read the command, read memory, subtract, write, branch, correct errors.

>>> machine = SubleqMachine(words=5, commands=5)
>>> commands = [(0, 2, 1), (4, 1, 4), (2, 0, 3), (3, 3, 1), (3, 3, 4)]  # word 0 becomes 7 · 9
>>> machine.run([7, 9, 0, 0, 1], commands, steps=40)[-1]
State(memory=(63, 0, -7, 0, 1), counter=4)

:data:`FACTORIAL` is a longer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

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
)
from locum.networks.transformer.compiled import CompiledTransformer
from locum.networks.transformer.weights import LayerWeights, Weights
from locum.settings import Setting, require_integer

Command = tuple[int, int, int]

#: Maximum total attention weight of the wrong positions of a head. After each step, the codes of words
#: and of the counter are rounded to ±1.
_ERROR = 1e-7
MAX_BITS = 16


class State(NamedTuple):
    """The memory words, and the index of the next command."""

    memory: tuple[int, ...]
    counter: int


class Program(NamedTuple):
    """The initial memory words and the commands of a SUBLEQ program."""

    memory: tuple[int, ...]
    commands: tuple[Command, ...]


#: A program for words of 16 bits that computes 7! in word 2, in 251 steps.
FACTORIAL = Program(
    memory=(1, 7, 1, 0, 0, 0),  # one, n, factorial, product, count, zero
    commands=(
        (3, 3, 1),  # Command 0: product = 0.
        (4, 4, 2), (1, 5, 3), (5, 4, 4), (5, 5, 5),  # Command 1: count = n.
        (5, 4, 11),  # Command 5: if count ≤ 0, go to 11.
        (2, 5, 7), (5, 3, 8), (5, 5, 9),  # Command 6: product += factorial.
        (0, 4, 10), (5, 5, 5),  # Command 9: count -= 1, and go to 5.
        (2, 2, 12), (3, 5, 13), (5, 2, 14), (5, 5, 15),  # Command 11: factorial = product.
        (0, 1, 17), (5, 5, 0),  # Command 15: n -= 1, and go to 0 if n > 0.
        (5, 5, 17),  # Command 17: stay here.
    ),
)  # fmt: skip


class SubleqMachine:
    """A looped transformer that runs SUBLEQ programs with given numbers of memory words and
    commands.
    """

    def __init__(self, words: int, commands: int, *, bits: int = 8) -> None:
        words, commands = require_integer(words, "words"), require_integer(commands, "commands")
        if require_integer(bits, "bits", 2) > MAX_BITS:
            raise InputError(f"expected 2 to {MAX_BITS} bits, got {bits}")
        self.words, self.commands, self.bits = words, commands, bits
        self.positions = 1 + words + commands
        self.address = bits_for(self.positions)
        L, N = self.address, bits
        self.slots = Slots(
            command=3 * L, memory=N, fetched=3 * L, minuend=N, subtrahend=N, result=N, flag=1,
            following=L, counter=L, position=L, buffer=max(3 * L, 2 * N), scratch=1,
        )  # fmt: skip
        self.block = LoopedBlock(self.slots, _layers(self), self.positions, f"SUBLEQ, {bits} bits")

    def start(self, memory: Sequence[int], commands: Sequence[Command]) -> Floats:
        """Return the residual stream before the first step."""
        self._check(memory, commands)
        stream = self._places()
        slots = self.slots
        for place, word in enumerate(memory, start=1):
            stream[place, list(slots["memory"])] = code(word, self.bits)
        stream[1 + self.words :, list(slots["command"])] = self._addresses(commands)
        return stream

    def step(self, stream: Floats) -> Floats:
        """Return the residual stream after one pass, which executes one command."""
        return self.block.run(stream)

    def read(self, stream: Floats) -> State:
        """Return the memory words and the index of the next command from a residual stream."""
        memory = stream[1 : 1 + self.words, list(self.slots["memory"])]
        place = decode(stream[0, list(self.slots["counter"])])
        return State(tuple(map(self._word, memory)), place - 1 - self.words)

    def run(self, memory: Sequence[int], commands: Sequence[Command], steps: int) -> list[State]:
        """Return the state after each step, where each pass reads the residual stream of the previous
        pass.
        """
        stream = self.start(memory, commands)
        states: list[State] = []
        for _ in range(require_integer(steps, "steps", 0)):
            if states:
                require_command(states[-1].counter, commands)
            stream = self.step(stream)
            states.append(self.read(stream))
        return states

    def model(self) -> CompiledTransformer:
        """Return one pass as a compiled transformer on tokens: words as numerals, commands as "a b c".

        The first input tokens are words, and the remaining tokens are commands. One pass executes the
        first command. To execute several commands, :meth:`run` loops over the residual stream.

        >>> SubleqMachine(words=2, commands=1, bits=4).model()(["3", "5", "0 1 0"])
        ['3', '2', '0 1 0']
        """
        slots, half = self.slots, 2 ** (self.bits - 1)
        words = range(-half, half)
        commands = [
            (a, b, c)
            for a in range(self.words)
            for b in range(self.words)
            for c in range(self.commands)
        ]
        table = np.zeros((len(words) + len(commands), slots.size))
        table[: len(words), list(slots["memory"])] = [code(word, self.bits) for word in words]
        table[len(words) :, list(slots["command"])] = self._addresses(commands)
        tokens = (*map(str, words), *(" ".join(map(str, command)) for command in commands))
        length, block = self.positions - 1, self.block
        config = replace(
            block.config, vocabulary=tokens, lengths=(length, length), sink=True, outputs=tokens
        )
        zeros = np.zeros(len(tokens))
        weights = Weights(table, self._places(), block.weights.layers, table.T, zeros)
        return CompiledTransformer(config, weights)

    def _places(self) -> Floats:
        """Return the position embeddings: the codes of positions, and the scratchpad.

        The counter in the scratchpad is the address of the first command.
        """
        slots, stream = self.slots, np.zeros((self.positions, self.slots.size))
        stream[0, slots["scratch"][0]] = 1.0
        stream[0, list(slots["counter"])] = code(1 + self.words, self.address)
        for place in range(1, self.positions):
            stream[place, list(slots["position"])] = code(place, self.address)
        return stream

    def _addresses(self, commands: Sequence[Command]) -> Floats:
        """Return the concatenated codes of the three addresses of each command."""
        codes = np.array([code(place, self.address) for place in range(self.positions)])
        places = np.add(commands, [1, 1, 1 + self.words])
        return codes[places].reshape(len(commands), -1)

    def _word(self, bits: Floats) -> int:
        number = decode(bits)
        return number - 2**self.bits if number >= 2 ** (self.bits - 1) else number

    def _check(self, memory: Sequence[int], commands: Sequence[Command]) -> None:
        half = 2 ** (self.bits - 1)
        if len(memory) != self.words or len(commands) != self.commands:
            raise InputError(
                f"expected {self.words} words and {self.commands} commands, got {len(memory)} and "
                f"{len(commands)}"
            )
        for word in memory:
            Setting("an integer", least=-half, most=half - 1).read(word, "a word")
        for number, command in enumerate(commands):
            if len(command) != 3:
                raise InputError(f"expected three addresses in command {number}, got {command!r}")
            a, b, c = (
                require_integer(place, f"an address of command {number}", 0) for place in command
            )
            if not (0 <= a < self.words and 0 <= b < self.words and 0 <= c < self.commands):
                raise InputError(
                    f"expected addresses of {self.words} words and {self.commands} commands, got "
                    f"{a} {b} {c} in command {number}"
                )


def advance(state: State, commands: Sequence[Command], bits: int = 8) -> State:
    """Return the state after one command, executed in plain Python as a reference.

    >>> advance(State((3, 5), 0), [(0, 1, 0)])
    State(memory=(3, 2), counter=1)
    """
    require_command(state.counter, commands)
    a, b, c = commands[state.counter]
    half = 2 ** (bits - 1)
    word = (state.memory[b] - state.memory[a] + half) % (2 * half) - half
    memory = (*state.memory[:b], word, *state.memory[b + 1 :])
    return State(memory, c if word <= 0 else state.counter + 1)


def require_command(counter: int, commands: Sequence[Command]) -> None:
    """Raise ``InputError`` if there is no command with the index ``counter``."""
    if not 0 <= counter < len(commands):
        raise InputError(
            f"expected a program of {len(commands)} commands, got a run "
            "past its last command; try a last command that jumps to itself"
        )


def _layers(machine: SubleqMachine) -> tuple[LayerWeights, ...]:
    """Return the layers of the block, which execute one command per pass."""
    slots, L, N = machine.slots, machine.address, machine.bits
    scale = float(np.log(machine.positions / _ERROR))
    eye, scratch, flag = np.eye(slots.size), slots.unit("scratch"), slots.unit("flag")
    position, buffer, fetched = slots["position"], slots["buffer"], slots["fetched"]
    first, second, target = fetched[:L], fetched[L : 2 * L], fetched[2 * L :]
    bound = 2.0 ** (N + 4)

    def head(query: Sequence[int], source: Sequence[int], place: Sequence[int]) -> Head:
        return Head(scale * eye[:, list(query)], eye[:, list(position)], slots.map(source, place))

    read_command = Units(slots)
    read_command.move(buffer[: 3 * L], fetched, scratch, 0.0, 8.0)
    read_command.clear(buffer)

    read_memory = Units(slots)
    read_memory.move(buffer[:N], slots["subtrahend"], scratch, 0.0, 8.0)
    read_memory.move(buffer[N : 2 * N], slots["minuend"], scratch, 0.0, 8.0)
    read_memory.clear(buffer)

    subtract = Units(slots)
    terms = {"minuend": 1.0, "subtrahend": -1.0}
    subtract.add_one_more(terms, slots["result"], slots["scratch"][0], bound)
    subtract.add_one_more({"counter": 1.0}, slots["following"], slots["scratch"][0], bound)

    # The key of the scratchpad is the address of word b, scaled slightly above the key of the word
    # itself.
    keys = eye[:, list(position)].copy()
    keys[list(second), range(L)] = 1 + 1 / L
    value = slots.map(slots["memory"], buffer[:N]) + slots.map(slots["result"], buffer[:N])
    write = Units(slots)
    write.move(buffer[:N], slots["memory"], -scratch, 1.0, 8.0)
    write.clear(buffer)

    at_most_zero = Units(slots)
    at_most_zero.add(0.5 * slots.unit("result", N - 1) + 0.5 * scratch, 0.0, {"flag": 1.0})
    ones = (1 - N / 2) * scratch  # 1 − the number of ones: positive only for 0
    ones[list(slots["result"])] = -0.5
    at_most_zero.add(ones, 0.0, {"flag": 1.0})

    branch = Units(slots)
    branch.move(target, slots["counter"], flag, 0.0, 8.0)
    branch.move(slots["following"], slots["counter"], scratch - flag, 0.0, 8.0)

    correct = Units(slots)
    correct.round_codes((*slots["memory"], *slots["counter"]))
    for name in ("result", "following", "flag"):
        correct.clear(slots[name])

    return (
        layer(slots, [head(slots["counter"], slots["command"], buffer[: 3 * L])], read_command),
        layer(
            slots,
            [
                head(first, slots["memory"], buffer[:N]),
                head(second, slots["memory"], buffer[N : 2 * N]),
            ],
            read_memory,
        ),
        layer(slots, units=subtract),
        layer(slots, [Head(scale * eye[:, list(position)], keys, value)], write),
        layer(slots, units=at_most_zero),
        layer(slots, units=branch),
        layer(slots, units=correct),
    )
