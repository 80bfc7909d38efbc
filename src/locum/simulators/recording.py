"""Record what U computes: attention maps and every named step, by names like TransformerLens's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase

from locum.errors import InputError
from locum.execution.arrays import Array, is_tensor, is_traced
from locum.simulators.order import Order
from locum.simulators.simulator import Simulator

#: U's steps by the names that TransformerLens has for them. Where U has something else under a like
#: name, the name says so: its queries carry the scale of the scores, its norms gain and bias.
NAMES = {
    "queries": "attn.hook_q_scaled",
    "keys": "attn.hook_k",
    "XV": "attn.hook_v",
    "scores": "attn.hook_attn_scores",
    "softmax": "attn.hook_pattern",
    "weights": "attn.hook_pattern",
    "head": "attn.hook_z",
    "attention": "hook_attn_out",
    "residual": "hook_resid_mid",
    "hidden": "mlp.hook_post",
    "feed-forward": "hook_mlp_out",
}
#: What every head has, [item, head, row, column]; and of these what is [item, row, head, column] there.
PER_HEAD = ("queries", "keys", "XV", "scores", "softmax", "weights", "head", "XA", "Xᵀ")
BY_ROWS = ("queries", "keys", "XV", "head")


class _Recorder:
    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns, self.cache = patterns, dict[str, Array]()
        self.modules: list[object] = []

    def wants(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


_active: ContextVar[_Recorder | None] = ContextVar("locum_recorder", default=None)


def is_active() -> bool:
    """Return whether something is being recorded."""
    return _active.get() is not None


@contextmanager
def record(*names: str) -> Iterator[dict[str, Array]]:
    """Record steps of U while the block runs: ``with locum.record("*hook_pattern") as cache: …``.

    ``names`` are patterns of ``blocks.N.attn.hook_pattern`` and the like; without any, everything is
    recorded. N is the number of a layer in its model; of stand-ins and attention modules in a larger
    model, their place among each other. Patterns and scores are [item, head, query, key]; queries,
    keys, values and z are [item, row, head, column]; all else is [item, row, column]. A later run of a
    layer replaces an earlier one. Recorded are stand-ins, ``attn_implementation="locum"`` and
    ``locum.simulate``, but nothing while torch traces, compiles or maps.

    >>> import numpy as np
    >>> import locum
    >>> T = locum.Attention(np.eye(2), np.eye(2))
    >>> with record("*hook_pattern") as cache:
    ...     _ = locum.simulate(T, np.eye(2))
    >>> {name: pattern.shape for name, pattern in cache.items()}
    {'blocks.0.attn.hook_pattern': (1, 1, 2, 2)}
    """
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"expected patterns of names, such as '*hook_pattern', got {name!r}")
    recorder = _Recorder(names or ("*",))
    token = _active.set(recorder)
    try:
        yield recorder.cache
    finally:
        _active.reset(token)


def place_of(module: object) -> int:
    """Give a module its number in the recording, in the order in which modules are first run."""
    recorder = _active.get()
    if recorder is None:
        return 0
    for number, other in enumerate(recorder.modules):
        if other is module:
            return number
    recorder.modules.append(module)
    return len(recorder.modules) - 1


def take(U: Simulator, parts: Sequence[Array], block: int | str) -> None:
    """Compute and keep the steps that are recorded, if any are; ``block``: blocks.N, or a name."""
    recorder = _active.get()
    if recorder is None or any(is_tensor(part) and is_traced(part) for part in parts):
        return
    batch = U.layout.blocks["X" if "X" in U.layout.blocks else "Q"].copies
    where = block if isinstance(block, str) else f"blocks.{block}"
    for step in U.named_steps:
        name = f"{where}.{lens_name(step.name, getattr(U, 'order', None))}"
        if not recorder.wants(name):
            continue
        value, sizes = U.step_of_all(step.name)
        own = step.name.removeprefix("cross ")
        heads = [sizes[-1] if step.families else 1] if own in PER_HEAD else []
        result = U.run_parts(value, parts).reshape(batch, *heads, -1, value.places.columns)
        recorder.cache[name] = result.swapaxes(1, 2) if own in BY_ROWS else result


def lens_name(step: str, order: Order | None) -> str:
    """Name a step of U of some order as TransformerLens would."""
    own = step.removeprefix("cross ")
    if own == "output":
        if order is None or not order.residual:
            name = "hook_attn_out"
        else:
            name = "hook_normalized_resid_post" if order.norm == "post" else "hook_resid_post"
    elif own == "keys" and order is not None and order.attention.rotary:
        name = "attn.hook_rot_k"
    elif own.startswith("norm"):
        name = f"ln{own.removeprefix('norm')}.hook_out"
    else:
        name = NAMES.get(own) or f"{'attn.' if own in PER_HEAD else ''}hook_{own}"
    return name if own == step else f"cross_{name}"
