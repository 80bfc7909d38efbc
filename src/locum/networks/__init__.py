"""Compile programs to transformer weights, and run transformers and looped transformers.

``compiler`` compiles RASP programs to weights. ``transformer`` runs, inspects, saves and exports
transformers given as weights. ``looped`` builds and runs looped transformers.
"""
