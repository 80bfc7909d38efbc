"""From a program to a transformer: the stages in their order.

normalise → values, patterns and scores → broadcasting → roles → schedule → lowering → fitting → slots →
feed-forwards and assembly. :func:`compile_for` is their table of contents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from locum.compiler.bounds.fitting import Fitted, fit
from locum.compiler.network.lowering import Lowering
from locum.compiler.network.network import Network
from locum.compiler.network.roles import Roles
from locum.compiler.network.schedule import schedule
from locum.compiler.program.codes import Codes
from locum.compiler.program.normalise import normalise
from locum.compiler.report import report
from locum.compiler.scoring.broadcasting import broadcast
from locum.compiler.scoring.scores import Scores
from locum.compiler.scoring.selectors import Selectors
from locum.compiler.target import Target, target
from locum.compiler.units.gate_roles import GateRoles
from locum.compiler.weights.assemble import Assembly, FeedForward, cast
from locum.compiler.weights.dense import UnitFeedForward
from locum.compiler.weights.exact import ExactFeedForward
from locum.compiler.weights.outputs import categories, nearest, unembedded
from locum.compiler.weights.slots import slots
from locum.compiler.weights.stream import Stream
from locum.graph import Atom, Node, abbreviate, dumps, postorder, stable_hash
from locum.graph.node import HasNode, node_of
from locum.transformer import CompiledTransformer, Config


def compile(  # noqa: A001  (the name users know it by: locum.compile)
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

    >>> from locum import aggregate, indices, length, select, tokens
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
    reference: Node | None = None,
    softmax_scores: Mapping[Node, Scores] | None = None,
    names: Mapping[Node, str] | None = None,
) -> CompiledTransformer:
    """The stages, one after another.

    ``softmax_scores`` has the scores of selectors that stand for softmax heads, which RASP has no word
    for; ``reference`` is then the program that says what the network computes.
    """
    without_families = partial(normalise, numeric=wanted.vocabulary is None)
    plain = without_families(root)
    selectors = _selectors(wanted, softmax_scores or {}, without_families)
    codes = Codes(selectors.values, postorder(plain))
    plain = broadcast(plain, selectors, selectors.values, wanted)
    roles = _roles(plain, selectors, codes)
    times = schedule(plain, roles)
    lowering = Lowering(times, roles, names=names)
    network = lowering.network(plain)
    outputs = categories(plain, selectors.values, codes)
    fitted = _fitted(network, selectors, outputs)
    stream = Stream(network, slots(network, wanted.dtype))
    weights = _assembly(network, stream, lowering, fitted).weights()
    if outputs is not None:
        weights = unembedded(weights, outputs)
    config = Config(
        vocabulary=wanted.vocabulary,
        lengths=(wanted.shortest, wanted.longest),
        sink=network.sink,
        outputs=None if outputs is None else tuple(outputs.values()),
        attention=wanted.attention,
        feed_forward=wanted.feed_forward,
        dtype=wanted.dtype,
        slots=tuple(stream.labels()),
        heads=_labels(network),
        undefined=tuple(lowering.undefined.values()),
        program=dumps(reference or root),
        program_hash=stable_hash(reference or root),
        name=name,
        ranges=_served(wanted),
        report=report(network, fitted, wanted.feed_forward),
    )
    return CompiledTransformer(config, cast(weights, wanted.dtype))


def _selectors(
    wanted: Target, softmax_scores: Mapping[Node, Scores], rewritten: Callable[[Node], Node]
) -> Selectors:
    """What is known of values and selectors; the scores that are given, of rewritten s-ops."""
    selectors = Selectors(wanted)
    for selector, scores in softmax_scores.items():
        selectors.given(selector, scores.map(rewritten))
    return selectors


def _served(wanted: Target) -> tuple[tuple[float, float], ...] | None:
    """Which numbers it is right for, where that is not all of them: units serve a range."""
    ends = tuple(zip(wanted.low, wanted.high, strict=True))
    everywhere = all(pair == (-math.inf, math.inf) for pair in ends)
    exact = wanted.feed_forward == "exact"
    return None if exact or everywhere or wanted.vocabulary is not None else ends


def _roles(root: Node, selectors: Selectors, codes: Codes) -> Roles:
    """What each s-op is to the network, with the feed-forwards that were asked for."""
    if selectors.target.feed_forward == "exact":
        return Roles(selectors, codes)
    gates = GateRoles(selectors, codes)
    gates.keep_whole(root)
    return gates


def _fitted(
    network: Network, selectors: Selectors, outputs: Mapping[float, Atom] | None
) -> Fitted | None:
    """Units and temperatures, where gates or heads are not exact of themselves."""
    wanted = selectors.target
    if wanted.feed_forward == "exact" and wanted.attention == "hard":
        return None
    return fit(network, wanted, selectors, math.inf if outputs is None else nearest(outputs))


def _assembly(network: Network, stream: Stream, lowering: Lowering, fitted: Fitted | None) -> Assembly:
    """What makes the weights, with the feed-forwards that were asked for."""
    wanted = lowering.values.target
    feed_forward: FeedForward = ExactFeedForward(lowering)
    if fitted is None:
        return Assembly(network, stream, wanted, feed_forward)
    if wanted.feed_forward != "exact":
        feed_forward = UnitFeedForward(
            wanted.feed_forward, wanted.dtype, fitted.hidden, wanted.attention
        )
    return Assembly(network, stream, wanted, feed_forward, fitted.beta)


def _labels(network: Network) -> tuple[tuple[str, ...], ...]:
    """What the heads of each layer are called."""
    return tuple(
        tuple(head.label for head in network.heads if head.time == 2 * layer - 1)
        for layer in range(1, network.layers + 1)
    )
