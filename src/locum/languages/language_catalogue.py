"""Define named languages: executable definitions, plain recognisers, and published results.

Each citation names a paper that states whether the language is in the class. A definition is a regular
expression, an automaton, a C-RASP program or a counter automaton. A plain recogniser is a Python
function. Palindromes, and Dyck languages of unbounded depth with two or more kinds of brackets, have
a plain recogniser but no definition.

>>> dyck = NAMED["dyck-1"]
>>> dyck.plain("(())"), dyck.language().program.accepts("(())")
(True, True)
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from locum.errors import InputError
from locum.languages.automata import DFA
from locum.languages.c_rasp_programs import obstruct
from locum.languages.equivalence import regular_automaton
from locum.languages.monoid import Monoid
from locum.languages.named_languages import Language, read
from locum.languages.non_regular import (
    CLASSES,
    PumpingWitness,
    Verdict,
    non_regular_verdicts,
    verdicts,
)
from locum.languages.recogniser import END, LAST


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
    #: The form of the definition ("regex", "dfa", "c-rasp", "counter") and its text, or "".
    form: str = ""
    text: str = ""
    claims: tuple[Claim, ...] = ()
    #: A witness that the language is not regular; None if it is regular.
    witness: PumpingWitness | None = None

    def language(self) -> Language:
        """Return the :class:`Language`; a language without a definition raises :class:`InputError`."""
        if not self.form:
            raise InputError(
                f"{self.name}: expected a language with an automaton, a counter automaton or a C-RASP "
                "program, got one without; try locum language classify"
            )
        accept = "end" if self.form == "c-rasp" else None
        return read(self.text, self.form, alphabet=self.alphabet, accept=accept)


def _witness(v: str, x: str, *, w: str = "", z: str = "", relation: str = "==") -> PumpingWitness:
    return PumpingWitness((), tuple(v), tuple(w), tuple(x), (), relation, 0, tuple(z))


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
ANGLUIN = "Yang, Chiang & Angluin 2024"
HUANG, BARRINGTON = "Huang et al. 2025", "Barrington 1989"
VESELI = "Yang, Veseli et al. 2026"

_TWO_EQUAL = """accept a if count == 0
accept b if count == 0
a "a" -> a, count + 1
a "b" if count > 0 -> b, count - 1
b "b" if count > 0 -> b, count - 1
"""
_EXPRESSION = """value = #"&" + 2 * #"?" - #"0" - #"1"
accepted = value == -1 && #[("~" || "&" || "?" || "0" || "1") && value <= -1] == 1"""
_THREE_EQUAL = """bad = "a" && #("b" || "c") > 0 || "b" && #"c" > 0
accepted = #bad == 0 && #"a" == #"b" && #"b" == #"c\""""

_EVEN = "#import periodic\naccepted = i % 2 == 0"
_STARS = (
    ("ab-bbaa", "(ab+bbaa)*", True),
    ("ab-aabb", "(ab+aabb)*", False),
    ("ab-bba", "(ab+bba)*", False),
    ("ends-b", "(a+b)*b", False),
)

_CONTAINS = '#import local\naccepted = #("b" && #[j == i - 1] "a" > 0) > 0'
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
        "parity", "an odd number of 1's", "01", lambda w: w.count("1") % 2 == 1, "regex",
        "0*1(0*10*1)*0*", (Claim("UHAT", False, HAO), Claim("softmax", True, CHOLAK)),
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
        PumpingWitness(("a",), ("a",), (), ("b",), (), ">=", 0),
    ),
    NamedLanguage(
        "dyck-1", "well-nested brackets of one kind", "()", _balanced("()"), "c-rasp",
        'x = #"(" - #")"\naccepted = #[x < 0] == 0 && x == 0',
        (
            Claim("C-RASP", True, YANG), Claim("AHAT", True, HAO), Claim("UHAT", False, HAO),
            Claim("softmax", True, BHATTAMISHRA),
        ),
        _witness("(", ")"),
    ),
    *(
        NamedLanguage(
            f"dyck-{len(pairs) // 2}", f"well-nested brackets of {len(pairs) // 2} kinds", pairs,
            _balanced(pairs), claims=(Claim("UHAT", False, HAO),), witness=_witness("(", ")"),
        )
        for pairs in ("()[]", "()[]{}")
    ),
    *(
        NamedLanguage(
            f"shuffle-{len(pairs) // 2}", f"{len(pairs) // 2} kinds of brackets, each well-nested",
            pairs, _shuffled(pairs), "c-rasp", _shuffle_program(pairs),
            (Claim("softmax", True, BHATTAMISHRA),), _witness("(", ")"),
        )
        for pairs in ("()[]", "()[]{}")
    ),
    NamedLanguage(
        "expressions", "prefix expressions of ~, & and ? (1, 2, 3 operands), 0 and 1", "~&?01",
        _expression, "c-rasp", _EXPRESSION, (Claim("softmax", True, BHATTAMISHRA),),
        PumpingWitness((), ("&",), ("1",), ("1",), ()),
    ),
    NamedLanguage(
        "anbn", "n a's, then n b's", "ab", lambda w: w == "a" * (len(w) // 2) + "b" * (len(w) // 2),
        "counter", _TWO_EQUAL, witness=_witness("a", "b"),
    ),
    NamedLanguage(
        "anbncn", "n a's, n b's, n c's", "abc",
        lambda w: w == "".join(x * (len(w) // 3) for x in "abc"),
        "c-rasp", _THREE_EQUAL, (Claim("C-RASP", True, YANG),), _witness("a", "b", z="c"),
    ),
    NamedLanguage(
        "palindromes", "words that read the same backwards", "ab", lambda w: w == w[::-1],
        witness=_witness("a", "a", w="b"),
    ),
]  # fmt: skip

#: Named languages, by name.
NAMED = {language.name: language for language in _ALL}


def find(name: str) -> NamedLanguage:
    """Return the named language ``name``; raise :class:`InputError` for an unknown name."""
    if name not in NAMED:
        raise InputError(
            f"expected the name of a language, got {name!r}; try one of {', '.join(NAMED)}"
        )
    return NAMED[name]


def describe(named: NamedLanguage) -> list[Verdict]:
    """Return the verdicts on a named language, one for each class.

    A verdict that Locum computes replaces a published result on the same class.

    >>> {each.key: each.holds for each in describe(NAMED["parity"])}["star_free"]
    False
    """
    found = {verdict.key: verdict for verdict in _decide(named) if verdict.holds is not None}
    for claim in named.claims:
        if claim.key not in found:
            found[claim.key] = Verdict(claim.key, claim.holds, "stated in the paper", claim.source)
    undecided = {key: Verdict(key, None, "not decided") for key in CLASSES}
    return list((undecided | found).values())


def _decide(named: NamedLanguage) -> list[Verdict]:
    language = named.language() if named.form else None
    automaton = None if language is None else language.automaton
    if automaton is None and named.witness is None:
        assert language is not None
        assert language.program is not None
        automaton = regular_automaton(language.program)
    found = [] if automaton is None else _of_automaton(automaton)
    definition = None if language is None else language.program or language.counter
    if definition is not None:
        found += verdicts(definition, named.witness)
    elif named.witness is not None:
        found += non_regular_verdicts(named.witness)
    return found


def _of_automaton(automaton: DFA) -> list[Verdict]:
    """Return the verdicts on the regular language of an automaton."""
    monoid = Monoid(automaton)
    aperiodic, counts = monoid.is_aperiodic, obstruct(automaton, END) is None
    last = counts or obstruct(automaton, LAST) is None
    solvable = aperiodic or all(group.is_solvable for group in monoid.groups())
    found = [
        Verdict("regular", True, f"a finite automaton of {len(automaton)} states"),
        Verdict("star_free", aperiodic, "the syntactic monoid decides", "Schützenberger 1965"),
        Verdict("masked_UHAT", aperiodic, "exactly the star-free languages", ANGLUIN),
        Verdict("C-RASP", counts, "decided on the minimal automaton"),
        Verdict("C-RASP_last", last, "decided on the minimal automaton"),
        Verdict("solvable", solvable, "groups of the syntactic monoid"),
    ]
    if aperiodic or monoid.modular_element is None:
        found.append(Verdict("UHAT", True, "it is in AC⁰", "Barceló et al. 2024"))
    else:
        found.append(Verdict("UHAT", False, "it is not in AC⁰", HAO))
    if counts or last:
        found.append(Verdict("softmax", True, "C-RASP programs become softmax decoders", YANG))
        found.append(Verdict("C-RASP[periodic, local]", True, "C-RASP is contained"))
    return found
