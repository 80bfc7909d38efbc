"""The constructions that the surveys of transformers and formal languages list, as tested entries."""

from locum.languages.cookbook.entries import COOKBOOK, Entry, Finding

__all__ = ["COOKBOOK", "Entry", "Finding"]
