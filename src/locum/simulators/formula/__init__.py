"""Define the formulas that U computes: attention heads, layers, and the recipes ``inverse`` and
``width-1``.
"""
