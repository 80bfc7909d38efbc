"""Describe a compiled transformer beside its weights: plain data, as it stands in ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from locum.graph import Atom
from locum.settings import Setting, normalise_settings

#: Attention of the heads, feed-forwards and types of weights.
ATTENTIONS = ("hard", "softmax")
FEED_FORWARDS = ("relu", "gelu", "glu", "exact")
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Config:
    """All that is needed to feed the weights and to read their outputs."""

    #: The vocabulary, in the order of W_E's rows; None if tokens are real numbers.
    vocabulary: tuple[Atom, ...] | None
    #: The lengths of the shortest and the longest input.
    lengths: tuple[int, int]
    #: Whether a sink stands before the input.
    sink: bool
    #: The possible outputs, in the order of W_U's columns (the largest logit decides); None if W_U has
    #: one column, which gives the number itself.
    outputs: tuple[Atom, ...] | None
    attention: Annotated[str, Setting("a text", choices=ATTENTIONS)]
    feed_forward: Annotated[str, Setting("a text", choices=FEED_FORWARDS)]
    dtype: Annotated[str, Setting("a text", choices=DTYPES)]
    #: A label for each slot of the residual stream, and for each head of each layer.
    slots: tuple[str, ...]
    heads: tuple[tuple[str, ...], ...]
    #: Tokens on which the program is undefined, each with the reason.
    undefined: tuple[tuple[Atom, str], ...] = ()
    #: S-ops and selectors that may have no value on some input. Weights give a number there all the
    #: same, so answers to inputs are given only where dense execution has one.
    partial: tuple[str, ...] = ()
    #: The program (its graph as JSON), its stable hash, and its name.
    program: str = ""
    program_hash: str = ""
    name: str = ""
    #: The ranges of real-valued tokens, one for all positions or one for each; None without limits.
    #: Hidden units are fitted to these ranges, so inputs outside of them are refused.
    ranges: tuple[tuple[float, float], ...] | None = None
    #: Whether every head has the causal mask: a decoder, whose begin marker is the sink.
    causal: bool = False
    #: The compiler's report: its options, how everything was realised, error bounds, temperatures.
    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        normalise_settings(self)
