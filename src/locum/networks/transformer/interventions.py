"""Change activations while a network runs: hooks, ablations and patches, with TransformerLens hook
names.

A hook is called with an activation and a :class:`HookPoint`. An array of the same shape that the hook
returns replaces the activation.

>>> read_place("blocks.1.attn", head=0)
Place(hook='blocks.1.attn.hook_z', head=0, last=None)
"""

from __future__ import annotations

import difflib
import functools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from locum.errors import InputError
from locum.networks.transformer.circuit import Circuit, CircuitEdge, CircuitNode, require_head
from locum.networks.transformer.config import Config
from locum.networks.transformer.forward import Tap
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.path_patching import (
    Path,
    PathTap,
    Place,
    copied,
    require_present,
    written,
)
from locum.networks.transformer.weights import Array

#: A pair: a hook name or a predicate on hook names, and a function of the activation and the hook
#: point.
ForwardHook = tuple["str | Callable[[str], bool]", Callable[..., Any]]
#: A component that can be changed: the name of a component or hook, a node or edge of the circuit, or
#: the id of a node or edge.
Component = str | CircuitNode | CircuitEdge
#: Function that computes the replacement of an activation, or of the signal of a path.
_Change = Callable[["Place | Path", Any], Any]

#: Suffixes of hooks with the axes [batch, head, query, key].
_PATTERNS = ("hook_pattern", "hook_attn_scores")


@dataclass(frozen=True)
class HookPoint:
    """The hook at which a hook function is called."""

    name: str


def tap_of(hooks: Sequence[ForwardHook]) -> tuple[Tap, Callable[[], None]]:
    """Return a tap that calls ``hooks``, and a function that raises an error if a hook was never
    called.
    """
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


def read_place(
    component: str | CircuitNode, head: int | None = None, places: Sequence[int] | None = None
) -> Place:
    """Return the part of an activation that a component name or a circuit node refers to.

    ``blocks.1.attn`` refers to the outputs of its heads (``hook_z``), and ``blocks.1.mlp`` to its
    hidden units (``hook_post``). ``embed`` and ``pos_embed`` refer to the embeddings. Any other name is
    the full name of a hook.
    """
    if isinstance(component, CircuitNode):
        last = component.places or None
        if component.kind in ("embed", "pos_embed", "slot"):
            last = component.slots or None
        return Place(component.hook, component.head, last)
    require_head(head)
    short = {"embed": "hook_embed", "pos_embed": "hook_pos_embed"}
    hook = short.get(component, component)
    if component.endswith(".attn"):
        hook = f"{component}.hook_z"
    elif component.endswith(".mlp"):
        hook = f"{component}.hook_post"
    return Place(hook, head, None if places is None else tuple(_indices(places, "places")))


def setting(place: Place, value: Any) -> ForwardHook:
    """Return a hook that replaces a part of an activation by the same part of ``value``."""
    return _change_place(place, lambda part, now: value, None)


def _change_place(place: Place, change: _Change, positions: Sequence[int] | None) -> ForwardHook:
    """Return a hook that changes a part of an activation at ``positions`` (None: at all positions)."""

    def call(activation: Any, hook: HookPoint) -> Any:  # a NumPy array or a torch tensor
        index = place.index()
        changed = copied(activation)
        try:
            changed[index] = _alike(change(place, activation), activation, hook.name)[index]
        except IndexError:
            given = {"head": place.head, "places": None if place.last is None else list(place.last)}
            shown = ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
            raise InputError(
                f"expected a head and places within {list(activation.shape)} at {hook.name}, "
                f"got {shown}; try without them"
            ) from None
        return _only_at(positions, activation, changed, 2 if hook.name.endswith(_PATTERNS) else 1)

    return place.hook, call


def _only_at(positions: Sequence[int] | None, now: Any, changed: Any, axis: int = 1) -> Any:
    """Return ``now`` with the values of ``changed`` at ``positions``; None: at all positions."""
    if positions is None:
        return changed
    kept = copied(now)
    index = (*(slice(None),) * axis, list(positions))
    kept[index] = changed[index]
    return kept


def _alike(value: Any, now: Any, where: str) -> Any:
    if value.shape != now.shape:
        raise InputError(
            f"patch at {where}: expected a source with as many inputs, of the same length, as "
            f"the inputs, whose activation is {list(now.shape)}, got {list(value.shape)}; "
            "try a source of that length"
        )
    return value


class Interventions:
    """A base class that adds ablation and patching to models with hooks and a cache."""

    config: Config

    def run_with_hooks(self, inputs: Any, fwd_hooks: Sequence[ForwardHook]) -> Any:
        """Return the output of a run with hooks."""
        raise NotImplementedError

    def run_with_cache(self, inputs: Any) -> tuple[Any, Mapping[Any, Any]]:
        """Return the output, and the activations by the names of their hooks."""
        raise NotImplementedError

    def _tensors(self) -> Mapping[str, Any]:
        """Return the weights by name."""
        raise NotImplementedError

    def _functions(self, layer: int) -> Functions | None:
        """Return the instructions of the symbolic feed-forward of ``layer``, or None."""
        raise NotImplementedError

    @functools.cached_property
    def circuit(self) -> Circuit:
        """Circuit of the network: its parts and the signals between them."""
        if "circuit" not in self.config.report:
            raise InputError(
                "expected a network with a circuit, as the compiler makes it, got one without; try "
                "locum.compile(model.program, …)"
            )
        return Circuit.read(self.config.report["circuit"])

    def path(self, edge: str | CircuitEdge) -> Path:
        """Return the path of a circuit edge, or between two nodes or components.

        Edge ids have the form ``embed->blocks.0.attn.head.0.q``. Each end is the id of a node, or a
        component such as ``embed``, ``pos_embed``, ``blocks.0.attn.head.0``, ``blocks.0.mlp`` or
        ``output``. ``InputError`` is raised if the target is not computed after the source.
        """
        source, target = read_edge(edge)
        if isinstance(edge, CircuitEdge) and self._has_circuit:
            own = next((each for each in self.circuit.edges if each.id == edge.id), edge)
            if (own.slot, own.flows) != (edge.slot, edge.flows):
                raise InputError(
                    f"expected an edge of model.circuit, got {edge.id} of another circuit; "
                    f"try {own.id!r}"
                )
        nodes = {node.id: node for node in self.circuit.nodes} if self._has_circuit else {}
        wide = Path.read(_component_of(source, nodes), _component_of(target, nodes))
        require_present(wide, self._tensors())
        begin, slot, end = wide.source, None, wide.target
        if source in nodes and nodes[source].kind != "head":
            begin = replace(begin, last=nodes[source].places or None)
            slot = next(iter(nodes[source].slots), None)
        if target in nodes and nodes[target].kind == "units":
            end = replace(end, last=self._read_by(nodes[target]) or None)
        return Path(begin, end, slot)

    @property
    def _has_circuit(self) -> bool:
        return "circuit" in self.config.report

    def _read_by(self, node: CircuitNode) -> tuple[int, ...]:
        """Return the indices of ``hook_pre`` that a group of hidden units reads."""
        assert node.layer is not None
        functions = self._functions(node.layer)
        if functions is None:
            return node.places
        # All functions of a layer share their arguments. An argument that is also an output is a slot
        # that the layer erases.
        return tuple(i for i in range(functions.arguments) if i not in functions.outputs)

    def ablate(
        self,
        inputs: Any,
        component: Component | Sequence[Component],
        head: int | None = None,
        places: Sequence[int] | None = None,
        value: float | str = 0.0,
        *,
        positions: Sequence[int] | None = None,
        over: Any = None,
        seed: int = 0,
    ) -> Any:
        """Return the output with a component or an edge replaced by a number, a mean, or its value on
        another input.

        ``component`` is the name of a component or a hook, a node or an edge of :attr:`circuit` or its
        id, or a list of these. Examples of names are ``embed``, ``blocks.1.attn`` and ``blocks.1.mlp``.
        ``head`` selects one head of ``blocks.1.attn``, and ``places`` selects hidden units of
        ``blocks.1.mlp``. ``positions`` are the input positions at which the component is changed; None:
        all.

        ``value`` is a finite number, ``"mean"`` or ``"resample"``. ``"mean"`` is the mean over the
        inputs ``over`` at each position. ``"resample"`` is the value on an input of ``over`` that is
        drawn with ``seed``. By default, ``over`` is ``inputs``, and ``"resample"`` draws from the other
        inputs.
        """
        return self._change(
            inputs, component, head, places, positions, self._ablation(value, inputs, over, seed)
        )

    def patch(
        self,
        inputs: Any,
        source: Any,
        component: Component | Sequence[Component],
        head: int | None = None,
        places: Sequence[int] | None = None,
        *,
        positions: Sequence[int] | None = None,
    ) -> Any:
        """Return the output with the activation of a component or an edge taken from a run on
        ``source``.

        This is an interchange intervention. ``source`` must contain as many inputs as ``inputs``, of
        the same length. The other arguments are the same as for :meth:`ablate`.
        """
        _, cache = self.run_with_cache(source)
        taken = self._taken(cache)
        return self._change(inputs, component, head, places, positions, lambda part, now: taken(part))

    def patch_edge(
        self,
        inputs: Any,
        source: Any,
        edge: str | CircuitEdge | Sequence[str | CircuitEdge],
        *,
        positions: Sequence[int] | None = None,
    ) -> Any:
        """Return the output with the signals of edges taken from a run on ``source`` (path patching).

        Only the node at the end of an edge reads the changed signal. In a symbolic feed-forward, all
        functions read the signal. An edge is an edge of :attr:`circuit`, an id such as
        ``"embed->blocks.0.attn.head.0.q"`` between two nodes or components (:meth:`path`), or a list of
        these.
        """
        paths = [self.path(each) for each in _listed(edge)]
        _, cache = self.run_with_cache(source)
        taken = self._taken(cache)
        return self._run_changed(inputs, paths, positions, lambda part, now: taken(part))

    def _taken(self, cache: Mapping[Any, Any]) -> Callable[[Place | Path], Any]:
        """Return a function that reads an activation, or the signal of a path, from ``cache``."""

        def taken(part: Place | Path) -> Any:
            if isinstance(part, Path):
                return written(part, cache, self._tensors())
            return cache[part.hook]

        return taken

    def _ablation(self, value: float | str, inputs: Any, over: Any, seed: int) -> _Change:
        if not isinstance(value, str):
            if not isinstance(value, Real) or not math.isfinite(value):
                raise _value_error(value)
            if over is not None:
                raise InputError(
                    f"ablate: expected value='mean' or value='resample' with over, got {value!r}; "
                    "try value='mean'"
                )
            number = float(value)

            def filled(part: Place | Path, now: Any) -> Any:
                changed = copied(now)
                changed[...] = number
                return changed

            return filled
        if value not in ("mean", "resample"):
            raise _value_error(value)
        _, cache = self.run_with_cache(inputs if over is None else over)
        taken, draw = self._taken(cache), random.Random(seed)
        size = len(next(iter(cache.values())))
        if over is None and size < 2:
            raise InputError(
                f"ablate: expected several inputs, or over=…, for value={value!r}, got one input; "
                "try over=[…], a list of inputs of the same length"
            )
        rows: list[int] = []

        def change(part: Place | Path, now: Any) -> Any:
            other = taken(part)
            if value == "mean":
                return other.mean(0)[None][[0] * len(now)]
            if not rows:  # one draw for all components of a call
                rows.extend(
                    draw.choice([row for row in range(size) if over is not None or row != own])
                    for own in range(len(now))
                )
            return other[rows]

        return change

    def _change(
        self,
        inputs: Any,
        component: Component | Sequence[Component],
        head: int | None,
        places: Sequence[int] | None,
        positions: Sequence[int] | None,
        change: _Change,
    ) -> Any:
        parts = [self._part(each, head, places) for each in _listed(component)]
        return self._run_changed(inputs, parts, positions, change)

    def _part(
        self, component: Component, head: int | None, places: Sequence[int] | None
    ) -> Place | Path:
        """Return the part of an activation, or the path, that a component refers to."""
        part: Place | Path
        node = component
        if isinstance(component, str) and self._has_circuit:
            node = next((n for n in self.circuit.nodes if n.id == component), component)
        if isinstance(node, CircuitEdge) or (isinstance(node, str) and "->" in node):
            part = self.path(node)
        elif isinstance(node, str):
            return read_place(node, head, places)
        elif isinstance(node, CircuitNode):
            part = self._place_of(node)
        else:
            raise InputError(
                "expected the name of a component or a hook, or a node or an edge of the circuit, "
                f"got {component!r}; try model.circuit.nodes[0].id"
            )
        if head is not None or places is not None:
            raise InputError(
                f"expected head=… and places=… only with a name such as blocks.0.attn, got them with "
                f"{component if isinstance(component, str) else component.id}; try without head and "
                "places"
            )
        return part

    def _place_of(self, node: CircuitNode) -> Place:
        """Return the part of an activation that a circuit node refers to.

        ``InputError`` is raised if the circuit has no such node. A node of another circuit may have
        other slots.
        """
        place = read_place(node)
        own = next((each for each in self.circuit.nodes if each.id == node.id), None)
        if own is None or read_place(own) != place or own.label != node.label:
            units = f"{node.hook.removesuffix('.hook_post')!r}, places={list(node.places)}"
            raise InputError(
                f"expected a node of model.circuit, got {node.id} of another circuit; "
                f"try {units if node.kind == 'units' else repr(self.circuit.nodes[0].id)}"
            )
        return place

    def _run_changed(
        self,
        inputs: Any,
        parts: Sequence[Place | Path],
        positions: Sequence[int] | None,
        change: _Change,
    ) -> Any:
        rows = self._rows(positions)
        hooks = [_change_place(part, change, rows) for part in parts if isinstance(part, Place)]
        paths = [part for part in parts if isinstance(part, Path)]
        if paths:

            def carry(path: Path, now: Any) -> Any:
                changed = _alike(change(path, now), now, path.target.hook)
                return _only_at(rows, now, changed)

            tap = PathTap(paths, self._tensors(), carry)
            # This hook runs after the other hooks, so that a path carries their results.
            hooks.append((lambda name: True, lambda value, hook: tap(hook.name, value)))
        try:
            return self.run_with_hooks(inputs, hooks)
        except IndexError:
            raise InputError(
                f"expected positions of the input, counted from 0, got {positions!r}; try positions=[0]"
            ) from None

    def _rows(self, positions: Sequence[int] | None) -> list[int] | None:
        """Return the residual-stream rows of input ``positions``, or None for all positions.

        The sink, if any, is row 0.
        """
        if positions is None:
            return None
        return [row + int(self.config.sink) for row in _indices(positions, "positions")]


def _indices(given: Sequence[int] | int, name: str) -> list[int]:
    """Return ``given`` as a list of indices; the argument ``name`` is part of the error message.

    Booleans are rejected, because they may be meant as a mask.
    """
    numbers = list(given) if isinstance(given, Iterable) else [given]
    if not all(type(one) is not bool and hasattr(one, "__index__") and one >= 0 for one in numbers):
        what = "positions of the input" if name == "positions" else "indices of the last axis"
        raise InputError(f"expected {what}, counted from 0, got {given!r}; try {name}=[0]")
    return [int(one) for one in numbers]


def read_edge(edge: str | CircuitEdge) -> tuple[str, str]:
    """Return the names of the source and the target of an edge."""
    if isinstance(edge, CircuitEdge):
        return edge.source, edge.target
    ends = edge.split("->") if isinstance(edge, str) else []
    if len(ends) != 2:
        raise InputError(
            f"expected an edge of the circuit or its id, got {edge!r}; "
            "try model.circuit.edges[0], or 'embed->output'"
        )
    return ends[0].strip(), ends[1].strip()


def _component_of(name: str, nodes: Mapping[str, CircuitNode]) -> str:
    """Return the component of a circuit node; the name of a component is returned unchanged."""
    if name not in nodes:
        return name
    kind, parts = nodes[name].kind, name.split(".")
    if kind in ("embed", "pos_embed", "output"):
        return kind
    if kind == "units":
        return ".".join(parts[:3])
    return ".".join(parts[:5]) if kind == "o" else name


def _listed(component: Any) -> list[Any]:
    if isinstance(component, Sequence) and not isinstance(component, str):
        if not component:
            raise InputError("expected a component, or several, got an empty list; try 'embed'")
        return list(component)
    return [component]


def _value_error(value: object) -> InputError:
    return InputError(
        f"ablate: expected a finite number, 'mean' or 'resample' as the value, got {value!r}; "
        "try value=0"
    )
