"""Normalise and analyse a program: values of s-ops, patterns of selectors, codes of strings."""

from locum.networks.compiler.program.definedness import require_causal, undefined
from locum.networks.compiler.program.normalise import normalise, read_names

__all__ = ["normalise", "read_names", "require_causal", "undefined"]
