"""Change only the signal that one component reads from another (path patching).

A path connects a component that writes into the residual stream with a component that reads it. Each
reader at the end of a path reads a separate copy of the residual stream, to which the changes of its
paths are added. No other component reads these changes. Paths over all slots work in any basis of the
residual stream. Arrays are NumPy arrays or torch tensors.

>>> Path.read("blocks.0.attn.head.1", "blocks.0.mlp").target
Place(hook='blocks.0.mlp.hook_pre', head=None, last=None)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locum.errors import InputError

#: Name of the hook at which the unembedding reads the residual stream.
UNEMBED = "unembed.hook_in"
#: Names of components: embeddings, heads (with their queries, keys and values), feed-forwards, and the
#: output.
_COMPONENT = re.compile(
    r"(?P<embed>embed|pos_embed)|(?P<output>output)|"
    r"(?P<block>blocks\.\d+\.(?:attn|mlp))(?:\.head\.(?P<head>\d+)(?:\.(?P<letter>[qkv]))?)?"
)


@dataclass(frozen=True)
class Place:
    """A part of an activation: a head and indices of the last axis.

    None selects all heads or all indices.
    """

    hook: str
    head: int | None = None
    last: tuple[int, ...] | None = None

    def index(self) -> tuple[Any, ...]:
        """Return the index of this part in the activation.

        The axes are batch, position, optionally head, and last. For attention scores and patterns, they
        are batch, head, query and key.
        """
        last = slice(None) if self.last is None else list(self.last)
        if self.head is None:
            return (..., last)
        if self.hook.endswith(("hook_pattern", "hook_attn_scores")):
            return (slice(None), self.head, slice(None), last)
        return (slice(None), slice(None), self.head, last)

    def includes(self, other: Place) -> bool:
        """Return whether every number of the part ``other`` is a number of this part."""
        return (
            self.hook == other.hook
            and self.head in (None, other.head)
            and (self.last is None or (other.last is not None and set(other.last) <= set(self.last)))
        )

    @property
    def time(self) -> float:
        """Order of computation as a number: attention precedes the feed-forward of its layer."""
        if self.hook == UNEMBED:
            return float("inf")
        parts = self.hook.split(".")
        return 2 * int(parts[1]) + (parts[2] == "mlp") if parts[0] == "blocks" else -1.0


@dataclass(frozen=True)
class Path:
    """The signal from one component to another, in one slot of the residual stream (None: in all
    slots).
    """

    source: Place
    target: Place
    slot: int | None = None

    @classmethod
    def read(cls, source: str, target: str) -> Path:
        """Return the path between the components named ``source`` and ``target``.

        ``InputError`` is raised if the target is not computed after the source.
        """
        path = cls(writer(source), reader(target))
        if path.source.time >= path.target.time:
            raise InputError(
                f"expected an edge from a component to a later one, got {source}->{target}; "
                f"try {source}->output"
            )
        return path

    def includes(self, other: Path) -> bool:
        """Return whether the signal of this path includes the signal of ``other``, for any targets."""
        return self.slot in (None, other.slot) and self.source.includes(other.source)

    @property
    def columns(self) -> slice:
        """Slots of the residual stream that carry the signal, as a slice."""
        return slice(None) if self.slot is None else slice(self.slot, self.slot + 1)


def _parts(name: str) -> dict[str, str | None]:
    found = _COMPONENT.fullmatch(name)
    return {} if found is None else found.groupdict()


def _writes(name: str) -> bool:
    parts = _parts(name)
    block = parts.get("block")
    return bool(parts) and not (parts["output"] or parts["letter"] or _is_headless(block, parts))


def _reads(name: str) -> bool:
    parts = _parts(name)
    block = parts.get("block") or ""
    whole = bool(parts.get("head")) and not parts.get("letter")
    return bool(parts) and not (parts["embed"] or whole or _is_headless(block, parts))


def _is_headless(block: str | None, parts: Mapping[str, str | None]) -> bool:
    """Return whether a name denotes attention without a head, or a feed-forward with a head.

    Such names do not denote components of a path.
    """
    return block is not None and block.endswith(".attn") == (parts["head"] is None)


def writer(name: str) -> Place:
    """Return the part of an activation that the component ``name`` writes."""
    if not _writes(name):
        raise InputError(
            "expected a component that writes to the residual stream as the start of an edge, got "
            f"{name!r}; "
            "try embed, pos_embed, blocks.0.attn.head.0, blocks.0.mlp, or the id of such a node"
        )
    parts = _parts(name)
    if parts["block"] is None:
        return Place(f"hook_{name}")
    head = parts["head"]
    return (
        Place(f"{parts['block']}.hook_post")
        if head is None
        else Place(f"{parts['block']}.hook_z", int(head))
    )


def reader(name: str) -> Place:
    """Return the part of an activation that the component ``name`` reads."""
    if not _reads(name):
        raise InputError(
            f"expected a component that reads the residual stream as the end of an edge, got {name!r}; "
            "try blocks.0.attn.head.0.q (or .k, .v), blocks.0.mlp, output, or the id of such a node"
        )
    parts = _parts(name)
    if parts["block"] is None:
        return Place(UNEMBED)
    head = parts["head"]
    return (
        Place(f"{parts['block']}.hook_pre")
        if head is None
        else Place(f"{parts['block']}.hook_{parts['letter']}", int(head))
    )


def require_present(path: Path, tensors: Mapping[str, Any]) -> None:
    """Raise ``InputError`` if a component at an end of ``path`` does not exist in the network."""
    for place in (path.source, path.target):
        block = place.hook.rpartition(".hook_")[0]
        if not block.startswith("blocks."):
            continue
        weights = tensors.get(f"{block}.W_{'O' if block.endswith('attn') else 'out'}")
        if weights is None or (place.head is not None and place.head >= len(weights)):
            blocks = sorted({name.rpartition(".")[0] for name in tensors if name.startswith("blocks.")})
            shown = f"{block}.head.{place.head}" if place.head is not None else block
            raise InputError(
                f"expected an edge between components of this network, got {shown}; "
                f"try heads and feed-forwards of {', '.join(blocks) or 'a network with layers'}"
            )


def written(path: Path, cache: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    """Return the signal at the source of a path in its slots, [batch, position, slot]."""
    place = path.source
    block, _, name = place.hook.rpartition(".hook_")
    if not block:
        return cache[place.hook][..., path.columns]
    weights = tensors[f"{block}.W_{'O' if name == 'z' else 'out'}"]
    weights = weights if place.head is None else weights[place.head]
    last = slice(None) if place.last is None else list(place.last)
    return cache[place.hook][place.index()] @ weights[last, path.columns]


def copied(array: Any) -> Any:
    """Return a copy of a NumPy array or a torch tensor."""
    return array.copy() if hasattr(array, "copy") else array.clone()


class PathTap:
    """A tap that gives each reader of ``paths`` a separate residual stream during one forward pass.

    ``carry(path, now)`` returns the signal of a path that replaces ``now``. ``cache`` and ``stream``
    are the activations before the first layer that runs; a run that starts with the embeddings does not
    need them.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        tensors: Mapping[str, Any],
        carry: Callable[[Path, Any], Any],
        *,
        cache: Mapping[str, Any] | None = None,
        stream: Any = None,
    ) -> None:
        self.tensors, self.carry = tensors, carry
        self.cache = dict(cache or {})
        self.stream = stream
        self.readers: dict[str, dict[Place, list[Path]]] = {}
        for path in paths:
            target = path.target
            places = [target]
            if target.hook.replace("hook_pre", "W_gate") in tensors:
                places.append(replace(target, hook=target.hook.replace("hook_pre", "hook_gate")))
            for place in places:
                self.readers.setdefault(place.hook, {}).setdefault(place, []).append(path)

    def __call__(self, name: str, value: Any) -> Any:
        """Return the replacement of the activation ``value``, or None if no path ends at it.

        Activations that are needed for later replacements are recorded.
        """
        if name.endswith((".hook_resid_pre", ".hook_resid_mid")) or name == UNEMBED:
            self.stream = value
        elif name.endswith((".hook_z", ".hook_post", "hook_embed", "hook_pos_embed")):
            self.cache[name] = value
        if name not in self.readers:
            return None
        other = copied(value)
        for place, paths in _disjoint(self.readers[name], value.shape[-1]):
            other[place.index()] = self._read(place, self._changed(paths))
        return other

    def _changed(self, paths: Sequence[Path]) -> Any:
        """Return the residual stream with the changes of ``paths``."""
        own = copied(self.stream)
        for path in paths:
            now = written(path, self.cache, self.tensors)
            own[..., path.columns] += self.carry(path, now) - now
        return own

    def _read(self, place: Place, stream: Any) -> Any:
        """Return the activation that a component computes from the residual stream ``stream``."""
        if place.hook == UNEMBED:
            return stream[place.index()]
        block, _, name = place.hook.rpartition(".hook_")
        name = "in" if name == "pre" else name if place.head is None else name.upper()
        columns = slice(None) if place.last is None else list(place.last)
        weights, bias = self.tensors[f"{block}.W_{name}"], self.tensors.get(f"{block}.b_{name}")
        if place.head is not None:
            weights, bias = weights[place.head], None if bias is None else bias[place.head]
        read = stream @ weights[:, columns]
        return read if bias is None else read + bias[columns]  # gates have no bias


def _disjoint(readers: Mapping[Place, list[Path]], size: int) -> list[tuple[Place, list[Path]]]:
    """Return disjoint parts of an activation, and the signals that each part reads.

    ``size`` is the size of the last axis of the activation.

    If the parts in ``readers`` overlap, the numbers in both parts read the signals of both. For
    example, a whole feed-forward overlaps with a group of its units. A signal that is part of another
    signal is omitted, because its change would be added twice.
    """
    wholes = {place for place in readers if place.last is None}
    if len(readers) == len(wholes):  # different heads, or a single part
        return [(place, _separate(paths)) for place, paths in readers.items()]
    reading: dict[int, list[Path]] = {}
    for place, paths in readers.items():
        for number in range(size) if place.last is None else dict.fromkeys(place.last):
            reading.setdefault(number, []).extend(paths)
    numbers: dict[tuple[Path, ...], list[int]] = {}
    for number, paths in reading.items():
        numbers.setdefault(tuple(paths), []).append(number)
    hook = next(iter(readers)).hook
    return [(Place(hook, last=tuple(chosen)), _separate(paths)) for paths, chosen in numbers.items()]


def _separate(paths: Iterable[Path]) -> list[Path]:
    """Return ``paths`` without repeated signals, and without signals that others include."""
    signals = list({(path.source, path.slot): path for path in paths}.values())
    return [
        path
        for path in signals
        if not any(other.includes(path) for other in signals if other is not path)
    ]
