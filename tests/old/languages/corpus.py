"""The published verdicts, and what they are compared with.

``LOCUM_LANGUAGES=file.json`` runs the tests on another corpus of the same form.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from locum.languages.automata import DFA
from locum.languages.counters import CounterMachine
from locum.languages.recogniser import LAST, Recogniser

_OWN = Path(__file__).parents[2] / "conformance" / "languages.json"
CORPUS: list[dict[str, Any]] = json.loads(
    Path(os.environ.get("LOCUM_LANGUAGES", _OWN)).read_text(encoding="utf-8")
)["languages"]


def agrees(automaton: DFA, program: Recogniser, longest: int) -> bool:
    """Whether a program agrees with an automaton on all words; words that count the same are one."""
    machine = CounterMachine(program)
    layer: set[tuple[Any, int, bool]] = {(machine.start, 0, False)}
    for size in range(longest + 1):
        for state, at, accepted in layer:
            if (size or program.accept != LAST) and bool(machine.answer(state, accepted)) != (
                at in automaton.accepting
            ):
                return False
        if size == longest:
            break
        following = set()
        for state, at, _ in layer:
            for place, letter in enumerate(automaton.alphabet):
                target, accepted = machine.step(state, letter)
                following.add((target, automaton.transitions[at][place], bool(accepted)))
        layer = following
    return True


def random_dfa(rng: random.Random, most: int = 6, letters: str = "ab") -> DFA:
    """An automaton with random transitions, as it is (not minimal)."""
    size = rng.randint(1, most)
    rows = tuple(tuple(rng.randrange(size) for _ in letters) for _ in range(size))
    return DFA(tuple(letters), rows, frozenset(s for s in range(size) if rng.random() < 0.5))
