"""Selectors as scores: q·k is greatest exactly where the selector holds."""

from locum.compiler.scoring.broadcasting import broadcast
from locum.compiler.scoring.known import Known

__all__ = ["Known", "broadcast"]
