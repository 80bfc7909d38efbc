"""Verdicts on languages against plain computations on words, and published verdicts.

A language is a text and a Python predicate on words. Witnesses are checked here by an automaton that
is computed from the predicate alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from locum.languages import (
    LTL,
    Classification,
    Comparison,
    b_rasp,
    c_rasp,
    classify,
    equivalent,
    language,
    rasp_l,
)

CORPUS = Path(__file__).parents[1] / "conformance" / "languages.json"
#: Published verdicts on R and R∞ that are about another language: (a*b)* was read as (a*b)*a*.
MISREAD = re.compile(r"^\(([abc])\*([abc]+)\)\*")
#: A formula or program as text, and its value on a word at a position.
Meaning = tuple[str, Callable[[str, int], Any]]
#: The states to which each letter leads, by states.
Step = Mapping[tuple[int, str], int]


def words(alphabet: str, longest: int) -> list[str]:
    """Return all words, by length."""
    return ["".join(w) for n in range(longest + 1) for w in itertools.product(alphabet, repeat=n)]


def to_python(regex: str) -> re.Pattern[str]:
    """Translate an expression of formal languages, in which ``+`` is union."""
    return re.compile(regex.replace("+", "|").replace(" ", "").replace("ε", ""))


def minimal_automaton(regex: str, alphabet: str) -> tuple[Step, set[int]]:
    """Return the transitions and accepting states by residuals on short words. The start is 0."""
    accepts, suffixes = to_python(regex).fullmatch, words(alphabet, 8)

    def residual(word: str) -> tuple[bool, ...]:
        return tuple(accepts(word + suffix) is not None for suffix in suffixes)

    states, queue, step = {residual(""): 0}, [""], {}
    for word in queue:
        for letter in alphabet:
            target = residual(word + letter)
            if target not in states:
                states[target] = len(states)
                queue.append(word + letter)
            step[states[residual(word)], letter] = states[target]
    return step, {number for residuals, number in states.items() if residuals[0]}


def is_star_free(step: Step, alphabet: str) -> bool:
    """Return whether the monoid of transitions contains only trivial groups."""
    states = sorted({state for state, _ in step})
    letters = [tuple(step[state, letter] for state in states) for letter in alphabet]
    monoid = [tuple(states)]
    for element in monoid:
        monoid += {tuple(f[s] for s in element) for f in letters} - {*monoid}
    for element in monoid:
        power, powers = element, []
        while power not in powers:
            powers.append(power)
            power = tuple(element[s] for s in power)
        if power != powers[-1]:
            return False
    return True


class Run:
    """Run words on an automaton, to check witnesses."""

    def __init__(self, step: Step, final: set[int]) -> None:
        self.step, self.final = step, final
        self.states = sorted({state for state, _ in step})

    def __call__(self, word: str, state: int = 0) -> int:
        for letter in word:
            state = self.step[state, letter]
        return state

    def all(self, word: str) -> tuple[int, ...]:
        """Return the state that a word leads to, for each state."""
        return tuple(self(word, state) for state in self.states)

    def idempotent(self, word: str) -> str:
        """Return a power of a word that acts as an idempotent."""
        power = word
        while self.all(power) != self.all(power + power):
            power += word
        return power

    def cycle(self, word: str, state: int) -> set[int]:
        """Return the states of the cycle that repetitions of a word lead through."""
        states = [state]
        while self(word, states[-1]) not in states:
            states.append(self(word, states[-1]))
        return set(states) if self(word, states[-1]) == state else set()

    def accepts(self, word: str) -> bool:
        return self(word) in self.final


def occurrences(word: str) -> tuple[list[str], list[str]]:
    """Return the letters in the orders of their first and of their last occurrences."""
    return sorted({*word}, key=word.index), sorted({*word}, key=word.rindex)


def has_property(kind: str, words: Mapping[str, tuple[str, ...]], run: Run) -> bool:
    """Return whether the words of a witness have the property that its kind names."""
    w = {name: "".join(letters) for name, letters in words.items()}
    start = run(w.get("prefix", ""))
    match kind:
        case "loop":
            closed = run(w["loop"], start) == start
            return w["loop"] != "" and closed and run.accepts(w["prefix"] + w["suffix"])
        case "loops":
            other = run(w["prefix_2"])
            closed = w["loop_2"] != "" and run(w["loop_2"], other) == other
            rejected = not run.accepts(w["prefix_2"] + w["suffix_2"])
            return has_property("loop", words, run) and closed and rejected
        case "group" | "modular":
            cycle, stay = run.cycle(w["loop"], start), w.get("stay", "")
            fixed = all(run(stay, state) == state for state in cycle)
            return len(cycle) > 1 and fixed and (kind == "group" or len(stay) == len(w["loop"]))
        case "return":
            return run(w["there"], start) != start == run(w["there"] + w["back"], start)
        case "stutter":
            return len(w["letter"]) == 1 and run(w["letter"], start) != run(2 * w["letter"], start)
        case "orders":
            same = occurrences(w["accepted"]) == occurrences(w["rejected"])
            return same and run.accepts(w["accepted"]) and not run.accepts(w["rejected"])
        case "idempotents":
            e, f, ef, fe = (run.all(x) for x in (w["e"], w["f"], w["e"] + w["f"], w["f"] + w["e"]))
            squares = run.all(2 * w["e"]), run.all(2 * w["f"])
            return e != f and squares == (e, f) and (ef, fe) == (f, e)
        case "locals":
            e, x, y, s, t = (w[name] for name in "exyst")
            one, other = run.all(e + x + e), run.all(e + y + e)
            moved = run.all(e + s + e + x + e), run.all(e + t + e + y + e)
            return e != "" and run.all(2 * e) == run.all(e) and one != other and moved == (other, one)
        case "knast":
            e, f, x, y, u, v = (w[name] for name in "efxyuv")
            if any(word == "" or run.all(2 * word) != run.all(word) for word in (e, f)):
                return False
            before, after = run.idempotent(e + x + f + y), run.idempotent(e + u + f + v)
            return run.all(before + e + x + f + v + after) != run.all(before + after)
        case "counts":
            end = w["suffix"] + w.get("last", "")
            return run.accepts(w["prefix"] + end) != run.accepts(w["prefix"] + w["detour"] + end)
    return False


def check_language(regex: str) -> Classification:
    """Check words, star-freeness, witnesses and changes of them, and programs of the verdicts."""
    letters = "".join(sorted({*regex} & {*"ab"}))
    verdicts, pattern = classify(regex), to_python(regex)
    automaton = verdicts.automaton
    for word in words(letters, 6):
        assert automaton.accepts(word) == (pattern.fullmatch(word) is not None), (regex, word)
    step, final = minimal_automaton(regex, letters)
    assert verdicts.star_free == is_star_free(step, letters), regex
    run = Run(step, final)
    for name, witness in verdicts.witnesses.items():
        assert has_property(witness.kind, witness.words, run), (regex, name, str(witness))
        assert witness.check(automaton)
        for changed, word in itertools.product(
            witness.words, [(), *itertools.product(letters, repeat=2)]
        ):
            other = dataclasses.replace(witness, words={**witness.words, changed: word})
            wanted = has_property(witness.kind, other.words, run)
            assert other.check(automaton) == wanted, (regex, other)
    for verdict in verdicts.positions.values():
        program = verdict.program(automaton) if verdict else None
        if program is not None:
            again = c_rasp.parse(program.text, alphabet=letters)
            for word in words(letters, 4):
                wanted = automaton.accepts(word)
                assert program.accepts(word) == again.accepts(word) == wanted, (regex, word)
    return verdicts


def test_published_verdicts() -> None:
    for row in json.loads(CORPUS.read_text("utf-8"))["languages"][::4]:
        found = classify(row["regex"])
        assert found.c_rasp == row["C-RASP"], row
        if not MISREAD.match(row["regex"]):
            assert (found.r, found.r_infinity) == (row["R"], row["R_infinity"]), row


#: Regular expressions, and classes that contain their languages.
SMALL = {
    "(ab)*": "star_free r_infinity ac0", "(aa)*": "ac0 commutative", "a+b": "finite r",
    "(a+b)*a": "star_free c_rasp_last", "a*b*": "c_rasp r", "(aab)*": "star_free",
    "(a(ba)*b)*": "star_free", "(b*ab*ab*)*b*": "commutative solvable", "(a+b)*": "c_rasp until_rank_0",
    "((a+b)(a+b))*": "ac0 commutative", "(ab+ba)*": "star_free", "a(a+b)*b": "regular_band",
    "(a+b)*ab(a+b)*": "star_free c_rasp", "(aaa)*b": "solvable", "b*(ab*ab*ab*)*": "commutative",
    "(abab)*": "solvable", "(a+bb)*": "solvable",
}  # fmt: skip


@pytest.mark.parametrize("regex", SMALL)
def test_small_languages(regex: str) -> None:
    verdicts = check_language(regex)
    for name in SMALL[regex].split():
        assert getattr(verdicts, name), name


def test_pairs_of_languages() -> None:
    """Two languages are equivalent, or the shortest word separates them."""
    for one, other in itertools.combinations_with_replacement(SMALL, 2):
        if {*one} & {*"ab"} != {*other} & {*"ab"}:
            continue
        letters = "".join(sorted({*one} & {*"ab"}))
        accepts, accepts_other = to_python(one).fullmatch, to_python(other).fullmatch
        shortest = next(
            (w for w in words(letters, 5) if (accepts(w) is None) != (accepts_other(w) is None)), None
        )
        found = equivalent(one, other)
        assert isinstance(found, Comparison)
        assert (found.verdict == "equivalent") == (shortest is None), (one, other)
        if shortest is not None:
            assert len(found.word) == len(shortest), (one, other)


def random_regex(rng: random.Random, depth: int = 3) -> str:
    """Draw an expression of a, b, union, concatenation and star."""
    if not depth or rng.random() < 0.15:
        return rng.choice("ab")
    x, y = random_regex(rng, depth - 1), random_regex(rng, depth - 1)
    return rng.choice([f"({x}+{y})", f"{x}{y}", f"{x}{y}", f"({x})*"])


@pytest.mark.parametrize("seed", range(6))
def test_random_languages(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(7):
        check_language(random_regex(rng) + rng.choice(["a", "b", "", "a*"]))


def test_forms_of_expressions() -> None:
    """Complement, intersection, option, any letter, and ``+`` as repetition."""
    cases: list[tuple[str, Callable[[str], bool]]] = [
        ("~((aa)*)", lambda w: len(w) % 2 == 1 or "b" in w),
        ("~(∅)&~(.*bb.*)", lambda w: "bb" not in w),
        ("a?b?", lambda w: w in ("", "a", "b", "ab")),
        (".a|ε", lambda w: w == "" or (len(w) == 2 and w[1] == "a")),
        ("()", lambda w: w == ""),
    ]
    for regex, holds in cases:
        for word in words("ab", 5):
            assert language(regex, "ab").accepts(word) == holds(word), (regex, word)
    for word in words("ab", 5):
        repeated = language("(ab)+|b+", "ab", plus="repeat").accepts(word)
        assert repeated == (re.fullmatch("(ab)+|b+", word) is not None), word


COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def random_boolean(rng: random.Random, depth: int = 3) -> Meaning:
    """Draw a boolean of C-RASP."""
    kind = rng.randrange(6 if depth else 1)
    if kind == 0:
        letter = rng.choice("ab")
        return f'"{letter}"', lambda w, i: w[i] == letter
    if kind <= 3:
        (s, f), (t, g) = random_boolean(rng, depth - 1), random_boolean(rng, depth - 1)
        return [
            (f"({s} && {t})", lambda w, i: f(w, i) and g(w, i)),
            (f"({s} || {t})", lambda w, i: f(w, i) or g(w, i)),
            (f"!({s})", lambda w, i: not f(w, i)),
        ][kind - 1]
    (s, f), (t, g) = random_count(rng, depth - 1), random_count(rng, depth - 1)
    sign = rng.choice(list(COMPARE))
    return f"({s} {sign} {t})", lambda w, i: COMPARE[sign](f(w, i), g(w, i))


def random_count(rng: random.Random, depth: int) -> Meaning:
    """Draw a count of C-RASP."""
    kind = rng.randrange(8)
    if kind == 0:
        number = rng.randrange(3)
        return str(number), lambda w, i: number
    if kind > 3 or not depth:
        s, f = random_boolean(rng, max(depth, 0))
        return [
            (f"#({s})", lambda w, i: sum(f(w, j) for j in range(i + 1))),
            (f"#[j == i - 1] ({s})", lambda w, i: int(i > 0 and f(w, i - 1))),
            (f"#[j >= i] ({s})", lambda w, i: sum(f(w, j) for j in range(i, len(w)))),
            (f"(i % 2 + #[{s}])", lambda w, i: i % 2 + sum(f(w, j) for j in range(i + 1))),
        ][max(0, kind - 4)]
    (s, f), (t, g) = random_count(rng, depth - 1), random_count(rng, depth - 1)
    p, h = random_boolean(rng, depth - 1)
    return [
        (f"({s} - {t})", lambda w, i: f(w, i) - g(w, i)),
        (f"min({s}, 2 * {t})", lambda w, i: min(f(w, i), 2 * g(w, i))),
        (f"({s} if {p} else {t})", lambda w, i: f(w, i) if h(w, i) else g(w, i)),
    ][kind - 1]


@pytest.mark.parametrize("seed", range(4))
def test_c_rasp(seed: int) -> None:
    """Programs, and programs parsed from their own text, equal their meaning."""
    rng = random.Random(seed)
    for _ in range(15):
        text, holds = random_boolean(rng)
        program = c_rasp.parse(f"accepted = {text}", alphabet="ab")
        again = c_rasp.parse(program.text, alphabet="ab")
        for word in rng.sample(words("ab", 6)[1:], 12):
            wanted = bool(holds(word, len(word) - 1))
            assert program.accepts(word) == again.accepts(word) == wanted, (text, word)
        end = c_rasp.parse(f"#accept end\naccepted = {text}", alphabet="ab")
        again = c_rasp.parse(end.text, alphabet="ab")
        assert all(end.accepts(word) == again.accepts(word) for word in words("ab", 4)), text


def random_ltl(rng: random.Random, depth: int = 3) -> Meaning:
    """Draw a formula of linear temporal logic on finite words."""
    if not depth or rng.random() < 0.2:
        letter = rng.choice("ab")
        return letter, lambda w, i: w[i] == letter
    (s, f), (t, g) = random_ltl(rng, depth - 1), random_ltl(rng, depth - 1)
    return rng.choice(
        [
            (f"!({s})", lambda w, i: not f(w, i)),
            (f"(({s}) & ({t}))", lambda w, i: f(w, i) and g(w, i)),
            (f"X ({s})", lambda w, i: i + 1 < len(w) and f(w, i + 1)),
            (f"F ({s})", lambda w, i: any(f(w, j) for j in range(i, len(w)))),
            (f"G ({s})", lambda w, i: all(f(w, j) for j in range(i, len(w)))),
            (f"Y ({s})", lambda w, i: i > 0 and f(w, i - 1)),
            (f"O ({s})", lambda w, i: any(f(w, j) for j in range(i + 1))),
            (f"H ({s})", lambda w, i: all(f(w, j) for j in range(i + 1))),
            (
                f"(({s}) U ({t}))",
                lambda w, i: any(
                    g(w, j) and all(f(w, k) for k in range(i, j)) for j in range(i, len(w))
                ),
            ),
            (
                f"(({s}) S ({t}))",
                lambda w, i: any(
                    g(w, j) and all(f(w, k) for k in range(j + 1, i + 1)) for j in range(i + 1)
                ),
            ),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_ltl(seed: int) -> None:
    """Formulas, their printed text, automata, and programs of B-RASP equal their meaning."""
    rng = random.Random(seed)
    for n in range(10):
        text, holds = random_ltl(rng)
        at = ("first", "last")[n % 2]
        formula = LTL.parse(text, at=at, alphabet="ab")
        program, automaton = b_rasp.from_ltl(formula), formula.automaton()
        printed = LTL.parse(str(formula), at=at, alphabet="ab").automaton()
        for word in rng.sample(words("ab", 5)[1:], 12):
            wanted = bool(holds(word, 0 if at == "first" else len(word) - 1))
            found = [each.accepts(word) for each in (automaton, program, printed)]
            assert found == [wanted] * 3, (text, at, word)


MASKS: dict[str, Callable[[int, int], bool]] = {
    "true": lambda i, j: True, "j < i": lambda i, j: j < i, "j <= i": lambda i, j: j <= i,
    "j > i": lambda i, j: j > i, "j >= i": lambda i, j: j >= i,
}  # fmt: skip


def random_attention(rng: random.Random, names: list[str]) -> Meaning:
    """Draw an attention operation of B-RASP on letters and earlier names."""
    values: dict[str, Callable[[Any, int], bool]] = {
        "!": lambda w, i: False,
        **{f'"{letter}"': lambda w, i, letter=letter: w["word"][i] == letter for letter in "ab"},
        **{name: lambda w, i, name=name: w[name][i] for name in names},
    }
    score, value, default = (rng.choice(list(values)[1:]) for _ in range(3))
    mask, side, negated = rng.choice(list(MASKS)), rng.choice([min, max]), rng.random() < 0.5

    def meaning(w: Any, i: int) -> bool:
        chosen = [
            j for j in range(len(w["word"])) if MASKS[mask](i, j) and values[score](w, j) != negated
        ]
        return values[value](w, side(chosen)) if chosen else values[default](w, i)

    where = "leftmost" if side is min else "rightmost"
    return f"{where}[{mask}, {'!' * negated}{score}(j)] {value}(j) : {default}(i)", meaning


@pytest.mark.parametrize("seed", range(4))
def test_b_rasp(seed: int) -> None:
    """Programs of attention operations, their text and their formulas equal their meaning."""
    rng = random.Random(seed)
    for _ in range(8):
        names: list[str] = []
        lines, meanings = [], []
        for name in "pqr":
            text, meaning = random_attention(rng, names)
            names.append(name)
            lines.append(f"{name} = {text}")
            meanings.append(meaning)
        program = b_rasp.parse("\n".join(lines), alphabet="ab")
        again, formula = b_rasp.parse(str(program), alphabet="ab"), program.to_ltl().automaton()
        for word in words("ab", 4)[1:]:
            values: dict[str, Any] = {"word": word}
            for name, meaning in zip(names, meanings, strict=True):
                values[name] = [meaning(values, i) for i in range(len(word))]
            found = [each.accepts(word) for each in (program, again, formula)]
            assert found == [values["r"][-1]] * 3, (lines, word)


def test_rasp_l() -> None:
    """Functions of RASP-L equal their definitions."""
    x, given = rasp_l.tokens, [3, 1, 2, 1]
    later = rasp_l.kqv(x, x, x, rasp_l.equals, reduction="max")
    cases = [
        (rasp_l.shift_right(x, 1), [0, 3, 1, 2]),
        (rasp_l.cumsum(x > 1), [1, 1, 2, 2]),
        (rasp_l.sel_width(rasp_l.select(x, x, rasp_l.equals)), [1, 1, 1, 2]),
        (rasp_l.has_seen(x, 1), [False, True, True, True]),
        (rasp_l.firsts(x, 1), [-1, 1, 1, 1]),
        (rasp_l.lasts(x, 1), [-1, 1, 1, 3]),
        (later, [3, 1, 2, 1]),
    ]
    for program, wanted in cases:
        assert program(given) == wanted, program
