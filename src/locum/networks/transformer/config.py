"""The configuration of a compiled transformer, and its report as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from locum.graph import Atom
from locum.networks.transformer.input_conditions import InputCondition
from locum.settings import Setting, normalise_settings
from locum.text import at_most, shortened

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
    #: S-ops and selectors that may have no value on some input, by their labels. Weights give a number
    #: for such an input.
    partial: tuple[str, ...] = ()
    #: Programs that are run on an input before the network (graphs as JSON). An input on which one of
    #: them raises an error is rejected.
    checks: tuple[str, ...] = ()
    #: Conditions that every input satisfies. The network may be wrong on other inputs, so they are
    #: rejected.
    inputs: tuple[InputCondition, ...] = ()
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


#: A list of plain values stands in one line up to here, and a string is cut here.
_LINE, _LETTERS = 96, 200


def render(data: Any) -> str:
    """Return ``data`` (dicts, lists, atoms) as indented lines."""
    return "\n".join(_lines(data))


def _lines(data: Any) -> list[str]:
    if isinstance(data, Mapping):
        return [line for key, value in data.items() for line in _entry(f"{key}:", _bound(key, value))]
    if isinstance(data, Sequence) and not isinstance(data, str):
        lines = []
        for value in data:
            first, *rest = _lines(value) or ["(nothing)"]
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    return _plain(data).splitlines() or [""]


def _entry(label: str, value: Any) -> list[str]:
    if _is_plain(value):
        lines = _lines(value)
        if len(lines) == 1:
            return [f"{label} {lines[0]}".rstrip()]
    elif not value:
        return [f"{label} (nothing)"]
    elif not isinstance(value, Mapping) and all(map(_is_plain, value)):
        line = ", ".join(map(_plain, value))
        if len(label) + len(line) < _LINE and "\n" not in line:
            return [f"{label} {line}"]
    return [label, *(f"  {line}" for line in _lines(value))]


def _bound(key: object, value: Any) -> Any:
    """Return errors, and shares that leak, as texts that do not claim less than these."""
    is_bound = isinstance(key, str) and ("error" in key or key == "leak") and isinstance(value, float)
    return at_most(value, ".6g") if is_bound else value


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) or not isinstance(value, (Mapping, Sequence))


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(str(value), _LETTERS)
