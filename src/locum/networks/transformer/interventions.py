"""Change activations while a network runs: hooks, ablations and patches, by TransformerLens's names.

A hook is called with an activation and a :class:`HookPoint`, and may return another array of its shape.

>>> read_component("blocks.1.attn", head=0)
Place(hook='blocks.1.attn.hook_z', head=0, last=None)
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locum.errors import InputError
from locum.networks.transformer.balancing import slot_exponents
from locum.networks.transformer.circuit import CircuitNode, require_head
from locum.networks.transformer.config import Config
from locum.networks.transformer.forward import Tap
from locum.networks.transformer.weights import Array

#: (name of a hook or a test of names, what to call with the activation and the hook).
ForwardHook = tuple["str | Callable[[str], bool]", Callable[..., Any]]


#: Ends of hooks of the stream, whose numbers are slots; and of numbers that balancing leaves alone.
_STREAM = ("embed", "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
_UNSCALED = ("hook_pattern", "hook_attn_scores")


@dataclass(frozen=True)
class HookPoint:
    """Where a hook was called."""

    name: str


@dataclass(frozen=True)
class Place:
    """A part of an activation: of one head, or of some places in the last axis; None: all of it."""

    hook: str
    head: int | None = None
    last: tuple[int, ...] | None = None

    def index(self) -> tuple[Any, ...]:
        """Return what the activation is indexed by: batch, position, (head,) last."""
        last = slice(None) if self.last is None else list(self.last)
        if self.head is None:
            return (..., last)
        if self.hook.endswith(("hook_pattern", "hook_attn_scores")):
            return (slice(None), self.head)
        return (slice(None), slice(None), self.head, last)


def read_component(
    component: str | CircuitNode, head: int | None = None, places: Sequence[int] | None = None
) -> Place:
    """Return the part of an activation that a name, or a node of the circuit, stands for.

    ``blocks.1.attn`` is what its heads give (``hook_z``), ``blocks.1.mlp`` its hidden units
    (``hook_post``); ``embed`` and ``pos_embed`` are embeddings; any full name of a hook is itself.
    """
    if isinstance(component, CircuitNode):
        last = component.places or None
        if component.kind in ("embed", "pos_embed", "slot"):
            last = component.slots
        return Place(component.hook, component.head, last)
    require_head(head)
    short = {"embed": "hook_embed", "pos_embed": "hook_pos_embed"}
    hook = short.get(component, component)
    if component.endswith(".attn"):
        hook = f"{component}.hook_z"
    elif component.endswith(".mlp"):
        hook = f"{component}.hook_post"
    return Place(hook, head, None if places is None else tuple(places))


def tap_of(hooks: Sequence[ForwardHook]) -> tuple[Tap, Callable[[], None]]:
    """Return a tap that calls these hooks, and a check that each was called."""
    called: set[int] = set()
    seen: list[str] = []

    def tap(name: str, value: Array) -> Array | None:
        seen.append(name)
        changed = None
        for number, (where, call) in enumerate(hooks):
            if where == name if isinstance(where, str) else where(name):
                called.add(number)
                other = call(value if changed is None else changed, hook=HookPoint(name))
                changed = changed if other is None else _checked(other, value, name)
        return changed

    def check() -> None:
        for number, (where, _) in enumerate(hooks):
            if number not in called:
                near = difflib.get_close_matches(str(where), seen, 3, cutoff=0.3)
                raise InputError(
                    f"expected the name of a hook of this network, got {where!r}; "
                    f"try {', '.join(near or seen)}"
                )

    return tap, check


def _checked(other: Any, value: Array, name: str) -> Array:
    shape = getattr(other, "shape", None)
    if shape != value.shape:
        raise InputError(
            f"a hook at {name}: expected an array of shape {list(value.shape)}, got "
            f"{type(other).__name__ if shape is None else list(shape)}"
        )
    if "complex" in str(other.dtype):
        raise InputError(f"a hook at {name}: expected real numbers, got {other.dtype}; try .real")
    replacement: Array = other
    return replacement


def setting(place: Place, value: Any) -> ForwardHook:
    """Return a hook that puts ``value`` (a number, or an activation) in a place."""

    def call(activation: Any, hook: HookPoint) -> Any:  # an array of NumPy, or a tensor
        changed = activation.copy() if hasattr(activation, "copy") else activation.clone()
        index = place.index()
        whole = bool(getattr(value, "shape", ()))
        if whole and value.shape != activation.shape:
            raise InputError(
                f"patch at {hook.name}: expected a source with as many inputs, of the same length, as "
                f"the inputs, whose activation is {list(activation.shape)}, got {list(value.shape)}; "
                "try a source of that length"
            )
        try:
            changed[index] = value[index] if whole else value
        except IndexError:
            raise InputError(
                f"expected a head and places within {list(activation.shape)} at {hook.name}, "
                f"got {place}"
            ) from None
        return changed

    return place.hook, call


def ablation(config: Config, place: Place, value: float) -> ForwardHook:
    """Return a hook that sets a place to a number, in the measure of its label.

    A balanced network holds its numbers times powers of two: slots get the number times theirs. Those
    of heads and hidden units are not told, so that there only 0 can be meant.
    """
    if value == 0 or "balanced" not in config.report or place.hook.endswith(_UNSCALED):
        return setting(place, value)
    if not place.hook.endswith(_STREAM):
        raise InputError(
            f"ablate on a balanced network: expected the value 0 at {place.hook}, which holds numbers "
            f"times powers of two, got {value}; try the network before balanced()"
        )
    exponents = slot_exponents(config, len(config.slots)).tolist()
    hooks = [
        setting(Place(place.hook, place.head, (slot,)), math.ldexp(value, exponents[slot]))[1]
        for slot in (range(len(exponents)) if place.last is None else place.last)
        if -len(exponents) <= slot < len(exponents)
    ]
    if place.last is not None and len(hooks) != len(place.last):
        raise InputError(f"expected slots from 0 to {len(exponents) - 1}, got {list(place.last)}")

    def call(activation: Any, hook: HookPoint) -> Any:
        for each in hooks:
            activation = each(activation, hook=hook)
        return activation

    return place.hook, call


class Interventions:
    """Ablate and patch what can be run with hooks and with a cache; answers are those of its runs."""

    config: Config

    def run_with_hooks(self, inputs: Any, fwd_hooks: Sequence[ForwardHook]) -> Any:
        """Return the answer with hooks."""
        raise NotImplementedError

    def run_with_cache(self, inputs: Any) -> tuple[Any, Mapping[Any, Any]]:
        """Return the answer, and every activation under the name of its hook."""
        raise NotImplementedError

    def ablate(
        self,
        inputs: Any,
        component: str | CircuitNode,
        head: int | None = None,
        places: Sequence[int] | None = None,
        value: float = 0.0,
    ) -> Any:
        """Return the answer with a component set to a number: heads, hidden units, columns.

        ``component`` is ``blocks.1.attn`` (with ``head``), ``blocks.1.mlp`` (with ``places``, hidden
        units), ``embed``, the name of a hook, or a node of :attr:`circuit`. In a balanced network
        ``value`` is what the label of a slot says, not what the slot holds; heads and hidden units, of
        which there is no such measure, can be set to 0 only.
        """
        place = read_component(component, head, places)
        return self.run_with_hooks(inputs, [ablation(self.config, place, value)])

    def patch(
        self,
        inputs: Any,
        source: Any,
        component: str | CircuitNode,
        head: int | None = None,
        places: Sequence[int] | None = None,
    ) -> Any:
        """Return the answer with a component as it is on ``source``: an interchange intervention.

        ``source`` has as many inputs, of the same lengths, as ``inputs``.
        """
        place = read_component(component, head, places)
        _, cache = self.run_with_cache(source)
        if place.hook not in cache:
            raise InputError(f"expected the name of a hook, got {place.hook!r}; try {', '.join(cache)}")
        return self.run_with_hooks(inputs, [setting(place, cache[place.hook])])
