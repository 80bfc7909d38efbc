"""Define the formulas that U computes: attention heads, layers, the inverse form and the form of width
1.
"""
