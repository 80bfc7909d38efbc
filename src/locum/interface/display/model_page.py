"""Write a page about a model that ran on U, with the attention patterns of its heads.

The page is a single file without external resources. The script in ``model_page.html`` draws the
patterns, which are stored in base64. If the patterns of all layers and heads are too large, the page
shows only the first patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locum.interface.display.html import filled, packed

if TYPE_CHECKING:
    import torch

    from locum.torch.pretrained import Pretrained
    from locum.torch.usage_report import Report

#: Maximum number of pattern entries in a page. The first pattern is always included.
NUMBERS = 600_000
TEMPLATE = Path(__file__).with_name("model_page.html")


def model_page(
    loaded: Pretrained,
    texts: Sequence[str],
    inputs: Mapping[str, torch.Tensor],
    patterns: Mapping[str, torch.Tensor],
    report: Report,
    differences: Mapping[str, float],
) -> str:
    """Return the page of a forward pass as HTML.

    ``patterns`` maps module paths to attention patterns of shape [text, head, query, key].
    """
    ids = inputs["input_ids"]
    mask = inputs.get("attention_mask")
    kept = [
        row.nonzero()[:, 0] if mask is not None else slice(None)
        for row in (mask if mask is not None else ids)
    ]
    tokens = [loaded.tokens(row[places]) for row, places in zip(ids, kept, strict=True)]
    square = {
        path: pattern
        for path, pattern in innermost(patterns).items()
        if pattern.shape[-2] == ids.shape[1] <= pattern.shape[-1]
    }
    program = max(report.programs, key=lambda one: one.usage.tokens).to_dict()
    facts = [
        ["model", f"{type(loaded.model).__name__}"],
        ["numbers", str(loaded.model.dtype).removeprefix("torch.")],
        [
            "program",
            f"{program['tokens']:,} tokens, {program['layers']} layers, {program['heads']:,} heads",
        ],
        ["executor", program["executor"]],
        ["multiply-adds on U", f"{report.share:.1%}"],
    ]
    if differences:
        facts.append(["largest difference from eager", f"{max(differences.values()):.1e}"])
    data = {
        "title": f"{loaded.folder.name} on U",
        "facts": facts,
        "texts": [
            {"text": text, "tokens": own, "length": len(own)}
            for text, own in zip(texts, tokens, strict=True)
        ],
        "layers": list(square),
        "differences": [[name, value] for name, value in differences.items()],
        "maps": _maps(square, kept),
    }
    return filled(TEMPLATE, data)


def innermost(patterns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the patterns of submodules that contain no other module with a recorded pattern."""
    return {
        path: pattern
        for path, pattern in patterns.items()
        if path and not any(other.startswith(f"{path}.") for other in patterns)
    }


def _maps(patterns: Mapping[str, torch.Tensor], kept: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the first patterns that fit in the page, without padding."""
    maps: list[dict[str, Any]] = []
    numbers = 0
    for layer, pattern in enumerate(patterns.values()):
        for head in range(pattern.shape[1]):
            for text, places in enumerate(kept):
                matrix = pattern[text, head][places][:, places].double().cpu().numpy()
                if maps and numbers + matrix.size > NUMBERS:
                    return maps
                numbers += matrix.size
                maps.append({"text": text, "layer": layer, "head": head, "ours": packed(matrix)})
    return maps
