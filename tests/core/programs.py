"""Random RASP programs as nested tuples (see reference.py), and four ways to give them to Locum."""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

import locum
from locum import rasp
from tests.core.reference import SELECTORS

INDICES, LENGTH, TOKENS = ("indices",), ("length",), ("tokens", "asis")
ZERO, ONE, TWO, THREE, FOUR = (("constant", k) for k in range(5))
LAST = ("subtract", LENGTH, ONE)

# Selectors and numbers of real programs ----------------------------------------------------------

BEFORE = ("select", INDICES, INDICES, "<=")
PREVIOUS = ("select", INDICES, ("subtract", INDICES, ONE), "==")
ALIKE = ("select", TOKENS, TOKENS, "==")
BACK = ("subtract", LAST, INDICES)
REVERSED = ("select", INDICES, BACK, "==")
PARITY, PAIR = ("modulo", INDICES, TWO), ("floor_divide", INDICES, TWO)
LATEST, TIED = ("best", ALIKE, INDICES), ("best", BEFORE, PARITY)
COUNT, CENTRE = ("selector_width", ALIKE), ("aggregate", BEFORE, INDICES, 0)
COLUMN, ROW = ("modulo", INDICES, THREE), ("floor_divide", INDICES, THREE)
TRANSPOSED = ("select", INDICES, ("add", ("multiply", COLUMN, TWO), ROW), "==")
NEXT = ("select", INDICES, ("add", INDICES, ONE), "==")
SAME_ROW = ("select", ROW, ROW, "==")
WINDOW = ("selector_and", BEFORE, ("select", INDICES, ("subtract", INDICES, THREE), ">"))
DOUBLED = ("select", INDICES, ("multiply", INDICES, TWO), "==")

# What programs are drawn from --------------------------------------------------------------------

SMALL = (-3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 5)
FLOATS = (0.0, 0.5, -1.5, 2.0, 0.25, 1e300)
TEXTS = ("a", "b", "ab", "1", "")
PREDICATES = ("==", "==", "<=", "<", "!=", ">", ">=")
#: Kinds of inputs: tokens, and the length of the longest input.
INPUTS: dict[str, tuple[tuple[Any, ...], int]] = {
    "text": (tuple("abc12"), 6),
    "ints": (tuple(range(-3, 6)), 6),
    "mixed": ((*SMALL, *FLOATS), 6),
    "long": (tuple(range(5)), 40),
    "booleans": ((True, False), 4),
    "words": (("a", "b", "ab"), 12),
    "digits": (tuple(range(4)), 12),
    "whole": (tuple(range(-4, 9)), 30),
}

N, B, T, S, A = "number", "boolean", "text", "selector", "any"


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Operations: kinds of the arguments, and the kind of the result.
SIGNATURES: dict[str, tuple[tuple[str, ...], str]] = {
    name: (arguments, result)
    for names, arguments, result in (
        ("add subtract multiply divide modulo floor_divide minimum maximum", (N, N), N),
        ("negate absolute floor round exp log sqrt sin cos tanh erf", (N,), N),
        ("float64 float32 float16 bfloat16 power sum_over", (N,), N),
        ("equal not_equal less less_equal greater greater_equal", (N, N), B),
        ("and or", (B, B), B),
        ("not", (B,), B),
        ("if_else", (B, A, A), A),
        ("indicator", (B,), N),
        ("member", (A,), B),
        ("lookup", (A,), N),
        ("select", (A, A), S),
        ("selector_and selector_or", (S, S), S),
        ("selector_not", (S,), S),
        ("best", (S, N), S),
        ("aggregate", (S, A), A),
        ("selector_width", (S,), N),
    )
    for name in words(names)
}
#: Attention and simple arithmetic are drawn more often than functions.
COMMON = words(
    "select aggregate selector_width best add subtract equal less if_else indicator selector_and"
)
OPERATIONS = (*SIGNATURES, *COMMON * 4)
#: Programs that compile well: comparisons, counts and choices.
DISCRETE = (
    *COMMON * 2,
    *words("and or not selector_or selector_not modulo minimum member not_equal multiply negate"),
)
#: Programs of positions: products of matrices, transposes, windows and groups.
POSITIONS = (
    *words("select aggregate aggregate sum_over") * 3,
    *words("add subtract modulo floor_divide multiply selector_and selector_width best if_else less"),
)
USEFUL = (
    *((S, p) for p in (BEFORE, PREVIOUS, ALIKE, REVERSED, LATEST, TIED)),
    *((N, p) for p in (PARITY, PAIR, BACK, COUNT, CENTRE)),
)
POSITIONAL = (
    *((S, p) for p in (NEXT, PREVIOUS, DOUBLED, SAME_ROW, TRANSPOSED, WINDOW, TIED)),
    *((N, p) for p in (COLUMN, ROW, PARITY, PAIR)),
)


class Growth:
    """A pool of parts from which a program grows; shared parts are the same object."""

    def __init__(self, rng: random.Random, kind: str, useful: Any, typed: float) -> None:
        self.rng, self.kind, self.typed = rng, kind, typed
        self.pool: list[tuple[str, Any]] = [
            (kind, TOKENS),
            (N, INDICES),
            (N, LENGTH),
            (N, ("constant", rng.choice(SMALL))),
        ]
        self.pool += [rng.choice([u for u in useful if u[0] == S]), *rng.sample(useful, 2)]
        if kind == A:
            atoms = (N, rng.choice(FLOATS)), (T, rng.choice(TEXTS))
            self.pool += [*((k, ("constant", a)) for k, a in atoms), (T, ("tokens", "str"))]
        self.leaves = len(self.pool)
        self.unused: list[tuple[str, Any]] = []

    def pick(self, wanted: str) -> tuple[str, Any]:
        """A part of the wanted kind, in half of the cases one that is not used yet."""
        options = [p for p in self.pool if (p[0] == S) == (wanted == S)]
        if self.rng.random() < self.typed:
            options = [p for p in options if p[0] == wanted or A in (wanted, p[0])] or options
        fresh = [p for p in options if p in self.unused]
        chosen = self.rng.choice(fresh if fresh and self.rng.random() < 0.6 else options)
        if chosen in self.unused:
            self.unused.remove(chosen)
        return chosen

    def part(self, kind: str) -> Any:
        return self.pick(kind)[1]

    def atoms(self) -> tuple[Any, ...]:
        """One to three atoms, which may occur in the input."""
        atoms = {A: (*range(-1, 4), *TEXTS), N: tuple(range(5)), T: tuple("abc")}[self.kind]
        return tuple(self.rng.sample(atoms, self.rng.randint(1, 3)))

    def sum_of(self, name: str) -> Any:
        """A sum over a family, of values or of heads."""
        head = ("family", name, self.rng.randint(1, 3))
        body: Any = (self.rng.choice(("add", "multiply")), self.part(N), head)
        if self.rng.random() < 0.5:
            shifted = ("select", INDICES, ("add", INDICES, head), "==")
            body = ("aggregate", shifted, body, self.rng.choice(SMALL))
        return ("sum_over", (head,), body)

    def make(self, op: str, number: int) -> tuple[str, Any]:
        """A new part with this operation, and its kind."""
        wanted, result = SIGNATURES[op]
        if op == "sum_over":
            return N, self.sum_of(f"l{number}")
        if op == "if_else":
            condition, (result, then) = self.part(B), self.pick(A)
            return result, (op, condition, then, self.part(result))
        parts = [self.pick(kind) for kind in wanted]
        made = (op, *(p for _, p in parts))
        match op:
            case "power":
                made += (("constant", self.rng.randrange(4)),)
            case "member":
                made += (self.atoms(),)
            case "lookup":
                made += (tuple((atom, i - 1) for i, atom in enumerate(self.atoms())),)
            case "select":
                made += (self.rng.choice(PREDICATES),)
            case "aggregate":
                result = parts[1][0]
                made += (self.rng.choice(TEXTS if result == T else SMALL),)
        return result, made

    def add(self, op: str) -> None:
        self.pool.append(self.make(op, len(self.pool)))
        self.unused.append(self.pool[-1])


def grow(
    rng: random.Random,
    size: int = 10,
    operations: tuple[str, ...] = OPERATIONS,
    *,
    typed: float = 0.9,
    kind: str = A,
    useful: Any = USEFUL,
    selector: bool = False,
) -> Any:
    """A program of up to ``size`` operations for inputs of one kind.

    A share of ``typed`` of the arguments have the expected types. The result is the largest s-op,
    or the largest selector.
    """
    growth = Growth(rng, kind, useful, typed)
    for _ in range(size):
        growth.add(rng.choice(operations))
    made = [p for k, p in growth.pool[growth.leaves :] if (k == S) == selector]
    return max(made, key=lambda p: len(walk(p))) if made else (ALIKE if selector else INDICES)


def walk(p: Any) -> dict[int, Any]:
    """All parts of a program, by their ids."""
    found = {id(p): p}

    def visit(parts: Any) -> None:
        for part in parts:
            if isinstance(part, tuple) and part and part[0] in SIGNATURES and id(part) not in found:
                found[id(part)] = part
                visit(part)

    visit(p)
    return found


def parts_of(program: Any) -> list[Any]:
    """The parts of a program that are programs of the same kind, from the smallest to the whole."""
    if "sum_over" in repr(program):  # parts of a sum have free families
        return [program]
    is_selector = program[0] in SELECTORS
    parts = [p for p in walk(program).values() if (p[0] in SELECTORS) == is_selector]
    return sorted(parts, key=lambda p: len(walk(p)))


@st.composite
def cases(
    draw: st.DrawFn, /, size: int = 10, inputs: tuple[str, ...] = tuple(INPUTS), **options: Any
) -> tuple[Any, list[Any]]:
    """A program and an input. Failures shrink to a part of the program and to a shorter input.

    Only a seed is drawn, not each choice. Hypothesis repeats choices, so that most programs of a run
    would be equal.
    """
    rng = random.Random(draw(st.binary(min_size=8, max_size=8)))
    program = grow(rng, rng.randint(3, size), **options)
    atoms, longest = INPUTS[rng.choice(inputs)]
    tokens = rng.choices(atoms, k=rng.randint(1, longest))
    parts = parts_of(program)
    smaller = [(part, tokens[:n]) for part in parts for n in range(1, len(tokens) + 1)]
    case: tuple[Any, list[Any]] = draw(st.sampled_from(smaller + smaller[-1:] * 8 * len(smaller)))
    return case


def examples(number: int) -> settings:
    """Draw a number of examples; the profile ``fuzz`` draws more in proportion."""
    return settings(max_examples=number * settings().max_examples // 75)


def programs(size: int = 10, **options: Any) -> st.SearchStrategy[Any]:
    """A program without an input."""
    return cases(size, **options).map(operator.itemgetter(0))


# The same programs, written with Locum's public functions ----------------------------------------

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "modulo": operator.mod,
    "floor_divide": operator.floordiv,
    "power": operator.pow,
    "negate": operator.neg,
    "absolute": abs,
    "round": round,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    **dict.fromkeys(("and", "selector_and"), operator.and_),
    **dict.fromkeys(("or", "selector_or"), operator.or_),
    **dict.fromkeys(("not", "selector_not"), operator.invert),
    "if_else": locum.where,
}


def to_locum(program: Any) -> Any:
    """The program as an s-op or a selector; shared parts are built once."""
    made: dict[int, Any] = {}
    families: dict[str, Any] = {}

    def build(p: Any) -> Any:
        if id(p) not in made:
            made[id(p)] = make(p)
        return made[id(p)]

    def make(p: Any) -> Any:
        match p:
            case "tokens", cast:
                return locum.tokens if cast == "asis" else getattr(locum, f"tokens_{cast}")
            case ("indices",) | ("length",):
                return getattr(locum, p[0])
            case "constant", atom:
                return locum.constant(atom)
            case "family", name, size:
                return families.setdefault(name, locum.family(size))
            case "sum_over", heads, body:
                return locum.sum_over(*map(build, heads), build(body))
            case "select", keys, queries, predicate:
                return locum.select(build(keys), build(queries), predicate)
            case "aggregate", selector, values, default:
                return locum.aggregate(build(selector), build(values), default)
            case "member", a, atoms:
                return locum.member(build(a), atoms)
            case "lookup", a, rows:
                return locum.lookup(build(a), dict(rows))
            case op, *arguments:
                return (OPERATORS.get(op) or getattr(rasp, op))(*map(build, arguments))

    return build(program)


# … as RASP text ----------------------------------------------------------------------------------

SIGNS = dict(
    zip(
        words("add subtract multiply divide modulo floor_divide power equal not_equal less less_equal")
        + words("greater greater_equal and or selector_and selector_or"),
        words("+ - * / % // ^ == != < <= > >= and or and or"),
        strict=True,
    )
)
CALLS = {"absolute": "abs", "minimum": "min", "maximum": "max"}


def to_text(program: Any, asis: str = "tokens") -> str:
    """The program as RASP text: one assignment for each part, the last statement shows the value.

    RASP text has no name for the input as it is, so ``asis`` is the name that is written for it.
    """
    lines: list[str] = []
    names: dict[int, str] = {}

    def name(p: Any) -> Any:
        if p[0] == "family":
            return p[1]
        if id(p) not in names:
            text = write(p, name)
            names[id(p)] = f"v{len(names)}"
            lines.append(f"{names[id(p)]} = {text};")
        return names[id(p)]

    def inline(p: Any) -> Any:
        return names.get(id(p)) or write(p, inline)

    def write(p: Any, part: Callable[[Any], str]) -> Any:
        match p:
            case "tokens", cast:
                return asis if cast == "asis" else f"tokens_{cast}"
            case ("indices",) | ("length",) | ("family", _, _):
                return p[p[0] == "family"]
            case "constant", atom:
                return f"constant({quote(atom)})"
            case "sum_over", heads, body:
                rows = ", ".join(f"{head} in range({size})" for _, head, size in heads)
                return f"(sum {rows} {{ {inline(body)} }})"
            case "select", keys, queries, predicate:
                return f"select({part(keys)}, {part(queries)}, {predicate})"
            case "aggregate", selector, values, default:
                return f"aggregate({part(selector)}, {part(values)}, {quote(default)})"
            case "member", a, atoms:
                return f"({part(a)} in [{', '.join(map(quote, atoms))}])"
            case "lookup", a, rows:
                return f"({{{', '.join(f'{quote(k)}: {quote(v)}' for k, v in rows)}}}[{part(a)}])"
            case "if_else", condition, a, b:
                return f"({part(a)} if {part(condition)} else {part(b)})"
            case op, a, b if op in SIGNS:
                return f"({part(a)} {SIGNS[op]} {part(b)})"
            case (("not" | "selector_not"), a):
                return f"(not {part(a)})"
            case "negate", a:
                return f"(-{part(a)})"
            case op, *arguments:
                return f"{CALLS.get(op, op)}({', '.join(map(part, arguments))})"

    last = name(program)
    return "\n".join([*lines, f"{last};"])


def quote(atom: Any) -> str:
    return f'"{atom}"' if isinstance(atom, str) else str(atom)


# … and as a JSON file ----------------------------------------------------------------------------

#: Names of the attributes of operations, by the last element of the tuple.
ATTRIBUTES = {
    "tokens": "cast",
    "constant": "value",
    "select": "predicate",
    "aggregate": "default",
    "member": "values",
    "lookup": "table",
}


def to_json(program: Any) -> str:
    """The program as the JSON text of a program file: a list of nodes, each after its inputs."""
    rows: list[Any] = []
    numbers: dict[int, int] = {}

    def number(p: Any) -> int:
        if id(p) not in numbers:
            op, *parts = p
            attributes = {}
            if op == "family":
                parts, attributes = [], {"name": p[1], "size": p[2]}
            elif op == "sum_over":
                parts = [parts[1], *parts[0]]
            elif op in ATTRIBUTES:
                value = parts.pop()
                canonical = sorted(value, key=type_and_value) if op in ("member", "lookup") else value
                attributes = {ATTRIBUTES[op]: canonical}
            row = [op, [number(part) for part in parts], attributes]
            numbers[id(p)] = len(rows)
            rows.append(row)
        return numbers[id(p)]

    number(program)
    return json.dumps({"format": "locum.graph", "version": 1, "nodes": rows})


def type_and_value(atom: Any) -> tuple[str, Any]:
    """The order of the atoms in a file, and of the keys of a table."""
    key = atom[0] if isinstance(atom, tuple) else atom
    return type(key).__name__, key
