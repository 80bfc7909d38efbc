"""Compile a program to transformer weights, run the network, and compare it with the program."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution import run as run_program
from locum.graph import Node, Sort, sort_of
from locum.graph.labels import Labels
from locum.interface.display.network.in_words import combination
from locum.interface.display.network.network_data import network_data
from locum.interface.playground.flow_pane import Flow
from locum.interface.playground.panes import right, texts
from locum.interface.playground.program_pane import Program
from locum.interface.playground.requests import MAX_INPUT, MAX_LENGTH, MAX_NUMBER, MAX_SIDE
from locum.interface.playground.requests import tokens as read_tokens
from locum.interface.playground.requests import vocabulary as read_vocabulary
from locum.networks.compiler.compile_limits import LimitExceededError
from locum.networks.compiler.compiling import compile_traced
from locum.networks.compiler.target import Target
from locum.networks.compiler.tracing import Trace
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.weights import HARD, Array, FeedForwardWeights
from locum.settings import Setting, settings_of

#: Limits of compilation: width of the residual stream, hidden units, seconds, and bytes of memory.
LIMIT = {"width": 512, "units": 50_000, "seconds": 4, "memory": 400_000_000}
#: Options of the compiler that requests do not support, or replace by other fields.
OMITTED = ("ranges", "inputs", "limit")
#: Minimum default length of the longest input of a compiled network.
DEFAULT_LENGTH = 8
#: Maximum number of listed hidden units for each slot.
MAX_UNITS = 16
#: Largest relative difference that counts as a rounding error, also if the error bound is smaller.
CLOSE = 1e-9
#: Largest integer whose exponential does not overflow.
MAX_SCORE = 709
#: Range of random inputs if real-valued tokens have no bounds.
DRAWN = (-2.0, 2.0)


def request_settings(target: type[Target]) -> dict[str, Setting]:
    """Return the compiler's options as settings of requests, within the limits of the playground.

    The default length is the length of the input, but at least 8 unless the length is fixed. The
    default vocabulary consists of the tokens of the input.
    """
    declared = settings_of(target)
    bound = Setting("a number", default=None, least=-1e6, most=1e6)
    return {
        **{name: setting for name, setting in declared.items() if name not in OMITTED},
        "length": replace(declared["length"], default=None, most=MAX_LENGTH),
        "vocabulary": Setting("a text", default=None, longest=MAX_INPUT),
        "tolerance": Setting("a number", default=None, least=1e-12, most=1.0),
        "low": bound,
        "high": bound,
    }


SETTINGS = request_settings(Target)
DEFAULTS = {name: setting.default for name, setting in SETTINGS.items()}


def compile(source: str, typed: str, name: str | None, **options: Any) -> dict[str, Any]:  # noqa: A001
    """Compile an s-op to weights, and return the data of the pane Weights."""
    program, name, model, trace = compiled(source, typed, name, options)
    data = network_data(model, [program.tokens])
    stream, node = model.residual(program.tokens).values, program.sop(name)[1].node
    for slot, stays in enumerate(data["slots"]):
        for stay in stays:
            nodes = trace.held(slot, stay["first"], stay["until"])
            stay["statements"] = program.statements_of(nodes)
            complete = max(
                stay["first"], min(stay["last"], len(stream)) - 1
            )  # the last time at which the value is needed
            stay["codes"] = codes(program, stay["label"], nodes, stream[complete, :, slot].tolist())
    flow = Flow(program, node, model, trace)
    for layer, (heads, traced) in enumerate(zip(data["heads"], trace.heads, strict=True)):
        for number, (head, nodes) in enumerate(
            zip(heads, traced, strict=False)
        ):  # only the first heads are drawn
            head["statements"] = program.statements_of(nodes)
            head["universal"] = for_universal(model, layer, number, stream[2 * layer])
    data["units"] = [_units(layer.feed_forward) for layer in model.weights.layers]
    run = _applied(program, name, model, program.tokens)
    data["flow"] = flow.figure(name, run["output"] or [], texts(program.tokens))
    return {"name": name, "network": data, "run": run}


#: Labels of slots that contain a code of the tokens: an input s-op, or a table chosen by the compiler,
#: such as ``{"a": 0, "b": 1}[tokens_str]``.
LEAVES = ("tokens", "tokens_str", "tokens_int", "tokens_float", "tokens_bool")
_CODE = re.compile(r"\{.*\}\[tokens\w*\]")


def codes(
    program: Program, held: str, nodes: Sequence[Node], numbers: Sequence[float]
) -> list[tuple[float, str]]:
    """Return the codes in a slot: pairs of a number and the value that it encodes.

    ``held`` is the label of the slot, ``nodes`` are its traced nodes, and ``numbers`` its values. The
    list is empty if the slot contains the values themselves, or if no single s-op has the label (as
    for 1/length). The list is also empty if the numbers do not correspond one to one to the encoded
    values.
    """
    label = Labels(program.names)
    if _CODE.fullmatch(held) or held in LEAVES:
        values: Sequence[Any] = program.tokens
    else:
        named = [node for node in nodes if sort_of(node) is Sort.SOP and label(node) == held]
        if len(named) != 1:
            return []
        try:
            values = run_program(named[0], program.tokens)
        except ExecutionError:
            return []
    # Without the sink, and with the digits shown on the page.
    numbers = [float(f"{number:.6g}") for number in numbers[-len(values) :]]
    pairs = dict(zip(numbers, texts(values), strict=True))
    written = list(zip(numbers, values, strict=True))
    is_code = any(isinstance(value, str) or float(value) != number for number, value in written)
    is_one = all(pairs[number] == text for number, text in zip(numbers, texts(values), strict=True))
    return (
        sorted(pairs.items()) if is_code and is_one and len(set(pairs.values())) == len(pairs) else []
    )


def for_universal(model: CompiledTransformer, layer: int, number: int, stream: Array) -> dict[str, Any]:
    """Return X, A and V for which T(X) is the output of a head, or the reason why U cannot run it.

    X contains a column for each slot that the head reads, and a column of ones if the head has biases.
    If there are too many columns, X contains the queries, keys and values of the head instead.
    """
    part = model.weights.layers[layer].attention
    assert part is not None
    query, key, value = (
        np.vstack([matrix[number], np.atleast_2d(bias[number])])
        for matrix, bias in ((part.W_Q, part.b_Q), (part.W_K, part.b_K), (part.W_V, part.b_V))
    )
    given = value @ part.W_O[number]
    rows = np.hstack([stream, np.ones((len(stream), 1))])
    scores = rows @ query @ (rows @ key).T
    written = np.flatnonzero(np.any(given, axis=0))
    V = given[:, written]
    read = np.any(np.hstack([query, key, V]), axis=1)
    if read.sum() <= MAX_SIDE:
        X, A, V = rows[:, read], (query @ key.T)[np.ix_(read, read)], V[read]
    else:
        used = np.any(query, axis=0) & np.any(key, axis=0)
        X = np.hstack([rows @ query[:, used], rows @ key[:, used], rows @ V])
        d, d_v = int(used.sum()), len(written)
        A, V = np.eye(2 * d + d_v, k=d), np.eye(2 * d + d_v, d_v, k=-2 * d)
        A[d:] = 0
    sizes = {
        "positions": len(X),
        "numbers of queries, keys and values": len(A),
        "slots to write": len(written),
    }
    for what, size in sizes.items():
        if not 1 <= size <= MAX_SIDE:
            advice = "; try a shorter input" if what == "positions" else ""
            return {"why": f"it has {size} {what}, and the largest U here has {MAX_SIDE}{advice}"}
    if model.config.causal:
        return {"why": "it has a causal mask, and this U has none"}
    matrices = {"X": X, "A": A, "V": V}
    if any(np.abs(matrix).max() > MAX_NUMBER for matrix in matrices.values()):
        return {"why": f"it has numbers above {MAX_NUMBER:g}"}
    hard = part.kinds[number] == HARD
    if not hard and np.abs(scores).max() > MAX_SCORE:
        return {
            "why": f"its scores reach {np.abs(scores).max():.0f}, and exponentials overflow above "
            f"{MAX_SCORE}; try hard attention"
        }
    return {name: matrix.tolist() for name, matrix in matrices.items()} | {
        "temperature": 0 if hard else 1
    }


def apply(
    source: str, typed: str, name: str | None, inputs: list[str], others: int, seed: int, **options: Any
) -> dict[str, Any]:
    """Run the compiled network on given and random inputs, and compare its outputs with the program.

    Random inputs are drawn here and not in the browser, because JavaScript does not distinguish 1 from
    1.0.
    """
    program, name, model, _ = compiled(source, typed, name, options)
    drawn = [*map(read_tokens, inputs), *draw_inputs(model, others, seed)]
    return {"name": name, "runs": [_applied(program, name, model, tokens) for tokens in drawn]}


def compiled(
    source: str, typed: str, name: str | None, options: dict[str, Any]
) -> tuple[Program, str, CompiledTransformer, Trace]:
    """Compile an s-op of a program, and return the program, the name, the network and its trace."""
    program = right(source, typed)
    name, value = program.sop(name)
    numeric, listed = options.pop("numeric"), options.pop("vocabulary")
    low, high = options.pop("low"), options.pop("high")
    if (low is None) != (high is None):
        raise InputError("low and high: expected both, or neither, got one of them")
    if numeric and listed:
        raise InputError("vocabulary: expected none for real-valued tokens")
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
    try:
        model, trace = compile_traced(
            value,
            length=length,
            vocabulary=words,
            numeric=numeric,
            ranges=None if low is None else (low, high),
            name=name,
            names=program.names | {value.node: name},
            limit=LIMIT,
            **{key: option for key, option in options.items() if option is not None},
        )
    except LimitExceededError as error:
        place = f", in {error.where}" if error.where else ""
        raise InputError(
            f"the playground: {error.found}{place}; try a shorter length or a smaller vocabulary, or "
            "`locum compile`"
        ) from None
    return program, name, model, trace


def _units(feed: FeedForwardWeights | None) -> dict[int, list[str]]:
    """Return the formulas of the hidden units that write each slot.

    The result is empty for symbolic feed-forwards, which have no hidden units.
    """
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


def draw_inputs(model: CompiledTransformer, count: int, seed: int) -> list[list[Any]]:
    """Draw ``count`` random inputs of supported lengths over the vocabulary or range of a network."""
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
    """Run the network on one input, and compare the output with the values of the program.

    In the result, ``agrees`` states whether output and values are equal within the error bound of the
    network, or up to rounding. If the program is undefined on the input, ``problem`` is the reason, and
    the network must also reject the input.
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
        "agrees": all(agrees(one, other, bound) for one, other in pairs),
        "difference": max((_difference(one, other) for one, other in pairs), default=0.0),
    }


def _tried(work: Callable[[], Any]) -> tuple[list[Any] | None, str | None]:
    """Return the values that ``work`` computes, or None and the error message."""
    try:
        return list(work()), None
    except ExecutionError as error:
        return None, str(error)


def agrees(one: Any, other: Any, bound: float | None) -> bool:
    """Return whether an output of the network equals the program's value.

    Numbers may differ by ``bound``, or by a rounding error.
    """
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    # A network without a bound must agree up to rounding.
    certain = 0.0 if bound is None or not math.isfinite(bound) else bound
    return _difference(one, other) <= max(certain, CLOSE * max(1.0, abs(float(other))))


def _difference(one: Any, other: Any) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return 0.0
    return abs(float(one) - float(other))
