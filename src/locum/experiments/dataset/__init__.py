"""A dataset of compiled circuits, and what reads and scores it.

``locum.dataset.load(folder)`` reads one, ``generate`` writes one; ``score`` measures what a method
found."""

from locum.dataset.loading import Dataset, Item, load
from locum.dataset.scoring import faithfulness_curve, score

__all__ = ["Dataset", "Item", "faithfulness_curve", "load", "score"]
