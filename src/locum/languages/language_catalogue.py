"""Define named languages: plain recognisers, definitions, and published results.

A plain recogniser is a Python function. A definition is a regular expression, an automaton or a C-RASP
program. Palindromes, and Dyck languages of unbounded depth with two or more kinds of brackets, have a
plain recogniser but no definition.

>>> NAMED["parity"].about, NAMED["parity"].plain("11")
("an even number of 1's", True)
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Claim(NamedTuple):
    """A published result that states whether a language is in a class."""

    key: str
    holds: bool
    source: str


@dataclass(frozen=True)
class NamedLanguage:
    """A language with its name, its definition and published results."""

    name: str
    about: str
    alphabet: str
    #: A Python function that decides whether a word is in the language.
    plain: Callable[[str], bool]
    #: The form of the definition ("regex", "dfa" or "c-rasp") and its text, or "".
    form: str = ""
    text: str = ""
    claims: tuple[Claim, ...] = ()
    #: Words that show that the language is not regular, or "" if it is regular. The words u vᵐ w have
    #: infinitely many different sets of continuations.
    witness: str = ""


_EQUAL_BRACKETS = '"("ᵐ")"ⁿ is accepted if and only if m = n'


def _balanced(pairs: str, deepest: int | None = None) -> Callable[[str], bool]:
    """Return a function that accepts well-nested brackets up to the nesting depth ``deepest``.

    ``pairs`` contains the kinds of brackets: "()[]" contains two kinds.
    """
    closing = dict(zip(pairs[1::2], pairs[::2], strict=True))

    def accepts(word: str) -> bool:
        stack: list[str] = []
        for letter in word:
            if letter in closing:
                if not stack or stack.pop() != closing[letter]:
                    return False
            else:
                stack.append(letter)
            if deepest is not None and len(stack) > deepest:
                return False
        return not stack

    return accepts


def _nested_expression(pairs: str, depth: int) -> str:
    """Return a regular expression of well-nested brackets up to the nesting depth ``depth``."""
    inner = ""
    for _ in range(depth):
        kinds = (f"\\{pairs[i]}{inner}\\{pairs[i + 1]}" for i in range(0, len(pairs), 2))
        inner = f"({'+'.join(kinds)})*"
    return inner


def _shuffled(pairs: str) -> Callable[[str], bool]:
    kinds = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    single = {kind: _balanced(kind) for kind in kinds}
    return lambda word: all(single[kind]("".join(x for x in word if x in kind)) for kind in kinds)


def _shuffle_program(pairs: str) -> str:
    names = "xyz"
    kinds = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    lines = [f'{n} = #"{kind[0]}" - #"{kind[1]}"' for n, kind in zip(names, kinds, strict=False)]
    used = names[: len(kinds)]
    below = " || ".join(f"{name} < 0" for name in used)
    zero = " && ".join(f"{name} == 0" for name in used)
    return "\n".join([*lines, f"accepted = #[{below}] == 0 && {zero}"])


def _expression(word: str) -> bool:
    """Return whether a word is one prefix expression.

    The operators ~, & and ? have 1, 2 and 3 operands, and 0 and 1 are operands.
    """
    open_places = 1
    for letter in word:
        if open_places == 0:
            return False
        open_places += {"0": -1, "1": -1, "~": 0, "&": 1, "?": 2}[letter]
    return open_places == 0


def _blocks(k: int) -> Callable[[str], bool]:
    """Return a function that accepts words of k alternating blocks of a's and b's that begin with a."""

    def accepts(word: str) -> bool:
        changes = sum(a != b for a, b in itertools.pairwise(word))
        return word.startswith("a") and changes == k - 1

    return accepts


def _matches(text: str) -> Callable[[str], bool]:
    pattern = re.compile(text.replace("+", "|"))
    return lambda word: pattern.fullmatch(word) is not None


def _block_expression(k: int) -> str:
    return "".join("aa*" if place % 2 == 0 else "bb*" for place in range(k))


HAO, YANG = "Hao, Angluin & Frank 2022", "Yang & Chiang 2024"
CHOLAK, BHATTAMISHRA = "Chiang & Cholak 2022", "Bhattamishra, Ahuja & Goyal 2020"
YAO, DEPTH = "Yao, Peng, Papadimitriou & Narasimhan 2021", "Yang, Cadilhac & Chiang 2025"
HUANG, BARRINGTON = "Huang et al. 2025", "Barrington 1989"
VESELI = "Yang, Veseli et al. 2026"

_TWO_EQUAL = """bad = "a" && #"b" > 0
accepted = #bad == 0 && #"a" == #"b\""""
_EXPRESSION = """value = #"&" + 2 * #"?" - #"0" - #"1"
accepted = value == -1 && #[("~" || "&" || "?" || "0" || "1") && value <= -1] == 1"""
_THREE_EQUAL = """bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0
accepted = #bad == 0 && #"a" == #"b" && #"b" == #"c\""""

_EVEN = "accepted = i % 2 == 0"
_STARS = (
    ("ab-bbaa", "(ab+bbaa)*", True),
    ("ab-aabb", "(ab+aabb)*", False),
    ("ab-bba", "(ab+bba)*", False),
    ("ends-b", "(a+b)*b", False),
)

_CONTAINS = 'accepted = #("b" && #[j == i - 1] "a" > 0) > 0'
#: Two generators of the group A5, as permutations of five points: a 5-cycle and a 3-cycle.
_A5 = {"a": (1, 2, 3, 4, 0), "b": (1, 2, 0, 3, 4)}


def _is_identity(word: str) -> bool:
    points = tuple(range(5))
    for letter in word:
        points = tuple(_A5[letter][point] for point in points)
    return points == tuple(range(5))


def _a5_automaton() -> str:
    """Return the automaton of the word problem of A5 as JSON; its states are the 60 group elements."""
    start = tuple(range(5))
    rows: dict[tuple[int, ...], dict[str, tuple[int, ...]]] = {}
    waiting = [start]
    while waiting:
        points = waiting.pop()
        if points not in rows:
            rows[points] = {x: tuple(g[p] for p in points) for x, g in _A5.items()}
            waiting.extend(rows[points].values())
    names = {points: "".join(map(str, points)) for points in rows}
    transitions = {
        names[points]: {x: names[target] for x, target in row.items()} for points, row in rows.items()
    }
    accepting = [names[start]]
    data = {"alphabet": ["a", "b"], "start": names[start], "accepting": accepting}
    return json.dumps(data | {"transitions": transitions})


_ALL = [
    NamedLanguage(
        "parity", "an even number of 1's", "01", lambda w: w.count("1") % 2 == 0, "regex",
        "0*(10*10*)*", (Claim("UHAT", False, HAO), Claim("softmax", True, CHOLAK)),
    ),
    NamedLanguage(
        "first", "words that begin with 1", "01", lambda w: w.startswith("1"), "regex", "1(0+1)*",
        (Claim("softmax", True, CHOLAK),),
    ),
    NamedLanguage(
        "even-length", "words of even length", "a", lambda w: len(w) % 2 == 0, "c-rasp", _EVEN,
        (Claim("C-RASP[periodic, local]", True, HUANG),),
    ),
    NamedLanguage(
        "contains-ab", "words that contain ab", "abc", lambda w: "ab" in w, "c-rasp", _CONTAINS,
        (Claim("C-RASP[periodic, local]", True, HUANG),),
    ),
    *(
        NamedLanguage(
            name, f"words of {text}", "ab", _matches(text), "regex", text,
            (Claim("C-RASP", holds, VESELI),),
        )
        for name, text, holds in _STARS
    ),
    *(
        NamedLanguage(
            f"blocks-{k}", f"{k} blocks of a's and b's, the first of a's", "ab", _blocks(k),
            "regex", _block_expression(k), (Claim("C-RASP", True, DEPTH),),
        )
        for k in (3, 4, 5, 6)
    ),
    *(
        NamedLanguage(
            f"dyck-{len(pairs) // 2}-{depth}",
            f"well-nested brackets of {len(pairs) // 2} kind(s), depth at most {depth}", pairs,
            _balanced(pairs, depth), "regex", _nested_expression(pairs, depth),
            (Claim("UHAT", True, YAO),),
        )
        for pairs, depth in (("()", 1), ("()", 2), ("()", 3), ("()[]", 1), ("()[]", 2))
    ),
    NamedLanguage(
        "a5", "words of two generators of the group A5 with the value 1", "ab", _is_identity, "dfa",
        _a5_automaton(), (Claim("solvable", False, BARRINGTON),),
    ),
    NamedLanguage(
        "majority", "more a's than b's", "ab", lambda w: w.count("a") > w.count("b"), "c-rasp",
        'accepted = #"a" > #"b"', (Claim("AHAT", True, HAO), Claim("UHAT", False, HAO)),
        "aaᵐbⁿ is accepted if and only if m ≥ n",
    ),
    NamedLanguage(
        "dyck-1", "well-nested brackets of one kind", "()", _balanced("()"), "c-rasp",
        'x = #"(" - #")"\naccepted = #[x < 0] == 0 && x == 0',
        (
            Claim("C-RASP", True, YANG), Claim("AHAT", True, HAO), Claim("UHAT", False, HAO),
            Claim("softmax", True, BHATTAMISHRA),
        ),
        _EQUAL_BRACKETS,
    ),
    *(
        NamedLanguage(
            f"dyck-{len(pairs) // 2}", f"well-nested brackets of {len(pairs) // 2} kinds", pairs,
            _balanced(pairs), claims=(Claim("UHAT", False, HAO),), witness=_EQUAL_BRACKETS,
        )
        for pairs in ("()[]", "()[]{}")
    ),
    *(
        NamedLanguage(
            f"shuffle-{len(pairs) // 2}", f"{len(pairs) // 2} kinds of brackets, each well-nested",
            pairs, _shuffled(pairs), "c-rasp", _shuffle_program(pairs),
            (Claim("softmax", True, BHATTAMISHRA),), _EQUAL_BRACKETS,
        )
        for pairs in ("()[]", "()[]{}")
    ),
    NamedLanguage(
        "expressions", "prefix expressions of ~, & and ? (1, 2, 3 operands), 0 and 1", "~&?01",
        _expression, "c-rasp", _EXPRESSION, (Claim("softmax", True, BHATTAMISHRA),),
        "&ᵐ11ⁿ is accepted if and only if m = n",
    ),
    NamedLanguage(
        "anbn", "n a's, then n b's", "ab", lambda w: w == "a" * (len(w) // 2) + "b" * (len(w) // 2),
        "c-rasp", _TWO_EQUAL, witness="aᵐbⁿ is accepted if and only if m = n",
    ),
    NamedLanguage(
        "anbncn", "n a's, n b's, n c's", "abc",
        lambda w: w == "".join(x * (len(w) // 3) for x in "abc"),
        "c-rasp", _THREE_EQUAL, (Claim("C-RASP", True, YANG),),
        "aᵐbⁿcⁿ is accepted if and only if m = n",
    ),
    NamedLanguage(
        "palindromes", "words that read the same backwards", "ab", lambda w: w == w[::-1],
        witness="aᵐbaⁿ is accepted if and only if m = n",
    ),
]  # fmt: skip

#: Maps names to languages.
NAMED = {language.name: language for language in _ALL}
