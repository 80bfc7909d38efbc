"""Entries of Tracr's test suite, and what a causal mask makes of a program."""

from __future__ import annotations

from collections.abc import Callable

from locum import SOp, indices, tokens
from locum.graph import Node, build, postorder
from locum.graph.traversal import with_inputs
from locum.rasp.handles import wrap
from locum.rasp.tracr_library import (
    BRACKETS,
    PROGRAMS,
    count,
    count_less_freq,
    counted_length,
    detect_pattern,
    frac_prevs,
    pair_balance,
    reverse,
    shift_by,
    shuffle_dyck,
    sort,
    sort_unique,
    up_to_here,
)


def causal(program: SOp) -> SOp:
    """Return what a causal mask makes of a program: no selector looks ahead."""
    new: dict[Node, Node] = {}
    for node in postorder(program.node):
        inputs = [new[i] for i in node.inputs]
        if node.op in ("aggregate", "selector_width"):
            inputs[0] = build("selector_and", inputs[0], up_to_here.node)
        new[node] = with_inputs(node, tuple(inputs))
    masked = wrap(new[program.node])
    assert isinstance(masked, SOp)
    return masked


#: Entries of Tracr's test suite that have a name of their own there.
VARIANTS: dict[str, Callable[[int], SOp]] = {
    "frac_prevs_1": lambda n: frac_prevs(tokens == "l"),
    "frac_prevs_2": lambda n: frac_prevs(tokens == "("),
    "frac_prevs_3": lambda n: frac_prevs(tokens == ")"),
    "shift_by_one": lambda n: shift_by(1),
    "shift_by_two": lambda n: shift_by(2),
    "detect_pattern_a": lambda n: detect_pattern("a"),
    "detect_pattern_ab_2": lambda n: detect_pattern("ab"),
    "detect_pattern_ab_3": lambda n: detect_pattern("ab"),
    "sort_unique_1": lambda n: sort_unique(tokens, tokens),
    "sort_unique_2": lambda n: sort_unique(tokens, 1 - indices),
    "sort_1": lambda n: sort(tokens, tokens, n),
    "sort_2": lambda n: sort(tokens, 1 - indices, n),
    "sort_3": lambda n: sort(tokens, tokens, n),
    "pair_balance_1": lambda n: pair_balance("(", ")"),
    "make_nary_sequencemap_1": lambda n: tokens + tokens - indices,
    "make_nary_sequencemap_2": lambda n: indices * indices / tokens,
    "selector_width": lambda n: counted_length,
}
VARIANTS |= {
    f"length_{kind}_{i}": lambda n: counted_length
    for kind in ("categorical", "numerical")
    for i in (1, 2, 3)
}
VARIANTS |= {
    f"make_count_less_freq_{kind}_{i}": lambda n: count_less_freq(2)
    for kind in ("categorical", "numerical")
    for i in (1, 2)
}
VARIANTS |= {f"make_count_{i}": lambda n: count("a") for i in (1, 2, 3)}
VARIANTS |= {f"reverse_{i}": lambda n: reverse for i in (1, 2, 3, 4)}
VARIANTS |= {f"shuffle_dyck2_{i}": lambda n: shuffle_dyck(BRACKETS[:2]) for i in (1, 2, 3)}
VARIANTS |= {f"shuffle_dyck3_{i}": lambda n: shuffle_dyck(BRACKETS) for i in (1, 2, 3)}


def program(name: str, max_length: int) -> SOp:
    """Return a program of the benchmark or of the test suite, by its name there."""
    return (VARIANTS.get(name) or PROGRAMS[name].make)(max_length)
