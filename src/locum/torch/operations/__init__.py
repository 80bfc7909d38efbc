"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    attention,
    elementwise,
    indexing,
    losses,
    normalisation,
    pooling,
    products,
    reductions,
    views,
)

__all__ = [
    "attention",
    "casts",
    "convolution",
    "creation",
    "elementwise",
    "grouped_products",
    "histograms",
    "indexing",
    "losses",
    "normalisation",
    "pooling",
    "products",
    "reductions",
    "storage_writes",
    "views",
]
