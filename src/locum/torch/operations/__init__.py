"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    casts,
    creation,
    elementwise,
    indexing,
    products,
    reductions,
    views,
)

__all__ = ["casts", "creation", "elementwise", "indexing", "products", "reductions", "views"]
