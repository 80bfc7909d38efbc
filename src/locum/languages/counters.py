"""Represent counter machines: C-RASP programs, and counter automata given as text.

A C-RASP program is a machine that makes one step for each symbol, and whose state contains the counts.

The same code computes with numbers, in order to run words, and with the terms of a solver
(``solver.py``). A mapping of type :data:`Meanings` defines the operations.

A counter automaton consists of states and integer counters, and reads one symbol in each step (Fischer,
Meyer & Rosenberg 1968):

>>> dyck = CounterAutomaton.parse('''
... accept run if depth == 0
... run "(" -> run, depth + 1
... run ")" if depth > 0 -> run, depth - 1
... ''')
>>> dyck.accepts("(())()"), dyck.accepts("())("), dyck.accepts("")
(True, False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any, ClassVar, NamedTuple

from lark import Token

from locum.errors import InputError
from locum.graph import Node
from locum.graph.operations import COMPARISONS
from locum.languages.automata import DFA, Letter, Word, show_alphabet
from locum.languages.counting import as_count, is_remainder, is_symbol, parts_of, require
from locum.languages.recogniser import END, MARKER, Recogniser
from locum.languages.syntax import COMMON, Reader, alphabet_of

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


# Counter automata -----------------------------------------------------------------------------------

GRAMMAR = (
    COMMON
    + r"""
start: (_line? _END)* _line?
_line: begin | acceptance | transition
begin: START NAME
acceptance: ACCEPT NAME condition?
transition: NAME STRING+ condition? "->" NAME ("," update)*
condition: IF test ("&&" test)*
test: NAME COMPARISON integer
update: NAME (PLUS | MINUS | SET) NUMBER
integer: MINUS? NUMBER
START: "start"
ACCEPT: "accept"
IF: "if"
COMPARISON: "==" | "!=" | "<=" | ">=" | "<" | ">"
PLUS: "+"
MINUS: "-"
SET: "="
"""
)
#: Maximum integer, and maximum number of transitions.
_MAX_NUMBER, _MAX_TRANSITIONS = 10**6, 1_000


#: Maximum number of reachable combinations of a state and counters, for a finite automaton.
MAX_REACHED = 1_000


class CounterTest(NamedTuple):
    """A comparison of a counter with an integer."""

    counter: str
    comparison: str
    number: int


class Transition(NamedTuple):
    """A transition between two states that reads one of its letters if all tests hold."""

    source: str
    letters: tuple[Letter, ...]
    tests: tuple[CounterTest, ...]
    target: str
    #: For each update: the counter, the operator "+", "-" or "=", and the integer.
    updates: tuple[tuple[str, str, int], ...]


class CounterAutomaton:
    """A deterministic automaton with integer counters that reads one symbol in each step.

    In each step, the automaton uses the first transition for its state and symbol whose tests hold. If
    there is no such transition, the automaton rejects the word. Counters start at 0.
    """

    def __init__(
        self,
        start: str,
        accepting: Sequence[tuple[str, tuple[CounterTest, ...]]],
        transitions: Sequence[Transition],
        alphabet: tuple[Letter, ...],
        text: str = "",
    ) -> None:
        self.text, self.alphabet = text, alphabet
        self.transitions, self.accepting = tuple(transitions), tuple(accepting)
        states = [start, *(state for t in transitions for state in (t.source, t.target))]
        self._number = {state: i for i, state in enumerate(dict.fromkeys(states))}
        tested = [test.counter for _, tests in accepting for test in tests]
        tested += [test.counter for t in transitions for test in t.tests]
        changed = [counter for t in transitions for counter, _, _ in t.updates]
        self.counters = tuple(dict.fromkeys([*changed, *tested]))
        #: The state and the counters.
        self.registers: tuple[Any, ...] = tuple((self, name) for name in ("", *self.counters))

    @classmethod
    def parse(cls, text: str, *, alphabet: Iterable[Letter] | None = None) -> CounterAutomaton:
        """Parse the text of an automaton; ``alphabet`` defaults to the symbols in the text."""
        return _AutomatonReader(None if alphabet is None else tuple(alphabet)).read(text)

    @property
    def start(self) -> tuple[int, ...]:
        """The initial state, with all counters 0."""
        return (0,) * len(self.registers)

    def step(
        self, state: Sequence[Any], letter: Letter, meanings: Meanings = PLAIN
    ) -> tuple[tuple[Any, ...], Any]:
        """Read a symbol, and return the next state and whether the automaton accepts there.

        State −1 rejects all continuations.
        """
        here, counters = state[0], dict(zip(self.counters, state[1:], strict=True))
        choose = meanings["if_else"]
        following: tuple[Any, ...] = (-1, *counters.values())
        for transition in reversed(self.transitions):
            if letter not in transition.letters:
                continue
            taken = meanings["and"](
                meanings["equal"](here, self._number[transition.source]),
                _hold(transition.tests, counters, meanings),
            )
            changed = counters | {
                counter: {"+": counters[counter] + by, "-": counters[counter] - by, "=": by}[how]
                for counter, how, by in transition.updates
            }
            target = (self._number[transition.target], *changed.values())
            following = tuple(choose(taken, a, b) for a, b in zip(target, following, strict=True))
        return following, self.answer(following, None, meanings)

    def answer(self, state: Sequence[Any], accepted: Any, meanings: Meanings = PLAIN) -> Any:
        """Return whether the automaton accepts in ``state``, which includes the counters."""
        counters = dict(zip(self.counters, state[1:], strict=True))
        verdict: Any = False
        for name, tests in self.accepting:
            here = meanings["equal"](state[0], self._number.get(name, -2))
            verdict = meanings["or"](verdict, meanings["and"](here, _hold(tests, counters, meanings)))
        return verdict

    def accepts(self, word: Word) -> bool:
        """Return whether the automaton accepts a word."""
        return bool(self.answer(self._states(word)[-1], None))

    def finite_automaton(self) -> DFA | None:
        """Return the minimal finite automaton of the language.

        The result is None if more than ``MAX_REACHED`` combinations of a state and counters are
        reachable.

        >>> bounded = CounterAutomaton.parse('accept q; q "a" if n < 3 -> q, n + 1')
        >>> len(bounded.finite_automaton())
        5
        """
        numbers = {self.start: 0}
        order = [self.start]
        rows = []
        for state in order:
            reached = [self.step(state, letter)[0] for letter in self.alphabet]
            # There is only one rejecting state, so its counters are ignored.
            reached = [(-1, *self.start[1:]) if each[0] == -1 else each for each in reached]
            for each in reached:
                if each not in numbers:
                    numbers[each] = len(order)
                    order.append(each)
            if len(order) > MAX_REACHED:
                return None
            rows.append(tuple(numbers[each] for each in reached))
        accepting = frozenset(numbers[state] for state in order if self.answer(state, None))
        return DFA(self.alphabet, tuple(rows), accepting).minimal()

    def trace(self, word: Word) -> list[dict[str, Any]]:
        """Return the symbol, the state and the counters at the beginning and after each symbol of a
        word.
        """
        names = {number: name for name, number in self._number.items()} | {-1: "rejects"}
        return [
            {
                "symbol": symbol,
                "state": names[state[0]],
                "counters": dict(zip(self.counters, state[1:], strict=True)),
            }
            for symbol, state in zip(("", *word), self._states(word), strict=True)
        ]

    def _states(self, word: Word) -> list[tuple[int, ...]]:
        states = [self.start]
        for letter in word:
            if letter not in self.alphabet:
                raise InputError(
                    f"expected symbols of the alphabet {show_alphabet(self.alphabet)}, got {letter!r}; "
                    "try another alphabet=… (--alphabet)"
                )
            states.append(self.step(states[-1], letter)[0])
        return states


def _hold(tests: Sequence[CounterTest], counters: Mapping[str, Any], meanings: Meanings) -> Any:
    verdict: Any = True
    for counter, comparison, number in tests:
        holds = meanings[COMPARISONS[comparison].operation](counters[counter], number)
        verdict = meanings["and"](verdict, holds)
    return verdict


class _AutomatonReader(Reader):
    dialect, grammar = "counter automaton", GRAMMAR
    expected: ClassVar = {
        "STRING": "a symbol in quotes",
        "COMPARISON": "a comparison, such as depth == 0",
        "PLUS": "a change, such as depth + 1",
        "NUMBER": "an integer",
        "NAME": "a name",
        "IF": "if or ->",
        "_END": "the end of the line",
    }

    def __init__(self, alphabet: tuple[Letter, ...] | None) -> None:
        super().__init__()
        self.alphabet = alphabet
        self.first: Token | None = None
        self.accepting: list[tuple[Token, tuple[CounterTest, ...]]] = []
        self.transitions: list[Transition] = []

    def read(self, text: str) -> CounterAutomaton:
        """Parse the text of an automaton and return the automaton."""
        super().read(text)
        if not self.transitions:
            self.fail('expected a transition, such as q "a" -> q, count + 1')
        states = {state for t in self.transitions for state in (t.source, t.target)}
        for name in [self.first, *(state for state, _ in self.accepting)]:
            if name is not None and name not in states:
                self.fail(
                    f"expected a state of a transition ({', '.join(sorted(states))}), got {name}", name
                )
        start = self.transitions[0].source if self.first is None else str(self.first)
        named = {letter for t in self.transitions for letter in t.letters}
        letters = alphabet_of(self.dialect, named, self.alphabet)
        accepting = [(str(state), tests) for state, tests in self.accepting]
        return CounterAutomaton(start, accepting, self.transitions, letters, text)

    def begin(self, parts: list[Token]) -> None:
        """Store the initial state of a ``start`` line."""
        if self.first is not None:
            self.fail("expected one start state, got a second one", parts[0])
        self.first = parts[1]

    def acceptance(self, parts: list[Any]) -> None:
        """Store the accepting state and the tests of an ``accept`` line."""
        self.accepting.append((parts[1], parts[2] if len(parts) > 2 else ()))

    def transition(self, parts: list[Any]) -> None:
        """Store the transition of a line."""
        if len(self.transitions) == _MAX_TRANSITIONS:
            self.fail(f"expected at most {_MAX_TRANSITIONS:,} transitions, got more", parts[0])
        strings = [p for p in parts if isinstance(p, Token) and p.type == "STRING"]
        rest = parts[1 + len(strings) :]
        tests: tuple[CounterTest, ...] = ()
        if isinstance(rest[0], tuple):
            tests, rest = rest[0], rest[1:]
        letters = tuple(self.symbol_of(token) for token in strings)
        updates = tuple((str(name), str(how), number) for name, how, number in rest[1:])
        seen: set[str] = set()
        for name, _, _ in rest[1:]:
            if name in seen:
                self.fail(f"expected one change of each counter, got a second of {name}", name)
            seen.add(name)
        self.transitions.append(Transition(str(parts[0]), letters, tests, str(rest[0]), updates))

    def condition(self, parts: list[Any]) -> tuple[CounterTest, ...]:
        """Return the tests of a condition."""
        return tuple(parts[1:])

    def test(self, parts: list[Any]) -> CounterTest:
        """Return the comparison of a counter with an integer."""
        return CounterTest(str(parts[0]), str(parts[1]), parts[2])

    def update(self, parts: list[Token]) -> list[Any]:
        """Return an update of a counter: its name, the operator and the integer."""
        return [parts[0], parts[1], self._integer(parts[2])]

    def integer(self, parts: list[Token]) -> int:
        """Return the value of an integer with an optional sign."""
        number = self._integer(parts[-1])
        return -number if len(parts) > 1 else number

    def _integer(self, token: Token) -> int:
        if len(token) > 7 or int(token) > _MAX_NUMBER:
            self.fail(f"expected an integer of at most {_MAX_NUMBER:,}, got {token[:20]}", token)
        return int(token)
