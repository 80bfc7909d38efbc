"""Define the configuration of a compiled transformer, and format its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from locum.graph import Atom
from locum.networks.transformer.input_conditions import InputCondition
from locum.settings import Setting, normalise_settings
from locum.text import at_most, shortened

#: Supported kinds of attention, feed-forwards and weight types.
ATTENTIONS = ("hard", "softmax")
FEED_FORWARDS = ("relu", "gelu", "glu", "exact")
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Config:
    """The configuration of a compiled transformer, which is needed in addition to the weights."""

    #: Vocabulary in the order of the rows of W_E; None if tokens are real numbers.
    vocabulary: tuple[Atom, ...] | None
    #: Lengths of the shortest and the longest accepted input.
    lengths: tuple[int, int]
    #: Whether a sink (an extra first token) precedes the input.
    sink: bool
    #: Possible outputs in the order of the columns of W_U, of which the largest logit selects one. None
    #: if the only column of W_U computes the output as a number.
    outputs: tuple[Atom, ...] | None
    attention: Annotated[str, Setting("a text", choices=ATTENTIONS)]
    feed_forward: Annotated[str, Setting("a text", choices=FEED_FORWARDS)]
    dtype: Annotated[str, Setting("a text", choices=DTYPES)]
    #: Label of each slot of the residual stream, and of each head of each layer.
    slots: tuple[str, ...]
    heads: tuple[tuple[str, ...], ...]
    #: Tokens for which the program is undefined, each with the reason.
    undefined: tuple[tuple[Atom, str], ...] = ()
    #: Labels of s-ops and selectors that may be undefined on some inputs. The weights may compute
    #: meaningless numbers for such inputs.
    partial: tuple[str, ...] = ()
    #: Programs (graphs as JSON) that run on an input before the network. An input for which one of them
    #: raises an error is rejected.
    checks: tuple[str, ...] = ()
    #: Conditions that every input must satisfy. Other inputs are rejected, because the network may be
    #: wrong for them.
    inputs: tuple[InputCondition, ...] = ()
    #: The program as a JSON graph, the hash of the program, and its name.
    program: str = ""
    program_hash: str = ""
    name: str = ""
    #: Ranges of real-valued tokens, one for all positions or one per position; None: no limits. Inputs
    #: outside the ranges are rejected.
    ranges: tuple[tuple[float, float], ...] | None = None
    #: Whether every head has a causal mask. The sink, if any, is then the begin marker of a decoder.
    causal: bool = False
    #: Report of the compiler, such as options, implementations of s-ops, error bounds, and the circuit.
    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        normalise_settings(self)


#: Maximum number of characters of a line with a list, including its label, and of a string.
_LINE, _LETTERS = 96, 200


def render(data: Any) -> str:
    """Format nested dicts, lists and plain values as indented lines of text."""
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
    """Format error bounds and the ``leak`` entry rounded up; return other values unchanged."""
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
