"""What is known of a program: its values, its patterns, the codes of its strings."""

from locum.compiler.program.causality import require_causal
from locum.compiler.program.definedness import undefined
from locum.compiler.program.normalise import normalise
from locum.compiler.program.part_names import read_names

__all__ = ["normalise", "read_names", "require_causal", "undefined"]
