"""Decide with Spacer, an engine of z3, whether two machines accept the same words.

The states of both machines are tuples of integers. Whether a word exists that exactly one machine
accepts is a question of reachability in linear integer arithmetic. Spacer answers this question by an
invariant or by a run, or does not answer it within the time limit.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

from locum.errors import InputError
from locum.languages.automata import DFA, Letter
from locum.languages.counters import PLAIN, CounterMachine, Meanings, Register
from locum.languages.recogniser import Recogniser

#: The possible answers of Spacer.
EQUAL, DIFFERENT, UNKNOWN = "equal", "different", "unknown"
#: Seconds for the first attempt, and maximum number of attempts.
FIRST_TRY, MAX_TRIES = 1.0, 20


class Machine(Protocol):
    """The interface of a machine: registers with initial values, and a step for each letter."""

    @property
    def registers(self) -> tuple[Any, ...]:
        """The components of the state."""
        ...

    @property
    def start(self) -> tuple[int, ...]:
        """The values of the registers before the first letter."""
        ...

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = ...
    ) -> tuple[tuple[Any, ...], Any]:
        """Read a letter, and return the next state and whether the machine accepts at this letter."""
        ...

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = ...) -> Any:
        """Return whether the word that led to ``state`` is accepted."""
        ...


class AutomatonMachine:
    """A finite automaton as a machine with one register."""

    def __init__(self, automaton: DFA) -> None:
        self.automaton = automaton
        self.registers: tuple[Any, ...] = (automaton,)
        self._place = {letter: i for i, letter in enumerate(automaton.alphabet)}

    @property
    def start(self) -> tuple[int, ...]:
        """The initial state; −1 is the state after unknown letters."""
        return (0,)

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Follow the transition of a letter, and return the next state and whether it is accepting."""
        place = self._place.get(letter)
        if place is None:
            return (-1,), False
        if isinstance(state[0], int):
            target: Any = -1 if state[0] < 0 else self.automaton.transitions[state[0]][place]
        else:
            target = -1
            for number, row in enumerate(self.automaton.transitions):
                here = meanings["equal"](state[0], number)
                target = meanings["if_else"](here, row[place], target)
        return (target,), self.answer((target,), None, meanings)

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Return whether the automaton accepts in ``state``."""
        if isinstance(state[0], int):
            return state[0] in self.automaton.accepting
        verdict: Any = False
        for number in sorted(self.automaton.accepting):
            verdict = meanings["or"](verdict, meanings["equal"](state[0], number))
        return verdict


def z3_module() -> Any:
    """Import z3, or raise an error that explains how to install it."""
    try:
        return importlib.import_module("z3")
    except ModuleNotFoundError:
        raise InputError(
            "comparing programs that count needs z3, which is not installed: pip install 'locum[solve]'"
        ) from None


def ask(
    one: Machine,
    other: Machine,
    alphabet: Sequence[Letter],
    end: float,
    *,
    empty: bool,
) -> str:
    """Return whether two machines agree on all words: "equal", "different" or "unknown".

    The search stops when the CPU time of the process reaches ``end``, or after ``MAX_TRIES`` attempts.
    Without ``empty``, the empty word is excluded. Every other attempt enables Spacer's global
    generalisation, which finds linear equations between counts. The order in which Spacer tries
    invariants varies, so Spacer may answer the same question quickly or not at all. Attempts are
    therefore repeated with another seed, with the machines in the other order, and with increasing time
    limits.
    """
    machines, seconds = (one, other), FIRST_TRY
    for seed in range(MAX_TRIES):
        now = time.process_time()
        if now >= end:
            break
        answer = _try(machines, alphabet, min(end, now + seconds), empty, seed)
        if answer != UNKNOWN:
            return answer
        machines, seconds = machines[::-1], 1.5 * seconds
    return UNKNOWN


def _try(
    machines: tuple[Machine, Machine],
    alphabet: Sequence[Letter],
    end: float,
    empty: bool,
    seed: int,
) -> str:
    z3 = z3_module()
    one, other = machines
    context = z3.Context()
    meanings = _meanings(z3, context)
    registers = tuple(dict.fromkeys((*one.registers, *other.registers)))
    place = {register: i for i, register in enumerate(registers)}
    starts: dict[int, int] = {}
    for machine in (one, other):
        for register, value in zip(machine.registers, machine.start, strict=True):
            starts[place[register]] = value
    integer, boolean = z3.IntSort(context), z3.BoolSort(context)
    solver = z3.Fixedpoint(ctx=context)
    solver.set("engine", "spacer")
    solver.set("spacer.random_seed", seed)
    solver.set("spacer.global", seed % 2 == 1)
    reached = z3.Function("reached", *([integer] * len(registers)), boolean)
    differs = z3.Function("differs", boolean)
    solver.register_relation(reached, differs)
    variables = [z3.Int(f"x{i}", context) for i in range(len(registers))]
    if variables:
        solver.declare_var(*variables)

    def number(value: Any) -> Any:
        return z3.IntVal(value, context) if isinstance(value, int) else value

    solver.rule(reached(*(number(starts[i]) for i in range(len(registers)))))
    # Counts are never negative in reachable states. Stating this invariant helps Spacer.
    sound = [
        variables[i] >= 0
        for i, register in enumerate(registers)
        if isinstance(register, Register) and register.kind == "count"
    ]
    here = [reached(*variables), *sound]
    if empty and bool(one.answer(one.start, None)) != bool(other.answer(other.start, None)):
        return DIFFERENT
    for letter in alphabet:
        following: list[Any] = list(variables)
        answers = []
        for machine in (one, other):
            own = [variables[place[register]] for register in machine.registers]
            state, accepted = machine.step(own, letter, meanings)
            answers.append(machine.answer(state, accepted, meanings))
            for register, value in zip(machine.registers, state, strict=True):
                following[place[register]] = number(value)
        solver.rule(reached(*following), here)
        wrong = _exclusive(z3, context, *answers)
        if wrong is not False:
            solver.rule(differs(), [*here, wrong])
    answered = threading.Event()

    def watch() -> None:
        # Spacer may exceed its own time limit, but can be interrupted at any time.
        while not answered.wait(max(0.01, end - time.process_time())):
            if time.process_time() >= end:
                context.interrupt()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        answer = solver.query(differs())
    except z3.Z3Exception:
        return UNKNOWN
    finally:
        answered.set()
        watching.join()
    return {"unsat": EQUAL, "sat": DIFFERENT}.get(str(answer), UNKNOWN)


def _exclusive(z3: Any, context: Any, one: Any, other: Any) -> Any:
    if isinstance(one, bool) and isinstance(other, bool):
        return False if one == other else z3.BoolVal(True, context)
    one, other = (
        z3.BoolVal(each, context) if isinstance(each, bool) else each for each in (one, other)
    )
    return z3.Xor(one, other)


def _meanings(z3: Any, context: Any) -> Meanings:
    """Return operations on terms of z3; operations on known values return Python values."""

    def known(*values: Any) -> bool:
        return all(isinstance(value, (bool, int)) for value in values)

    def both(a: Any, b: Any) -> Any:
        if a is False or b is False:
            return False
        return b if a is True else a if b is True else z3.And(a, b)

    def either(a: Any, b: Any) -> Any:
        if a is True or b is True:
            return True
        return b if a is False else a if b is False else z3.Or(a, b)

    def negated(a: Any) -> Any:
        return not a if isinstance(a, bool) else z3.Not(a)

    def choice(condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, bool):
            return a if condition else b
        if isinstance(a, bool) or isinstance(b, bool):
            return either(both(condition, a), both(negated(condition), b))
        if known(a, b):
            return a if a == b else z3.If(condition, z3.IntVal(a, context), z3.IntVal(b, context))
        return z3.If(condition, a, b)

    return {
        **PLAIN,  # Python's operators on terms return terms
        "minimum": lambda a, b: choice(a < b, a, b),
        "maximum": lambda a, b: choice(a > b, a, b),
        "and": both,
        "or": either,
        "not": negated,
        "if_else": choice,
    }


def machine_of(language: DFA | Recogniser) -> Machine:
    """Return the machine of a finite automaton or of a C-RASP program."""
    return AutomatonMachine(language) if isinstance(language, DFA) else CounterMachine(language)
