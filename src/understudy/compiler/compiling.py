"""From a program to a transformer: the stages in their order.

normalise → values and selectors → broadcasting → schedule → lowering → slots → assembly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from understudy.analysis.architecture import HasNode, node_of
from understudy.compiler.assemble import Assembly, categories
from understudy.compiler.broadcasting import realisable
from understudy.compiler.codes import Codes
from understudy.compiler.fitting import fit, report
from understudy.compiler.gate_roles import GateRoles
from understudy.compiler.lowering import Lowering
from understudy.compiler.network import LOSING_SINK, NO_SINK, TIED_SINK, Network
from understudy.compiler.normalise import normalise
from understudy.compiler.roles import Roles
from understudy.compiler.schedule import schedule
from understudy.compiler.scores import Scores
from understudy.compiler.selectors import Selectors
from understudy.compiler.slots import slots
from understudy.compiler.target import EXACT_WHOLE, Target, target
from understudy.compiler.units import UnitFeedForward
from understudy.compiler.values import Values
from understudy.errors import CompileError
from understudy.graph import Atom, Node, abbreviate, dumps, postorder, stable_hash
from understudy.transformer import CompiledTransformer, Config, Weights

#: Outputs of more different values than this are read off as a number.
MAX_CATEGORIES = 1024


def compile(  # noqa: A001  (the name users know it by: understudy.compile)
    program: Node | HasNode,
    *,
    length: int,
    vocabulary: Sequence[Atom] | None = None,
    numeric: bool = False,
    fixed: bool = False,
    attention: str = "hard",
    feed_forward: str = "exact",
    tolerance: float | None = None,
    ranges: Any = None,
    separation: float | None = None,
    dtype: str = "float64",
    share_positions: bool = True,
    name: str | None = None,
    names: Mapping[Node, str] | None = None,
) -> CompiledTransformer:
    """The program as the weights of a transformer.

    - ``length``: of the longest input; ``fixed``: all inputs have this length.
    - ``vocabulary``: the tokens there are; or ``numeric``: any real numbers.
    - ``attention``: hard or softmax. ``feed_forward``: exact, glu, gelu or relu.
    - ``tolerance``: the error allowed where something must be approximated. ``ranges``: between which
      numbers real-valued tokens lie, (low, high). ``separation``: real numbers that are compared are
      equal or differ by so much.
    - ``share_positions``: whether positional encodings that differ by a factor and a constant share a
      slot. If not, the weights of programs that differ in functions of the position alone are equal.
    - ``names``: the program's own names for its s-ops and selectors; slots and heads are called so.

    >>> from understudy import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> model = compile(reverse, length=8, vocabulary="abcd")
    >>> model("abcd"), model("ba")
    (['d', 'c', 'b', 'a'], ['a', 'b'])
    """
    root = node_of(program)
    wanted = target(
        length,
        vocabulary,
        numeric=numeric,
        fixed=fixed,
        attention=attention,
        feed_forward=feed_forward,
        tolerance=tolerance,
        ranges=ranges,
        separation=separation,
        dtype=dtype,
        share_positions=share_positions,
    )
    return compile_for(wanted, root, name or abbreviate(root), names=names)


def compile_for(
    wanted: Target,
    root: Node,
    name: str,
    *,
    means: Node | None = None,
    weighing: Mapping[Node, Scores] | None = None,
    names: Mapping[Node, str] | None = None,
) -> CompiledTransformer:
    """The stages, one after another.

    ``weighing`` has the scores of selectors that stand for softmax heads, which RASP has no word for;
    ``means`` is then the program that says what the network computes.
    """
    without_families = partial(normalise, numeric=wanted.vocabulary is None)
    plain = without_families(root)
    selectors = Selectors(wanted)
    values = selectors.values
    for selector, scores in (weighing or {}).items():
        selectors.given(selector, scores.map(without_families))
    codes = Codes(values, postorder(plain))
    plain = realisable(plain, selectors, values, wanted)
    roles = _roles(plain, selectors, codes)
    fused = roles.fused
    times = schedule(plain, roles)
    lowering = Lowering(times, roles, names=names)
    network = lowering.network(plain)
    outputs = _outputs(plain, values, codes)
    fitted = None
    if not fused or wanted.attention == "softmax":
        gap = math.inf if outputs is None else _gap([codes.number(v, name) for v in outputs])
        fitted = fit(network, wanted, selectors, gap)
    depth = network.layers
    plan = slots(network)
    assembly = Assembly(network, plan, lowering, wanted, depth)
    if fitted is not None:
        assembly.beta = fitted.beta
        if not fused:
            assembly.by_units = UnitFeedForward(wanted.feed_forward, wanted.dtype, fitted.hidden)
    weights = assembly.weights()
    if outputs is not None:
        by_code: Mapping[float, object] = {codes.number(v, name): v for v in outputs}
        unembedding, bias = categories(weights, by_code)
        weights = replace(weights, W_U=unembedding, b_U=bias)
    config = Config(
        vocabulary=wanted.vocabulary,
        lengths=(wanted.shortest, wanted.longest),
        sink=network.sink,
        outputs=outputs,
        attention=wanted.attention,
        feed_forward=wanted.feed_forward,
        dtype=wanted.dtype,
        slots=(*plan.labels(), *(["is_sink"] if network.sink else [])),
        heads=tuple(
            tuple(h.label for h in network.heads if h.time == 2 * number - 1)
            for number in range(1, depth + 1)
        ),
        undefined=tuple(lowering.undefined.items()),
        program=dumps(means or root),
        program_hash=stable_hash(means or root),
        name=name,
        report={"attention": _attention(network)}
        | (report(fitted, network, wanted.feed_forward) if fitted is not None else {}),
    )
    return CompiledTransformer(config, _cast(weights, wanted.dtype))


def _roles(root: Node, selectors: Selectors, codes: Codes) -> Roles:
    """What each s-op is to the network, with the feed-forwards that were asked for."""
    if selectors.target.feed_forward == "exact":
        return Roles(selectors, codes)
    gates = GateRoles(selectors, codes)
    gates.keep_whole(root)
    return gates


def _attention(network: Network) -> list[dict[str, Any]]:
    """How each head attends, for the report."""
    return [
        {
            "layer": (head.time + 1) // 2,
            "selector": head.label,
            "scored by": ", ".join(dict.fromkeys(head.how)) or "nothing: it attends everywhere",
            "gap": head.gap,
            "sink": {NO_SINK: "none", LOSING_SINK: "where nothing is selected", TIED_SINK: "counted"}[
                head.sink
            ],
            "values": len(head.values),
        }
        for head in network.heads
    ]


def _gap(numbers: Sequence[float]) -> float:
    """How far the nearest two lie apart."""
    return float(np.diff(np.sort(numbers)).min()) if len(numbers) > 1 else math.inf


def _outputs(root: Node, values: Values, codes: Codes) -> tuple[Atom, ...] | None:
    """What may come out, if it is one of few things (and not real numbers)."""
    found = values.finite(root)
    if found is None:
        return None
    strings = any(isinstance(value, str) for value in found)
    many = len(found) > MAX_CATEGORIES or any(isinstance(value, float) for value in found)
    if many and not strings:
        return None
    # Logits have squares of codes in them, and must tell neighbours apart.
    largest = max((abs(codes.number(value, abbreviate(root))) for value in found), default=0.0)
    if largest < math.isqrt(EXACT_WHOLE[values.target.dtype] // 4):
        return found
    if strings:
        raise CompileError(
            f"strings come out of it beside numbers as large as {largest:.3g}; the greatest of its "
            f"logits could not tell them apart in {values.target.dtype}",
            abbreviate(root),
        )
    return None


def _cast(weights: Weights, dtype: str) -> Weights:
    """The same in another type of number."""

    def cast(value: Any) -> Any:
        largest = float(np.abs(value).max(initial=0.0))
        if largest > float(np.finfo(dtype).max):
            raise CompileError(f"a weight would be {largest:.3g}, which {dtype} does not hold")
        return value.astype(dtype)

    layers = tuple(
        replace(
            layer,
            attention=layer.attention and replace(layer.attention, **_arrays(layer.attention, cast)),
            feed_forward=layer.feed_forward
            and replace(layer.feed_forward, **_arrays(layer.feed_forward, cast)),
        )
        for layer in weights.layers
    )
    return replace(weights, layers=layers, **_arrays(weights, cast))


def _arrays(weights: Any, cast: Any) -> dict[str, Any]:
    return {name: cast(value) for name, value in vars(weights).items() if isinstance(value, np.ndarray)}
