"""Verdicts on languages against plain computations, and published verdicts."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from locum.languages import LTL, b_rasp, c_rasp, classify, equivalent

HERE = Path(__file__).parent
CORPUS = json.loads((HERE.parent / "conformance/languages.json").read_text())["languages"]


def words(alphabet: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in itertools.product(alphabet, repeat=n)]


def to_python(regex: str) -> re.Pattern[str]:
    return re.compile(regex.replace("+", "|").replace(" ", "").replace("ε", ""))


def automaton(regex: str, alphabet: str) -> tuple[Any, Any]:
    """A small automaton by residuals on short words: (transition, accepting), for languages with few states."""
    accepts = lambda w: to_python(regex).fullmatch(w) is not None  # noqa: E731
    tests = words(alphabet, 8)
    residual = lambda w: tuple(accepts(w + t) for t in tests)  # noqa: E731
    names, queue, step = {residual(""): 0}, [""], {}
    for w in queue:
        for a in alphabet:
            key = residual(w + a)
            if key not in names:
                names[key] = len(names)
                queue.append(w + a)
            step[names[residual(w)], a] = names[key]
    return step, {i for key, i in names.items() if key[0]}


def star_free(step: Any, alphabet: str) -> bool:
    """Whether the monoid of transitions has only trivial groups."""
    states = sorted({s for s, _ in step})
    start = tuple(states)
    letters = [tuple(step[s, a] for s in states) for a in alphabet]
    seen, queue = {start}, [start]
    for m in queue:
        for f in letters:
            n = tuple(f[s] for s in m)
            if n not in seen:
                seen.add(n)
                queue.append(n)
    for m in seen:
        power, earlier = m, []
        while power not in earlier:
            earlier.append(power)
            power = tuple(m[s] for s in power)
        if power != earlier[-1]:
            return False
    return True


#: Published verdicts that contradict the theorems (tests/dialects/test_classify.py).
_MISREAD = re.compile(r"^\(([abc])\*([abc]+)\)\*")


def test_the_corpus() -> None:
    for row in CORPUS[::4]:
        found = classify(row["regex"])
        assert found.c_rasp == row["C-RASP"], row
        if not _MISREAD.match(row["regex"]):
            assert (found.r, found.r_infinity) == (row["R"], row["R_infinity"]), row


SMALL = ["(ab)*", "(aa)*", "(a+b)*a", "a*b*", "(aab)*", "(a(ba)*b)*", "(b*ab*ab*)*b*", "((a+b)(a+b))*", "(ab+ba)*",
         "a(a+b)*b", "(a+b)*ab(a+b)*", "(aaa)*b", "b*(ab*ab*ab*)*", "(abab)*", "(a+bb)*", "a+b", "(a+b)*"]  # fmt: skip


@pytest.mark.parametrize("regex", SMALL)
def test_small_languages(regex: str) -> None:
    """Words, star-freeness, C-RASP and B-RASP programs of the verdicts."""
    letters = "".join(sorted({c for c in regex if c in "ab"}))
    verdicts = classify(regex)
    dfa, pattern = verdicts.automaton, to_python(regex)
    for word in words(letters, 6):
        assert dfa.accepts(word) == (pattern.fullmatch(word) is not None), word
    step, _ = automaton(regex, letters)
    assert verdicts.star_free == star_free(step, letters)
    assert equivalent(regex, regex).verdict == "equivalent"
    for other in SMALL:
        if {c for c in other if c in "ab"} != set(letters):
            continue
        shortest = next(
            (
                w
                for w in words(letters, 5)
                if (pattern.fullmatch(w) is None) != (to_python(other).fullmatch(w) is None)
            ),
            None,
        )
        comparison = equivalent(regex, other)
        assert (comparison.verdict == "equivalent") == (shortest is None), other
        if shortest is not None:
            assert len(comparison.word) == len(shortest), other


# C-RASP and LTL against direct evaluation ----------------------------------------------------------------


def random_c_rasp(rng: random.Random) -> tuple[str, Any]:
    """A program as text, and a function (word, i) → truth of its answer."""

    def boolean(depth: int) -> tuple[str, Any]:
        match rng.randrange(5 if depth else 1):
            case 0:
                a = rng.choice("ab")
                return f'"{a}"', lambda w, i: w[i] == a
            case 1:
                (s, f), (t, g) = boolean(depth - 1), boolean(depth - 1)
                return f"({s} && {t})", lambda w, i: f(w, i) and g(w, i)
            case 2:
                (s, f) = boolean(depth - 1)
                return f"!({s})", lambda w, i: not f(w, i)
            case _:
                (s, f), (t, g) = count(depth - 1), count(depth - 1)
                sign = rng.choice(["==", "!=", "<", "<=", ">", ">="])
                compare = {"==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
                           "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y}[sign]  # fmt: skip
                return f"({s} {sign} {t})", lambda w, i: compare(f(w, i), g(w, i))

    def count(depth: int) -> tuple[str, Any]:
        match rng.randrange(5):
            case 0:
                k = rng.randrange(3)
                return str(k), lambda w, i: k
            case 1 if depth > 0:
                (s, f), (t, g) = count(depth - 1), count(depth - 1)
                return f"({s} - {t})", lambda w, i: f(w, i) - g(w, i)
            case 2 if depth > 0:
                (s, f), (t, g) = count(depth - 1), count(depth - 1)
                return f"min({s}, 2 * {t})", lambda w, i: min(f(w, i), 2 * g(w, i))
            case _:
                s, f = boolean(max(depth, 0))
                return f"#({s})", lambda w, i: sum(f(w, j) for j in range(i + 1))

    return boolean(3)


@pytest.mark.parametrize("part", range(4))
def test_c_rasp(part: int) -> None:
    rng = random.Random(part)
    for _ in range(12):
        text, holds = random_c_rasp(rng)
        program = c_rasp.parse(f"accepted = {text}", alphabet="ab")
        for word in rng.sample(words("ab", 6)[1:], 12):
            assert program.accepts(word) == bool(holds(word, len(word) - 1)), (text, word)


def random_ltl(rng: random.Random, depth: int = 3) -> tuple[str, Any]:
    if not depth or rng.random() < 0.2:
        a = rng.choice("ab")
        return a, lambda w, i: w[i] == a
    s, f = random_ltl(rng, depth - 1)
    t, g = random_ltl(rng, depth - 1)
    later = lambda w, i: range(i, len(w))  # noqa: E731
    match rng.choice("!&XFGUYOHS"):
        case "!":
            return f"!({s})", lambda w, i: not f(w, i)
        case "&":
            return f"(({s}) & ({t}))", lambda w, i: f(w, i) and g(w, i)
        case "X":
            return f"X ({s})", lambda w, i: i + 1 < len(w) and f(w, i + 1)
        case "F":
            return f"F ({s})", lambda w, i: any(f(w, j) for j in later(w, i))
        case "G":
            return f"G ({s})", lambda w, i: all(f(w, j) for j in later(w, i))
        case "U":
            return f"(({s}) U ({t}))", lambda w, i: any(
                g(w, j) and all(f(w, k) for k in range(i, j)) for j in later(w, i)
            )
        case "Y":
            return f"Y ({s})", lambda w, i: i > 0 and f(w, i - 1)
        case "O":
            return f"O ({s})", lambda w, i: any(f(w, j) for j in range(i + 1))
        case "H":
            return f"H ({s})", lambda w, i: all(f(w, j) for j in range(i + 1))
        case _:
            return f"(({s}) S ({t}))", lambda w, i: any(
                g(w, j) and all(f(w, k) for k in range(j + 1, i + 1)) for j in range(i + 1)
            )


@pytest.mark.parametrize("part", range(4))
def test_ltl_and_b_rasp(part: int) -> None:
    rng = random.Random(part)
    for n in range(8):
        text, holds = random_ltl(rng)
        at = ("first", "last")[n % 2]
        formula = LTL.parse(text, at=at, alphabet="ab")
        program, automaton_of = b_rasp.from_ltl(formula), formula.automaton()
        for word in rng.sample(words("ab", 5)[1:], 12):
            wanted = bool(holds(word, 0 if at == "first" else len(word) - 1))
            assert automaton_of.accepts(word) == wanted, (text, at, word)
            assert program.accepts(word) == wanted, (text, at, word)


def random_regex(rng: random.Random, depth: int = 3) -> str:
    if not depth or rng.random() < 0.15:
        return rng.choice("ab")
    x, y = random_regex(rng, depth - 1), random_regex(rng, depth - 1)
    return rng.choice([f"({x}+{y})", f"{x}{y}", f"{x}{y}", f"({x})*"])


@pytest.mark.parametrize("part", range(6))
def test_random_languages(part: int) -> None:
    """Words, star-freeness and witnesses; programs and minimal machines of the language."""
    rng = random.Random(part)
    for _ in range(12):
        regex = random_regex(rng) + rng.choice(["a", "b", "", "a*"])
        letters = "".join(sorted(set(regex) & set("ab")))
        verdicts, pattern = classify(regex), to_python(regex)
        step, final = automaton(regex, letters)
        dfa = verdicts.automaton
        for word in words(letters, 5):
            assert dfa.accepts(word) == (pattern.fullmatch(word) is not None), (regex, word)
        assert verdicts.star_free == star_free(step, letters), regex
        assert all(w.check(dfa) for w in verdicts.witnesses.values()), regex
        for verdict in verdicts.positions.values():
            program = verdict.program(dfa) if verdict else None
            if program is not None:
                for word in rng.choices(words(letters, 5), k=8):
                    assert program.accepts(word) == dfa.accepts(word), (regex, word)
                again = c_rasp.parse(program.text, alphabet=letters)
                for word in rng.choices(words(letters, 5), k=4):
                    assert again.accepts(word) == dfa.accepts(word), (regex, word)


@pytest.mark.parametrize("part", range(3))
def test_printed_programs(part: int) -> None:
    """The text of a random C-RASP program, with both conventions and with imports, denotes the program."""
    rng = random.Random(10 + part)
    for n in range(10):
        text, _ = random_c_rasp(rng)
        accept = ("last", "end")[n % 2]
        extra = rng.choice(["", '&& #[j == i - 1] "a" <= 1', "|| i % 2 == 1", '&& #[j >= i] "b" >= 1'])
        imports = {"j ==": "#import local\n", "i %": "#import periodic\n", "j >=": "#import future\n"}
        head = next((line for key, line in imports.items() if key in extra), "")
        program = c_rasp.parse(f"#accept {accept}\n{head}accepted = {text} {extra}", alphabet="ab")
        again = c_rasp.parse(program.text, alphabet="ab")
        for word in rng.sample(words("ab", 5)[1:], 10):
            assert again.accepts(word) == program.accepts(word), (text, extra, word)
