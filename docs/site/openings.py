"""Define the state of the playground that the link on the page of each item of the paper opens.

For an item with listings, the link opens the last listing, which is the corrected text if there is one.
For a construction without a listing, it opens RASP text with an example. For an item about U, it opens
the playground's page for U if that page supports the item. Otherwise it opens U as a program on ⟨T, X⟩.
For the item on languages, it opens a program for k-PARITY.

>>> from locum.paper.items import ITEMS
>>> opening(ITEMS["hard-attention"]).state["u"]["temperature"]
0.0
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from locum import Attention, UniversalSimulator, full, indices, select, tokens
from locum import constructions as c
from locum.interface.cli.programs import Program
from locum.paper import listings
from locum.paper.figure2 import T as FIGURE_T
from locum.paper.figure2 import X as FIGURE_X
from locum.paper.item import Item
from locum.paper.items import ITEMS
from locum.rasp import to_rasp
from locum.rasp.handles import SOp
from locum.simulators import DecoderLayer, Order
from locum.simulators.layer_simulator import LayerSimulator
from locum.simulators.modules.sampling import random_module

_ABSOLUTE = c.lipschitz_network(abs, [-1.0, 0.0, 1.0])
#: Programs of items without a listing: the s-op that is drawn and opened, and its tokens.
DRAWN: dict[str, tuple[SOp, list[Any]]] = {
    "aggregation": (c.summed(select(indices, indices, "<="), tokens), [3.0, 1.0, 4.0, 1.0, 5.0]),
    "sum": (c.summed(full, tokens, 3), [1.0, 2.0, 4.0]),
    "multihead": (c.multihead(c.row_sums, 2, c.Matrix(tokens, 2, 2)).sop, [float(n) for n in range(8)]),
    "k-parity": (c.k_parity(tokens, (1, 4, 6)), [0, 1, 0, 0, 1, 0, 1]),
    "encoder-parts": (c.layer_norm(c.Matrix(tokens, 2, 3)).sop, [0.5, -1.0, 2.0, 1.5, 0.0, -0.75]),
    # The input consists of two numbers, and of positions for the hidden values of the network.
    "lipschitz": (_ABSOLUTE.program(2).sop, [0.5, -0.75, *[0.0] * 10]),
}
#: Items that use the listing of another item, with this other item.
LIKE = {"complexity": "matmul"}
_TWO = [[1.0, 0.5], [0.0, -1.0]]
_THREE = [[1.0, 0.5, 0.0], [0.0, -1.0, 0.5], [0.5, 0.0, 1.0]]


class Opening(NamedTuple):
    """The state that the playground opens for an item, and an optional note for the item's page."""

    state: dict[str, Any]
    note: str = ""


def opening(item: Item) -> Opening:
    """Return the state that the playground opens for an item of the paper."""
    names = ITEMS[LIKE.get(item.key, item.key)].listings
    if names:
        # The listing sets a running example, which is also used as the input.
        example = json.dumps(Program(Path(names[-1])).tokens)
        return Opening({"source": listings.text(names[-1]), "input": example, "pane": "heads"})
    if item.key in DRAWN:
        return _rasp(*DRAWN[item.key])
    return _OF_U[item.key]()


def _rasp(program: SOp, values: list[Any]) -> Opening:
    return Opening({"source": to_rasp(program), "input": json.dumps(values), "pane": "heads"})


def _page_of_u(X: Any, A: Any, V: Any, note: str = "", **settings: Any) -> Callable[[], Opening]:
    return lambda: Opening({"mode": "universal", "u": {"X": X, "A": A, "V": V, **settings}}, note)


def _program_of_u(*order: int, **options: Any) -> Callable[[], Opening]:
    """Return a function that opens U of an order as a program on ⟨T, X⟩ with random T and X."""

    def opened() -> Opening:
        kind = Order.of(*order, **options)
        chance = np.random.default_rng(0)
        X = chance.normal(size=(kind.n, kind.attention.d))
        U = UniversalSimulator(kind)
        return _on_u(U, U.encode(random_module(kind, chance), X))

    return opened


def _on_u(U: LayerSimulator, encoded: Any) -> Opening:
    values = np.round(encoded, 2).tolist()
    result = U.program(values)
    read = U.decode(result).ravel().tolist()
    assert result[: len(read)] == read  # The note below states this.
    return _rasp(U.program, values)._replace(
        note="The program is U. Its input is ⟨T, X⟩, and its first values are T(X)."
    )


def _hierarchy() -> Opening:
    T, X = Attention(A=[[0.5]], V=[[2.0]]), np.array([[1.0]])
    U = UniversalSimulator(2, 1, 1).masked
    parts = {**T.matrices(), "X": [X], "rows": [np.ones((1, 1))]}
    return _on_u(U, U.flattened(U.parts(U.layout.enlarged(parts), X)))


def _decoders() -> Opening:
    causal = Attention([[0.5, 1.0], [0.0, -0.5]], [[1.0, 0.0], [0.5, 2.0]], mask="causal")
    T = DecoderLayer(causal, Attention(np.eye(2), np.eye(2)), norm="post")
    X = np.array([[1.0, 0.5], [-0.5, 1.0]])
    U = UniversalSimulator.of(T, 2, 2)
    return _on_u(U, U.encode(T, X, X))


def _languages() -> Opening:
    return _rasp(c.k_parity(tokens, (0, 2)), [1, 0, 1])._replace(
        note="The program computes k-PARITY in RASP. On U, k-PARITY has more tokens than the playground accepts."
    )


_OF_U: dict[str, Callable[[], Opening]] = {
    "positions": _page_of_u(
        _TWO, _TWO, _TWO, "The tokens ⟨T, X⟩ are the entries of the matrices, row by row."
    ),
    "attention": _page_of_u(_TWO, _TWO, _TWO),
    "figure-2": _page_of_u(FIGURE_X.tolist(), FIGURE_T.A.tolist(), FIGURE_T.V.tolist(), base=2.718),
    "hard-attention": _page_of_u(_TWO, _TWO, _TWO, recipe="fetch", temperature=0.0),
    "inverse-form": _page_of_u(_THREE, _THREE, _THREE, recipe="inverse"),
    "encoder": _program_of_u(2, 2, 2, feed_forward=(2, 2)),
    "linear-attention": _program_of_u(2, 2, 2, kind="linformer"),
    "sparse-attention": _program_of_u(2, 2, 2, kind="performer"),
    "multihead-attention": _program_of_u(2, 2, 2, heads=2),
    "multihead-encoder": _program_of_u(2, 2, 2, heads=2, feed_forward=(2, 2), norm="pre"),
    "hierarchy": _hierarchy,
    "decoders": _decoders,
    "languages": _languages,
}
