"""The transformer that a program becomes: compiled, run, and held against the program."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution import run as run_program
from locum.interface.display.network.in_words import combination
from locum.interface.display.network.page import network_data
from locum.interface.playground.panes import right, texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import MAX_INPUT, MAX_LENGTH
from locum.interface.playground.requests import tokens as read_tokens
from locum.interface.playground.requests import vocabulary as read_vocabulary
from locum.networks.compiler.target import Target
from locum.networks.compiler.tracing import Trace, compile_traced
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.weights import FeedForwardWeights
from locum.settings import Setting, settings_of

#: The widest residual stream that is shown.
MAX_WIDTH = 512
#: Length of the longest input of a compiled network, where the request does not say.
DEFAULT_LENGTH = 8
#: Hidden units of a slot that are written out.
MAX_UNITS = 16
#: The share of a number that counts as rounding, where the network has no bound of its own.
CLOSE = 1e-9
#: Between which numbers others are drawn, where real-valued tokens have no bounds.
DRAWN = (-2.0, 2.0)


def request_settings(target: type[Target]) -> dict[str, Setting]:
    """Return the options of a request: those of the compiler, within the limits of the playground.

    The default length is that of the input, at least 8 unless it is fixed. The default vocabulary is
    the tokens of the input.
    """
    declared = settings_of(target)
    bound = Setting("a number", default=None, least=-1e6, most=1e6)
    return {
        **{name: setting for name, setting in declared.items() if name not in ("ranges", "inputs")},
        "length": replace(declared["length"], default=None, most=MAX_LENGTH),
        "vocabulary": Setting("a text", default=None, longest=MAX_INPUT),
        "tolerance": Setting("a number", default=None, least=1e-12, most=1.0),
        "low": bound,
        "high": bound,
    }


SETTINGS = request_settings(Target)
DEFAULTS = {name: setting.default for name, setting in SETTINGS.items()}


def compile(source: str, typed: str, name: str | None, **options: Any) -> dict[str, Any]:  # noqa: A001
    """Compile an s-op to weights: slots over time, heads, feed-forwards, sizes, error bound."""
    program, name, model, trace = _compiled(source, typed, name, options)
    data = network_data(model, [program.tokens], scores=True)
    for slot, stays in enumerate(data["slots"]):
        for stay in stays:
            nodes = trace.held(slot, stay["first"], stay["until"])
            stay["statements"] = program.statements_of(nodes)
    for heads, traced in zip(data["heads"], trace.heads, strict=True):
        for head, nodes in zip(heads, traced, strict=False):  # of very many, the first are shown
            head["statements"] = program.statements_of(nodes)
    data["units"] = [_units(layer.feed_forward) for layer in model.weights.layers]
    return {"name": name, "network": data, "run": _applied(program, name, model, program.tokens)}


def apply(
    source: str, typed: str, name: str | None, inputs: list[str], others: int, seed: int, **options: Any
) -> dict[str, Any]:
    """Run the compiled network on inputs, and on random others, each beside the program's own values.

    Random inputs are drawn here, not in the page: a browser does not tell 1 from 1.0.
    """
    program, name, model, _ = _compiled(source, typed, name, options)
    drawn = [*map(read_tokens, inputs), *_drawn(model, others, seed)]
    return {"name": name, "runs": [_applied(program, name, model, tokens) for tokens in drawn]}


def _compiled(
    source: str, typed: str, name: str | None, options: dict[str, Any]
) -> tuple[Program, str, CompiledTransformer, Trace]:
    program = right(source, typed)
    name, value = program.sop(name)
    numeric, listed = options.pop("numeric"), options.pop("vocabulary")
    low, high = options.pop("low"), options.pop("high")
    if (low is None) != (high is None):
        raise InputError("low and high: expected both, or neither, got one of them")
    if numeric and listed:
        raise InputError("vocabulary: expected none beside any real numbers")
    if low is not None and not numeric:
        raise InputError(
            "low and high: expected none, since the tokens are those of the vocabulary; try any real "
            "numbers (numeric), or leave them out"
        )
    if options["tolerance"] is not None and options["feed_forward"] == "exact":
        raise InputError(
            "tolerance: expected none, since exact feed-forwards approximate nothing; try relu units, "
            "or leave it out"
        )
    words: Sequence[Any] | None = None
    if not numeric:
        words = list(program.tokens) if not listed else read_vocabulary(listed)
    shortest = 0 if options["fixed"] else DEFAULT_LENGTH
    length = options.pop("length") or max(len(program.tokens), shortest)
    if length > MAX_LENGTH:
        raise InputError(f"expected an input of at most {MAX_LENGTH} tokens to compile, got {length}")
    model, trace = compile_traced(
        value,
        length=length,
        vocabulary=words,
        numeric=numeric,
        ranges=None if low is None else (low, high),
        name=name,
        names=program.names | {value.node: name},
        **{key: option for key, option in options.items() if option is not None},
    )
    if model.architecture.d_model > MAX_WIDTH:
        raise InputError(
            f"this network has {model.architecture.d_model:,} slots; the playground shows {MAX_WIDTH}. "
            "Try a shorter length or a smaller vocabulary, or `locum compile`"
        )
    return program, name, model, trace


def _units(feed: FeedForwardWeights | None) -> dict[int, list[str]]:
    """Write the hidden units that each slot is the sum of (exact feed-forwards have formulas)."""
    if feed is None or feed.functions is not None:
        return {}
    written: dict[int, list[str]] = {}
    for slot in np.flatnonzero(np.any(feed.W_out, axis=0)).tolist():
        units = np.flatnonzero(feed.W_out[:, slot]).tolist()
        lines = [_unit(feed, unit, slot) for unit in units[:MAX_UNITS]]
        if len(units) > MAX_UNITS:
            lines.append(f"… and {len(units) - MAX_UNITS} more")
        if feed.b_out[slot]:
            lines.append(f"{float(feed.b_out[slot]):+.4g}")
        written[slot] = lines
    return written


def _unit(feed: FeedForwardWeights, unit: int, slot: int) -> str:
    argument = combination(feed.W_in[:, unit], float(feed.b_in[unit])).text
    factor = f"{float(feed.W_out[unit, slot]):+.4g}"
    if feed.W_gate is None:
        return f"{factor} · {feed.kind}({argument})"
    gate = combination(feed.W_gate[:, unit], 0.0).text
    return f"{factor} · relu({gate}) · ({argument})"


def _drawn(model: CompiledTransformer, count: int, seed: int) -> list[list[Any]]:
    """Draw inputs that the network is for: of all its lengths, over its vocabulary or range."""
    generator, config = random.Random(seed), model.config
    low, high = config.ranges[0] if config.ranges else DRAWN

    def token() -> Any:
        if config.vocabulary is None:
            return generator.uniform(low, high)
        return generator.choice(config.vocabulary)

    return [[token() for _ in range(generator.randint(*config.lengths))] for _ in range(count)]


def _applied(
    program: Program, name: str, model: CompiledTransformer, tokens: Sequence[Any]
) -> dict[str, Any]:
    """Run the network on one input; ``agrees``: within the bound that it was compiled with.

    Where the program has no value, ``problem`` says why, and the network must refuse the input, too.
    """
    node = program.sop(name)[1].node
    expected, problem = _tried(lambda: run_program(node, tokens))
    output, refusal = _tried(lambda: model(tokens))
    if expected is None or output is None:
        return {
            "input": texts(tokens), "output": None if output is None else texts(output),
            "expected": None if expected is None else texts(expected), "problem": problem or refusal,
            "agrees": expected is None and output is None, "difference": 0.0,
        }  # fmt: skip
    bound = model.config.report.get("error_bound")
    pairs = list(zip(output, expected, strict=True))
    return {
        "input": texts(tokens),
        "output": texts(output),
        "expected": texts(expected),
        "agrees": all(_agrees(one, other, bound) for one, other in pairs),
        "difference": max((_difference(one, other) for one, other in pairs), default=0.0),
    }


def _tried(work: Callable[[], Any]) -> tuple[list[Any] | None, str | None]:
    """Return the values that something gives, or None and why there are none."""
    try:
        return list(work()), None
    except ExecutionError as error:
        return None, str(error)


def _agrees(one: Any, other: Any, bound: float | None) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    # A network without a bound is held to rounding.
    certain = 0.0 if bound is None or not math.isfinite(bound) else bound
    return _difference(one, other) <= max(certain, CLOSE * max(1.0, abs(float(other))))


def _difference(one: Any, other: Any) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return 0.0
    return abs(float(one) - float(other))
