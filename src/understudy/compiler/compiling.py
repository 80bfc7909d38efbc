"""From a program to a transformer: the stages in their order.

normalise → values and selectors → broadcasting → schedule → lowering → slots → assembly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.analysis.architecture import HasNode, node_of
from understudy.compiler.assemble import Assembly, categories
from understudy.compiler.broadcasting import realisable
from understudy.compiler.codes import Codes
from understudy.compiler.fitting import fit, report
from understudy.compiler.lowering import Lowering
from understudy.compiler.network import Signal
from understudy.compiler.normalise import normalise
from understudy.compiler.pruning import pruned
from understudy.compiler.realising import GateRoles
from understudy.compiler.schedule import Roles, schedule
from understudy.compiler.scores import Selectors
from understudy.compiler.slots import slots
from understudy.compiler.target import Target, target
from understudy.compiler.units import UnitFeedForward
from understudy.compiler.values import Values
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
    name: str | None = None,
) -> CompiledTransformer:
    """The program as the weights of a transformer.

    >>> from understudy import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> model = compile(reverse, length=8, vocabulary="abcd")
    >>> model("abcd"), model("ba")
    (['d', 'c', 'b', 'a'], ['a', 'b'])
    """
    began = time.process_time()
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
    )
    return _compiled(root, wanted, name or abbreviate(root), began)


def _compiled(root: Node, wanted: Target, name: str, began: float) -> CompiledTransformer:
    plain = normalise(root, numeric=wanted.vocabulary is None)
    selectors = Selectors(wanted.longest, wanted.shortest, wanted.dtype)
    values = Values(wanted, selectors.unique)
    selectors.values = values
    codes = Codes(values, postorder(plain))
    plain = realisable(plain, selectors, values, wanted)
    fused = wanted.feed_forward == "exact"
    roles = Roles(values, selectors)
    if not fused:
        roles = gates = GateRoles(values, selectors, codes=codes, kind=wanted.feed_forward)
        gates.keep_whole(plain)
    times = schedule(plain, roles, fused=fused)
    lowering = Lowering(times, roles, codes, fused=fused)
    network = pruned(lowering.network(plain))
    if wanted.feed_forward == "glu":
        network.one = Signal("1", 0, positions=np.ones(wanted.longest))
    outputs = _outputs(plain, values)
    fitted = None
    if not fused or wanted.attention == "softmax":
        gap = math.inf if outputs is None else _gap([codes.number(v, name) for v in outputs])
        fitted = fit(network, wanted, selectors, gap)
    depth = network.layers
    plan = slots(network, depth)
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
        undefined=tuple((token, why) for token, why in lowering.undefined.items()),  # type: ignore[misc]
        program=dumps(root),
        program_hash=stable_hash(root),
        name=name,
        report={
            **(report(fitted, network, wanted.feed_forward) if fitted is not None else {}),
            "seconds": time.process_time() - began,
        },
    )
    return CompiledTransformer(config, _cast(weights, wanted.dtype))


def _gap(numbers: Sequence[float]) -> float:
    """How far the nearest two lie apart."""
    return float(np.diff(np.sort(numbers)).min()) if len(numbers) > 1 else math.inf


def _outputs(root: Node, values: Values) -> tuple[Atom, ...] | None:
    """What may come out, if it is one of few things (and not real numbers)."""
    found = values.finite(root)
    if found is None or len(found) > MAX_CATEGORIES:
        return None
    if any(isinstance(value, float) for value in found):
        return None
    return found


def _cast(weights: Weights, dtype: str) -> Weights:
    """The same in another type of number."""

    def cast(value: Any) -> Any:
        return value.astype(dtype) if isinstance(value, np.ndarray) else value

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
