"""Specialise U to random layers T, and measure the errors and the sizes of the networks."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from locum import Attention, UniversalSimulator

CASES = 100


def measure(seed: int) -> dict[str, Any]:
    """Specialise U to a random T, and return errors and sizes of the program and of two networks."""
    rng = np.random.default_rng(seed)
    n, d, d_v = (int(size) for size in rng.integers(1, 5, size=3))
    T, X = Attention(rng.normal(size=(d, d)), rng.normal(size=(d, d_v))), rng.normal(size=(n, d))
    U = UniversalSimulator(n, d, d_v)
    special = U.specialise(T)
    fetch, native = (special.compile(recipe, feed_forward="exact") for recipe in (None, "native"))
    tokens, direct = special.encode(X), T(X)
    return {
        "order": [n, d, d_v],
        "program_error": float(np.abs(special(X) - direct).max()),
        "fetch_error": float(np.abs(special.decode(fetch(tokens)) - direct).max()),
        "native_error": float(np.abs(special.decode(native(tokens)) - direct).max()),
        "heads_of_U": U.architecture.heads,
        "heads_left": special.architecture.heads,
        "native_heads": list(native.architecture.heads),
        "native_nonzeros": native.architecture.nonzeros,
        "weights_of_T": d * d + d * d_v,
    }


def main() -> int:
    """Measure random layers T, print the results, and return 1 if an error is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", type=int, default=CASES)
    options = parser.parse_args()
    rows = [measure(seed) for seed in range(options.cases)]
    worst = {
        name: max(row[name] for row in rows)
        for name in ("program_error", "fetch_error", "native_error")
    }
    if options.json:
        print(json.dumps({"cases": len(rows), "worst": worst, "rows": rows}))
    else:
        print(f"{len(rows)} random T of orders up to (4, 4, 4)")
        for name, error in worst.items():
            print(f"  {name.replace('_', ' ')}: at most {error:.1e}")
        share = np.median([row["native_nonzeros"] / row["weights_of_T"] for row in rows])
        print(f"  weights that are not zero, native: {share:.0f} times T's own (median)")
    return 0 if max(worst.values()) < 1e-12 else 1


if __name__ == "__main__":
    raise SystemExit(main())
