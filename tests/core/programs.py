"""Random RASP programs as nested tuples (see reference.py), and the same programs for Locum."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

import locum
from locum import rasp

SMALL = (-3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 5)
FLOATS = (0.0, 0.5, -1.5, 2.0, 0.25, 1e300)
TEXTS = ("a", "b", "ab", "1", "")
#: Kinds of inputs: tokens, the longest input.
TOKENS = {
    "text": ("abc12", 6), "ints": (range(-3, 6), 6), "mixed": ((*SMALL, *FLOATS), 6),
    "long": (range(5), 40), "booleans": ((True, False), 4), "words": (("a", "b", "ab"), 12), "digits": (range(4), 12),
}  # fmt: skip

N, B, T, S, A = "number", "boolean", "text", "selector", "any"
#: Operations: kinds of the arguments, and the kind of the result.
SIGNATURES: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "minimum", "maximum"), ((N, N), N)),
    **dict.fromkeys(("divide", "modulo", "floor_divide"), ((N, N), N)),
    **dict.fromkeys(("negate", "absolute", "floor", "round", "exp", "sin", "tanh"), ((N,), N)),
    **dict.fromkeys(
        ("log", "sqrt", "cos", "erf", "float64", "float32", "float16", "bfloat16"), ((N,), N)
    ),
    **dict.fromkeys(
        ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), ((N, N), B)
    ),
    **dict.fromkeys(("and", "or"), ((B, B), B)),
    "not": ((B,), B),
    "if_else": ((B, A, A), A),
    "indicator": ((B,), N),
    "power": ((N,), N),
    "member": ((A,), B),
    "lookup": ((A,), N),
    "select": ((A, A), S),
    **dict.fromkeys(("selector_and", "selector_or"), ((S, S), S)),
    "selector_not": ((S,), S),
    "best": ((S, N), S),
    "aggregate": ((S, A), A),
    "selector_width": ((S,), N),
    "sum_over": ((N,), N),
}
#: Attention and simple arithmetic are drawn more often than functions.
COMMON = (
    "select",
    "aggregate",
    "selector_width",
    "add",
    "subtract",
    "equal",
    "less",
    "if_else",
    "indicator",
    "selector_and",
)
OPERATIONS = (*SIGNATURES, *COMMON * 4)
#: Programs that compile well: comparisons, counts and choices.
DISCRETE = (
    *COMMON * 2,
    "and",
    "or",
    "not",
    "best",
    "selector_or",
    "selector_not",
    "modulo",
    "minimum",
    "member",
    "not_equal",
    "multiply",
    "negate",
)
#: Programs of positions: products of matrices, transposes, windows and groups.
POSITIONS = (
    *("select", "aggregate", "aggregate", "sum_over") * 3,
    *(
        "add",
        "subtract",
        "modulo",
        "floor_divide",
        "multiply",
        "selector_and",
        "selector_width",
        "best",
        "if_else",
        "less",
    ),
)
INDEX, TOKENS_ = ("indices",), ("tokens", "asis")


def _position(op: str, k: int) -> Any:
    return (op, INDEX, ("constant", k))


POSITIONAL = [
    *(
        (S, ("select", INDEX, _position(op, k), "=="))
        for op, k in (("add", 1), ("subtract", 2), ("modulo", 3), ("multiply", 2))
    ),
    (S, ("select", _position("floor_divide", 3), _position("floor_divide", 3), "==")),
    (
        S,
        (
            "select",
            INDEX,
            (
                "add",
                ("multiply", _position("modulo", 3), ("constant", 2)),
                _position("floor_divide", 3),
            ),
            "==",
        ),
    ),
    (
        S,
        (
            "selector_and",
            ("select", INDEX, INDEX, "<="),
            ("select", INDEX, _position("subtract", 3), ">"),
        ),
    ),
    (N, _position("modulo", 4)),
    (N, _position("floor_divide", 2)),
]
USEFUL = [  # what real selectors are made of
    (S, ("select", ("indices",), ("indices",), "<=")),
    (S, ("select", ("indices",), ("subtract", ("indices",), ("constant", 1)), "==")),
    (S, ("select", ("tokens", "asis"), ("tokens", "asis"), "==")),
    (
        S,
        (
            "select",
            ("indices",),
            ("subtract", ("subtract", ("length",), ("constant", 1)), ("indices",)),
            "==",
        ),
    ),
    (N, ("modulo", ("indices",), ("constant", 2))),
    (N, ("floor_divide", ("indices",), ("constant", 2))),
]


def grow(
    seed: int,
    size: int = 9,
    operations: tuple[str, ...] = OPERATIONS,
    typed: float = 0.9,
    kind: str = A,
    useful: Any = None,
) -> Any:
    """A program of up to ``size`` operations for inputs of one kind; most arguments have the expected types."""
    rng = random.Random(seed)
    pool: list[tuple[str, Any]] = [(kind, ("tokens", "asis")), (N, ("indices",)), (N, ("length",))]
    pool += [
        (N, ("constant", rng.choice(SMALL))),
        rng.choice((useful or USEFUL)[:4]),
        rng.choice(useful or USEFUL),
    ]
    if kind == A:
        pool += [(N, ("constant", rng.choice(FLOATS))), (T, ("constant", rng.choice(TEXTS)))]
        pool += [(T, ("tokens", "str"))]
    leaves, unused = len(pool), []

    def pick(wanted: str) -> tuple[str, Any]:
        """A part of the wanted kind, in half of the cases one that is not used yet."""
        options = [p for p in pool if (p[0] == S) == (wanted == S)]
        if rng.random() < typed:
            options = [p for p in options if p[0] == wanted or A in (wanted, p[0])] or options
        fresh = [p for p in options if p in unused]
        chosen = rng.choice(fresh) if fresh and rng.random() < 0.6 else rng.choice(options)
        if chosen in unused:
            unused.remove(chosen)
        return chosen

    for place in range(size):
        op = rng.choice(operations)
        wanted, result = SIGNATURES[op]
        match op:
            case "sum_over":
                head = ("family", f"l{place}", rng.randint(1, 3))
                inner = (rng.choice(("add", "multiply")), pick(N)[1], head)
                if rng.random() < 0.5:
                    chosen = ("select", ("indices",), ("add", ("indices",), head), "==")
                    inner = ("aggregate", chosen, inner, rng.choice(SMALL))
                made = ("sum_over", (head,), inner)
            case "power":
                made = ("power", pick(N)[1], ("constant", rng.randrange(4)))
            case "member":
                made = ("member", pick(A)[1], some_atoms(rng, kind))
            case "lookup":
                made = (
                    "lookup",
                    pick(A)[1],
                    tuple((k, i - 1) for i, k in enumerate(some_atoms(rng, kind))),
                )
            case "select":
                made = ("select", pick(A)[1], pick(A)[1], rng.choice(PREDICATES))
            case "aggregate":
                selector, (result, inner) = pick(S)[1], pick(A)
                made = ("aggregate", selector, inner, rng.choice(TEXTS if result == T else SMALL))
            case "if_else":
                condition, (result, then) = pick(B)[1], pick(A)
                made = ("if_else", condition, then, pick(result)[1])
            case _:
                made = (op, *(pick(k)[1] for k in wanted))
        pool.append((result, made))
        unused.append(pool[-1])
    made = [p for k, p in pool[leaves:] if k != S]
    return max(made, key=depth) if made else ("indices",)


def depth(p: Any) -> int:
    return 1 + max(map(depth, p), default=0) if isinstance(p, tuple) else 0


def some_atoms(rng: random.Random, kind: str) -> tuple[Any, ...]:
    atoms = {A: (*range(-1, 4), *TEXTS), N: range(5), T: "abc"}[kind]
    return tuple(rng.sample(tuple(atoms), rng.randint(1, 3)))


@st.composite
def cases(
    draw: st.DrawFn, size: int = 9, tokens: tuple[str, ...] = tuple(TOKENS), **options: Any
) -> tuple[Any, list[Any]]:
    """A program and an input; a failing case shrinks to a smaller size and a shorter input."""
    program = grow(draw(SEEDS), draw(st.integers(1, size)), **options)
    atoms, longest = TOKENS[draw(st.sampled_from(tokens))]
    return program, random.Random(draw(SEEDS)).choices(tuple(atoms), k=draw(st.integers(1, longest)))


SEEDS = st.integers(0, 2**32)
PREDICATES = ("==", "==", "<=", "<", "!=", ">", ">=")

# The same programs, written with Locum's public functions ---------------------------------------------

BINARY = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "modulo": lambda a, b: a % b, "floor_divide": lambda a, b: a // b,
    "power": lambda a, b: a**b, "minimum": locum.minimum, "maximum": locum.maximum,
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "selector_and": lambda a, b: a & b,
    "selector_or": lambda a, b: a | b, "best": locum.best,
}  # fmt: skip
UNARY = {
    "negate": lambda a: -a, "absolute": abs, "not": lambda a: ~a, "selector_not": lambda a: ~a, "round": round,
    "indicator": locum.indicator, "selector_width": locum.selector_width,
    **{f: getattr(locum, f) for f in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos", "floor")},
    **{f: getattr(rasp, f) for f in ("float64", "float32", "float16", "bfloat16")},
}  # fmt: skip


def to_locum(program: Any) -> Any:
    """The program as an s-op or selector; shared parts are built once."""
    made: dict[int, Any] = {}

    def build(p: Any) -> Any:
        if id(p) not in made:
            made[id(p)] = make(p)
        return made[id(p)]

    families: dict[str, Any] = {}

    def make(p: Any) -> Any:
        match p:
            case "tokens", cast:
                return locum.tokens if cast == "asis" else getattr(locum, f"tokens_{cast}")
            case (("indices" | "length"),):
                return getattr(locum, p[0])
            case "constant", atom:
                return locum.constant(atom)
            case "family", name, size:
                if name not in families:
                    families[name] = locum.family(size)
                return families[name]
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
            case "if_else", c, a, b:
                return locum.where(build(c), build(a), build(b))
            case op, a, b:
                return BINARY[op](build(a), build(b))
            case op, a:
                return UNARY[op](build(a))

    return build(program)


# … and as RASP text -------------------------------------------------------------------------------------

SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "floor_divide": "//",
    "power": "^", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "and": "and", "or": "or", "selector_and": "and", "selector_or": "or",
}  # fmt: skip
CALLS = {"absolute": "abs", "minimum": "min", "maximum": "max"}


def to_text(program: Any) -> str:
    """The program as RASP text: one assignment for each part, the last statement shows the value."""
    lines: list[str] = []
    names: dict[int, str] = {}

    def show(p: Any, inline: bool = False) -> str:
        if id(p) in names:
            return names[id(p)]
        text = expression(p, inline)
        if inline or p[0] == "family":
            return text
        names[id(p)] = f"v{len(names)}"
        lines.append(f"{names[id(p)]} = {text};")
        return names[id(p)]

    def expression(p: Any, inline: bool) -> str:
        sub = lambda x: show(x, inline)  # noqa: E731
        match p:
            case "tokens", cast:
                return "tokens_asis" if cast == "asis" else f"tokens_{cast}"
            case (("indices" | "length"),):
                return p[0]
            case "constant", atom:
                return f"constant({quoted(atom)})"
            case "family", name, _:
                return name
            case "sum_over", heads, body:
                rows = ", ".join(f"{name} in range({size})" for _, name, size in heads)
                return f"(sum {rows} {{ {show(body, inline=True)} }})"
            case "select", keys, queries, predicate:
                return f"select({sub(keys)}, {sub(queries)}, {predicate})"
            case "aggregate", selector, values, default:
                return f"aggregate({sub(selector)}, {sub(values)}, {quoted(default)})"
            case "member", a, atoms:
                return f"({sub(a)} in [{', '.join(map(quoted, atoms))}])"
            case "lookup", a, rows:
                return f"({{{', '.join(f'{quoted(k)}: {quoted(v)}' for k, v in rows)}}}[{sub(a)}])"
            case "if_else", c, a, b:
                return f"({sub(a)} if {sub(c)} else {sub(b)})"
            case op, a, b if op in SIGNS:
                return f"({sub(a)} {SIGNS[op]} {sub(b)})"
            case (("not" | "selector_not"), a):
                return f"(not {sub(a)})"
            case "negate", a:
                return f"(-{sub(a)})"
            case op, *args:
                return f"{CALLS.get(op, op)}({', '.join(map(sub, args))})"

    last = show(program)
    return "\n".join([*lines, f"{last};"])


def quoted(atom: Any) -> str:
    return f'"{atom}"' if isinstance(atom, str) else str(atom)
