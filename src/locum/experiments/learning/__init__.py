"""Train compiled networks from perturbed weights, many networks at a time (docs/learning.md).

This package requires PyTorch. ``locum sweep sweeps/learning.toml`` runs the experiments of the page.
"""
