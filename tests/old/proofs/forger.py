"""A forger: proofs and counterexamples that were not found by the prover.

The forger draws a program, a formula, conditions and trees of cases at random. Most programs compute a
simple formula and contain *noise* that the result does not depend on: ``0·p``, ``p == p``,
``if_else(false, p, q)``, an aggregation over no key. Many of these have no value at some inputs. The
claim is then false, because every operation must have a value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from locum.errors import LocumError
from locum.graph import Node, build, sum_over
from locum.graph.atoms import canonical_set, canonical_table
from locum.graph.operations import constant
from locum.proofs.checker.check import check, check_refutation
from locum.proofs.checker.proof_tree import Branch, Question, Tree
from locum.proofs.claims.claim import Claim
from locum.proofs.claims.formula import Formula
from tests.verification.strict import FAILS, HOLDS, OUTSIDE, UNDECIDED, judge

T = TypeVar("T")

TOKENS, INDICES = build("tokens", cast="asis"), build("indices")
#: Selects no key.
_NONE = build("select", INDICES, constant(-1), predicate="==")
_UNARY = ("negate", "absolute", "exp", "floor", "round", "not", "sin", "cos", "tanh", "erf")
#: A leaf at which the entries are compared.
SHOWN = Branch()
#: Constants of programs and of polynomials; points are drawn near them.
SMALL = (-1, 0, 0, 1, 1, 2)
_SPECIAL = [Fraction(n) for n in (0, 1, -1, 2, -2, 3)] + [Fraction(1, 2), Fraction(-3, 2)]


class Forged(NamedTuple):
    """What the checker is given: a claim, trees of cases, and the formulas of their questions."""

    claim: Claim
    trees: Sequence[Tree]
    questions: dict[str, Formula]


def forge(claim: Claim, trees: Sequence[Tree] = (), questions: Sequence[Formula] = ()) -> Forged:
    """Return a proof with these trees; without trees, one leaf shows every entry."""
    entries = frozenset(range(sum(map(len, claim.places))))
    named = {str(number): formula for number, formula in enumerate(questions)}
    return Forged(claim, trees or [Tree(SHOWN, entries)], named)


def split(relation: str, of: int, *answers: Branch) -> Branch:
    """Return a branch with a question about the sign of a polynomial."""
    return Branch(Question(str(of), relation), answers)


def draw_points(draw: random.Random, claim: Claim, count: int) -> list[list[Fraction]]:
    """Draw points for the inputs of a claim: small numbers, often equal, and some others."""
    entries = len(claim.entries)
    special = _SPECIAL[:6] if claim.integer else _SPECIAL

    def draw_number() -> Fraction:
        if draw.random() < 0.9:
            return draw.choice(special)
        return Fraction(draw.randint(-9, 9), 1 if claim.integer else draw.randint(1, 5))

    points = [[x] * entries for x in special[:4]]
    return points + [[draw_number() for _ in range(entries)] for _ in range(count - len(points))]


def examine(forged: Forged, draw: random.Random) -> str:
    """Check a proof and counterexamples of its claim; what is accepted must be true."""
    claim = forged.claim
    points = draw_points(draw, claim, 30)
    accepted = _is_accepted(check, *forged)
    if accepted:
        for point in points:
            assert judge(claim, point) in (HOLDS, OUTSIDE, UNDECIDED), (point, forged)
    refuted = False
    for point in draw.sample(points, 3 if accepted else 1):
        if _is_accepted(check_refutation, claim, point):
            refuted = True
            assert judge(claim, point) in (FAILS, UNDECIDED), (point, forged)
    assert not (accepted and refuted), forged
    return "proof accepted" if accepted else "counterexample accepted" if refuted else "rejected"


def _is_accepted(checker: Callable[..., object], *parts: Any) -> bool:
    try:
        checker(*parts)
    except LocumError:
        return False
    return True


class Forger:
    """Random programs with noise, and random proofs about them."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.size = draw.choice((1, 1, 1, 2, 2, 3))
        self.integer = draw.random() < 0.35
        #: A number that many comparisons of the program and many cases of the trees have in common.
        self.threshold = draw.choice(SMALL)
        self.input = Formula.input("X", 1, self.size)

    def proof(self) -> Forged:
        """Draw a claim and a proof of it."""
        draw, claim = self.draw, self.claim()
        questions = [self.question() for _ in range(draw.randint(1, 3))]
        return forge(claim, self.trees(len(questions)), questions)

    def claim(self) -> Claim:
        """Draw a claim: a program, a formula and conditions."""
        draw = self.draw
        program, reference = self.core()
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3))):
            program = self.hide(program, self.noise(draw.choice((1, 1, 2, 3))))
        if draw.random() < 0.05:
            reference = reference + draw.choice((1, self.input))
        if draw.random() < 0.1:
            reference = reference * Formula.of([[self.unused()] * self.size])
        conditions = tuple(self.condition() for _ in range(draw.choice((0, 0, 0, 0, 1, 1, 2))))
        tokens = tuple((0, 0, k) for k in range(self.size))
        places = (tuple(range(self.size)),)
        return Claim(
            "own", (), program, (self.input,), tokens, places, reference, self.integer, conditions
        )

    # Programs -------------------------------------------------------------------------------------

    def pick(self, *options: Callable[[], T]) -> T:
        """Draw one of several results, and compute that one only."""
        return self.draw.choice(options)()

    def core(self) -> tuple[Node, Formula]:
        """Draw a program and a formula, which are equal more often than not."""
        return self.doubtful() if self.draw.random() < 0.3 else self.equal()

    def equal(self) -> tuple[Node, Formula]:
        """Draw a program and a formula that are equal."""
        x, c = self.input, self.draw.choice(SMALL)
        k = self.draw.randrange(self.size)
        value = constant(c)
        own = build("select", INDICES, constant(k), predicate="==")
        below = build("select", INDICES, INDICES, predicate="<=")
        full = build("selector_or", below, build("selector_not", below))
        opposite = build("exp", build("negate", TOKENS))
        width = build("selector_width", build("select", TOKENS, TOKENS, predicate="<="))
        return self.pick(
            lambda: (TOKENS, x),
            lambda: (value, x * 0 + c),
            lambda: (constant(1), x * 0 + 1),
            lambda: (build("add", TOKENS, value), x + c),
            lambda: (build("multiply", build("add", TOKENS, value), TOKENS), x * x + x * c),
            lambda: (build("maximum", TOKENS, value), x.maximum(c)),
            lambda: (build("absolute", TOKENS), abs(x)),
            lambda: (build("multiply", build("exp", TOKENS), opposite), x * 0 + 1),
            lambda: (build("aggregate", own, TOKENS, default=0), Formula.of([[x[0, k]] * self.size])),
            lambda: (build("aggregate", full, TOKENS, default=0), self.mean()),
            lambda: (build("indicator", build("greater_equal", width, constant(1))), x * 0 + 1),
            lambda: (INDICES, Formula.of([list(range(self.size))])),
        )

    def small(self) -> int:
        """Draw a small integer, often the threshold."""
        return self.threshold if self.draw.random() < 0.5 else self.draw.choice(SMALL)

    def mean(self) -> Formula:
        """Return the mean of the inputs at every position."""
        total = sum((self.input[0, j] for j in range(1, self.size)), self.input[0, 0])
        return Formula.of([[total / self.size] * self.size])

    def doubtful(self) -> tuple[Node, Formula]:
        """Draw a program and a formula that are equal at some inputs, or if cases are distinguished."""
        x, c = self.input, self.small()
        value, one = constant(c), constant(1)
        shifted, negated = build("add", TOKENS, value), build("negate", TOKENS)
        larger, smaller = (build(op, TOKENS, value) for op in ("maximum", "minimum"))
        positive = build("greater", TOKENS, constant(0))
        size = build("absolute", TOKENS)
        parity = build("modulo", TOKENS, constant(2))
        return self.pick(
            lambda: (build("add", larger, smaller), x + c),
            lambda: (build("if_else", positive, TOKENS, negated), abs(x)),
            lambda: (build("if_else", build("equal", TOKENS, value), value, TOKENS), x),
            lambda: (build("if_else", build("less", TOKENS, value), TOKENS, shifted), x),
            lambda: (build("if_else", build("greater", TOKENS, value), shifted, TOKENS), x),
            lambda: (build("if_else", build("equal", parity, value), TOKENS, shifted), x),
            lambda: (build("multiply", parity, build("subtract", parity, one)), x * 0),
            lambda: (build("multiply", size, size), x * x),
            lambda: (build("sqrt", build("multiply", TOKENS, TOKENS)), abs(x)),
            lambda: (
                build(self.draw.choice(_UNARY), build("multiply", TOKENS, constant(0))),
                x * 0 + c,
            ),
            lambda: (build("floor", TOKENS), x),
            lambda: (build("modulo", build("multiply", TOKENS, shifted), constant(2)), x * 0),
            lambda: (build("divide", TOKENS, TOKENS), x * 0 + 1),
            lambda: (build("divide", one, build("divide", one, TOKENS)), x),
            lambda: (build("lookup", positive, table=canonical_table({0: 5, 1: c})), x * 0 + 5),
            lambda: (self.noise(2), x * 0 + c),
        )

    def number(self) -> Node:
        """Draw a simple s-op."""
        draw = self.draw
        return self.pick(
            lambda: constant(draw.choice(SMALL)),
            lambda: draw.choice((INDICES, build("length"))),
            lambda: build("subtract", TOKENS, constant(self.small())),
            lambda: TOKENS,
            lambda: TOKENS,
        )

    def noise(self, depth: int) -> Node:
        """Draw an s-op, often one without a value at some inputs."""
        draw = self.draw
        a = self.noise(depth - 1) if depth > 1 and draw.random() < 0.7 else self.number()
        b = self.noise(depth - 1) if depth > 1 and draw.random() < 0.3 else self.number()
        value = self.small()
        c, one = constant(value), constant(1)
        family = build("family", name="h", size=draw.choice((1, 2, 3)))

        def compare() -> Node:
            return build(draw.choice(("equal", "less", "greater", "greater_equal")), a, c)

        def table() -> Any:
            pairs = [(draw.choice(SMALL), draw.choice((*SMALL, True))) for _ in range(4)]
            return canonical_table(dict(pairs[: draw.randint(1, 4)]))

        return self.pick(
            lambda: build("divide", b, a),
            lambda: build("divide", c, a),
            lambda: build("divide", c, build("if_else", a, a, one)),
            lambda: build("divide", c, build("if_else", compare(), one, b)),
            lambda: build(draw.choice(("modulo", "floor_divide")), b, a),
            lambda: build("modulo", a, constant(draw.choice((2, 3)))),
            lambda: build("power", a, constant(draw.choice((-1, 0, 2, 0.5, -2)))),
            lambda: build("power", c, a),
            lambda: build(draw.choice(("sqrt", "log")), a),
            lambda: build("sqrt", build("maximum", a, constant(0))),
            lambda: build("lookup", a, table=table()),
            lambda: build("lookup", build("modulo", a, constant(2)), table=table()),
            lambda: build("lookup", build("selector_width", self.selector(a, b)), table=table()),
            lambda: build("lookup", compare(), table=canonical_table({0: 1, 1: 2})),
            lambda: build("aggregate", self.selector(a, b), compare(), default=value),
            lambda: build("aggregate", self.selector(a, b), a, default=value),
            lambda: build("selector_width", self.selector(a, b)),
            lambda: build(draw.choice(("add", "subtract", "multiply", "minimum", "maximum")), a, b),
            lambda: build(draw.choice(("equal", "less", "greater_equal", "and", "or")), a, b),
            lambda: build(draw.choice(_UNARY), a),
            lambda: build("if_else", compare(), a, b),
            lambda: build("if_else", compare(), constant(True), b),
            lambda: build("member", a, values=canonical_set([draw.choice(SMALL), value])),
            lambda: sum_over([family], build("divide", b, build("subtract", a, family))),
            lambda: sum_over([family], build("multiply", a, family)),
        )

    def selector(self, a: Node, b: Node) -> Node:
        """Draw a selector that compares two s-ops, sometimes combined with another one."""
        draw = self.draw
        rows = build("select", a, b, predicate=draw.choice(("==", "<", ">=", "!=")))
        other = build("select", INDICES, INDICES, predicate=draw.choice(("==", "<=", ">")))
        return self.pick(
            lambda: rows,
            lambda: rows,
            lambda: build("selector_not", rows),
            lambda: build("best", other, a),
            lambda: build(draw.choice(("selector_and", "selector_or")), rows, other),
        )

    # Noise that is not used -----------------------------------------------------------------------

    def hide(self, program: Node, noise: Node) -> Node:
        """Return a program with the same values as ``program`` wherever ``noise`` has one."""
        return self.pick(
            lambda: build("add", program, self.zero(noise)),
            lambda: build("add", program, self.zero(noise)),
            lambda: build("multiply", self.one(noise), program),
            lambda: build("if_else", self.true(noise), program, self.noise(1)),
            lambda: build("if_else", self.falsehood(), noise, program),
            lambda: build("if_else", build("not", self.falsehood()), program, noise),
            lambda: build("aggregate", self.diagonal(noise), program, default=0),
            lambda: self.hide_in_family(program, noise),
        )

    def hide_in_family(self, program: Node, noise: Node) -> Node:
        """Return a sum over heads: one of them is the program, the others are 0."""
        draw = self.draw
        family = build("family", name="k", size=draw.choice((1, 2, 3)))
        below = build("add", family, draw.choice((constant(1), TOKENS, constant(-1))))
        rest = self.zero(draw.choice((build("divide", noise, below), noise)))
        first = build("equal", family, constant(0))
        return sum_over([family], build("if_else", first, program, rest))

    def zero(self, noise: Node) -> Node:
        """Return 0 at every position."""
        zero = constant(0)
        return self.pick(
            lambda: build("multiply", zero, noise),
            lambda: build("subtract", noise, noise),
            lambda: build("if_else", self.falsehood(), noise, zero),
            lambda: build("aggregate", _NONE, noise, default=0),
            lambda: build("aggregate", self.nothing(noise), noise, default=0),
            lambda: build("aggregate", self.nothing(noise), TOKENS, default=0),
            lambda: build("selector_width", self.nothing(noise)),
            lambda: build("multiply", zero, build("selector_width", self.selector(noise, TOKENS))),
            lambda: build("indicator", build("not", self.true(noise))),
            lambda: build("lookup", self.true(noise), table=canonical_table({0: 7, 1: 0})),
            lambda: build("lookup", build("multiply", zero, noise), table=canonical_table({0: 0})),
        )

    def one(self, noise: Node) -> Node:
        """Return 1 at every position."""
        return self.pick(
            lambda: build("power", constant(1), noise),
            lambda: build("power", noise, constant(0)),
            lambda: build("selector_width", self.diagonal(noise)),
            lambda: build("indicator", self.true(noise)),
            lambda: build("add", self.zero(noise), constant(1)),
        )

    def true(self, noise: Node) -> Node:
        """Return a condition that holds at every position."""
        false = self.falsehood()
        return self.pick(
            lambda: build("equal", noise, noise),
            lambda: build("greater_equal", noise, noise),
            lambda: build("or", build("not", false), noise),
            lambda: build("or", noise, build("not", false)),
            lambda: build("not", build("and", false, noise)),
            lambda: build("not", build("and", build("greater", noise, constant(0)), false)),
            lambda: build("not", build("member", noise, values=())),
            lambda: build("equal", build("multiply", constant(0), noise), constant(0)),
        )

    def falsehood(self) -> Node:
        """Return a condition that does not hold, without noise."""
        return self.pick(
            lambda: constant(False),
            lambda: constant(0),
            lambda: build("less", INDICES, constant(0)),
            lambda: build("not_equal", TOKENS, TOKENS),
            lambda: build("less", build("multiply", TOKENS, TOKENS), constant(0)),
        )

    def nothing(self, noise: Node) -> Node:
        """Return a selector of no key."""
        rows = self.selector(noise, TOKENS)
        return self.pick(
            lambda: build("selector_and", _NONE, rows),
            lambda: build("selector_and", rows, _NONE),
            lambda: build("selector_not", build("selector_or", build("selector_not", _NONE), rows)),
            lambda: build("best", _NONE, noise),
        )

    def diagonal(self, noise: Node) -> Node:
        """Return a selector of the own position."""
        own = build("select", INDICES, INDICES, predicate="==")
        return self.pick(
            lambda: build("best", own, noise),
            lambda: build("selector_or", own, self.nothing(noise)),
            lambda: build("selector_and", own, build("selector_not", self.nothing(noise))),
        )

    # Claims and trees -----------------------------------------------------------------------------

    def condition(self) -> tuple[Formula, str]:
        """Draw a condition on the inputs."""
        draw = self.draw
        x, y = (self.input[0, draw.randrange(self.size)] for _ in range(2))
        c = draw.choice(SMALL)
        formula = draw.choice((x, x, x - c, x + c, x * y, x + y + c, x.maximum(c), abs(x) - c))
        return formula, draw.choice(("!=", ">"))

    def unused(self) -> Formula:
        """Draw a formula that is 1 wherever it has a value, and does not use a quotient in it."""
        draw = self.draw
        quotient = 1 / (self.input[0, draw.randrange(self.size)] - draw.choice(SMALL))
        ones = Formula.constant(1, 2, 1)
        pair = Formula.beside(Formula.constant(1), quotient)
        bits = Formula.beside(Formula.constant(1), quotient * 0)
        return self.pick(
            quotient.cofactors,
            lambda: pair.softmax("causal") @ ones,
            lambda: pair[0, 0],
            lambda: draw.choice((bits.hardmax(), bits.sort(2), bits.match2(1) / 2)) @ ones,
            lambda: draw.choice((bits.hardmax(), bits.sort(2), bits.match2(1), bits.match2(2)))[0, 0],
            lambda: draw.choice((quotient.hardmax(), quotient.sort(1) * 0 + 1)),
            lambda: draw.choice((quotient, pair, bits)).match2(2)[0, 0] * 0 + 1,
            lambda: Formula.beside(quotient, quotient).hardmax() @ ones,
        )

    def question(self) -> Formula:
        """Draw a formula whose sign distinguishes cases: mostly an entry minus a constant."""
        draw = self.draw
        x, y = (self.input[0, draw.randrange(self.size)] for _ in range(2))
        if draw.random() < 0.6:
            return x - self.threshold
        if draw.random() < 0.1:
            functions = (abs(x), x.exp(), x.maximum(0), 1 / x, (x - 1).exp() / x.exp())
            return draw.choice(functions) - draw.choice(SMALL)
        formula = draw.choice((x, x, x * y, x * x + y))
        if draw.random() < 0.6:
            formula = formula + draw.choice((-2, -1, 1))
        return formula - y / 2 if draw.random() < 0.3 else formula

    def trees(self, polynomials: int) -> list[Tree]:
        """Draw trees that show all entries."""
        draw, entries = self.draw, list(range(self.size))
        parts = [entries] if draw.random() < 0.7 else [[entry] for entry in entries]
        if draw.random() < 0.2:
            parts.append(draw.sample(entries, draw.randint(0, self.size)))
        depth = draw.choice((0, 0, 1, 2, 3))
        return [Tree(self.tree(depth, polynomials), frozenset(part)) for part in parts]

    def tree(self, depth: int, polynomials: int) -> Branch:
        """Draw a tree of cases of at most this depth."""
        draw = self.draw
        if depth == 0 or draw.random() < 0.15:
            if depth == 0 and draw.random() < 0.02:
                name = str(draw.randrange(polynomials))
                return Branch(contradiction=((name, draw.choice((1, -1))),))
            return SHOWN
        if self.integer and draw.random() < 0.5:
            modulus = draw.choice((1, 2, 2, 3))
            answers = tuple(self.tree(depth - 1, polynomials) for _ in range(modulus))
            entry = f"X[0,{draw.randrange(self.size)}]"
            return Branch(Question(entry, "%", modulus), answers)
        pair = [self.tree(depth - 1, polynomials) for _ in range(2)]
        return split(draw.choice((">", "=")), draw.randrange(polynomials), *pair)
