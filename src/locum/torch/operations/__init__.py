"""The constructions of ATen's operations, by kind. Importing this package fills the table."""

from locum.torch.operations import (
    casts,
    creation,
    elementwise,
    products,
    reductions,
    storage_writes,
    views,
)

__all__ = ["casts", "creation", "elementwise", "products", "reductions", "storage_writes", "views"]
