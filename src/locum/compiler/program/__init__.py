"""What is known of a program: its values, its patterns, the codes of its strings."""

from locum.compiler.program.causality import require_causal
from locum.compiler.program.definedness import undefined
from locum.compiler.program.normalise import normalise

__all__ = ["normalise", "require_causal", "undefined"]
