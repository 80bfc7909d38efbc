"""Show programs in Python and RASP text, their heads, families and exact arithmetic (``make demo``).

Only the core dependencies are required.
"""

from __future__ import annotations

from fractions import Fraction

import locum
from locum.rasp import Session


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m")


heading("1. A program is an expression; calling it runs it")
same = locum.select(locum.tokens, locum.tokens, "==")
histogram = locum.selector_width(same)
print('histogram = selector_width(select(tokens, tokens, "=="))')
print('histogram("hello") =', histogram("hello"))
print(same)

heading("2. A program describes the layers and heads of a transformer")
reverse = locum.aggregate(
    locum.select(locum.indices, locum.length - 1 - locum.indices, "=="), locum.tokens
)
print("histogram:", histogram.architecture)
print("reverse:  ", reverse.architecture)

heading("3. Programs in RASP text: errors name the position and the cause")
session = Session(example="hello")
for source in ("frac = aggregate(select(indices, indices, <=), indicator(tokens == \"l\"));",
               "select(tokens, tokens, =<);"):  # fmt: skip
    print(f">> {source}")
    for result in session.execute(source):
        print(result.printed, end="")

heading("4. Families: one small program is the paper's matrix product at any shape")


def matmul(rows: int, inner: int, columns: int) -> locum.SOp:
    """Build Algorithm 3 of the paper for two matrices.

    The first layer has r + c heads, which fetch rows and columns; r·c heads of the second layer sum the
    products.
    """
    l, m = locum.family(rows), locum.family(columns)
    row = locum.aggregate(
        locum.select(locum.indices, locum.indices % inner + l * inner, "=="), locum.tokens
    )
    place = (locum.indices % inner) * columns + rows * inner + m
    column = locum.aggregate(locum.select(locum.indices, place, "=="), locum.tokens)
    at = locum.select(locum.indices, inner, "<") & locum.select(l * columns + m, locum.indices, "==")
    return inner * locum.sum_over(l, m, locum.aggregate(at, row * column))


product = matmul(4, 4, 4)
print(locum.rasp.to_rasp(product))
print("heads per layer:", product.architecture.heads, "= [r + c, r·c]")

heading("5. Exact arithmetic: the same program on rational numbers")
a = [[Fraction(i + j, 3) for j in range(4)] for i in range(4)]
b = [[Fraction(1, i + j + 1) for j in range(4)] for i in range(4)]
tokens = [x for matrix in (a, b) for row in matrix for x in row]
found = product(tokens, domain="exact")[:16]
wanted = [sum(a[i][t] * b[t][j] for t in range(4)) for i in range(4) for j in range(4)]
print("first row of A·B:", [str(x) for x in found[:4]])
print("exactly equal to the product computed directly:", found == wanted)
assert found == wanted
