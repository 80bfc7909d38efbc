"""Compile a program to a transformer. :func:`compile_for` calls the stages in order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from locum.errors import CompileError
from locum.graph import Atom, Node, abbreviate, dumps, postorder, stable_hash
from locum.graph.labels import Labels
from locum.graph.node import HasNode, node_of
from locum.networks.compiler import bounds, network, program, scoring, units, weights
from locum.networks.compiler.bounds.fitting import Fitted
from locum.networks.compiler.bounds.head_bounds import Temperature
from locum.networks.compiler.compile_advice import explain_means, find_alternative, find_length
from locum.networks.compiler.compile_limits import (
    LimitExceededError,
    check_time,
    compile_within,
    owners,
)
from locum.networks.compiler.network.network import (
    LOSING_SINK,
    NO_SINK,
    TIED_SINK,
    Network,
    Unit,
)
from locum.networks.compiler.network.network_lowering import Lowered
from locum.networks.compiler.network.roles import Role, Roles
from locum.networks.compiler.program.normalise import Origins
from locum.networks.compiler.scoring.scored_selectors import Selectors
from locum.networks.compiler.scoring.scores import Scores
from locum.networks.compiler.smaller_form import Candidate, choose
from locum.networks.compiler.target import DEFAULT_TOLERANCE, REFERENCE, Target
from locum.networks.compiler.tracing import Trace, Tracing
from locum.networks.transformer import CompiledTransformer, Config

_SINKS = {NO_SINK: "none", LOSING_SINK: "where nothing is selected", TIED_SINK: "counted"}


def report(lowered: Lowered, fitted: Fitted | None) -> dict[str, Any]:
    """Return the report of a compiled network as a JSON-compatible dictionary.

    The report describes the scores of heads, hidden units, softmax temperatures, the error bound, and
    values that depend on rounding. ``fitted`` is None if ``bounds.fit`` returned no bounds.
    """
    account: dict[str, Any] = {"attention": _attention(lowered.network), "error_bound": None}
    if fitted is not None:
        account |= _fit(fitted, lowered)
    if lowered.roles.rounded:
        account["depends on rounding"] = [lowered.label(node) for node in lowered.roles.rounded]
    return account


def _attention(network: Network) -> list[dict[str, Any]]:
    """Report the selector, the scores, the sink and the number of values of each head."""
    return [
        {
            **_place((head.time - 1) // 2, "attn"),
            "selector": head.label,
            "scored by": ", ".join(dict.fromkeys(head.how)) or "uniform",
            "gap": head.gap,
            "sink": _SINKS[head.sink],
            "values": len(head.values),
        }
        for head in network.heads
    ]


def _fit(fitted: Fitted, lowered: Lowered) -> dict[str, Any]:
    """Report the error bound, the hidden units and the softmax temperatures of a network."""
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
    """Return the index of a layer and TransformerLens's name of one of its sublayers."""
    return {"layer": layer, "block": f"blocks.{layer}.{half}"}


def _plain(temperature: Temperature) -> dict[str, float | None]:
    """Return the fields of a softmax temperature as numbers that JSON can represent.

    Infinities and NaN become None.
    """
    return {name: value if math.isfinite(value) else None for name, value in vars(temperature).items()}


def _counted(units: list[Unit], fitted: Fitted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for unit in units:
        name = type(unit.gate).__name__.lower()
        counts[name] = counts.get(name, 0) + fitted.hidden[unit].size
    return counts


#: Maximum error for which the compiler does not try further networks, with ``prefer="exact"`` and
#: without a tolerance.
_QUIET = 1e-6


def compile(  # noqa: A001  (the name users know it by: locum.compile)
    source: Node | HasNode,
    *,
    name: str | None = None,
    names: Mapping[Any, str] | None = None,
    **options: Any,
) -> CompiledTransformer:
    """Compile a program to the weights of a transformer: heads and feed-forwards.

    ``options`` are the fields of :class:`Target`: ``length`` (number of tokens of the longest input),
    ``vocabulary`` (the tokens) or ``numeric=True`` (real numbers), and optional fields. Hidden units
    are ReLU by default. ``feed_forward`` may be "gelu", "glu" or "exact" (symbolic feed-forwards,
    executed as code). ``name`` is the name of the network. ``names`` maps s-ops and selectors of the
    program to names, which label slots, heads and nodes of the circuit. ``s_op.named("name")`` has the
    same effect, unless ``names`` contains another name for the s-op.

    >>> from locum import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> model = compile(reverse, length=8, vocabulary="abcd")
    >>> model("abcd"), model("ba")
    (['d', 'c', 'b', 'a'], ['a', 'b'])
    """
    root = node_of(source)
    target, read = Target.read(**options), program.read_names(names, root)
    return compile_for(target, root, name or read.get(root) or abbreviate(root), names=read)


def compile_traced(
    source: Node | HasNode,
    *,
    name: str | None = None,
    names: Mapping[Node, str] | None = None,
    **options: Any,
) -> tuple[CompiledTransformer, Trace]:
    """Compile a program as :func:`compile` does, and return the network and its trace.

    The trace lists the nodes of the program that each slot and each head implements. Here, ``names``
    maps nodes to names, and names given by ``.named()`` are not used.
    """
    root = node_of(source)
    made = make(Target.read(**options), root, name or abbreviate(root), names=names)
    return made.model, made.trace


@np.errstate(all="ignore")
def count_layers(source: Node | HasNode, **options: Any) -> int:
    """Return the number of layers of the shallowest network of one kind, without creating weights.

    With ``prefer="small"``, this is a network with smaller forms (``smaller_form.py``) if there are
    any, otherwise a network with tables. The compiled network may have more layers if the error or the
    size of this network is too large. The number may also differ if the compiler chooses the other
    kind.

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
        roles, times = next(_attempts(plain, known))
        return network.lower(plain, times, roles, Labels()).network.layers


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
    """Compile a program by calling all stages, and return the transformer.

    ``softmax_scores`` contains the scores of selectors that represent softmax heads, which RASP cannot
    express. In this case, ``reference`` is the program that defines the meaning of the network.
    ``names`` may contain nodes that are not in the program. ``share_positions`` is an argument of
    ``network.lower``.
    """
    return make(
        target, root, name, reference=reference, softmax_scores=softmax_scores, names=names,
        share_positions=share_positions,
    ).model  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A compiled transformer, with the trace of its slots and heads."""

    model: CompiledTransformer
    trace: Trace


def make(
    target: Target,
    root: Node,
    name: str,
    *,
    reference: Node | None = None,
    softmax_scores: Mapping[Node, Scores] | None = None,
    names: Mapping[Node, str] | None = None,
    share_positions: bool = True,
) -> Made:
    """Call all stages of the compiler, and return the transformer and its trace.

    If the compilation fails, search for other options or another form of the program with which it
    succeeds. The raised error recommends them if some are found in time. With symbolic feed-forwards,
    only a smaller length is searched, and only if the time limit was exceeded.
    """

    def compiled(target: Target, root: Node = root, origins: Origins | None = None) -> Made:
        given = origins or Origins(root)
        return _compiled(target, root, name, reference, softmax_scores, names, share_positions, given)

    with compile_within(target.limit):
        origins = Origins(root)
        try:
            return compiled(target, root, origins)
        except CompileError as error:
            if isinstance(error, LimitExceededError) and error.resource == "seconds":
                raise error.at(error.where, find_length(target, compiled)) from None
            refused = error.at(origins.text_of(error.where, owners()))
            if target.feed_forward == "exact":
                raise refused from None
        if not softmax_scores and not isinstance(refused, LimitExceededError):
            refused = explain_means(target, root, names, compiled) or refused
        advice = find_alternative(target, compiled, refused)
        if advice is None:
            try:
                check_time()
                compiled(replace(target, feed_forward="exact"))
            except CompileError:
                raise refused from None
            advice = REFERENCE
    raise refused.at(refused.where, advice) from None


@np.errstate(all="ignore")  # values beyond the range of floats are rejected when they are stored
def _compiled(
    target: Target,
    root: Node,
    name: str,
    reference: Node | None,
    softmax_scores: Mapping[Node, Scores] | None,
    names: Mapping[Node, str] | None,
    share_positions: bool,
    origins: Origins,
) -> Made:
    """Call all stages for one target; ``origins`` records the nodes that each stage replaces."""
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
    made = partial(_shallowest, plain, known, origins.rename(names or {}), outputs, share_positions)
    lowered, slots, fitted = choose(target, made)
    weights.require_small(lowered, slots, fitted.hidden if fitted and fitted.hidden else None)
    tracing = Tracing(lowered, origins)
    assembled = weights.assemble(lowered, slots, fitted, outputs, tracing.made_for(root))
    gaps = list(program.undefined(root, written_out, known.selectors, lowered.computed()))
    for node in gaps:
        if known.selectors.values.finite(node) == ():  # then every input would be rejected
            raise CompileError("the s-op is undefined for every input", lowered.label(node))

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
    return Made(CompiledTransformer(config, assembled.weights), tracing.trace(slots))


def _checks(gaps: Sequence[Node], source: str) -> tuple[str, ...]:
    """Return saved programs that have a value on an input if and only if all ``gaps`` have one.

    Return only ``source``, the saved program itself, if it is not longer than these programs or if a
    gap has free families.
    """
    if any(node.free for node in gaps):
        return (source,)
    below = set(postorder(*(i for node in gaps for i in node.inputs)))
    checks = tuple(dumps(node) for node in gaps if node not in below)
    return checks if sum(map(len, checks)) < len(source) else (source,)


def _attempts(plain: Node, known: scoring.Known) -> Iterator[tuple[Roles, network.Schedule]]:
    """Yield assignments of roles to s-ops with their schedules, in order of increasing depth."""
    ways = (
        ((roles, network.schedule(plain, roles)) for roles in way)
        for way in units.assign_roles(plain, known)
    )
    return heapq.merge(*ways, key=lambda attempt: attempt[1].layers)


def _shallowest(
    plain: Node,
    known: scoring.Known,
    names: Mapping[Node, str],
    outputs: Mapping[float, Atom] | None,
    share_positions: bool,
    prefer: str,
) -> Candidate | None:
    """Return the network with the fewest layers whose error is small enough.

    If no error is small enough, return the network with the smallest error. Raise CompileError if every
    network is too large or is rejected by ``bounds.fit``. Return None if ``prefer`` is "small" and some
    network that would be tried has no smaller forms.
    """
    target = replace(known.target, prefer=prefer)
    exact = known.target.prefer == "exact"
    # With ``outputs``, the output is decoded to the nearest possible value, so every error that ``fit``
    # accepts is harmless.
    harmless = _QUIET if exact else DEFAULT_TOLERANCE if outputs is None else math.inf
    quiet = target.tolerance or harmless
    refused: CompileError | None = None
    best: Candidate | None = None
    label = Labels(names)
    for roles, times in _attempts(plain, replace(known, target=target)):
        if prefer == "small" and not any(map(roles.departs, times.order)):
            return None
        label.add(_pass_names_on(names, roles, set(times.order)))
        label.add(roles.names(label))
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
        if fitted is None or fitted.error <= quiet:
            break
    if best is None:
        assert refused is not None
        raise refused
    return best


def _pass_names_on(names: Mapping[Node, str], roles: Roles, order: Container[Node]) -> dict[Node, str]:
    """Return names for s-ops of the network that equal a named s-op and replace it."""
    passed: dict[Node, str] = {}
    for named, name in names.items():
        node = named
        while node in order and roles.of(node) is Role.LINEAR:
            (part, factor), *more = roles.parts(node)
            if more or factor != 1 or part in names or part in passed:
                break
            passed[part], node = name, part
    return passed


def values_of(source: Node | HasNode, *, vocabulary: Iterable[Atom], length: int) -> tuple[Atom, ...]:
    """Return all possible values of an s-op, or a superset, on inputs of at most ``length`` tokens.

    Raise CompileError if the values cannot be listed.

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
            "expected an s-op whose possible values can be listed, got real numbers or too many "
            "values; "
            "try a smaller vocabulary or length",
            abbreviate(root),
        )
    return values
