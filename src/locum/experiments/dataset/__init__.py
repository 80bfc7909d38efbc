"""A dataset of compiled circuits, and what reads and scores it.

``load(folder)`` reads one, ``generate`` writes one; ``score`` measures what a method found."""

from locum.experiments.dataset.dataset_loading import Dataset, Item, load
from locum.experiments.dataset.scoring import faithfulness_curve, score

__all__ = ["Dataset", "Item", "faithfulness_curve", "load", "score"]
