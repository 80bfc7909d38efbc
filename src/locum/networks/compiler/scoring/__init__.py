"""Compute scores for selectors: q·k is maximal exactly at the selected keys, if any."""

from locum.networks.compiler.scoring.broadcasting import Known, broadcast

__all__ = ["Known", "broadcast"]
