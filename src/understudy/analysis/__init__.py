"""What can be said of a program without running it."""

from understudy.analysis.architecture import Architecture, Head, architecture

__all__ = ["Architecture", "Head", "architecture"]
