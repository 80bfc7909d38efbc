"""Evaluate programs on long sequences without N×N attention patterns.

Selectors are represented by intervals in the order of their keys (``structured_selectors.py``). The
time of each s-op and head is O(N log N), while dense execution needs O(N²) for each head. With
``allow_masks``, all pairs of positions are compared where this method does not apply. Programs that
are not supported raise :class:`Unstructured`; see ``structured_evaluation.py``.
"""

from locum.execution.fast.structured.series import Series, Unstructured, tokens_array
from locum.execution.fast.structured.structured_attention import CombinedSelection, Selection
from locum.execution.fast.structured.structured_evaluation import evaluate, evaluate_all
from locum.execution.fast.structured.structured_selectors import Structure

__all__ = [
    "CombinedSelection",
    "Selection",
    "Series",
    "Structure",
    "Unstructured",
    "evaluate",
    "evaluate_all",
    "tokens_array",
]
