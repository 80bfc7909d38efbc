"""Create, minimise and compare finite automata.

A :class:`DFA` is complete: every state has a transition for every letter. States are numbers, and 0 is
the initial state. :data:`MAX_STATES` and a :class:`~locum.budget.Budget` limit constructions that may
create exponentially many states.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from locum.budget import Budget
from locum.errors import InputError, LimitError

State = TypeVar("State", bound=Hashable)
#: A letter of a word. If words are written without blanks, each letter is one character.
Letter = str
Word = Sequence[Letter]

#: Maximum number of states that a construction explores, and of steps for one language.
MAX_STATES = 5_000
MAX_STEPS = 250_000


def account() -> Budget:
    """Return a new budget of steps for the work on one language."""
    return Budget(steps=MAX_STEPS, text_steps=MAX_STEPS)


@dataclass(frozen=True)
class DFA:
    """A complete deterministic finite automaton with the initial state 0.

    >>> even = DFA(("a", "b"), ((1, 0), (0, 1)), frozenset({0}))
    >>> even.accepts("aab"), even.accepts("ab")
    (True, False)
    """

    alphabet: tuple[Letter, ...]
    #: For each state, the next state for each letter, in the order of the alphabet.
    transitions: tuple[tuple[int, ...], ...]
    accepting: frozenset[int]

    def __len__(self) -> int:
        return len(self.transitions)

    def accepts(self, word: Word) -> bool:
        """Return whether the automaton accepts a word; letters outside the alphabet raise an error."""
        place = {letter: i for i, letter in enumerate(self.alphabet)}
        state = 0
        for letter in word:
            if letter not in place:
                raise InputError(
                    f"expected letters of the alphabet {show_alphabet(self.alphabet)}, got {letter!r}"
                )
            state = self.transitions[state][place[letter]]
        return state in self.accepting

    @property
    def is_finite(self) -> bool:
        """Whether the language is finite, that is, no accepting state can be reached from a cycle.

        Every state of the automaton must be reachable from the initial state.
        """
        useful = self.useful()
        return all(
            len(part) == 1 and part[0] not in self.transitions[part[0]]
            for part in components(self.transitions)
            if part[0] in useful
        )

    def useful(self) -> frozenset[int]:
        """Return the states from which an accepting state can be reached."""
        before: list[list[int]] = [[] for _ in self.transitions]
        for state, row in enumerate(self.transitions):
            for target in row:
                before[target].append(state)
        states = set(self.accepting)
        stack = list(states)
        while stack:
            for state in before[stack.pop()]:
                if state not in states:
                    states.add(state)
                    stack.append(state)
        return frozenset(states)

    def to_dot(self) -> str:
        """Return a drawing of the automaton in the DOT language of Graphviz.

        States from which no accepting state can be reached are omitted, except the initial state.

        >>> print(DFA(("a",), ((1,), (0,)), frozenset({0})).to_dot())
        digraph {
          rankdir=LR; node [shape=circle]; start [shape=point]; start -> 0
          0 [shape=doublecircle]
          0 -> 1 [label="a"]
          1 -> 0 [label="a"]
        }
        """
        lines = ["rankdir=LR; node [shape=circle]; start [shape=point]; start -> 0"]
        useful = self.useful() | {0}
        lines += [f"{state} [shape=doublecircle]" for state in sorted(self.accepting)]
        for state in sorted(useful):
            arrows: dict[int, list[Letter]] = {}
            for letter, target in zip(self.alphabet, self.transitions[state], strict=True):
                if target in useful:
                    arrows.setdefault(target, []).append(letter)
            for target, letters in arrows.items():
                label = ", ".join(letters).replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'{state} -> {target} [label="{label}"]')
        return "\n".join(["digraph {", *(f"  {line}" for line in lines), "}"])

    def minimal(self) -> DFA:
        """Return the minimal automaton of the language, with states numbered in breadth-first order."""
        reached = [0]
        seen = {0}
        for state in reached:
            for target in self.transitions[state]:
                if target not in seen:
                    seen.add(target)
                    reached.append(target)
        block = {state: int(state in self.accepting) for state in reached}
        count = len(set(block.values()))
        while True:
            signatures: dict[tuple[int, ...], int] = {}
            finer = {}
            for state in reached:
                signature = (block[state], *(block[target] for target in self.transitions[state]))
                finer[state] = signatures.setdefault(signature, len(signatures))
            block = finer
            if len(signatures) == count:
                break
            count = len(signatures)
        # Blocks are numbered in the order in which their first states were reached.
        rows: dict[int, tuple[int, ...]] = {}
        for state in reached:
            rows.setdefault(block[state], tuple(block[target] for target in self.transitions[state]))
        accepting = frozenset(block[state] for state in reached if state in self.accepting)
        return DFA(self.alphabet, tuple(rows[i] for i in range(count)), accepting)

    def reversed(self, budget: Budget | None = None) -> DFA:
        """Return the minimal automaton of the reversed language."""
        before: dict[tuple[int, Letter], list[int]] = {}
        for state, row in enumerate(self.transitions):
            for letter, target in zip(self.alphabet, row, strict=True):
                before.setdefault((target, letter), []).append(state)

        def step(states: frozenset[int], letter: Letter) -> frozenset[int]:
            return frozenset(s for state in states for s in before.get((state, letter), ()))

        return explore(
            self.alphabet,
            self.accepting,
            step,
            lambda states: 0 in states,
            budget,
            lambda s: len(s) / 4,
        )

    def over(self, alphabet: Sequence[Letter]) -> DFA:
        """Return an automaton of the same language over a larger or reordered ``alphabet``.

        An ``alphabet`` without one of the present letters raises an error.
        """
        missing = set(self.alphabet) - set(alphabet)
        if missing:
            raise InputError(f"expected an alphabet with {show_alphabet(sorted(missing))}")
        if tuple(alphabet) == self.alphabet:
            return self
        place = {letter: i for i, letter in enumerate(self.alphabet)}
        dead = len(self)
        rows = [
            tuple(row[place[letter]] if letter in place else dead for letter in alphabet)
            for row in (*self.transitions, (dead,) * len(self.alphabet))
        ]
        return DFA(tuple(alphabet), tuple(rows), self.accepting).minimal()

    def separate(self, other: DFA) -> tuple[Letter, ...] | None:
        """Return a shortest word that exactly one of two automata accepts, or None if they are
        equivalent.
        """
        alphabet = tuple(dict.fromkeys((*self.alphabet, *other.alphabet)))
        one, two = self.over(alphabet), other.over(alphabet)
        start = (0, 0)
        came: dict[tuple[int, int], tuple[tuple[int, int], Letter] | None] = {start: None}
        queue = deque([start])
        while queue:
            pair = queue.popleft()
            if (pair[0] in one.accepting) != (pair[1] in two.accepting):
                return _path(came, pair)
            for i, letter in enumerate(alphabet):
                target = (one.transitions[pair[0]][i], two.transitions[pair[1]][i])
                if target not in came:
                    came[target] = (pair, letter)
                    queue.append(target)
        return None


def _path(came: dict[State, tuple[State, Letter] | None], state: State) -> tuple[Letter, ...]:
    letters: list[Letter] = []
    while (step := came[state]) is not None:
        state, letter = step
        letters.append(letter)
    return tuple(reversed(letters))


def words(alphabet: Sequence[Letter], longest: int) -> Iterator[tuple[Letter, ...]]:
    """Yield all words of up to ``longest`` letters, shorter words first."""
    for size in range(longest + 1):
        yield from itertools.product(alphabet, repeat=size)


def explore(
    alphabet: Sequence[Letter],
    start: State,
    step: Callable[[State, Letter], State],
    accepts: Callable[[State], bool],
    budget: Budget | None = None,
    cost: Callable[[State], float] = lambda state: 1.0,
) -> DFA:
    """Explore the states that ``step`` reaches from ``start``, and return their minimal automaton.

    More than :data:`MAX_STATES` states, or more steps than ``budget`` allows, raise an error.
    """
    budget = budget or account()
    numbers: dict[State, int] = {start: 0}
    order = [start]
    rows: list[tuple[int, ...]] = []
    for state in order:
        budget.spend(cost(state) * len(alphabet))
        row = []
        for letter in alphabet:
            target = step(state, letter)
            if target not in numbers:
                if len(order) >= MAX_STATES:
                    raise LimitError(
                        f"expected an automaton of at most {MAX_STATES:,} states, got more; try a "
                        "smaller expression"
                    )
                numbers[target] = len(order)
                order.append(target)
            row.append(numbers[target])
        rows.append(tuple(row))
    accepting = frozenset(number for state, number in numbers.items() if accepts(state))
    return DFA(tuple(alphabet), tuple(rows), accepting).minimal()


def components(transitions: Sequence[Iterable[int]]) -> list[list[int]]:
    """Return the strongly connected components of a graph in reverse topological order.

    ``transitions`` lists the successors of each state. Each component precedes the components from
    which it can be reached.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    components: list[list[int]] = []
    for root in range(len(transitions)):
        if root in index:
            continue
        work = [(root, iter(transitions[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(transitions[target])))
                    break
                if target in on_stack:
                    low[state] = min(low[state], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == index[state]:
                    part = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        part.append(member)
                        if member == state:
                            break
                    components.append(sorted(part))
    return components


def show_alphabet(letters: Iterable[Letter]) -> str:
    """Format an alphabet as a set; letters after the twelfth are replaced by an ellipsis."""
    shown = [letter if letter.isprintable() and letter.strip() else repr(letter) for letter in letters]
    return "{" + ", ".join(shown[:12] + (["…"] if len(shown) > 12 else [])) + "}"


def show_word(word: Word) -> str:
    """Format a word, with ε for the empty word.

    Letters are concatenated if each consists of one character, and separated by blanks otherwise.
    """
    if not word:
        return "ε"
    return "".join(word) if all(len(letter) == 1 for letter in word) else " ".join(word)
