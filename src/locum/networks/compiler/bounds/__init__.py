"""Bound the error of a network; errors are propagated from the embeddings to the output."""

from locum.networks.compiler.bounds.fitting import Fitted, fit

__all__ = ["Fitted", "fit"]
