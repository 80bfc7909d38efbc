"""Compile a program to a transformer: :func:`compile_for` calls the stages in their order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate, dumps, postorder, stable_hash
from locum.graph.labels import Labels
from locum.graph.node import HasNode, node_of
from locum.networks.compiler import bounds, network, program, scoring, units, weights
from locum.networks.compiler.alternatives import find_alternative
from locum.networks.compiler.bounds.fitting import Fitted
from locum.networks.compiler.bounds.head_bounds import Temperature
from locum.networks.compiler.compile_limits import LimitExceededError, compile_within
from locum.networks.compiler.mean_advice import explain_means
from locum.networks.compiler.network.network import (
    LOSING_SINK,
    NO_SINK,
    TIED_SINK,
    Network,
    Slots,
    Unit,
)
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.program.normalise import Origins
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.scoring.scores import Scores
from locum.networks.compiler.smaller_form import Candidate, choose
from locum.networks.compiler.target import REFERENCE, Target
from locum.networks.transformer import CompiledTransformer, Config

_SINKS = {NO_SINK: "none", LOSING_SINK: "where nothing is selected", TIED_SINK: "counted"}


def report(lowered: Lowered, fitted: Fitted | None) -> dict[str, Any]:
    """Report how heads attend; units, temperatures and the error bound; what depends on rounding."""
    account: dict[str, Any] = {"attention": _attention(lowered.network), "error_bound": None}
    if fitted is not None:
        account |= _fit(fitted, lowered)
    if lowered.roles.rounded:
        account["hangs on rounding"] = [lowered.label(node) for node in lowered.roles.rounded]
    return account


def _attention(network: Network) -> list[dict[str, Any]]:
    """Report how each head attends."""
    return [
        {
            **_place((head.time - 1) // 2, "attn"),
            "selector": head.label,
            "scored by": ", ".join(dict.fromkeys(head.how)) or "nothing: it attends everywhere",
            "gap": head.gap,
            "sink": _SINKS[head.sink],
            "values": len(head.values),
        }
        for head in network.heads
    ]


def _fit(fitted: Fitted, lowered: Lowered) -> dict[str, Any]:
    """Return units and temperatures, and the errors that they have."""
    bounds, network = fitted.bounds, lowered.network
    account: dict[str, Any] = {"error_bound": fitted.bound}
    if fitted.hidden:
        layers = (max((u.time for u in network.units), default=0)) // 2
        account["feed_forward"] = [
            _counted([u for u in network.units if u.time == 2 * n], fitted)
            for n in range(1, layers + 1)
        ]
        account["realised"] = [
            {
                "s-op": lowered.label(unit.node),
                "gate": type(unit.gate).__name__.lower(),
                **_place(unit.time // 2 - 1, "mlp"),
                "units": fitted.hidden[unit].size,
                "how": fitted.hidden[unit].how,
                "own_error": fitted.hidden[unit].error,
                "error": float(bounds.intervals.signals[unit.into].error.max()),
            }
            for unit in sorted(network.units, key=lambda u: u.time)
        ]
    if bounds.temperatures:
        account["softmax"] = [
            {"head": head.label, **_place((head.time - 1) // 2, "attn"), **_plain(temperature)}
            for head, temperature in bounds.temperatures.items()
        ]
    return account


def _place(layer: int, half: str) -> dict[str, Any]:
    """Return the layer, counted from 0, and its half by TransformerLens's name."""
    return {"layer": layer, "block": f"blocks.{layer}.{half}"}


def _plain(temperature: Temperature) -> dict[str, float | None]:
    """Return plain numbers; None where there is no bound, which JSON has no number for."""
    return {name: value if math.isfinite(value) else None for name, value in vars(temperature).items()}


def _counted(units: list[Unit], fitted: Fitted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for unit in units:
        name = type(unit.gate).__name__.lower()
        counts[name] = counts.get(name, 0) + fitted.hidden[unit].size
    return counts


#: The error up to which a network is not made deeper for the sake of a smaller one.
_QUIET = 1e-6


def compile(  # noqa: A001  (the name users know it by: locum.compile)
    source: Node | HasNode,
    *,
    name: str | None = None,
    names: Mapping[Any, str] | None = None,
    **options: Any,
) -> CompiledTransformer:
    """Compile a program to the weights of a transformer: heads, and feed-forwards of hidden units.

    ``options`` are the fields of :class:`Target`: ``length`` (tokens of the longest input),
    ``vocabulary`` (the tokens) or ``numeric=True`` (real numbers), and what may be left out.
    Hidden units are relu, unless ``feed_forward`` says "gelu", "glu", or "exact": instructions instead
    of weights, a reference for analysis.
    ``name`` is the name of the network. ``names`` maps s-ops and selectors of the program to names,
    which label slots, heads and nodes of the circuit.

    >>> from locum import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> model = compile(reverse, length=8, vocabulary="abcd")
    >>> model("abcd"), model("ba")
    (['d', 'c', 'b', 'a'], ['a', 'b'])
    """
    root = node_of(source)
    target, read = Target.read(**options), program.read_names(names, root)
    return compile_for(target, root, name or abbreviate(root), names=read)


@np.errstate(all="ignore")
def count_layers(source: Node | HasNode, **options: Any) -> int:
    """Return how many layers the network of a program would have, without making it.

    It has more where so few turn out too noisy, or where a smaller form is deeper.

    >>> from locum import select, selector_width, tokens
    >>> alike = selector_width(select(tokens, tokens, "=="))
    >>> count_layers(alike, length=4, vocabulary="ab")
    1
    """
    target = Target.read(**options)
    with compile_within(target.limit):
        plain = program.normalise(node_of(source), numeric=target.numeric)
        known = scoring.Known.of(target, plain, {})
        plain, known = scoring.broadcast(plain, known)
        roles = next(units.assign_roles(plain, known))
        return network.lower(plain, network.schedule(plain, roles), roles, Labels()).network.layers


def compile_for(
    target: Target,
    root: Node,
    name: str,
    *,
    reference: Node | None = None,
    softmax_scores: Mapping[Node, Scores] | None = None,
    names: Mapping[Node, str] | None = None,
    share_positions: bool = True,
) -> CompiledTransformer:
    """Call the stages.

    ``softmax_scores`` has the scores of selectors that stand for softmax heads, which RASP has no word
    for; ``reference`` is then the program that says what the network computes. ``names`` may contain
    nodes that are not in the program.
    """
    return make(
        target, root, name, reference=reference, softmax_scores=softmax_scores, names=names,
        share_positions=share_positions,
    ).model  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A network, and the stages' own account of it."""

    model: CompiledTransformer
    lowered: Lowered
    slots: Slots


def make(
    target: Target,
    root: Node,
    name: str,
    *,
    reference: Node | None = None,
    softmax_scores: Mapping[Node, Scores] | None = None,
    names: Mapping[Node, str] | None = None,
    share_positions: bool = True,
    origins: Origins | None = None,
) -> Made:
    """Call the stages; an error recommends other options, if the program compiles with these.

    ``origins`` is told which nodes the stages made for which.
    """

    def compiled(target: Target, root: Node = root) -> Made:
        return _compiled(target, root, name, reference, softmax_scores, names, share_positions, origins)

    with compile_within(target.limit):
        try:
            return compiled(target)
        except CompileError as error:
            hopeless = isinstance(error, LimitExceededError) and error.resource != "units"
            if target.feed_forward == "exact" or hopeless:
                raise
            refused = error
        if not softmax_scores and not isinstance(refused, LimitExceededError):
            refused = explain_means(target, root, names, compiled) or refused
        try:
            compiled(replace(target, feed_forward="exact"))
        except CompileError:
            raise refused from None
        advice = find_alternative(target, compiled, refused) or REFERENCE
    if isinstance(refused, LimitExceededError):
        raise LimitExceededError(refused.found, refused.where, refused.resource, advice) from None
    raise CompileError(refused.problem, refused.where, advice) from None


@np.errstate(all="ignore")  # what leaves the range of floats is refused where it would be written down
def _compiled(
    target: Target,
    root: Node,
    name: str,
    reference: Node | None,
    softmax_scores: Mapping[Node, Scores] | None,
    names: Mapping[Node, str] | None,
    share_positions: bool,
    origins: Origins | None,
) -> Made:
    """Call the stages, one after another."""
    hidden = target.feed_forward != "exact"
    plain_of = partial(program.normalise, numeric=target.numeric, real_sums=target.numeric and hidden)
    given_scores = {s: scores.map(plain_of) for s, scores in (softmax_scores or {}).items()}

    plain = written_out = plain_of(root, origins=origins)
    weights.require_short(target, plain)
    known = scoring.Known.of(target, plain, given_scores)
    if target.causal:
        program.require_causal(plain, known.selectors)
    plain, known = scoring.broadcast(plain, known, origins)
    outputs = weights.categories(plain, known)
    weights.require_held(reference or root, plain, known)
    made = partial(_shallowest, plain, known, names, outputs, share_positions)
    lowered, slots, fitted = choose(target, made)
    weights.require_small(lowered, slots, fitted.hidden if fitted and fitted.hidden else None)
    assembled = weights.assemble(lowered, slots, fitted, outputs)
    gaps = list(program.undefined(root, written_out, known.selectors, set(lowered.schedule.order)))
    for node in gaps:
        if known.selectors.values.finite(node) == ():  # then every input would be refused
            raise CompileError("it has no value for any input", lowered.label(node))

    source = dumps(reference or root)

    config = Config(
        vocabulary=target.vocabulary,
        lengths=(target.shortest, target.longest),
        sink=lowered.network.sink,
        causal=target.causal,
        outputs=None if outputs is None else tuple(outputs.values()),
        attention=target.attention,
        feed_forward=target.feed_forward,
        dtype=target.dtype,
        slots=assembled.slots,
        heads=lowered.network.head_labels(),
        undefined=lowered.undefined,
        partial=tuple(map(lowered.label, gaps)),
        checks=_checks(gaps, source) if not softmax_scores else (source,) if gaps else (),
        inputs=target.inputs or (),
        program=source,
        program_hash=stable_hash(reference or root),
        name=name,
        ranges=target.served,
        report={"options": target.options()}
        | report(lowered, fitted)
        | {"circuit": assembled.circuit.data()},
    )
    return Made(CompiledTransformer(config, assembled.weights), lowered, slots)


def _checks(gaps: Sequence[Node], source: str) -> tuple[str, ...]:
    """Return programs that have a value if and only if the gaps have one: the program, if shorter."""
    if any(node.free for node in gaps):
        return (source,)
    below = set(postorder(*(i for node in gaps for i in node.inputs)))
    checks = tuple(dumps(node) for node in gaps if node not in below)
    return checks if sum(map(len, checks)) < len(source) else (source,)


def _shallowest(
    plain: Node,
    known: scoring.Known,
    names: Mapping[Node, str] | None,
    outputs: Mapping[float, Atom] | None,
    share_positions: bool,
    prefer: str,
) -> Candidate | None:
    """Return the network of the fewest layers that is not too noisy, and how exact it is.

    None if the preference for small forms changes nothing.
    """
    target = replace(known.target, prefer=prefer)
    refused: CompileError | None = None
    best: Candidate | None = None
    label = Labels(names)
    for roles in units.assign_roles(plain, replace(known, target=target)):
        times = network.schedule(plain, roles)
        if prefer == "small" and not any(map(roles.departs, times.order)):
            return None
        label.add(roles.names())
        lowered = network.lower(plain, times, roles, label, share_positions=share_positions)
        slots = network.lay_out(lowered.network, target.dtype, reuse=target.reuse_slots)
        try:
            weights.require_small(lowered, slots)
            fitted = bounds.fit(lowered, slots, outputs)
        except CompileError as error:
            refused = error
            continue
        if best is None or (fitted and best.fitted and fitted.error < best.fitted.error):
            best = Candidate(lowered, slots, fitted)
        if fitted is None or fitted.error <= (target.tolerance or _QUIET):
            break
    if best is None:
        assert refused is not None
        raise refused
    return best


def values_of(source: Node | HasNode, *, vocabulary: Iterable[Atom], length: int) -> tuple[Atom, ...]:
    """List all that an s-op may be (and perhaps more) on inputs of up to ``length`` tokens.

    >>> from locum import indices, length, tokens
    >>> values_of(tokens * 2, vocabulary=[1, 2, 3], length=8)
    (2, 4, 6)
    >>> values_of(length - indices, vocabulary="ab", length=3)
    (1, 2, 3)
    """
    target = Target(length=length, vocabulary=tuple(vocabulary))
    root = program.normalise(node_of(source), numeric=False)
    values = Selectors(target).values.finite(root)
    if values is None:
        raise CompileError(
            "expected an s-op that takes finitely many values that can be listed, got real numbers, or "
            "too many; try a smaller vocabulary or length",
            abbreviate(root),
        )
    return values
