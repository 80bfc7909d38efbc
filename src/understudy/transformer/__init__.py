"""Transformers as numbers: what a compiler makes, and what is run, saved and exported."""

from understudy.transformer.architecture import TransformerArchitecture
from understudy.transformer.cache import ActivationCache
from understudy.transformer.compiled import CompiledTransformer
from understudy.transformer.config import Config
from understudy.transformer.residual import ResidualStream
from understudy.transformer.saving import load
from understudy.transformer.weights import AttentionWeights, FeedForwardWeights, LayerWeights, Weights

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
]
