"""Run, inspect, save and export transformers given as weights."""

from locum.networks.transformer.compiled import CompiledTransformer, load, save
from locum.networks.transformer.config import Config
from locum.networks.transformer.forward import ActivationCache
from locum.networks.transformer.residual import ResidualStream
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.networks.transformer.weights import (
    AttentionWeights,
    FeedForwardWeights,
    LayerWeights,
    Weights,
)

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
