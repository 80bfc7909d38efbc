"""Compile RASP to the weights of a transformer.

``compiling.py`` calls the stages, which are in separate folders:

- ``program`` normalises and analyses the program.
- ``scoring`` expresses selectors as attention scores q·k.
- ``network`` creates heads and feed-forwards without weights.
- ``units`` implements functions by hidden units.
- ``bounds`` chooses hidden units and bounds the errors.
- ``weights`` creates the matrices.
"""

from locum.networks.compiler.compiling import compile, count_layers, values_of  # noqa: A004  (locum.compile)
from locum.networks.compiler.target import Target

__all__ = ["Target", "compile", "count_layers", "values_of"]
