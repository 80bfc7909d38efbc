"""SUBLEQ programs, from addition to bubble sort, written with a small assembler.

>>> program = PROGRAMS["multiply"]
>>> program.answer(program.interpreted()[-1])
(63,)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from locum.errors import InputError
from locum.networks.looped.subleq import Command, State, SubleqMachine, advance, interpret

#: The word that is 0 whenever a macro begins.
_ZERO = "zero"
#: Programs end within so many steps.
_LONGEST = 100_000


@dataclass(frozen=True)
class Program:
    """A SUBLEQ program with its memory, and the words that hold its answer."""

    name: str
    memory: tuple[int, ...]
    commands: tuple[Command, ...]
    #: Which words are the answer, and what it must be.
    outputs: tuple[int, ...]
    expected: tuple[int, ...]
    #: After so many steps it stays at its last command.
    steps: int
    bits: int

    @property
    def machine(self) -> SubleqMachine:
        """Return a looped transformer of this program's size."""
        return SubleqMachine(len(self.memory), len(self.commands), bits=self.bits)

    def looped(self) -> list[State]:
        """Run it on the looped transformer; return the state after each step."""
        return self.machine.run(self.memory, self.commands, self.steps)

    def interpreted(self) -> list[State]:
        """Run it in plain Python; return the state after each step."""
        return interpret(self.memory, self.commands, self.steps, bits=self.bits)

    def answer(self, state: State) -> tuple[int, ...]:
        """Return the words that hold the answer."""
        return tuple(state.memory[place] for place in self.outputs)


class Assembler:
    """Write SUBLEQ with names for words and labels for commands."""

    def __init__(self, **words: int) -> None:
        self._words = {_ZERO: 0, "one": 1, "minus": -1, **words}
        self._commands: list[tuple[str, str, str | int]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """Name the next command."""
        self._labels[name] = len(self._commands)

    def subtract(self, a: str, b: str, target: str | None = None) -> None:
        """Subtract: b −= a; go to ``target`` if b is then at most 0."""
        self._commands.append((a, b, len(self._commands) + 1 if target is None else target))

    def clear(self, *words: str) -> None:
        """Set words to 0."""
        for word in words:
            self.subtract(word, word)

    def add(self, a: str, b: str) -> None:
        """Add: b += a."""
        self.subtract(a, _ZERO)
        self.subtract(_ZERO, b)
        self.clear(_ZERO)

    def copy(self, a: str, b: str) -> None:
        """Copy: b = a."""
        self.clear(b)
        self.add(a, b)

    def jump(self, target: str) -> None:
        """Go to ``target``."""
        self.subtract(_ZERO, _ZERO, target)

    def if_not_positive(self, a: str, target: str) -> None:
        """Go to ``target`` if a ≤ 0."""
        self.subtract(_ZERO, a, target)

    def multiply(self, a: str, b: str, product: str, count: str, prefix: str) -> None:
        """Set product = a · b for b ≥ 0, by repeated addition."""
        self.clear(product)
        self.copy(b, count)
        self.label(f"{prefix} again")
        self.if_not_positive(count, f"{prefix} done")
        self.add(a, product)
        self.subtract("one", count)
        self.jump(f"{prefix} again")
        self.label(f"{prefix} done")

    def assemble(self, name: str, outputs: dict[str, int], *, bits: int = 8) -> Program:
        """Return the program; ``outputs`` says what its answer must be, word by word."""
        self.label("halt")
        self.jump("halt")
        places = {word: place for place, word in enumerate(self._words)}
        commands = tuple(
            (places[a], places[b], target if isinstance(target, int) else self._labels[target])
            for a, b, target in self._commands
        )
        memory = tuple(self._words.values())
        return Program(
            name, memory, commands, tuple(places[word] for word in outputs), tuple(outputs.values()),
            _steps(memory, commands, bits), bits,
        )  # fmt: skip


def _steps(memory: tuple[int, ...], commands: tuple[Command, ...], bits: int) -> int:
    """Return after how many steps a program stands at its last command."""
    state, steps = State(memory, 0), 0
    while state.counter < len(commands) - 1:
        state, steps = advance(state, commands, bits), steps + 1
        if steps > _LONGEST:
            raise InputError(
                f"expected a program that ends within {_LONGEST:,} steps, got one that does not"
            )
    return steps


def _add() -> Program:
    write = Assembler(a=19, b=23)
    write.add("a", "b")
    return write.assemble("add", {"b": 42})


def _maximum() -> Program:
    write = Assembler(a=17, b=29, largest=0, difference=0)
    write.copy("a", "largest")
    write.copy("b", "difference")
    write.subtract("a", "difference", "halt")
    write.copy("b", "largest")
    return write.assemble("maximum", {"largest": 29})


def _multiply() -> Program:
    write = Assembler(a=7, b=9, product=0, count=0)
    write.multiply("a", "b", "product", "count", "times")
    return write.assemble("multiply", {"product": 63})


def _factorial() -> Program:
    write = Assembler(n=7, factorial=1, product=0, count=0)
    write.label("next")
    write.multiply("factorial", "n", "product", "count", "times")
    write.copy("product", "factorial")
    write.subtract("one", "n", "halt")
    write.jump("next")
    return write.assemble("factorial", {"factorial": 5040}, bits=16)


def _fibonacci() -> Program:
    write = Assembler(n=20, a=0, b=1, sum=0)
    write.label("next")
    write.copy("a", "sum")
    write.add("b", "sum")
    write.copy("b", "a")
    write.copy("sum", "b")
    write.subtract("one", "n", "halt")
    write.jump("next")
    return write.assemble("fibonacci", {"a": 6765}, bits=16)


def _divide() -> Program:
    write = Assembler(dividend=100, divisor=7, quotient=-1, remainder=0)
    write.copy("dividend", "remainder")
    write.label("next")
    write.subtract("minus", "quotient")
    write.subtract("divisor", "remainder", "at most 0")
    write.jump("next")
    write.label("at most 0")
    # Exactly 0 is one more time; below 0 the last subtraction was one too many.
    write.add("one", "remainder")
    write.if_not_positive("remainder", "negative")
    write.subtract("one", "remainder")
    write.subtract("minus", "quotient")
    write.jump("halt")
    write.label("negative")
    write.subtract("one", "remainder")
    write.add("divisor", "remainder")
    return write.assemble("divide", {"quotient": 14, "remainder": 2})


def _greatest_common_divisor() -> Program:
    write = Assembler(a=84, b=36, difference=0)
    write.label("next")
    write.copy("a", "difference")
    write.subtract("b", "difference", "a at most b")
    write.copy("difference", "a")
    write.jump("next")
    write.label("a at most b")
    write.copy("b", "difference")
    write.subtract("a", "difference", "halt")
    write.copy("difference", "b")
    write.jump("next")
    return write.assemble("greatest common divisor", {"a": 12})


def _power() -> Program:
    write = Assembler(exponent=12, power=1)
    write.label("next")
    write.add("power", "power")
    write.subtract("one", "exponent", "halt")
    write.jump("next")
    return write.assemble("power of two", {"power": 4096}, bits=16)


def _sum() -> Program:
    write = Assembler(x0=11, x1=-7, x2=30, x3=5, x4=-50, sum=0)
    for word in ("x0", "x1", "x2", "x3", "x4"):
        write.add(word, "sum")
    return write.assemble("sum of a list", {"sum": -11})


def _reverse() -> Program:
    write = Assembler(x0=1, x1=2, x2=3, x3=4, x4=5, held=0)
    for first, last in (("x0", "x4"), ("x1", "x3")):
        write.copy(first, "held")
        write.copy(last, first)
        write.copy("held", last)
    return write.assemble("reverse a list", {"x0": 5, "x1": 4, "x2": 3, "x3": 2, "x4": 1})


def _bubble_sort() -> Program:
    write = Assembler(x0=31, x1=-4, x2=15, x3=-40, swapped=0, difference=0)
    write.label("pass")
    write.clear("swapped")
    for left, right in (("x0", "x1"), ("x1", "x2"), ("x2", "x3")):
        write.copy(left, "difference")
        write.subtract(right, "difference", f"{left} in order")
        write.subtract("difference", left)
        write.add("difference", right)
        write.copy("one", "swapped")
        write.label(f"{left} in order")
    write.if_not_positive("swapped", "halt")
    write.jump("pass")
    return write.assemble("bubble sort", {"x0": -40, "x1": -4, "x2": 15, "x3": 31})


def _collatz() -> Program:
    """Count the steps of 3n + 1 from 57 down to 1; halving is done by subtraction, hence the length."""
    write = Assembler(n=57, steps=0, rest=0, half=0, two=2)
    write.label("next")
    write.copy("n", "rest")
    write.subtract("one", "rest", "halt")
    write.subtract("minus", "steps")
    write.copy("n", "rest")
    write.clear("half")
    write.label("halve")
    write.subtract("two", "rest", "halved")
    write.subtract("minus", "half")
    write.jump("halve")
    write.label("halved")
    write.add("one", "rest")
    write.if_not_positive("rest", "odd")
    write.subtract("minus", "half")
    write.copy("half", "n")
    write.jump("next")
    write.label("odd")
    write.copy("n", "rest")
    write.add("rest", "n")
    write.add("rest", "n")
    write.add("one", "n")
    write.jump("next")
    return write.assemble("steps of 3n + 1", {"steps": 32}, bits=16)


_BUILDERS: tuple[Callable[[], Program], ...] = (
    _add, _maximum, _multiply, _factorial, _fibonacci, _divide, _greatest_common_divisor, _power, _sum,
    _reverse, _bubble_sort, _collatz,
)  # fmt: skip

#: Name → program.
PROGRAMS = {program.name: program for program in (build() for build in _BUILDERS)}
