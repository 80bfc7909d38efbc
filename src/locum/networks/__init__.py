"""Transformers as weights: ``compiler`` makes them, ``transformer`` runs and exports them.

``looped`` has looped transformers that run machine programs.
"""
