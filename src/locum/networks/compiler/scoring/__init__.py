"""Selectors as scores: q·k is greatest exactly where the selector holds."""

from locum.networks.compiler.scoring.broadcasting import Known, broadcast

__all__ = ["Known", "broadcast"]
