"""Fast execution: the same program by views and matrix products instead of heads.

``symbolic_lowering.py`` lowers a program to sums of products of loads at affine positions,
``emission.py`` turns these into steps on whole arrays, and ``fusion.py`` fuses steps. What cannot be
lowered, the structured tier runs in O(N log N); what that cannot do, dense execution does. This is an
optimised execution of the program, not a run of its heads: ``executor="heads"`` is that.
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
