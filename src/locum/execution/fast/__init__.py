"""Execute programs by array views and matrix products instead of heads.

``symbolic_lowering.py`` lowers a program to sums of products of loads at affine positions.
``emission.py`` turns these sums into steps on whole arrays, and ``fusion.py`` fuses steps. The
structured tier runs s-ops that cannot be lowered, usually in O(N log N) time for N positions. If the
structured tier does not support these s-ops, dense execution runs the program on at most 4,096 tokens.
Use ``executor="heads"`` to run the heads of a program.
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
