"""Programs and checks of the paper's theorems, corollaries and remarks about U, for ``items.py``.

Every check compares U(⟨T, X⟩) with T(X), computed directly, on a few random T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from locum.language.handles import SOp
from locum.paper.checks import is_close
from locum.paper.figure2 import PRINTED, figure2
from locum.paper.languages import First, KParity, Match2, Parity
from locum.simulators import Attention, Order, UniversalSimulator
from locum.simulators.hierarchy import padding_formula, paper_padding
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.sampling import random_module


def programs(*recipes: str, **options: Any) -> Callable[[], dict[str, SOp]]:
    """Build U of order (3, 3, 3) in each of ``recipes``."""
    return lambda: {
        recipe: UniversalSimulator(Order.of(3, 3, 3, **options), recipe=recipe).program
        for recipe in recipes
    }


def kinds(*names: str) -> Callable[[], dict[str, SOp]]:
    """Build U of order (3, 3, 3) for each kind of attention."""
    return lambda: {kind: UniversalSimulator(Order.of(3, 3, 3, kind=kind)).program for kind in names}


def masked() -> dict[str, SOp]:
    """Build U of order (3, 3, 3) that takes smaller T's, too."""
    return {"masked": UniversalSimulator(3, 3, 3).masked.program}


def agrees(*orders: tuple[int, int, int], recipe: str = "fetch", **options: Any) -> bool:
    """Check U(⟨T, X⟩) = T(X) for a random T of each order."""
    generator = np.random.default_rng(0)
    for order in orders:
        U = UniversalSimulator(Order.of(*order, **options), recipe=recipe)
        T = random_module(U.order, generator)
        X = generator.normal(size=(order[0], order[1]))
        if not is_close(U(T, X), T(X)):
            return False
    return True


def attentions() -> bool:
    """Check Theorem 1 with and without room for every product, in two recipes."""
    return agrees((3, 3, 3), (5, 2, 2), (2, 4, 3)) and agrees((3, 3, 3), (5, 2, 2), recipe="width-1")


def figure() -> bool:
    """Check every printed digit and both printed errors of Figure 2."""
    printed_base, exact = figure2(base=2.718), figure2()
    errors = {name: printed.error for name, printed in PRINTED.items() if printed.error}
    return (
        printed_base.reproduced
        and exact.reproduced
        and all(f"{printed_base[name].error:.6e}" == f"{error:.6e}" for name, error in errors.items())
    )


def encoders() -> bool:
    """Check encoders without and with layer norm."""
    return agrees((3, 3, 3), feed_forward=(4, 2)) and agrees(
        (3, 3, 3), feed_forward=(4, 3), norm="post"
    )


def hard_attentions() -> bool:
    """Check Match₂ as a softmax attention, and both kinds of hard attention, on U."""
    return (
        Match2(5).matches([5, 1, 4, 2]) == [True, True, True, False]
        and agrees((3, 2, 2), pooling="average")
        and agrees((3, 2, 2), pooling="unique")
    )


def linear_attentions() -> bool:
    """Check Linformer and linear attention."""
    return (
        agrees((4, 3, 2), kind="linformer")
        and agrees((4, 3, 2), kind="linear")
        and agrees((4, 3, 2), kind="linear", feature_map="elu+1")
    )


def sparse_attentions() -> bool:
    """Check Performer and Sumformer."""
    return agrees((4, 3, 2), kind="performer") and agrees((4, 3, 2), kind="sumformer")


def hierarchy() -> bool:
    """Check that a smaller T runs on a larger U by a mask, and that the paper's padding is wrong (E15)."""
    generator = np.random.default_rng(1)
    T = Attention(generator.normal(size=(2, 2)), generator.normal(size=(2, 1)))
    X, U = generator.normal(size=(2, 2)), UniversalSimulator(4, 3, 2)
    padded = paper_padding(U, T, X)
    return (
        is_close(U.embed(T, X), T(X))
        and is_close(padded, padding_formula(T, X, 4))
        and not is_close(padded, T(X))
    )


def multihead_attentions() -> bool:
    """Check several heads, side by side and with a residual sum."""
    return agrees((3, 3, 2), heads=3) and agrees((3, 3, 3), heads=2, residual=True)


def multihead_encoders() -> bool:
    """Check an encoder of two heads with layer norm before its parts."""
    return agrees((3, 3, 3), heads=2, feed_forward=(4, 3), norm="pre")


def languages() -> bool:
    """Check PARITY, FIRST and k-PARITY on U."""
    parity, first, chosen = Parity(), First(), KParity(3, (0, 2))
    words = ["", "0", "1", "01", "11", "101"]
    return (
        all(parity.accepts(word) == (word.count("1") % 2 == 0) for word in words)
        and all(first.accepts(word) == (word[0] == "1") for word in words[1:])
        and all(chosen.accepts(word) == (word[0] == word[2]) for word in ("000", "100", "101", "011"))
    )


def inverse_form() -> bool:
    """Check the construction through inverses."""
    generator = np.random.default_rng(2)
    A, V = (np.eye(3) + 0.3 * generator.normal(size=(3, 3)) for _ in range(2))
    T, X = Attention(A, V), generator.normal(size=(3, 3))
    return is_close(UniversalSimulator(3, 3, 3, recipe="inverse")(T, X), T(X))


def decoders() -> bool:
    """Check a decoder layer."""
    generator = np.random.default_rng(3)

    def draw(*shape: int) -> Any:
        return generator.normal(size=shape)

    causal = Attention(draw(2, 2), draw(2, 2), mask="causal")
    T = DecoderLayer(causal, Attention(draw(2, 2), draw(2, 2)), norm="post")
    X, M = draw(3, 2), draw(2, 2)
    return is_close(UniversalSimulator.of(T, 3, 2)(T, X, M), T(X, M))
