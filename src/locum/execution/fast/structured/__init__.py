"""The structured evaluator: long sequences without N×N patterns.

Selectors are held as intervals in the order of their keys (``selectors.py``), so that a program costs
O(N log N) where dense execution costs N² per head. It answers with dense execution's values, or raises
:class:`Unstructured`; see ``structured_evaluation.py``.
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
