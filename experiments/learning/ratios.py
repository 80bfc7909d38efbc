"""Print the ratio of the largest to the smallest weight before and after ``model.balanced()``.

``python -m experiments.learning.ratios`` prints the ratios for U(2, 2, 2) in each recipe and for the
compiled programs of the cookbook.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.languages.cookbook import COOKBOOK, Compiled
from locum.languages.recogniser import Recogniser
from locum.networks.compiler import compile as compile_program
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.balancing import Spread
from locum.simulators import UniversalSimulator
from locum.simulators.universal_weights import RECIPES

#: Options of the compiler by kind of network. Hidden units support numbers
#: from −1 to 1 with errors up to 10⁻².
_UNITS = {"ranges": (-1, 1), "tolerance": 1e-2}
HOSTS: dict[str, dict[str, Any]] = {
    "hard, exact": {"feed_forward": "exact"},
    "softmax, exact": {"attention": "softmax", "feed_forward": "exact"},
    "softmax, relu": {"attention": "softmax", "feed_forward": "relu", **_UNITS},
    "softmax, glu": {"attention": "softmax", "feed_forward": "glu", **_UNITS},
    "softmax, gelu": {"attention": "softmax", "feed_forward": "gelu", **_UNITS},
}


def _networks() -> Iterator[tuple[str, str, CompiledTransformer | None]]:
    for recipe in RECIPES:
        own = "fetch" if recipe == "native" else recipe
        for host, options in HOSTS.items():
            try:
                model = UniversalSimulator(2, 2, 2, recipe=own).compile(recipe, **options)
            except CompileError:
                yield f"U, {recipe}", host, None
                continue
            yield f"U, {recipe}", host, model
    soft: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu"}
    for name, entry in COOKBOOK.items():
        if not isinstance(entry, Compiled):
            continue
        yield name, "hard, exact", entry.model
        try:
            if isinstance(entry.built, Recogniser):
                model = entry.built.compile(entry.longest, name=name, **soft)
            else:
                setting: dict[str, Any] = {
                    "length": entry.longest,
                    "vocabulary": entry.alphabet,
                    "causal": True,
                }
                model = compile_program(entry.built, **setting, **soft)
        except CompileError:
            continue
        yield name, "softmax, relu", model


def measure() -> list[dict[str, Any]]:
    """Return a row with the ratios of each network; they are None if U cannot be compiled."""
    rows = []
    for name, host, model in _networks():
        row: dict[str, Any] = {"network": name, "host": host, "before": None, "after": None}
        if model is not None:
            balanced = model.balanced()
            row["before"], row["after"] = (Spread.of(m.weights).ratio for m in (model, balanced))
            row["same bits"] = _agree(model, balanced)
        rows.append(row)
    return rows


def _agree(model: CompiledTransformer, balanced: CompiledTransformer) -> bool:
    """Return whether both networks return exactly equal outputs for random inputs of maximum length."""
    draw, length = np.random.default_rng(0), model.config.lengths[1]
    vocabulary = model.config.vocabulary
    if vocabulary is None:
        inputs: Any = draw.uniform(-1, 1, (16, length)).tolist()
    else:
        inputs = [
            [vocabulary[i] for i in draw.integers(len(vocabulary), size=length)] for _ in range(16)
        ]
    return bool(model(inputs) == balanced(inputs))


def main() -> None:
    """Print the ratios as a table or as one JSON object."""
    parser = argparse.ArgumentParser(description="Ratios of weights before and after balancing.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rows = measure()
    if options.json:
        print(json.dumps({"rows": rows}))
    else:
        _print_table(rows)
    if not all(row.get("same bits", True) for row in rows):
        raise SystemExit(1)


def _print_table(rows: list[dict[str, Any]]) -> None:
    hosts = list(HOSTS)
    print("| network | " + " | ".join(hosts) + " |")
    print("|---" * (len(hosts) + 1) + "|")
    for name in dict.fromkeys(row["network"] for row in rows):
        cells = {row["host"]: row for row in rows if row["network"] == name}
        print(f"| {name} | " + " | ".join(_cell(cells.get(host)) for host in hosts) + " |")


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or row["before"] is None:
        return "–"
    return " → ".join(_short(row[name]) for name in ("before", "after"))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number < 1e5 else f"{number:.0e}".replace("e+0", "e").replace("e+", "e")


if __name__ == "__main__":
    main()
