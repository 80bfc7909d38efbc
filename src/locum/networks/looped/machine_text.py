r"""Read SUBLEQ and FLEQ programs from text, and run them on looped transformers.

A line contains at most one statement, after any number of labels ``label:``; ``//`` begins a comment.

SUBLEQ statements are ``name = 7`` (a memory word), ``memory 7 9 0`` (words without names), ``bits 8``
and ``show name …``. The command ``a b target`` computes b −= a, then continues at the target if b ≤ 0.
The default target is the next command. Abbreviations are ``clear a …``, ``add a b``,
``copy a b``, ``jump target`` and ``halt``.

FLEQ statements are ``A = 1 2; 3 4`` (a register), ``order 2``, ``bound 1000``, ``show A …``, ``jump
target`` and ``halt``. The instructions are ``C = T A`` (Aᵀ), ``C = MUL A B`` (AᵀB) and ``C = SUB A B``
(B − A). A register given as one number is that multiple of the identity matrix. Each instruction may be
followed by ``if F <= 0 goto target``.

>>> program = read_subleq("a = 19\nb = 23\nadd a b\nhalt\nshow b")
>>> run = program.run()
>>> run.values, run.halted, run.error
({'b': 42}, True, 0.0)
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from locum.errors import InputError
from locum.networks.looped.block import Floats
from locum.networks.looped.fleq import FUNCTIONS, FleqMachine, Instruction
from locum.networks.looped.subleq import (
    MAX_BITS,
    Command,
    State,
    SubleqMachine,
    advance,
    require_command,
)
from locum.networks.transformer.transformer_architecture import TransformerArchitecture

#: Maximum number of characters of a text, and maximum number of names, of commands, and of operands of
#: one statement.
MAX_TEXT, MAX_SIZE = 100_000, 1_000
#: Default maximum number of steps of a run.
STEPS = 1_000
#: Name of the word or register that contains 0 for abbreviations. If necessary, the reader adds it.
ZERO = "zero"
#: Largest accepted difference between FLEQ results and plain arithmetic, relative to the largest entry
#: of the register, or to 1 if all entries are smaller. FLEQ products are approximate.
TOLERANCE = 1e-3

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)"
    r"|(?P<mark><=|[:=;])|(?P<space>[ \t\r]+)|(?P<comment>//.*)|(?P<other>.)"
)


class MachineTextError(InputError):
    """Raised for an error in a program text or a run; ``line`` and ``column`` are the position in the
    text.
    """

    def __init__(self, kind: str, problem: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(f"{kind}, line {line}, column {column}: {problem}")


class Token(NamedTuple):
    """A token of a program text, with its line and column."""

    kind: str
    text: str
    line: int
    column: int


class MachineRun(NamedTuple):
    """The result of a run on the looped transformer, compared with plain arithmetic after each step."""

    #: Values of the shown words or registers at the end of the run.
    values: dict[str, Any]
    steps: int
    #: Whether the program halted; False if it reached the limit of steps.
    halted: bool
    #: Largest absolute difference from plain arithmetic.
    error: float
    #: Whether each step continued at the correct command and computed the correct values, for FLEQ up
    #: to ``TOLERANCE``.
    agrees: bool
    #: For each step, the line of its command, and the shown values after the step.
    trace: list[tuple[int, dict[str, Any]]]


@dataclass(frozen=True)
class MachineProgram(ABC):
    """A program for a looped machine, with the initial contents of its memory."""

    #: Names of words or registers in order; "" for a word without a name.
    names: tuple[str, ...]
    #: Names of the words or registers whose values are the result.
    shown: tuple[str, ...]
    #: Line of each command in the program text.
    lines: tuple[int, ...]

    @property
    @abstractmethod
    def architecture(self) -> TransformerArchitecture:
        """Sizes of the looped block that runs the program."""

    @abstractmethod
    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the program with new initial values of some words or registers, given by name."""

    @abstractmethod
    def run(self, steps: int = STEPS) -> MachineRun:
        """Run the program until it halts, for at most ``steps`` steps."""

    def with_shown(self, names: Sequence[str]) -> Self:
        """Return the program with ``names`` as the words or registers to show."""
        return replace(self, shown=tuple(self.names[self.place(name)] for name in names))

    def place(self, name: str) -> int:
        """Return the index of the word or register ``name``."""
        if name not in self.names or not name:
            known = ", ".join(filter(None, self.names))
            raise InputError(f"expected a name of the program ({known}), got {name!r}")
        return self.names.index(name)

    def _named(self, memory: Sequence[Any]) -> dict[str, Any]:
        return {name: memory[self.place(name)] for name in self.shown}


# SUBLEQ ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubleqProgram(MachineProgram):
    """A SUBLEQ program with its memory words and commands."""

    memory: tuple[int, ...]
    commands: tuple[Command, ...]
    bits: int = 8

    @cached_property
    def machine(self) -> SubleqMachine:
        """Looped transformer for the number of words and commands of this program."""
        return SubleqMachine(len(self.memory), len(self.commands), bits=self.bits)

    @property
    def architecture(self) -> TransformerArchitecture:
        """Sizes of the looped block that runs the program."""
        return self.machine.block.architecture

    def with_values(self, values: Mapping[str, Any]) -> Self:
        r"""Return the program with new initial values of some memory words, given by name.

        >>> read_subleq("a = 1\nhalt").with_values({"a": 5}).run().values
        {'a': 5}
        """
        memory, half = list(self.memory), 2 ** (self.bits - 1)
        for name, value in values.items():
            if name == ZERO:
                raise InputError(f"expected a word other than {ZERO}, which starts at 0, got {ZERO}")
            if type(value) is not int or not -half <= value < half:
                raise InputError(
                    f"{name}: expected an integer from {-half} to {half - 1}, got {value!r}; "
                    f"try bits {MAX_BITS} for larger words"
                )
            memory[self.place(name)] = value
        return replace(self, memory=tuple(memory))

    def interpreted(self, steps: int = STEPS) -> list[State]:
        """Return the state after each step in plain Python, until the state no longer changes.

        At most ``steps`` steps are run.
        """
        state = State(self.memory, 0)
        states: list[State] = []
        while len(states) < steps:
            self._require_command(state)
            following = advance(state, self.commands, self.bits)
            if following == state:
                break
            state = following
            states.append(state)
        return states

    @cached_property
    def steps(self) -> int:
        """Number of steps until the program halts in plain Python, at most 100 · ``STEPS``."""
        return len(self.interpreted(100 * STEPS))

    def looped(self, steps: int | None = None) -> list[State]:
        """Return the state after each step on the looped transformer; by default, until the program
        halts.
        """
        steps = self.steps if steps is None else steps
        return self.machine.run(self.memory, self.commands, steps)

    def answer(self, state: State) -> tuple[int, ...]:
        """Return the values of the shown words in ``state``."""
        return tuple(self._named(state.memory).values())

    def run(self, steps: int = STEPS) -> MachineRun:
        """Run until the program halts, which means that a step does not change the state.

        At most ``steps`` steps are run.
        """
        plain = self.interpreted(steps)
        states = self.looped(len(plain))
        start = State(self.memory, 0)
        last = plain[-1] if plain else start
        self._require_command(last)
        halted = advance(last, self.commands, self.bits) == last
        counters = [start.counter, *(state.counter for state in plain)]
        trace = [
            (self.lines[counter], self._named(state.memory))
            for counter, state in zip(counters, states, strict=False)
        ]
        final = self._named((states[-1] if states else start).memory)
        different = [
            abs(a - b)
            for one, other in zip(states, plain, strict=True)
            for a, b in zip(one.memory, other.memory, strict=True)
        ]
        error = float(max(different, default=0))
        return MachineRun(final, len(states), halted, error, states == plain, trace)

    def _require_command(self, state: State) -> None:
        try:
            require_command(state.counter, self.commands)
        except InputError as error:
            raise MachineTextError("SUBLEQ", f"{error} (halt)", self.lines[-1], 1) from None


# FLEQ -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FleqProgram(MachineProgram):
    """A FLEQ program with its registers and instructions."""

    registers: tuple[tuple[tuple[float, ...], ...], ...]
    instructions: tuple[Instruction, ...]
    bound: float = 1e3
    #: Indices of the ``halt`` instructions, which jump to themselves.
    halts: frozenset[int] = field(default_factory=frozenset)

    @property
    def order(self) -> int:
        """Number of rows and columns of each register."""
        return len(self.registers[0])

    @cached_property
    def machine(self) -> FleqMachine:
        """Looped transformer for the number of registers and instructions of this program."""
        delta = min(3e-6, 1e-2 / self.bound)
        return FleqMachine(
            self.order, len(self.registers), len(self.instructions), delta=delta, bound=self.bound
        )

    @property
    def architecture(self) -> TransformerArchitecture:
        """Sizes of the looped block that runs the program."""
        return self.machine.architecture

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the program with new initial values of some registers, given by name."""
        registers = list(self.registers)
        for name, value in values.items():
            if name == ZERO:
                raise InputError(
                    f"expected a register other than {ZERO}, which is always 0, got {ZERO}"
                )
            try:
                matrix = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                matrix = np.full(1, np.nan)
            if matrix.shape == ():
                matrix = matrix * np.eye(self.order)
            if matrix.shape != (self.order, self.order) or not np.isfinite(matrix).all():
                raise InputError(
                    f"{name}: expected a number or a {self.order} × {self.order} matrix, got "
                    f"{str(value)[:40]}"
                )
            registers[self.place(name)] = _frozen(matrix)
        return replace(self, registers=tuple(registers))

    def interpreted(self, steps: int = STEPS) -> list[tuple[list[Floats], int]]:
        """Return the registers and the index of the next instruction after each step in plain
        arithmetic.

        The run ends at ``halt`` or after ``steps`` steps.
        """
        held, counter = [np.array(register) for register in self.registers], 0
        states: list[tuple[list[Floats], int]] = []
        while len(states) < steps and counter not in self.halts:
            step, line = self.instructions[counter], self.lines[counter]
            a, b = held[step.a], held[step.b]
            largest = max(float(np.abs(matrix).max()) for matrix in (a, b, a.T @ b))
            if not largest < self.bound:
                problem = f"expected numbers below {self.bound:g} in a, b and aᵀb, got {largest:.3g}"
                advice = "; try a line such as bound 1e5" if largest < 1e5 else ""
                raise MachineTextError("FLEQ", problem + advice, line, 1)
            result = {"T": a.T, "MUL": a.T @ b, "SUB": b - a}[step.function]
            held = [*held[: step.c], result, *held[step.c + 1 :]]
            flag = float(held[step.flag][0, 0])
            if abs(flag - round(flag)) > 0.1:
                problem = f"expected an integer as entry (0, 0) of the flag, got {flag:.3g}"
                raise MachineTextError("FLEQ", problem, line, 1)
            counter = step.target if round(flag) <= 0 else counter + 1
            if counter == len(self.instructions):
                problem = "expected a jump or halt at the end, got past it"
                raise MachineTextError("FLEQ", problem, line, 1)
            states.append((held, counter))
        return states

    def run(self, steps: int = STEPS) -> MachineRun:
        """Run until the program reaches ``halt``, for at most ``steps`` steps."""
        plain = self.interpreted(steps)
        error, relative, agrees, final = 0.0, 0.0, True, [np.array(each) for each in self.registers]
        trace, counter = [], 0
        looped = self.machine.passes(self.registers, self.instructions, len(plain))
        for (held, following), (expected, target) in zip(looped, plain, strict=True):
            trace.append((self.lines[counter], self._listed(held)))
            for one, other in zip(held, expected, strict=True):
                difference = float(np.abs(one - other).max())
                error = max(error, difference)
                relative = max(relative, difference / max(1.0, float(np.abs(other).max())))
            if following != target:
                agrees = False
                break
            final, counter = held, following
        halted = (plain[-1][1] if plain else 0) in self.halts
        agrees = agrees and relative <= TOLERANCE
        return MachineRun(self._listed(final), len(trace), halted, error, agrees, trace)

    def _listed(self, registers: Sequence[Floats]) -> dict[str, Any]:
        return {name: matrix.tolist() for name, matrix in self._named(registers).items()}


def _frozen(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in matrix)


# Reading --------------------------------------------------------------------------------------------


class _Reader:
    """The base class of the SUBLEQ and FLEQ readers, which splits a text into labels and statements."""

    kind = ""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            place = Token("", "", 1, 1)
            self.fail(f"expected at most {MAX_TEXT:,} characters, got {len(text):,}", place)
        #: Command index of each label; references to labels are resolved at the end.
        self.labels: dict[str, int] = {}
        self.names: dict[str, Token] = {}
        self.shown: list[Token] = []
        self.commands = 0
        self.lines: list[int] = []
        self.end = Token("", "", text.count("\n") + 1, 1)
        for tokens in self._split(text):
            statement = tokens
            while len(statement) > 1 and statement[0].kind == "name" and statement[1].text == ":":
                self._label(statement[0])
                statement = statement[2:]
            if statement:
                self.statement(statement)

    def _split(self, text: str) -> Iterator[list[Token]]:
        for number, line in enumerate(text.split("\n"), start=1):
            tokens = []
            for found in _TOKEN.finditer(line):
                kind = str(found.lastgroup)
                token = Token(kind, found[0], number, found.start() + 1)
                if kind == "other":
                    hint = "; comments begin with //" if found[0] == "#" else ""
                    self.fail(f"expected a name, a number or a mark, got {found[0]!r}{hint}", token)
                if kind not in ("space", "comment"):
                    tokens.append(token)
            if tokens:
                yield tokens

    def statement(self, tokens: list[Token]) -> None:
        """Read one statement."""
        raise NotImplementedError

    def fail(self, problem: str, token: Token) -> NoReturn:
        """Raise ``MachineTextError`` with ``problem`` at the line and column of ``token``."""
        raise MachineTextError(self.kind, problem, token.line, token.column)

    def _label(self, token: Token) -> None:
        if token.text in self.labels:
            self.fail(f"the label {token.text} is defined twice", token)
        self.labels[token.text] = self.commands

    def emit(self, token: Token) -> None:
        """Count a command that a statement produces, and record the line of ``token`` for it."""
        self.commands += 1
        self.lines.append(token.line)
        if self.commands > MAX_SIZE:
            self.fail(f"expected at most {MAX_SIZE:,} commands, got more", token)

    def halt(self, token: Token) -> None:
        """Define the label ``halt`` at the next command, unless the label is already defined."""
        self.labels.setdefault("halt", self.commands)

    def declare(self, token: Token) -> None:
        """Declare ``token`` as the name of a word or register."""
        if token.text in self.names:
            self.fail(f"{token.text} is defined twice", token)
        if len(self.names) >= MAX_SIZE:
            self.fail(f"expected at most {MAX_SIZE:,} words, got more", token)
        self.names[token.text] = token

    def arguments(self, tokens: list[Token], least: int, most: int | None = None) -> list[Token]:
        """Return the operands of a statement: all tokens after the first.

        An error is raised unless there are ``least`` to ``most`` operands.
        """
        found = tokens[1:]
        most = least if most is None else most
        if not least <= len(found) <= most:
            wanted = str(least) if least == most else f"{least} or more"
            place = found[most] if len(found) > most else tokens[-1]
            self.fail(f"{tokens[0].text}: expected {wanted} operands, got {len(found)}", place)
        return found

    def integer(self, token: Token, least: int, most: int) -> int:
        """Return ``token`` as an integer; raise an error unless it is an integer from ``least`` to
        ``most``.
        """
        if not re.fullmatch(r"[+-]?\d{1,9}", token.text) or not least <= int(token.text) <= most:
            self.fail(f"expected an integer from {least} to {most}, got {token.text}", token)
        return int(token.text)

    def target(self, token: Token) -> int:
        """Return the index of the command to which a label or a number refers."""
        if token.kind == "number":
            return self.integer(token, 0, self.commands - 1)
        if token.text not in self.labels:
            known = ", ".join(self.labels) or "none"
            self.fail(f"expected a label of the program ({known}), got {token.text}", token)
        if self.labels[token.text] >= self.commands:
            self.fail(f"expected a command after the label {token.text}, got none; try halt", token)
        return self.labels[token.text]

    def place(self, token: Token, names: Sequence[str]) -> int:
        """Return the index of the word or register to which a name or a number refers."""
        if token.kind == "number":
            declared = len(names) - (ZERO in names and ZERO not in self.names)
            return self.integer(token, 0, declared - 1)
        if token.kind != "name" or token.text not in names:
            self.fail(
                f"{token.text} is not defined; try a line such as {token.text} = 0"
                if token.kind == "name"
                else f"expected a name or a number, got {token.text}",
                token,
            )
        return names.index(token.text)

    def shown_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names to show: the names in ``show`` statements or, without any, all declared
        names.
        """
        for token in self.shown:
            if token.kind != "name" or token.text not in names:
                self.fail(f"show: {token.text} is not defined", token)
        asked = tuple(dict.fromkeys(token.text for token in self.shown))
        return asked or tuple(name for name in names if name and name in self.names)


class _SubleqReader(_Reader):
    kind = "SUBLEQ"

    def __init__(self, text: str) -> None:
        self.memory: list[tuple[str, Token]] = []
        self.bits = 8
        #: Operands of each command; the target None means the next command.
        self.operands: list[tuple[Token, Token, Token | None]] = []
        super().__init__(text)

    def statement(self, tokens: list[Token]) -> None:
        """Read a declaration, a directive, a command or an abbreviation."""
        first = tokens[0]
        if len(tokens) > 1 and tokens[1].text == "=":
            if first.kind != "name" or first.text in _SUBLEQ_WORDS:
                self.fail(f"expected a name of a word, got {first.text}", first)
            if len(tokens) != 3:
                self.fail("expected one integer after =", tokens[min(3, len(tokens) - 1)])
            self.declare(first)
            self.memory.append((first.text, tokens[2]))
            return
        zero = first._replace(kind="name", text=ZERO)
        match first.text:
            case "bits":
                (number,) = self.arguments(tokens, 1)
                self.bits = self.integer(number, 2, MAX_BITS)
            case "memory":
                self.memory += [("", token) for token in self.arguments(tokens, 1, MAX_SIZE)]
            case "show":
                self.shown += self.arguments(tokens, 1, MAX_SIZE)
            case "clear":
                for word in self.arguments(tokens, 1, MAX_SIZE):
                    self._command(first, word, word)
            case "add" | "copy":
                a, b = self.arguments(tokens, 2)
                if a.text == b.text and first.text == "copy":
                    self.fail("copy: expected two different words, got the same", b)
                if first.text == "copy":
                    self._command(first, b, b)
                self._command(first, a, zero)
                self._command(first, zero, b)
                self._command(first, zero, zero)
            case "jump":
                (target,) = self.arguments(tokens, 1)
                self._command(first, zero, zero, target)
            case "halt":
                self.arguments(tokens, 0)
                self.halt(first)
                here = first._replace(kind="number", text=str(self.commands))
                self._command(first, zero, zero, here)
            case _:
                if not 2 <= len(tokens) <= 3 or any(token.kind == "mark" for token in tokens):
                    place = next((t for t in tokens if t.kind == "mark"), tokens[-1])
                    self.fail(
                        "expected a command (a b or a b target), name = integer, or one of "
                        f"{', '.join(_SUBLEQ_WORDS)}",
                        place,
                    )
                self._command(first, *tokens)

    def _command(self, place: Token, a: Token, b: Token, target: Token | None = None) -> None:
        self.operands.append((a, b, target))
        self.emit(place)

    def program(self) -> SubleqProgram:
        """Return the SUBLEQ program of the statements read."""
        if not self.operands:
            self.fail("expected a command, got none; try halt", self.end)
        half = 2 ** (self.bits - 1)
        memory = [(name, self.integer(token, -half, half - 1)) for name, token in self.memory]
        names = [name for name, _ in memory]
        if dict(memory).get(ZERO):  # add and copy use the word as 0
            self.fail(f"expected {ZERO} to be 0", self.names[ZERO])
        if ZERO not in names and any(
            token.text == ZERO for operands in self.operands for token in operands if token
        ):
            memory.append((ZERO, 0))
            names.append(ZERO)
        if not names:
            self.fail("expected a word, got none; try a line such as a = 0", self.end)
        commands = []
        for number, (a, b, target) in enumerate(self.operands):
            following = min(number + 1, self.commands - 1)
            if target is None and following == number:
                self.fail("expected a jump or halt as the last command", a)
            where = following if target is None else self.target(target)
            commands.append((self.place(a, names), self.place(b, names), where))
        return SubleqProgram(
            tuple(names), self.shown_names(names), tuple(self.lines),
            tuple(value for _, value in memory), tuple(commands), self.bits,
        )  # fmt: skip


_SUBLEQ_WORDS = ("bits", "memory", "show", "clear", "add", "copy", "jump", "halt")
_FLEQ_WORDS = ("order", "bound", "show", "jump", "halt", "if", "goto", *FUNCTIONS)


class _FleqReader(_Reader):
    kind = "FLEQ"

    def __init__(self, text: str) -> None:
        self.registers: list[tuple[Token, list[list[float]]]] = []
        self.order: int | None = None
        self.bound = 1e3
        #: Function, a, b, c, flag and target of each instruction; the target None means the next
        #: instruction.
        self.operands: list[tuple[str, Token, Token, Token, Token, Token | None]] = []
        self.halting: set[int] = set()
        super().__init__(text)

    def statement(self, tokens: list[Token]) -> None:
        """Read a register, an instruction or a directive."""
        first = tokens[0]
        zero = first._replace(kind="name", text=ZERO)
        if len(tokens) > 1 and tokens[1].text == "=":
            if first.kind != "name" or first.text in _FLEQ_WORDS:
                self.fail(f"expected a name of a register, got {first.text}", first)
            if len(tokens) < 3:
                self.fail("expected a matrix or a function after =", tokens[-1])
            if tokens[2].text in FUNCTIONS:
                self._instruction(first, tokens[2:], zero)
            else:
                self.declare(first)
                self.registers.append((first, self._matrix(tokens[2:])))
            return
        match first.text:
            case "order":
                (number,) = self.arguments(tokens, 1)
                self.order = self.integer(number, 1, 16)
            case "bound":
                (number,) = self.arguments(tokens, 1)
                if number.kind != "number" or not 0 < float(number.text) <= 1e5:
                    self.fail(f"expected a number above 0, up to 1e5, got {number.text}", number)
                self.bound = float(number.text)
            case "show":
                self.shown += self.arguments(tokens, 1, MAX_SIZE)
            case "jump":
                (target,) = self.arguments(tokens, 1)
                self._emit("SUB", zero, zero, zero, zero, target)
            case "halt":
                self.arguments(tokens, 0)
                self.halt(first)
                self.halting.add(self.commands)
                here = first._replace(kind="number", text=str(self.commands))
                self._emit("SUB", zero, zero, zero, zero, here)
            case _:
                self.fail(
                    "expected name = matrix, name = T a, name = MUL a b, name = SUB a b, or one of "
                    "order, bound, show, jump, halt",
                    first,
                )

    def _instruction(self, c: Token, tokens: list[Token], zero: Token) -> None:
        if c.text == ZERO:
            self.fail(f"expected a register other than {ZERO}, which is always 0, got {ZERO}", c)
        condition = next((i for i, token in enumerate(tokens) if token.text == "if"), len(tokens))
        function, operands = tokens[0], tokens[:condition]
        found = self.arguments(operands, 1 if function.text == "T" else 2)
        flag, target = zero, None
        if condition < len(tokens):
            rest = tokens[condition:]
            texts = [token.text for token in rest]
            if len(rest) != 6 or texts[2:5] != ["<=", "0", "goto"]:
                self.fail("expected if REGISTER <= 0 goto LABEL", rest[0])
            flag, target = rest[1], rest[5]
        b = found[1] if len(found) > 1 else zero
        self._emit(function.text, found[0], b, c, flag, target)

    def _emit(
        self, function: str, a: Token, b: Token, c: Token, flag: Token, target: Token | None
    ) -> None:
        self.operands.append((function, a, b, c, flag, target))
        self.emit(c)

    def _matrix(self, tokens: list[Token]) -> list[list[float]]:
        rows: list[list[float]] = [[]]
        for token in tokens:
            if token.text == ";":
                rows.append([])
            elif token.kind == "number" and np.isfinite(float(token.text)):
                rows[-1].append(float(token.text))
            else:
                self.fail(f"expected a number or ; between rows, got {token.text}", token)
        if len({len(row) for row in rows}) > 1 or len(rows) != len(rows[0]):
            sizes = ", ".join(str(len(row)) for row in rows)
            self.fail(f"expected as many rows as columns, got rows of {sizes} numbers", tokens[0])
        return rows

    def program(self) -> FleqProgram:
        """Return the FLEQ program of the statements read."""
        if not self.operands:
            self.fail("expected an instruction, got none; try halt", self.end)
        orders = {len(rows) for _, rows in self.registers if len(rows) > 1}
        order = self.order or max(orders, default=1)
        registers = []
        for token, rows in self.registers:
            matrix = np.array(rows)
            if matrix.shape == (1, 1) and order > 1:
                matrix = matrix * np.eye(order)
            if len(matrix) != order:
                size = f"{len(matrix)} × {len(matrix)}"
                self.fail(f"expected a number or a {order} × {order} matrix, got {size}", token)
            registers.append(_frozen(matrix))
        names = [token.text for token, _ in self.registers]
        if ZERO in names and np.any(registers[names.index(ZERO)]):
            self.fail(f"expected {ZERO} to be 0", self.names[ZERO])
        if ZERO not in names:
            names.append(ZERO)
            registers.append(_frozen(np.zeros((order, order))))
        instructions = []
        for number, (function, a, b, c, flag, target) in enumerate(self.operands):
            if target is None and number + 1 == self.commands:
                self.fail("expected jump or halt as the last instruction", c)
            where = number + 1 if target is None else self.target(target)
            first, second, third = (self.place(token, names) for token in (a, b, c))
            instructions.append(
                Instruction(first, second, third, function, self.place(flag, names), where)
            )
        return FleqProgram(
            tuple(names), self.shown_names(names), tuple(self.lines), tuple(registers),
            tuple(instructions), self.bound, frozenset(self.halting),
        )  # fmt: skip


def read_subleq(text: str) -> SubleqProgram:
    """Return the SUBLEQ program in ``text``; raise ``MachineTextError`` for invalid text."""
    return _SubleqReader(text).program()


def read_fleq(text: str) -> FleqProgram:
    r"""Return the FLEQ program in ``text``; raise ``MachineTextError`` for invalid text.

    >>> program = read_fleq("A = 1 2; 3 4\nB = MUL A A\nhalt\nB = 0\nshow B")
    >>> [[round(x, 3) for x in row] for row in program.run().values["B"]]
    [[10.0, 14.0], [14.0, 20.0]]
    """
    return _FleqReader(text).program()


#: Readers by the suffix of the file name.
READERS = {".subleq": read_subleq, ".fleq": read_fleq}
