"""What a model is, whatever its family: stacks of layers, with what stands before and after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locum.execution.arrays import Array
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.module import Numbers

#: The rows of the table of positions, [text, position], from the ids and the attention mask of texts.
Places = Callable[[Numbers, Numbers], NDArray[Any]]


def from_zero(ids: Numbers, mask: Numbers) -> NDArray[Any]:
    """Count the positions of every text: 0, 1, 2, …."""
    return np.broadcast_to(np.arange(ids.shape[1]), ids.shape)


@dataclass
class Stack:
    """Layers one after another, from token ids (or patches) to states."""

    layers: Sequence[Layer]
    heads: int
    #: The table of words; None where rows come in as they are.
    words: Array | None = None
    embedding: Stage = field(default_factory=Stage)
    #: The tables of positions and of token types, which the embedding adds; which rows of the former.
    positions: Array | None = None
    places: Places = from_zero
    types: Array | None = None
    final: Stage = field(default_factory=Stage)
    causal: bool = False
    #: For each layer, how many keys up to its own a query attends to; None: all.
    windows: Sequence[int | None] = ()
    #: Of rotary positions: the frequency of each column of a head.
    frequencies: NDArray[np.float32] | None = None
    #: Biases of scores: [head, query, key] for positions of queries and keys.
    relative: Callable[[NDArray[Any], NDArray[Any]], Numbers] | None = None
    #: The most tokens it takes, if that is limited.
    longest: int | None = None
    #: max_position_embeddings, which rotary positions may go beyond.
    trained: int | None = None
    #: Whether the last of the states that the library lists is the one behind the last norm.
    ends_normed: bool = True


class Output(NamedTuple):
    """What is made of the last states: of all, or of the first of each text."""

    stage: Stage
    first: bool = False


@dataclass
class Description:
    """A model: a stack, or an encoder and a decoder; and what is computed of the last states."""

    family: str
    name: str
    stack: Stack
    #: The stack whose last states a decoder attends to.
    encoder: Stack | None = None
    #: What is made of the last states, by its name: logits, pooler_output.
    outputs: Mapping[str, Output] = field(default_factory=dict)
    #: What the tables of an image are made of: rows of patches from pixels [image, channel, y, x].
    patches: Callable[[Array], Array] | None = None
    #: The id of padding, where positions depend on it.
    pad: int | None = None
