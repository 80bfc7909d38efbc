"""What can be said of a program without running it."""

from locum.analysis.architecture import Architecture, Head, architecture

__all__ = ["Architecture", "Head", "architecture"]
