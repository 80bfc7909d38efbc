"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    attention_operations,
    elementwise_operations,
    indexing_operations,
    losses,
    normalisation_operations,
    products,
    reduction_operations,
    views,
    windows,
)

__all__ = [
    "attention_operations",
    "elementwise_operations",
    "indexing_operations",
    "losses",
    "normalisation_operations",
    "products",
    "reduction_operations",
    "views",
    "windows",
]
