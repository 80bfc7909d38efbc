"""Define the constructions of ATen operations.

Each module registers its constructions in the table of supported operations when it is imported.
"""

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
