"""What torch's layers take, as U takes it: masks as blocks of its input, all in one type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from locum.errors import InputError
from locum.execution.arrays import is_readable
from locum.simulators.stand_ins.running import autocast_dtype


class Masks(NamedTuple):
    """What torch's layers are given beside rows: a mask, padding, and whether the mask is causal."""

    mask: Tensor | None = None
    padding: Tensor | None = None
    is_causal: bool = False


def added(
    masks: Masks, sizes: tuple[int, int, int, int], like: Tensor, batched: bool
) -> dict[str, Tensor]:
    """Return what torch's masks add to the scores, as its block: for each item, or for each head.

    ``sizes`` are those of the batch, the heads, the queries and the keys.
    """
    mask, padding, is_causal = masks
    if is_causal and mask is None:
        raise InputError("is_causal is a hint beside a mask: expected a mask, got none")
    if mask is None and padding is None:
        return {}
    batch, heads, n, m = sizes
    total: Any = 0
    if mask is not None:
        number = _as_numbers(mask, "the mask", like)
        if mask.shape not in ((n, m), (batch * heads, n, m)):
            raise InputError(
                f"expected a mask of shape {(n, m)}, or {(batch * heads, n, m)} for each head of each "
                f"item, got {tuple(mask.shape)}"
            )
        if is_causal:
            number = _causal(number, mask)
        one = mask.dim() == 2
        total = number.expand(batch, 1, n, m) if one else number.reshape(batch, heads, n, m)
    if padding is not None:
        if padding.shape != ((batch, m) if batched else (m,)):
            shape = (batch, m) if batched else (m,)
            raise InputError(f"expected padding of shape {shape}, got {tuple(padding.shape)}")
        total = total + _as_numbers(padding, "the padding", like).reshape(batch, 1, 1, m)
    total = total.expand(batch, total.shape[1], n, m)
    name = "added to heads" if total.shape[1] > 1 else "added"
    return {name: total.reshape(-1, m)}


def _as_numbers(mask: Tensor, name: str, like: Tensor) -> Tensor:
    """Return a mask as numbers to add: torch's boolean masks are true where a key does *not* count."""
    if not isinstance(mask, Tensor):
        raise InputError(f"expected {name} as a torch tensor, got {type(mask).__name__}")
    if mask.dtype is torch.bool:
        zeros = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
        return zeros.masked_fill(mask, -torch.inf)
    if mask.is_floating_point():
        # Beside half types torch takes float32, too; of any other type it gives errors, or misreads it.
        taken = {like.dtype} | ({torch.float32} if like.dtype.itemsize == 2 else set())
        if mask.dtype not in taken and autocast_dtype(like) is None:
            raise InputError(
                f"expected {name} of booleans, or in {like.dtype}, as the module is, got {mask.dtype}"
            )
        return mask
    raise InputError(f"expected {name} of booleans or floating-point numbers, got {mask.dtype}")


#: Masks on a GPU that were compared, and which of their versions: comparing waits for the GPU.
_compared: Any = WeakIdKeyDictionary()


def _causal(number: Tensor, mask: Tensor) -> Tensor:
    """Refuse a mask that is not the causal one: by that hint torch may leave the mask out.

    ``number`` are its numbers, which are given back; where they cannot be read, as NaN.
    """
    readable = not torch.compiler.is_compiling() and not number.is_meta and is_readable(number)
    kept = readable and number.is_cuda and not mask.is_inference()
    if kept and _compared.get(mask) == mask._version:
        return number
    later = torch.ones(number.shape[-2:], dtype=torch.bool, device=number.device).triu(1)
    expected = torch.zeros(later.shape, dtype=number.dtype, device=number.device)
    is_same = (number.detach() == expected.masked_fill(later, -torch.inf)).all()
    if not readable:
        return torch.where(is_same, number, torch.nan)
    if not is_same:
        raise InputError(
            "is_causal says that the mask is the causal one, and it is not (torch's own modules leave "
            "it out, or not): expected 0 (False) up to the diagonal and −∞ (True) behind it; try "
            "without is_causal"
        )
    if kept:
        _compared[mask] = mask._version
    return number


def in_one_dtype(
    inputs: Mapping[str, Tensor], matrices: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return all tensors in the type of X, and on its device; half types in float32, but on a GPU.

    There the simulator says what can be computed in them. A number such as ε stays as it is.
    """
    X = inputs["X"]
    kinds = {tensor.dtype for name, tensor in matrices.items() if name != "epsilon"}
    if len(kinds) > 1 and autocast_dtype(X) is None:
        raise InputError(
            f"expected all parameters in one type, got {' and '.join(sorted(map(str, kinds)))}: try "
            f".to({X.dtype})"
        )
    dtype = X.dtype if X.is_cuda or X.dtype is torch.float64 else torch.float32

    def converted(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {
            name: tensor if name == "epsilon" else tensor.to(dtype=dtype, device=X.device)
            for name, tensor in tensors.items()
        }

    return converted(inputs), converted(matrices)


def require_same_axes(X: Tensor, *others: Tensor) -> None:
    """Refuse rows beside a batch of rows: torch does, too, even if that has one item."""
    for other in others:
        if other.dim() != X.dim():
            raise InputError(
                f"expected all inputs with {X.dim()} axes, as the first one has, got {other.dim()}"
            )


def require_same_batch(X: Tensor, memory: Tensor) -> None:
    """Refuse a memory for other inputs."""
    if memory.shape[0] != X.shape[0]:
        raise InputError(f"expected a memory for each of {X.shape[0]} inputs, got {memory.shape[0]}")


def require_no_dropout(module: nn.Module, probability: Any, name: str) -> None:
    """Refuse dropout: what torch draws at random, U does not."""
    if module.training and not (isinstance(probability, (int, float)) and probability == 0):
        raise InputError(
            f"{name} drops out with probability {probability} in training, which U does not: expected "
            "0, or a module in eval()"
        )
