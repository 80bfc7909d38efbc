"""What a compiled transformer is, beside its weights: plain data, as it stands in ``config.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from locum.graph import Atom


@dataclass(frozen=True)
class Config:
    """Everything one has to know to feed the weights and to read what comes out."""

    #: The tokens that it knows, in the order of W_E's rows; None: any real number is a token.
    vocabulary: tuple[Atom, ...] | None
    #: The shortest and the longest input.
    lengths: tuple[int, int]
    #: Whether a sink stands before the input.
    sink: bool
    #: What the outputs may be, in the order of W_U's columns (the greatest logit says which); None: W_U
    #: has one column, which is the number itself.
    outputs: tuple[Atom, ...] | None
    #: hard or softmax, as it was asked for; exact, glu, gelu or relu; float32 or float64.
    attention: str
    feed_forward: str
    dtype: str
    #: What each slot of the residual stream holds, and what each head of each layer is.
    slots: tuple[str, ...]
    heads: tuple[tuple[str, ...], ...]
    #: Tokens for which the program has no value, and why.
    undefined: tuple[tuple[Atom, str], ...] = ()
    #: The program (as JSON of the graph), its stable hash, and what it is called.
    program: str = ""
    program_hash: str = ""
    name: str = ""
    #: Between which numbers tokens lie, for all positions or for each; None: anywhere. Units are made
    #: for these numbers, and elsewhere they give something else, so other inputs are refused.
    ranges: tuple[tuple[float, float], ...] | None = None
    #: What the compiler has to say: how things were realised, bounds, temperatures.
    report: dict[str, Any] = field(default_factory=dict)
