"""No compiled network is larger, or has a larger error bound, than its row in network_sizes.toml.

``python -m tests.core.test_network_sizes`` lowers the rows to the present sizes. It never raises a row.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import locum
from locum import aggregate, best, exp, full, indices, length, maximum, select, tokens, where
from locum.constructions import concatenate, matmul
from locum.rasp.programs import EVERYDAY, load_everyday

FILE = Path(__file__).with_name("network_sizes.toml")
COLUMNS = ("layers", "heads", "d_model", "d_mlp", "nonzeros", "error_bound")
Options = dict[str, Any]


def task(name: str, **options: Any) -> Callable[[], tuple[Any, Options]]:
    """An everyday program for six tokens."""

    def make() -> tuple[Any, Options]:
        everyday = load_everyday(name)
        return everyday.program, {"length": 6, "vocabulary": everyday.vocabulary, **options}

    return make


def case(program: Any, **options: Any) -> Callable[[], tuple[Any, Options]]:
    """A program of integers or letters for six tokens, unless the options say otherwise."""
    numeric = options.get("numeric", False)
    inputs = {"ranges": (-2, 2), "tolerance": 0.01} if numeric else {"vocabulary": range(4)}
    return lambda: (program, {"length": 6, **inputs, **options})


BEFORE = select(indices, indices, "<=")
LEFT, RIGHT = concatenate(tokens, (2, 2), (2, 2))
COUNT = locum.selector_width(select(tokens, tokens, "=="))
MEAN = aggregate(full, tokens)
REAL: Options = {"numeric": True}
LETTERS: Options = {"vocabulary": "abc"}
SOFTMAX: Options = {"attention": "softmax"}
PROGRAMS: dict[str, Callable[[], tuple[Any, Options]]] = {
    **{name: task(name) for name in EVERYDAY},
    **{f"{name}, softmax": task(name, **SOFTMAX) for name in ("sort", "dyck2", "palindrome")},
    **{f"{name}, small": task(name, prefer="small") for name in ("sort", "modsum", "parity")},
    **{f"{name}, unfolded": task(name, fold=False) for name in ("reverse", "parity")},
    "induction, causal": task("induction", causal=True),
    "histogram": case(COUNT, **LETTERS),
    "histogram, gelu": case(COUNT, feed_forward="gelu", **LETTERS),
    "histogram, float32": case(COUNT, dtype="float32", **LETTERS),
    "histogram, length 20": case(COUNT, length=20, **LETTERS),
    "previous token": case(aggregate(select(indices, indices - 1, "=="), tokens, "?"), **LETTERS),
    "share": case(aggregate(BEFORE, locum.indicator(tokens == "a")), **LETTERS),
    "running mean": case(aggregate(BEFORE, tokens)),
    "largest": case(aggregate(best(BEFORE, tokens), tokens)),
    "variance": case(aggregate(full, (tokens - MEAN) ** 2)),
    "variance, small": case(aggregate(full, (tokens - MEAN) ** 2), prefer="small"),
    "sum": case(locum.sum(full, tokens) + indices),
    "position": case(length - 1 - indices),
    "parity of a count": case((COUNT % 2) == 1),
    "branch": case(where(COUNT > 2, tokens, -1)),
    "product": case(tokens * MEAN, **REAL),
    "product, glu": case(tokens * MEAN, feed_forward="glu", **REAL),
    "product, gelu": case(tokens * MEAN, feed_forward="gelu", **REAL),
    "product, float32": case(tokens * MEAN, dtype="float32", **REAL),
    "exp": case(exp(tokens), **REAL),
    "exp, tighter": case(exp(tokens), tolerance=0.001, numeric=True),
    "softmax": case(exp(tokens) / aggregate(full, exp(tokens)), length=3, **REAL),
    "clip": case(maximum(tokens, 0.25), **REAL),
    "running mean of reals, softmax": case(aggregate(BEFORE, tokens), **REAL, **SOFTMAX),
    "comparison of reals": case(where(tokens > 0.5, tokens, -tokens), separation=0.01, **REAL),
    "matrix product": case(
        matmul(LEFT, RIGHT).sop,
        length=8,
        fixed=True,
        feed_forward="glu",
        **REAL,
    ),
}


@functools.cache
def measure(name: str) -> dict[str, float]:
    program, options = PROGRAMS[name]()
    model = locum.compile(program, limit={"seconds": None}, **options)
    size = model.architecture
    values = (size.layers, sum(size.heads), size.d_model, size.d_mlp, size.nonzeros)
    return dict(zip(COLUMNS, (*values, model.error_bound), strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_network_is_not_larger(name: str) -> None:
    limits = tomllib.loads(FILE.read_text("utf-8"))[name]
    assert {c: size for c, size in measure(name).items() if size > limits[c]} == {}


def test_table_is_complete() -> None:
    assert set(tomllib.loads(FILE.read_text("utf-8"))) == set(PROGRAMS)


def lower(limits: dict[str, float], sizes: dict[str, float]) -> dict[str, float]:
    """The smaller limits. An error bound has three digits, and 1% for other machines."""
    new = {**sizes, "error_bound": float(f"{sizes['error_bound'] * 1.01:.2e}")}
    return {c: min(new[c], limits.get(c, new[c])) for c in COLUMNS}


if __name__ == "__main__":
    rows = tomllib.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    lines = ["# Limits of compiled networks, which only decrease (test_network_sizes.py)."]
    for program in PROGRAMS:
        row = lower(rows.get(program, {}), measure(program))
        cells = ", ".join(f"{column} = {value}" for column, value in row.items())
        lines.append(f'"{program}" = {{ {cells} }}')
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
