"""From a program to a transformer: the stages in their order.

normalise → values and selectors → broadcasting → schedule → lowering → slots → assembly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from understudy.analysis.architecture import HasNode, node_of
from understudy.compiler.assemble import Assembly, categories
from understudy.compiler.broadcasting import realisable
from understudy.compiler.codes import Codes
from understudy.compiler.lowering import Lowering
from understudy.compiler.normalise import normalise
from understudy.compiler.schedule import Roles, schedule
from understudy.compiler.scores import Scores, Selectors
from understudy.compiler.slots import slots
from understudy.compiler.target import Target, target
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
    names: Mapping[Node, str] | None = None,
) -> CompiledTransformer:
    """The program as the weights of a transformer.

    ``names`` are the program's own names for its s-ops and selectors: slots and heads are called so.

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
    began = time.process_time()
    without_families = partial(normalise, numeric=wanted.vocabulary is None)
    plain = without_families(root)
    selectors = Selectors(wanted.longest, wanted.shortest, wanted.dtype)
    values = Values(wanted, selectors.unique)
    selectors.values = values
    for selector, scores in (weighing or {}).items():
        selectors.given(selector, scores.map(without_families))
    codes = Codes(values, postorder(plain))
    plain = realisable(plain, selectors, values, wanted)
    roles = Roles(values, selectors)
    times = schedule(plain, roles, fused=True)
    lowering = Lowering(times, roles, codes, fused=True, names=names)
    network = lowering.network(plain)
    depth = network.layers
    plan = slots(network)
    assembly = Assembly(network, plan, lowering, wanted, depth)
    weights = assembly.weights()
    outputs = _outputs(plain, values)
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
        program=dumps(means or root),
        program_hash=stable_hash(means or root),
        name=name,
        report={"seconds": time.process_time() - began},
    )
    return CompiledTransformer(config, _cast(weights, wanted.dtype))


def _outputs(root: Node, values: Values) -> tuple[Atom, ...] | None:
    """What may come out, if it is one of few things (and not real numbers)."""
    found = values.finite(root)
    if found is None:
        return None
    if any(isinstance(value, str) for value in found):
        return found
    few = len(found) <= MAX_CATEGORIES and not any(isinstance(value, float) for value in found)
    return found if few else None


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
