"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    attention,
    casts,
    creation,
    elementwise,
    normalisation,
    products,
    reductions,
    views,
)

__all__ = [
    "attention",
    "casts",
    "creation",
    "elementwise",
    "normalisation",
    "products",
    "reductions",
    "views",
]
