"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    casts,
    creation,
    elementwise,
    normalisation,
    products,
    reductions,
    views,
)

__all__ = ["casts", "creation", "elementwise", "normalisation", "products", "reductions", "views"]
