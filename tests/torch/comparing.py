"""Compare compiled functions with eager execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree


def compile_on_u(function: Any, *, fullgraph: bool = True, dynamic: Any = None, **options: Any) -> Any:
    """Compile a function or module for U; ``options`` are the options of the backend."""
    return torch.compile(
        function, backend="locum", fullgraph=fullgraph, dynamic=dynamic, options=options or None
    )


def copy_tensors(values: Sequence[Any]) -> list[Any]:
    """Return copies of tensors with the same strides and aliasing; other values stay as they are."""
    storages: dict[int, Any] = {}
    copies: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.data_ptr() not in storages:
                storages[storage.data_ptr()] = storage.clone()  # type: ignore[no-untyped-call]
            copy = torch.empty(0, dtype=value.dtype).set_(
                storages[storage.data_ptr()], value.storage_offset(), value.shape, value.stride()
            )
            copies.append(copy.requires_grad_(value.requires_grad))
        else:
            copies.append(value)
    return copies


def assert_same(expected: Any, found: Any) -> None:
    """Check that results have the same types, shapes, strides, aliasing and values."""
    wanted, got = pytree.tree_leaves(expected), pytree.tree_leaves(found)
    assert len(wanted) == len(got)
    for want, have in zip(wanted, got, strict=True):
        if not isinstance(want, torch.Tensor):
            assert want == have
            continue
        assert have.dtype == want.dtype
        assert have.shape == want.shape
        assert have.stride() == want.stride() or want.numel() < 2
        assert have.storage_offset() == want.storage_offset()
        assert have.requires_grad == want.requires_grad
        torch.testing.assert_close(have, want, equal_nan=True)
    assert aliasing(got) == aliasing(wanted)


def aliasing(values: Sequence[Any]) -> list[int]:
    """Return for each tensor the place of the first tensor with the same storage."""
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.numel()]
    addresses = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [addresses.index(address) for address in addresses]


def check_like_eager(
    function: Callable[..., Any], *arguments: Any, dynamic: Any = None, **options: Any
) -> Any:
    """Run a function eagerly and on U with the same seed; return the compiled function.

    Results and arguments are compared together, so that mutations and views of inputs are seen.
    """
    first, second = copy_tensors(arguments), copy_tensors(arguments)
    torch.manual_seed(1)
    expected = function(*first)
    compiled = compile_on_u(function, dynamic=dynamic, **options)
    torch.manual_seed(1)
    assert_same([expected, first], [compiled(*second), second])
    return compiled
