"""Compute scores for selectors: q·k is maximal exactly at the keys that a selector selects."""

from locum.networks.compiler.scoring.broadcasting import Known, broadcast

__all__ = ["Known", "broadcast"]
