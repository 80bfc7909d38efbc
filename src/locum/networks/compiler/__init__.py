"""Compile RASP to the weights of a transformer.

``compiling.py`` calls the stages in the order of the folders: ``program`` (what is known of it),
``scoring`` (selectors as q·k), ``network`` (heads and feed-forwards without numbers), ``units``
(functions as hidden units), ``bounds`` (how exact they are), ``weights`` (the numbers).
"""

from locum.networks.compiler.compiling import compile, count_layers, values_of  # noqa: A004  (locum.compile)
from locum.networks.compiler.target import Target

__all__ = ["Target", "compile", "count_layers", "values_of"]
