"""Summarise a compiled transformer and its compilation report.

:func:`facts` returns a short summary of any network, for the terminal and the playground.
:func:`details` lists every head and every group of gates, for the playground. A *gate* is an
elementwise operation that a feed-forward computes. Layers are counted from 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from locum.networks.transformer import CompiledTransformer
from locum.rasp.echo import scalar
from locum.text import at_most

#: Maximum number of named s-ops of a group of gates, and of layers whose units are listed separately.
MAX_NAMED, MAX_LAYERS = 4, 6


def facts(model: CompiledTransformer) -> list[tuple[str, str]]:
    """Return a summary of the network as pairs (name, value)."""
    size, config = model.architecture, model.config
    shortest, longest = config.lengths
    count = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
    kind = _numbers(model) if config.vocabulary is None else _listed(config.vocabulary)
    entries = [
        ("takes", f"{count} tokens: {kind}"),
        ("inputs", "; ".join(condition.text for condition in config.inputs)),
        ("undefined", _refuses(model)),
        ("output", _gives(model)),
        ("layers", str(size.layers)),
        ("heads", ", ".join(map(str, size.heads)) or "none"),
        ("attention", _attention(model) + (", causal (a decoder)" if config.causal else "")),
        ("scores", _scores(model)),
        ("sink", _sink(model)),
        ("softmax", _softmax(model)),
        ("feed-forward", _feed_forward(size.feed_forward)),
        ("units", _units(model)),
        ("d_model", str(size.d_model)),
        ("d_head", str(size.d_head)),
        ("d_mlp", str(size.d_mlp)),
        ("parameters", f"{size.parameters:,} ({size.nonzeros:,} non-zero)"),
        ("error", _error(model)),
        ("numbers", config.dtype),
        ("weights", model.hash[:12]),
    ]
    return [(name, value) for name, value in entries if value]


def details(model: CompiledTransformer) -> str:
    """Return a text that describes how every head attends, and the gates of every feed-forward.

    Equal gates of a layer are merged.
    """
    heads, gates = _entries(model, "attention"), _entries(model, "realised")
    soft = _entries(model, "softmax")
    lines = []
    for layer in range(model.architecture.layers):
        entries = [
            f"  head {layer}.{number}: {_head(entry, soft)}"
            for number, entry in enumerate(e for e in heads if e["layer"] == layer)
        ]
        entries += [f"  {line}" for line in _gates([e for e in gates if e["layer"] == layer])]
        if entries:
            lines += [f"layer {layer}", *entries]
    return "\n".join(lines)


# Inputs and outputs
# ------------------------------------------------------------------------------------


def _gives(model: CompiledTransformer) -> str:
    """Return a note if ``config.outputs`` contains only one value, otherwise an empty text.

    A possible cause is that the vocabulary lacks a token of the program.
    """
    outputs = model.config.outputs
    return f"{scalar(outputs[0])} for every input" if outputs and len(outputs) == 1 else ""


def _refuses(model: CompiledTransformer) -> str:
    """Return a note on inputs for which the program may be undefined, or an empty text."""
    partial = model.config.partial
    more = f" and {len(partial) - MAX_NAMED} more" if len(partial) > MAX_NAMED else ""
    named = ", ".join(partial[:MAX_NAMED]) + more
    return f"for some inputs, in {named}" if partial else ""


def _listed(vocabulary: Sequence[Any]) -> str:
    shown = ", ".join(map(scalar, vocabulary[:8]))
    return shown if len(vocabulary) <= 8 else f"{shown}, … ({len(vocabulary)})"


def _numbers(model: CompiledTransformer) -> str:
    pairs = model.config.ranges
    if not pairs:
        return "real numbers"
    low, high = min(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    return f"real numbers from {low:g} to {high:g}".replace("-", "−")


def _feed_forward(kind: str) -> str:
    return "exact: symbolic feed-forwards, executed as code" if kind == "exact" else kind


def _error(model: CompiledTransformer) -> str:
    error = model.error_bound
    if math.isfinite(error):
        return f"at most {at_most(error)} (certified)" if error else "0 (certified)"
    return (
        "rounding errors only, without a bound"
        if model.architecture.feed_forward == "exact"
        else "not stated"
    )


# Heads --------------------------------------------------------------------------------------------


def _attention(model: CompiledTransformer) -> str:
    """Return the kind of the heads (hard or softmax), and the number of heads of the other kind."""
    kinds = [k for layer in model.weights.layers if layer.attention for k in layer.attention.kinds]
    asked = model.config.attention
    others = [kind for kind in kinds if kind != asked]
    return f"{asked}, but {_count(len(others), 'head')} {others[0]}" if others else asked


def _scores(model: CompiledTransformer) -> str:
    """Return the kinds of attention scores, with the number of heads of each kind."""
    return _counted(entry["scored by"] for entry in _entries(model, "attention"))


def _sink(model: CompiledTransformer) -> str:
    if not model.config.sink:
        return ""
    return _counted(e["sink"] for e in _entries(model, "attention") if e["sink"] != "none")


def _softmax(model: CompiledTransformer) -> str:
    """Return the inverse temperatures of heads that approximate hard heads, and their largest leak.

    The leak bounds the attention weight on keys that the hard head does not select. An unknown leak is
    omitted.
    """
    entries = _entries(model, "softmax")
    betas = sorted({e["beta"] for e in entries if e["beta"] is not None})
    if not betas:
        return ""
    between = f"{_short(betas[0])}" if len(betas) == 1 else f"{_short(betas[0])} to {_short(betas[-1])}"
    leaks = [e["leak"] for e in entries]
    if None in leaks:
        return f"β {between}"
    worst = max(leaks)
    leaked = f"at most {at_most(worst, '.2g')} of the attention leaks" if worst else "nothing leaks"
    return f"β {between}: {leaked}"


def _head(entry: Mapping[str, Any], soft: list[dict[str, Any]]) -> str:
    """Return a description of one head: selector, scores, sink and temperature.

    The entry of the head is removed from ``soft``, so that heads with equal names get different
    entries.
    """
    parts = [entry["selector"], f"scored by {entry['scored by']}"]
    if entry["sink"] != "none":
        parts.append(f"sink: {entry['sink']}")
    who = entry["layer"], entry["selector"]
    place = next((i for i, e in enumerate(soft) if (e["layer"], e["head"]) == who), None)
    if place is not None:
        temperature = soft.pop(place)
        parts.append(f"β {_short(temperature['beta'])}, leak {_bound(temperature['leak'])}")
    return "; ".join(parts)


# Feed-forwards ------------------------------------------------------------------------------------


def _units(model: CompiledTransformer) -> str:
    """Return the number of hidden units by purpose, for each layer or, in deep networks, in total."""
    counts: list[Counter[str]] = [Counter(count) for count in _entries(model, "feed_forward")]
    listed = [(number, count) for number, count in enumerate(counts) if count]
    if len(listed) > MAX_LAYERS:
        return _kinds(sum((count for _, count in listed), Counter()))
    return "; ".join(f"layer {number}: {_kinds(count)}" for number, count in listed)


def _kinds(count: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in count.items())


def _gates(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield one line for each group of equal gates, followed by the s-ops that the gates compute."""

    def made(entry: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(entry[name]) for name in ("gate", "how", "units", "own_error", "error"))

    for _, group in groupby(sorted(entries, key=made), made):
        alike = list(group)
        first = alike[0]
        each = _count(first["units"], "unit") + (" each" if len(alike) > 1 else "")
        times = f" ×{len(alike)}" if len(alike) > 1 else ""
        own, whole = _bound(first["own_error"]), _bound(first["error"])
        made_so = f"{first['gate']}{times}: {first['how']}, {each}"
        yield f"{made_so}; error {own} alone, {whole} including its inputs"
        names = list(dict.fromkeys(entry["s-op"] for entry in alike))
        yield from (f"  {name}" for name in names[:MAX_NAMED])
        if len(names) > MAX_NAMED:
            yield f"  … and {len(names) - MAX_NAMED} more"


# Values of reports ---------------------------------------------------------------------------------


def _entries(model: CompiledTransformer, name: str) -> list[dict[str, Any]]:
    """Return an entry of the report as a list, which is empty for networks without this entry."""
    return list(model.config.report.get(name, ()))


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.3g}"
    return "unknown" if value is None else str(value)


def _bound(value: Any) -> str:
    """Format a bound with few digits, rounded up."""
    return at_most(value) if isinstance(value, float) else _short(value)


def _counted(texts: Iterator[str]) -> str:
    """Return the different texts with counts, as in ``equality by squares (10 heads)``."""
    counts = Counter(texts)
    return ", ".join(f"{text} ({_count(number, 'head')})" for text, number in counts.items())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
