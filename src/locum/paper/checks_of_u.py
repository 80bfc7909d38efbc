"""The paper's theorems, corollaries and remarks about U: what each claims, and what we find.

Rows of the same table as ``constructions/catalogue.py``, which has the lemmas; ``locum catalogue``
counts and checks both anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from locum.language.handles import SOp
from locum.paper.figure2 import PRINTED, figure2
from locum.paper.items import Item
from locum.paper.languages import First, KParity, Match2, Parity
from locum.simulators import Attention, LanguageModel, Order, UniversalSimulator
from locum.simulators.hierarchy import padding_formula, paper_padding
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.sampling import random_module

TOLERANCE = 1e-12


def _agrees(*orders: tuple[int, int, int], recipe: str = "fetch", **options: Any) -> bool:
    """Whether U(⟨T, X⟩) is T(X) for a random T of each order."""
    generator = np.random.default_rng(0)
    for order in orders:
        U = UniversalSimulator(Order.of(*order, **options), recipe=recipe)
        T = random_module(U.order, generator)
        X = generator.normal(size=(order[0], order[1]))
        if not _close(U(T, X), T(X)):
            return False
    return True


def _close(found: Any, wanted: Any) -> bool:
    return bool(np.abs(np.asarray(found) - np.asarray(wanted)).max() <= TOLERANCE)


def _programs(*recipes: str, **options: Any) -> Callable[[], dict[str, SOp]]:
    """The programs of order (3, 3, 3) in these recipes."""
    return lambda: {
        recipe: UniversalSimulator(Order.of(3, 3, 3, **options), recipe=recipe).program
        for recipe in recipes
    }


def _figure() -> bool:
    shown, exact = figure2(base=2.718), figure2()
    errors = {name: printed.error for name, printed in PRINTED.items() if printed.error}
    return (
        shown.reproduced
        and exact.reproduced
        and all(f"{shown[name].error:.6e}" == f"{error:.6e}" for name, error in errors.items())
    )


def _hierarchy() -> bool:
    generator = np.random.default_rng(1)
    T = Attention(generator.normal(size=(2, 2)), generator.normal(size=(2, 1)))
    X, U = generator.normal(size=(2, 2)), UniversalSimulator(4, 3, 2)
    wrong = paper_padding(U, T, X)
    return (
        _close(U.embed(T, X), T(X))
        and _close(wrong, padding_formula(T, X, 4))
        and not _close(wrong, T(X))
    )


def _inverse() -> bool:
    generator = np.random.default_rng(2)
    A, V = (np.eye(3) + 0.3 * generator.normal(size=(3, 3)) for _ in range(2))
    X = generator.normal(size=(3, 3))
    return _close(UniversalSimulator(3, 3, 3, recipe="inverse")(Attention(A, V), X), Attention(A, V)(X))


def _languages() -> bool:
    parity, first, chosen = Parity(), First(), KParity(3, (0, 2))
    words = ["", "0", "1", "01", "11", "101"]
    return (
        all(parity.accepts(word) == (word.count("1") % 2 == 0) for word in words)
        and all(first.accepts(word) == (word[0] == "1") for word in words[1:])
        and all(chosen.accepts(word) == (word[0] == word[2]) for word in ("000", "100", "101", "011"))
    )


def _decoder() -> bool:
    generator = np.random.default_rng(3)

    def draw(*shape: int) -> Any:
        return generator.normal(size=shape)

    causal = Attention(draw(2, 2), draw(2, 2), mask="causal")
    T = DecoderLayer(causal, Attention(draw(2, 2), draw(2, 2)), norm="post")
    X, M = draw(3, 2), draw(2, 2)
    model = LanguageModel(draw(3, 2), draw(3, 2), [Encoder(causal)], draw(2, 3))
    return _close(UniversalSimulator.of(T, 3, 2)(T, X, M), T(X, M)) and model.generate(
        [1], 3
    ) == model.generate_directly([1], 3)


ITEMS = [
    Item(
        "Theorem 1", "σ(XAXᵀ)XV", "UniversalSimulator, Attention",
        "one network for every T of order (n, d, d_v); n ≤ min(d, d_v)",
        _programs("paper", "fetch", "tiled", "width-1"), None,
        lambda: _agrees((3, 3, 3), (5, 2, 2), (2, 4, 3)) and _agrees((3, 3, 3), (5, 2, 2), recipe="width-1"),
        "E14, E17, E18",
    ),
    Item(
        "Figure 2", "the demonstration", "figure2",
        "errors 3.376358e-06 and 3.040329e-07, by the softmax's base",
        dict, None, _figure, "E1",
    ),
    Item(
        "Corollary encoder", "FFN(X + σ(XAXᵀ)XV), with norms and biases, too", "Encoder",
        "one network for every encoder of order (n, d, d_v, d₁, d₂)",
        _programs("paper", "fetch", feed_forward=(4, 3)), None,
        lambda: _agrees((3, 3, 3), feed_forward=(4, 2)) and _agrees((3, 3, 3), feed_forward=(4, 3), norm="post"),
        "E19",
    ),
    Item(
        "Remark SMAT by AHAT", "hard attention simulates softmax; Match₂; unique and average pooling",
        "Match2, Attention(pooling=…)",
        "AHAT serves for what single-layer softmax attention does, such as Match₂",
        lambda: {"Match₂, 4 tokens": Match2(5).simulator(4).program}, None,
        lambda: Match2(5).matches([5, 1, 4, 2]) == [True, True, True, False]
        and _agrees((3, 2, 2), pooling="average") and _agrees((3, 2, 2), pooling="unique"),
    ),
    Item(
        "Remark Linformer and linear attention", "Linformer, linear", "Linformer, LinearAttention",
        "U simulates both",
        lambda: {kind: UniversalSimulator(Order.of(3, 3, 3, kind=kind)).program for kind in ("linformer", "linear")}, None,
        lambda: _agrees((4, 3, 2), kind="linformer") and _agrees((4, 3, 2), kind="linear")
        and _agrees((4, 3, 2), kind="linear", feature_map="elu+1"),
    ),
    Item(
        "Remark sparsification", "Performer, Sumformer", "Performer, Sumformer",
        "U represents both",
        lambda: {kind: UniversalSimulator(Order.of(3, 3, 3, kind=kind)).program for kind in ("performer", "sumformer")}, None,
        lambda: _agrees((4, 3, 2), kind="performer") and _agrees((4, 3, 2), kind="sumformer"),
    ),
    Item(
        "Corollary hierarchy", "a smaller T on a larger U", "UniversalSimulator.embed",
        "exact, by padding with zeros",
        lambda: {"masked": UniversalSimulator(3, 3, 3).masked.program}, None,
        _hierarchy, "E15, E16",
    ),
    Item(
        "Theorem H heads", "H heads, side by side or through W_O", "UniversalSimulator, MultiHeadAttention",
        "one network for every T of H heads",
        _programs("paper", "fetch", heads=2), None,
        lambda: _agrees((3, 3, 2), heads=3) and _agrees((3, 3, 3), heads=2, residual=True),
    ),
    Item(
        "Corollary H heads", "encoders of H heads; layers of torch", "Encoder, from_torch",
        "one network for every encoder of H heads",
        _programs("fetch", heads=2, feed_forward=(4, 3), norm="pre"), None,
        lambda: _agrees((3, 3, 3), heads=2, feed_forward=(4, 3), norm="pre"),
    ),
    Item(
        "Remark H heads", "PARITY on two U's in series, FIRST; k-PARITY on one", "Stack, Parity, First, KParity",
        "two serially connected U's run the two-layer encoder for PARITY",
        lambda: {"PARITY, length 3": Parity().simulator(3).program}, None, _languages,
    ),
    Item(
        "Appendix, equation inv", "the alternative construction", 'UniversalSimulator(recipe="inverse")',
        "through inverses, for A and V non-singular, of order 3",
        _programs("inverse"), None, _inverse, "E5",
    ),
    Item(
        "Conclusion: decoders", "causal and cross-attention, decoder layers, generation",
        "DecoderLayer, LanguageModel", "future work", dict, None, _decoder,
    ),
]  # fmt: skip
