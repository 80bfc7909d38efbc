"""Compile programs to transformer weights, and run transformers and looped transformers.

``compiler`` compiles RASP programs to weights. ``transformer`` runs, inspects and exports transformers
given as weights. ``looped`` runs looped transformers that execute machine programs.
"""
