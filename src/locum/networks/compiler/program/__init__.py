"""What is known of a program: its values, its patterns, the codes of its strings."""

from locum.networks.compiler.program.definedness import require_causal, undefined
from locum.networks.compiler.program.normalise import normalise, read_names

__all__ = ["normalise", "read_names", "require_causal", "undefined"]
