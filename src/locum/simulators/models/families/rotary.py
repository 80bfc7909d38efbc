"""Rotary positions: frequencies out of a config, and the tables of cosines and sines.

x becomes x ∘ C + (x R) ∘ S, R the half-turn of the columns of a head. The transformers library computes
angles in float32, whatever the dtype of the model, and so do these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import numpy_of
from locum.simulators.matrices import is_half
from locum.simulators.models.families.fields import Field, anything
from locum.simulators.models.families.parts import single
from locum.simulators.models.families.source import Source
from locum.simulators.modules.factored import Rotary

#: The fields of a config, in the library's present form and in its older ones.
FIELDS: dict[str, Field] = {
    name: anything(None)
    for name in ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor")
}
_KNOWN = {
    "default": set[str](),
    "linear": {"factor"},
    "llama3": {
        *("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    },
}


def frequencies(
    source: Source, values: Mapping[str, Any], width: int, turned: float | None = None
) -> NDArray[np.float32]:
    """Return the frequency of each column of a head; 0 where it is not turned.

    ``turned``: the part of the columns that is turned, unless the config says; None for families that
    turn all of them (the library passes over a partial_rotary_factor there, so it is refused here).
    """
    for name in ("rope_scaling", "rope_parameters"):
        if not isinstance(values[name], Mapping | None):
            raise InputError(
                f"{source.where}: expected an object as {name} in config.json, got {values[name]!r:.60}"
            )
    parameters = dict(values["rope_scaling"] or {}) | dict(values["rope_parameters"] or {})
    kind = parameters.pop("rope_type", parameters.pop("type", "default"))
    parameters.pop("type", None)
    base = parameters.pop("rope_theta", values["rope_theta"] or 10000.0)
    own = values["partial_rotary_factor"]
    part = parameters.pop("partial_rotary_factor", turned if own is None else own)
    if turned is None and part not in (None, 1):
        raise InputError(
            f"{source.where}: a {source.family} turns all columns of a head: expected no "
            f"partial_rotary_factor in config.json, or 1, got {part!r:.60}"
        )
    part = 1.0 if part is None else part
    if not isinstance(kind, str) or kind not in _KNOWN:
        raise InputError(
            f"{source.where}: expected rope_type {', '.join(_KNOWN)} in config.json, got {kind!r}"
        )
    unknown = sorted(set(parameters) - _KNOWN[kind])
    missing = sorted(_KNOWN[kind] - set(parameters))
    if unknown or missing:
        names = ", ".join(unknown or missing)
        raise InputError(
            f"{source.where}: rope_parameters of type {kind} {'have' if unknown else 'lack'} {names}"
        )
    for name, value in {"rope_theta": base, "partial_rotary_factor": part, **parameters}.items():
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise InputError(
                f"{source.where}: expected a positive number as {name} in config.json, got "
                f"{value!r:.60}"
            )
    columns = int(width * part)
    if columns < 2 or columns % 2:
        raise InputError(f"{source.where}: expected an even number of rotary columns, got {columns}")
    exponents = np.arange(0, columns, 2, dtype=np.float32) / np.float32(columns)
    pairs = np.float32(1) / single("pow", base, exponents)
    if kind == "linear":
        pairs = pairs / np.float32(parameters["factor"])
    if kind == "llama3":
        pairs = _llama3(pairs, **parameters)
    own = source.tensors.get("rotary_emb.inv_freq")
    if own is not None:  # of a live model, which rounds it with its dtype
        theirs = numpy_of(own).astype(np.float32)
        rounding = 2e-2 if is_half(own) else 1e-6
        if theirs.shape != pairs.shape or not np.allclose(theirs, pairs, rtol=rounding, atol=1e-7):
            raise InputError(f"{source.where}: rotary_emb.inv_freq is not what the config makes it")
        pairs = theirs
    return np.concatenate([pairs, pairs, np.zeros(width - columns, dtype=np.float32)])


def _llama3(
    pairs: NDArray[np.float32],
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> NDArray[np.float32]:
    """Slow the low frequencies down by the factor, leave the high ones, and blend those between."""
    one, longest = np.float32(1), original_max_position_embeddings
    # As torch divides a number by a tensor, in two steps: each of them rounds.
    lengths = one / pairs * np.float32(2 * math.pi)
    times = one / lengths * np.float32(longest)
    blend = (times - np.float32(low_freq_factor)) / np.float32(high_freq_factor - low_freq_factor)
    slow = np.where(lengths > longest / low_freq_factor, pairs / factor, pairs)
    between = (lengths >= longest / high_freq_factor) & (lengths <= longest / low_freq_factor)
    return np.where(between, (1 - blend) * slow / factor + blend * slow, slow).astype(np.float32)


def rotation(frequencies: NDArray[np.float32]) -> Rotary:
    """Return the half-turn of the columns that are turned; the tables come with each run."""
    width, columns = len(frequencies), int(np.count_nonzero(frequencies))
    half, turn = columns // 2, np.zeros((width, width))
    turn[range(half, columns), range(half)] = -1
    turn[range(half), range(half, columns)] = 1
    return Rotary(turn, np.zeros((1, width)), np.zeros((1, width)))


def tables(frequencies: NDArray[np.float32], positions: NDArray[Any]) -> dict[str, Any]:
    """Return cosines and sines for these positions: a row for each, a column for each of a head."""
    angles = np.outer(positions.astype(np.float32), frequencies)
    return {"cosines": single("cos", angles), "sines": single("sin", angles)}
