"""Transformers as numbers: what a compiler makes, and what is run, saved and exported."""

from understudy.transformer.compiled import CompiledTransformer
from understudy.transformer.config import Config
from understudy.transformer.weights import AttentionWeights, FeedForwardWeights, LayerWeights, Weights

__all__ = [
    "AttentionWeights",
    "CompiledTransformer",
    "Config",
    "FeedForwardWeights",
    "LayerWeights",
    "Weights",
]
