"""Fast execution: the same program by views and matrix products instead of heads.

A program is lowered (``lowering.py``) to sums of products of loads at affine positions, those to steps
on whole arrays (``emission.py``, ``contraction.py``), those fused where the array library can do better
(``fusion.py``). What cannot be lowered, the structured tier runs in O(N log N); what that cannot do,
dense execution does. This is an optimised execution of the program, not a run of its heads:
``executor="heads"`` is that.
"""

from locum.execution.fast.execute import (
    FallbackWarning,
    evaluate,
    evaluate_parts,
    forget_plans,
    plan_for,
)
from locum.execution.fast.plan import Plan
from locum.execution.fast.plan_cache import plan

__all__ = [
    "FallbackWarning",
    "Plan",
    "evaluate",
    "evaluate_parts",
    "forget_plans",
    "plan",
    "plan_for",
]
