"""Provide a dataset of circuits as a PyTorch ``Dataset``, with weights as tensors and labels by
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Dataset


class TorchCircuits(Dataset[tuple[dict[str, torch.Tensor], dict[str, Any]]]):
    """A PyTorch dataset of pairs (tensors by name, label), one pair for each item."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        item = self.items[place]
        tensors = {name: torch.from_numpy(value) for name, value in item.network.tensors.items()}
        truth = item.truth
        label = {
            "id": item.row["id"],
            "program": item.program,
            "edges": sorted(truth.edges),
            "heads": sorted(truth.true_heads),
            "directions": torch.from_numpy(item.directions),
        }
        return tensors, label
