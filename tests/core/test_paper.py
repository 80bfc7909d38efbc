"""The verdicts on the statements of the paper, and a counterexample for each erratum of a program.

``docs/verdicts.md`` is the table of the verdicts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum import aggregate, full, indices, length, select, tokens
from locum import constructions as con
from locum.__main__ import main
from locum.paper import listings
from locum.simulators import Attention, LinearAttention, UniversalSimulator

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)
#: Statement → title, verdict, and errata.
VERDICTS = {key: rest for key, *rest in ROW.findall((DOCS / "verdicts.md").read_text("utf-8"))}
#: Statements whose runs take more than a second.
SLOW = {"future:decoders", "rem:multihead", "rem:ahattosmat", "Th:1"}
ITEMS = [pytest.param(key, marks=pytest.mark.slow if key in SLOW else ()) for key in VERDICTS]


def command(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return what a command prints as JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["locum", *words, "--json"])
        with pytest.raises(SystemExit):
            raise SystemExit(main())
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("key", ITEMS)
def test_verdict(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the checks of a statement leads to the verdict of the table."""
    title, verdict, errata = VERDICTS[key]
    found = command(capsys, "paper", "report", key)
    assert (found["title"], found["verdict"], ", ".join(found["errata"])) == (title, verdict, errata)
    assert found["holds"]


def test_the_tables_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    """Each erratum but the remark lowers a verdict; each program's erratum has a counterexample."""
    assert len(VERDICTS) == 74
    errata = {each["number"] for each in command(capsys, "paper", "errata")["errata"]}
    lowering = {number for _, _, numbers in VERDICTS.values() for number in numbers.split(", ")}
    assert lowering - {""} == errata - {"E25"}
    assert errata >= COUNTEREXAMPLES.keys()


def listing(name: str, given: list[Any]) -> list[Any]:
    """Run a listing of the paper as printed."""
    ((_, program),) = locum.rasp.Session(given).script(listings.text(name))
    values: list[Any] = program(given)
    return values


def fails(name: str, given: list[Any]) -> bool:
    """Return whether a listing is undefined."""
    with pytest.raises(locum.LocumError):
        listing(name, given)
    return True


def transpose_second_block(size: Any) -> list[Any]:
    """Transpose the second of two 3×2 blocks by Listing 1, with ``size`` in place of the length."""
    at = indices - 6
    place = (at % 3) * (size / 3) + (at - at % 3) / 3
    return aggregate(select(at, place, "=="), tokens)([0.0] * 6 + [1, 2, 3, 4, 5, 6])


def heads_of_product(n: int, d: int) -> int:
    """Return the number of heads of the paper's product of n×d and d×d matrices."""
    a, b = con.concatenate(tokens, (n, d), (d, d))
    return sum(con.matmul(a, b).sop.architecture.heads)


def hidden_units(bound: float) -> int:
    """Return the number of ReLUs of U on tokens up to a bound."""
    options: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu"}
    model = UniversalSimulator(2, 2, 2).compile("native", ranges=(-bound, bound), **options)
    return model.architecture.d_mlp


ONE, SQUARE = np.ones((1, 1)), [7.0, 8.0, 12.0, 10.0, 11.0, 9.0, 2.0, 4.0, 21.0]
PAIR = con.Matrix(tokens, 1, 2)
reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
twice = LinearAttention(ONE, ONE, 2 * ONE)
features = LinearAttention(ONE, ONE, 2 * ONE, feature_map="elu+1")
#: Erratum → whether the printed form fails.
COUNTEREXAMPLES: dict[str, Callable[[], bool]] = {
    "E1": lambda: abs(listing("softmax", [1.0] + [0.0] * 5)[0] - math.e / (math.e + 1)) > 1e-4,
    "E2": lambda: listing("maxmin", [1.0, -2.0]) == [1.0, 1.0],
    "E3": lambda: listing("match2", [5, 5]) == [0, 0],
    "E4": lambda: fails("inverse", SQUARE),
    "E5": lambda: listing("cofactor", (2 * np.eye(3)).ravel().tolist())[0] / 8 == 0.5,
    "E12": lambda: con.identify(tokens, 1, 2)([10, 20, 30]) == [0, 20, 30],
    "E13": lambda: transpose_second_block(length)[6:] != [1, 3, 5, 2, 4, 6],
    "E14": lambda: len(aggregate(full, tokens)([1.0] * 7)) == 7,
    "E23": lambda: aggregate(select(indices, 9, "=="), tokens)([1, 1]) == [0, 0],
    "E28": lambda: con.match3(con.Matrix(tokens, 1, 3), 5).run([1, 2, 2]).tolist() == [[1, 1, 1]],
    "E32": lambda: listing("matmul", [0.8, 0.3, 0.1, 0.6] + [0.2] * 4)[0] != 0.8 * 0.2,
    "E34": lambda: con.maxmin(PAIR).run([0, 1]).tolist() == con.maxmin(PAIR).run([1, 0]).tolist(),
    "E36": lambda: listing("transpose", [0, 1, 2, 3, 4, 5]) == [0, 2, 4, 1, 3, 5],
    "E37": lambda: (heads_of_product(2, 2), heads_of_product(2, 3)) == (8, 11),
    "E41": lambda: transpose_second_block(length / 2)[:6] == [0, 1, 3, 0, 2, 4],
    "E42": lambda: reverse([1, 2, 3, 4]) != [*reverse([1, 2]), *reverse([3, 4])],
    "E44": lambda: (hidden_units(1.0), hidden_units(2.0)) == (830, 4158),
    "E45": lambda: (twice([[2]]), features([[2]])) == (16, 4),
}


@pytest.mark.parametrize("number", COUNTEREXAMPLES)
def test_the_printed_form_fails(number: str) -> None:
    assert COUNTEREXAMPLES[number]()


#: Listing, input, and the values of the listing as printed.
LISTINGS = [
    ("transpose", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
    ("relu", [1.92, -1.33, 2.31], [1.92, 0, 2.31]),
    ("maxmin", [3.0, -1.0, 2.0, 5.0], [3.0, 3.0, 8.0, 2.0]),
    ("maxmin_corrected", [3.0, -1.0, 2.0, 5.0], [3.0, -1.0, 5.0, 2.0]),
    ("match2", [1, 5, 4], [1, 0, 1]),
    ("match2_corrected", [1, 5, 4], [1, 1, 1]),
    ("cofactor", SQUARE, [195.0, -192.0, 18.0, -120.0, 123.0, -12.0, -60.0, 57.0, -3.0]),
    ("determinant", SQUARE, [45.0] * 9),
    ("identify", [10, 20, 30, 40, 50], [0, 20.0, 30.0, 40.0, 0]),
    ("shift", [10, 20, 30, 40, 50], [30.0, 40.0, 50.0, 10.0, 20.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), LISTINGS)
def test_listings(name: str, given: list[Any], values: list[Any]) -> None:
    assert listing(name, given) == pytest.approx(values, abs=1e-12)


def test_listings_of_matrices() -> None:
    """The listings of products, softmax and inverse equal NumPy up to the printed base."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 4))
    found = listing("matmul", [*a.ravel().tolist(), *b.ravel().tolist()])
    np.testing.assert_allclose(found[:12], (a @ b).ravel(), atol=1e-13)
    x = rng.normal(size=(3, 2))
    powers = 2.73**x
    found = listing("softmax", x.ravel().tolist())
    np.testing.assert_allclose(found, (powers / powers.sum(1, keepdims=True)).ravel(), atol=1e-13)
    inverse = np.linalg.inv(np.reshape(SQUARE, (3, 3)))
    np.testing.assert_allclose(listing("inverse_corrected", SQUARE), inverse.ravel(), atol=1e-12)


def test_figure_2() -> None:
    """U reproduces the formula of attention on matrices like those of the figure."""
    rng = np.random.default_rng(2)
    A, V, X = rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=(3, 2))
    U = UniversalSimulator(3, 2, 3, recipe="paper", base=2.718, stable=False)
    powers = 2.718 ** (X @ A @ X.T)
    wanted = powers / powers.sum(1, keepdims=True) @ X @ V
    np.testing.assert_allclose(U(Attention(A, V), X), wanted, atol=1e-12)
