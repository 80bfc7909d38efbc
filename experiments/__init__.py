"""Experiments whose results are on the pages docs/architectures.md and docs/learning.md."""
