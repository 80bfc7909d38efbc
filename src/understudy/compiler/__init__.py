"""From RASP to the weights of a transformer."""

from understudy.compiler.compiling import compile  # noqa: A004  (understudy.compile)

__all__ = ["compile"]
