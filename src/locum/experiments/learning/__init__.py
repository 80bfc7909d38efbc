"""Train compiled networks from perturbed or random weights, many at a time (docs/learning.md).

Training requires PyTorch. ``sweeps/learning.toml`` and, for a GPU, ``sweeps/learning_gpu.toml`` list
the training runs of the page for ``locum sweep``.
"""
