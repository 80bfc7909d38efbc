"""Make a T from plain arrays: ``from_arrays``.

An attention has one of two forms. ``paper``: each head has A = scale · W_Q W_Kᵀ and V = W_V, with
biases in an additional row and column (Theorem 1). ``factored``: W_Q, W_K and W_V are kept, which is
the same network and runs faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locum.errors import GraphError, InputError
from locum.execution.arrays import Array, numpy_of
from locum.settings import require_choice
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.masks import Mask
from locum.simulators.modules.module import AttentionModule, Module, Numbers

#: The first is the default.
FORMS = ("paper", "factored")
#: What a dict of arrays may have; the first three must be there.
NAMES = (
    *("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"),
    *("W1", "b1", "W2", "b2", "gain1", "bias1", "gain2", "bias2"),
)


def make_attention(
    weights: Sequence[Array],
    biases: Sequence[Array] | None,
    W_O: Array | None,
    b_O: Array | None,
    heads: int,
    *,
    scale: float,
    mask: Mask,
    form: str,
) -> AttentionModule:
    """Make the attention of W_Q, W_K, W_V (inputs×outputs, heads side by side) and b_Q, b_K, b_V."""
    require_choice(form, FORMS, "form", error=GraphError)
    if form == "factored":
        W_Q, W_K, W_V = weights
        b_Q, b_K, b_V = biases or (None, None, None)
        return FactoredAttention(
            W_Q, W_K, W_V, W_O, heads, b_Q=b_Q, b_K=b_K, b_V=b_V, b_O=b_O, scale=scale, mask=mask
        )
    parts = [_split(numpy_of(part), heads) for part in weights]
    biased = None if biases is None else [_split(numpy_of(part), heads) for part in biases]
    modules = [
        Attention.from_projections(
            *(part[h] for part in parts),
            scale=scale,
            biases=None if biased is None else [part[h] for part in biased],
            mask=mask,
        )
        for h in range(heads)
    ]
    return MultiHeadAttention(modules, W_O, b_O)


def from_arrays(
    arrays: Mapping[str, Array],
    heads: int = 1,
    *,
    scale: float | None = None,
    activation: str = "relu",
    norm: str | None = None,
    epsilon: float = 1e-5,
    mask: Mask = None,
    form: str = FORMS[0],
) -> Module:
    """Make T of plain arrays: W_Q, W_K, W_V and, if there, W_O, b_Q, …, W1, b1, W2, b2, gain1, ….

    Weights are inputs×outputs, all heads side by side. ``scale`` is 1/√(columns of one head's W_Q)
    unless given. With W1 and W2 it is an encoder layer; with gains, one with norms (post, unless
    ``norm`` says).

    >>> T = from_arrays({name: [[1.0]] for name in ("W_Q", "W_K", "W_V")})
    >>> T([[2.0]]).tolist()
    [[2.0]]
    """
    missing = [name for name in NAMES[:3] if name not in arrays]
    if missing:
        raise InputError(f"expected {', '.join(missing)} among the arrays, got {sorted(arrays)}")
    wrong = sorted(set(arrays) - set(NAMES))
    if wrong:
        raise InputError(f"expected arrays of the names {', '.join(NAMES)}, got {', '.join(wrong)}")
    names = [name for name in ("b_Q", "b_K", "b_V") if name in arrays]
    if len(names) not in (0, 3):
        raise InputError(f"expected all of b_Q, b_K and b_V, or none, got {', '.join(names)}")
    columns = len(arrays["W_Q"][0])
    if scale is None:
        scale = (columns / heads) ** -0.5
    attention = make_attention(
        [arrays[name] for name in NAMES[:3]],
        [arrays[name] for name in names] or None,
        arrays.get("W_O"),
        arrays.get("b_O"),
        heads,
        scale=scale,
        mask=mask,
        form=form,
    )
    layer: dict[str, Any] = {name: arrays[name] for name in ("W1", "W2", "b1", "b2") if name in arrays}
    for number in ("1", "2"):
        pair = (arrays.get("gain" + number), arrays.get("bias" + number))
        if (pair[0] is None) != (pair[1] is None):
            raise InputError(f"a norm has a gain and a bias: give both gain{number} and bias{number}")
        if pair[0] is not None:
            layer["norm" + number] = pair
    if not layer and norm is None:
        return attention
    if norm is None:
        norm = "post" if "norm1" in layer else "none"
    return Encoder(attention, **layer, activation=activation, norm=norm, epsilon=epsilon)


def _split(part: Numbers, heads: int) -> list[Numbers]:
    """Return the columns of each head (or its range of a vector)."""
    size = part.shape[-1]
    if size % heads:
        raise InputError(f"{heads} heads cannot share {size} columns equally")
    width = size // heads
    return [part[..., h * width : (h + 1) * width] for h in range(heads)]
