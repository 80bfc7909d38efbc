"""Transformers as weights: run, inspected, saved and exported."""

from locum.transformer.architecture import TransformerArchitecture
from locum.transformer.compiled import CompiledTransformer, load, save
from locum.transformer.config import Config
from locum.transformer.forward import ActivationCache
from locum.transformer.residual import ResidualStream
from locum.transformer.weights import AttentionWeights, FeedForwardWeights, LayerWeights, Weights

__all__ = [
    "ActivationCache",
    "AttentionWeights",
    "CompiledTransformer",
    "Config",
    "FeedForwardWeights",
    "LayerWeights",
    "ResidualStream",
    "TransformerArchitecture",
    "Weights",
    "load",
    "save",
]
