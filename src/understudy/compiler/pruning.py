"""What nobody reads is not computed: signals whose coefficients cancel, and all that only they need."""

from __future__ import annotations

from dataclasses import replace

from understudy.compiler.network import NO_SINK, Form, Head, Network, Signal, Unit


def pruned(network: Network) -> Network:
    """The network without heads and units whose results are not read."""
    read: set[Signal] = set(network.output.terms)

    def reads(forms: tuple[Form, ...]) -> None:
        for form in forms:
            read.update(form.terms)

    heads: list[Head] = []
    units: list[Unit] = []
    steps: list[tuple[int, Head | Unit]] = [(h.time, h) for h in network.heads]
    steps += [(u.time, u) for u in network.units]
    for _, step in sorted(steps, key=lambda pair: -pair[0]):
        if isinstance(step, Unit):
            if step.into in read:
                units.append(step)
                reads(step.forms)
            continue
        step.values = [value for value in step.values if value.into in read]
        if step.values:
            heads.append(step)
            offset = (step.offset,) if step.sink != NO_SINK else ()
            reads((*step.queries, *step.keys, *offset, *(value.form for value in step.values)))
    kept = set(map(id, heads)) | set(map(id, units))
    return replace(
        network,
        heads=[head for head in network.heads if id(head) in kept],
        units=[unit for unit in network.units if id(unit) in kept],
    )
