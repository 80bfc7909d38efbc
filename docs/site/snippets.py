"""Define the Python code on the page of each item of the paper; most of the code asserts its results."""

from __future__ import annotations

_VIEW = """import numpy as np
from locum import constructions as c, tokens

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -0.75]])
view = c.Matrix(tokens, 2, 3)
"""
_U = """import numpy as np
from locum import UniversalSimulator
from locum.simulators import Order
from locum.simulators.modules.sampling import random_module

chance = np.random.default_rng(0)
"""


def _serves(n: int, d: int, *orders: str) -> str:
    """Return code that checks U on an n×d matrix X, with a random T for each of ``orders``."""
    lines = ",\n    ".join(f"Order.of({n}, {d}, {order})" for order in orders)
    return f"""{_U}X = chance.normal(size=({n}, {d}))
for order in [
    {lines},
]:
    U, T = UniversalSimulator(order), random_module(order, chance)
    print(type(T).__name__, U.architecture)
    assert np.abs(U(T, X) - T(X)).max() < 1e-12
"""


SNIPPETS = {
    "aggregation": """from locum import constructions as c, indices, select, tokens

earlier = select(indices, indices, "<=")
print(earlier("abc"))
print(c.summed(earlier, tokens)([3.0, 1.0, 4.0]))
assert c.summed(earlier, tokens)([3.0, 1.0, 4.0]) == [3.0, 4.0, 8.0]
""",
    "positions": """import itertools
from locum import constructions as c

places = [c.prop((2, 3), place) for place in itertools.product(range(2), range(3))]
print(places)
assert places == list(range(6)) and c.unprop((2, 3), 4) == (1, 1)
""",
    "sum": """from locum import constructions as c, full, tokens

print(c.summed(full, tokens, 3)([1, 2, 4]))
assert c.summed(full, tokens, 3).architecture.heads == [1]
""",
    "transpose": _VIEW
    + """print(c.transpose(view).run(X.ravel()))
assert (c.transpose(view, "paper").run(X.ravel()) == X.T).all()
""",
    "softmax": _VIEW
    + """Y = c.softmax(view).run(X.ravel())
print(Y.round(3))
assert np.allclose(Y.sum(1), 1)
""",
    "matmul": """import numpy as np
from locum import constructions as c, tokens

A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
a, b = c.concatenate(tokens, A.shape, B.shape)
for recipe in ("paper", "fetch", "tiled", "scatter"):
    product = c.matmul(a, b, recipe)
    print(recipe, product.sop.architecture.heads)
    assert np.allclose(product.run([*A.ravel(), *B.ravel()]), A @ B)
""",
    "complexity": """from locum import constructions as c, tokens

for r, k, columns in ((2, 2, 2), (3, 6, 4), (5, 5, 5)):
    product = c.matmul(*c.concatenate(tokens, (r, k), (k, columns)), "paper")
    print(r, k, columns, product.sop.architecture.heads)
    assert sum(product.sop.architecture.heads) == r + columns + r * columns
""",
    "activations": _VIEW
    + """print(c.relu(view).run(X.ravel()))
assert (c.relu(view, "maxmin").run(X.ravel()) == np.maximum(X, 0)).all()
""",
    "maxmin": """from locum import constructions as c, tokens

pairs = c.Matrix(tokens, 1, 4)
print(c.maxmin(pairs).run([1, 3, 5, -2]))
print(c.groupsort(pairs, 4).run([1, 3, 5, -2]))
assert c.maxmin(pairs, "paper").run([1, 3, 5, -2]).tolist() == [[3, 1, 5, -2]]
""",
    "identify-shift": """from locum import constructions as c, tokens

values = [10, 20, 30, 40, 50]
print(c.shift(tokens, 2)(values), c.identify(tokens, 1, 3)(values))
assert c.shift(tokens, 2)(values) == [30, 40, 50, 10, 20]
""",
    "multihead": """import numpy as np
from locum import constructions as c, tokens

blocks = np.arange(12.0).reshape(2, 2, 3)
both = c.multihead(c.transpose, 2, c.Matrix(tokens, 2, 3))
print(both.run(blocks.ravel()))
assert (both.run(blocks.ravel()) == np.concatenate([x.T for x in blocks])).all()
""",
    "cofactor": """from locum import constructions as c, tokens

cofactors = c.cofactor(c.Matrix(tokens, 3, 3))
print(cofactors.run([7, 8, 12, 10, 11, 9, 2, 4, 21], domain="exact"))
print(cofactors.sop.architecture)
""",
    "determinant": """from locum import constructions as c, tokens

for order, entries in ((2, [1, 2, 3, 4]), (3, [7, 8, 12, 10, 11, 9, 2, 4, 21])):
    print(c.determinant(c.Matrix(tokens, order, order)).run(entries))
assert c.determinant(c.Matrix(tokens, 2, 2)).run([1, 2, 3, 4]).tolist() == [[-2.0]]
""",
    "inverse": """import numpy as np
from locum import constructions as c, tokens

A = np.array([[7.0, 8.0, 12.0], [10.0, 11.0, 9.0], [2.0, 4.0, 21.0]])
inverse = c.inverse(c.Matrix(tokens, 3, 3))
print(inverse.run(A.ravel()).round(4))
assert np.allclose(inverse.run(A.ravel()) @ A, np.eye(3))
""",
    "match": """from locum import constructions as c, tokens

print(c.match2(tokens, 5)([1, 5, 4, 2]))
assert c.match2(tokens, 5)([5, 5]) == [1, 1]
""",
    "k-parity": """from locum import constructions as c, tokens

parity = c.k_parity(tokens, (1, 4, 6))
print(parity([0, 1, 0, 0, 1, 0, 1]), parity.architecture)
assert parity([0, 1, 0, 0, 1, 0, 1])[0] == 1
""",
    "encoder-parts": _VIEW
    + """print(c.layer_norm(view).run(X.ravel()).round(3))
assert np.allclose(c.row_means(view).run(X.ravel())[:, 0], X.mean(1))
""",
    "lipschitz": """import numpy as np
from locum import constructions as c

for knots in (7, 13, 25):
    network = c.lipschitz_network(np.sin, np.linspace(-3, 3, knots).tolist())
    points = np.linspace(-3, 3, 301)
    print(knots, "knots: error", np.abs(np.array(network(points.tolist())) - np.sin(points)).max().round(3))
    assert max(network.norms) < 1 + 1e-12
""",
    "attention": """import numpy as np
from locum import Attention, UniversalSimulator

chance = np.random.default_rng(0)
U = UniversalSimulator(3, 2, 2)
T, X = Attention(A=chance.normal(size=(2, 2)), V=chance.normal(size=(2, 2))), chance.normal(size=(3, 2))
print(U(T, X).round(4))
assert np.abs(U(T, X) - T(X)).max() < 1e-14
""",
    "figure-2": """from locum.paper.figure2 import figure2

assert figure2(base=2.718).reproduced
print(f"{figure2(base=2.718)['output'].error:.6e}")
""",
    "encoder": _serves(3, 3, "3, feed_forward=(4, 3)"),
    "hard-attention": """from locum.languages.first_and_parity import Match2

print(Match2(5).matches([5, 1, 4, 2]))
assert Match2(5).matches([5, 1, 4, 2]) == [True, True, True, False]
""",
    "linear-attention": _serves(4, 3, '2, kind="linformer"', '2, kind="linear"'),
    "sparse-attention": _serves(4, 3, '2, kind="performer"', '2, kind="sumformer"'),
    "hierarchy": """import numpy as np
from locum import Attention, UniversalSimulator

small, X = Attention(A=[[1.0]], V=[[2.0]]), np.array([[0.5], [-1.0]])
U = UniversalSimulator(4, 3, 2)
print(U.embed(small, X).round(4))
assert np.abs(U.embed(small, X) - small(X)).max() < 1e-14
""",
    "multihead-attention": _serves(3, 3, "2, heads=3"),
    "multihead-encoder": _serves(3, 3, '3, heads=2, feed_forward=(4, 3), norm="pre"'),
    "languages": """from locum.languages.first_and_parity import First, KParity, Parity

print(Parity().accepts("101"), First().accepts("10"), KParity(3, (0, 2)).accepts("101"))
assert Parity().accepts("101") and not Parity().accepts("100")
""",
    "inverse-form": """import numpy as np
from locum import Attention, UniversalSimulator

chance = np.random.default_rng(2)
A, V = (np.eye(3) + 0.3 * chance.normal(size=(3, 3)) for _ in range(2))
T, X, U = Attention(A, V), chance.normal(size=(3, 3)), UniversalSimulator(3, 3, 3, recipe="inverse")
print(U.architecture)
assert np.abs(U(T, X) - T(X)).max() < 1e-12
""",
    "decoders": """import numpy as np
from locum import Attention, UniversalSimulator
from locum.simulators import DecoderLayer

chance = np.random.default_rng(3)
causal = Attention(chance.normal(size=(2, 2)), chance.normal(size=(2, 2)), mask="causal")
cross = Attention(chance.normal(size=(2, 2)), chance.normal(size=(2, 2)))
T, X, memory = DecoderLayer(causal, cross, norm="post"), chance.normal(size=(3, 2)), chance.normal(size=(2, 2))
U = UniversalSimulator.of(T, 3, 2)
print(U(T, X, memory).round(4))
assert np.abs(U(T, X, memory) - T(X, memory)).max() < 1e-14
""",
}
