"""Write the table of docs/architectures.md from the results of trials."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BEGIN = "<!-- table of model types: python -m experiments.architectures --write -->"
END = "<!-- end of the table -->"
#: Outcomes of trials in which a small model was built and run.
TRIED = ("right", "wrong", "rejected", "not captured")


def read_results(path: Path) -> list[dict[str, Any]]:
    """Return the last result of each trial in a file of results, or an empty list without a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = {(r["model_type"], r["task"], r["backward"]): r for r in map(json.loads, lines)}
    return [results[key] for key in sorted(results)]


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count the model types that were tried, and the outcomes of the trials."""
    tried = [r for r in results if r["outcome"] in TRIED]
    return {
        "model_types": len({r["model_type"] for r in tried}),
        "right_model_types": len({r["model_type"] for r in tried if r["outcome"] == "right"}),
        "outcomes": dict(Counter(r["outcome"] for r in results)),
        "backward": dict(Counter(r["outcome"] for r in tried if r["backward"])),
    }


def make_table(results: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table with one row for each model type that was tried."""
    rows = ["| model type | correct | not supported |", "|---|---|---|"]
    for model_type in sorted({r["model_type"] for r in results if r["outcome"] in TRIED}):
        own = [r for r in results if r["model_type"] == model_type and r["outcome"] in TRIED]
        right = ", ".join(_task(r) for r in own if r["outcome"] == "right")
        others = "; ".join(f"{_task(r)}: {_reason(r)}" for r in own if r["outcome"] != "right")
        rows.append(f"| `{model_type}` | {right or '–'} | {others or '–'} |")
    return "\n".join(rows)


def write_table(page: Path, results: Sequence[dict[str, Any]]) -> None:
    """Replace the table of model types in the file ``page``."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{make_table(results)}\n\n{END}{after}")


def _task(result: dict[str, Any]) -> str:
    return str(result["task"]) + (" with gradients" if result["backward"] else "")


def _reason(result: dict[str, Any]) -> str:
    """Return a short reason why a trial was not right."""
    if result["outcome"] == "not captured":
        return "PyTorch does not capture the model as one graph"
    if result["outcome"] == "wrong":
        return f"**wrong**, {result['detail']}"
    operation, _, problem = result["detail"].partition(":")
    kind = problem.partition(" in module ")[0].strip()
    if "complex" in kind:
        return f"the operation `{operation}` on complex numbers"
    if "depend on data" in kind:
        return f"the operation `{operation}` with a data-dependent shape"
    if "." not in operation:
        return "the program has no plan"
    return f"the operation `{operation}`"
