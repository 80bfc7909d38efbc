"""Create, load and score datasets of compiled circuits.

``load(folder)`` reads a dataset, and ``score`` compares a found circuit with the true circuit.
``locum.experiments.dataset.generating.generate`` writes a dataset.
"""

from locum.experiments.dataset.dataset_loading import Dataset, Item, load
from locum.experiments.dataset.parts import faithfulness_curve
from locum.experiments.dataset.scoring import score

__all__ = ["Dataset", "Item", "faithfulness_curve", "load", "score"]
