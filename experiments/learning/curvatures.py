"""Print the largest curvature of the loss at U: ``python -m experiments.learning.curvatures``."""

from __future__ import annotations

import argparse
import json

from locum.experiments.learning.training import sharpness


def main() -> None:
    """Print the largest curvature for U of two orders, with and without balanced weights."""
    parser = argparse.ArgumentParser(description="Print the largest curvature of the loss at U.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    rows = []
    for order in ([2, 1, 1], [2, 2, 2]):
        for balanced in (False, True):
            settings = {"task": "U", "order": order, "balanced": balanced}
            found = {
                which: sharpness({**settings, "trainable": which})
                for which in ("all", "zeros", "nonzeros")
            }
            rows.append({"order": order, "balanced": balanced, **found})
    if parser.parse_args().json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))


if __name__ == "__main__":
    main()
