"""Record the sizes of Tracr's networks: ``python benchmarks/tracr_reference.py --tracr FOLDER …``.

Tracr's own compiler stages build each network with Tracr's defaults. The sizes are the numbers of
layers, heads and hidden units, and the width of the residual stream. The network is run as Tracr
defines it (``SeriesWithResiduals.apply``), and its outputs are compared with Tracr's evaluation of the
program. JAX is not required, because Tracr uses JAX only after the weights have been computed.

Programs of InterpBench are written for Tracr. The translation of other programs uses few operations.
Elementwise operations on one s-op become one ``Map``, elementwise operations on two s-ops become one
``SequenceMap``, and a selector becomes one predicate. Several s-ops on one side of a
selector are combined into one s-op of tuples. Means are numerical where Tracr allows it, and ``best``
has no translation.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row
from benchmarks.limited_process import run_limited
from benchmarks.size_programs import Case, everyday, interpbench, make_importable, weiss
from locum.execution.domains.floats import FloatDomain
from locum.graph import COMPARISONS, Node, Sort, postorder, sort_of
from locum.graph.node import node_of

LENGTHS = (5, 10, 20, 50)
SECONDS = 20
FILE = Path(__file__).parent / "tracr_sizes.json"
#: Number of inputs on which a network is compared with its program.
_INPUTS = 8
#: Maximum error of a right numerical output of Tracr's network.
_CLOSE = 0.05
_BOS, _PAD = "compiler_bos", "compiler_pad"
_DOMAIN = FloatDomain()


class TranslationError(Exception):
    """Raised for a program that has no translation to Tracr."""


class Translation:
    """A translator of one program to objects of Tracr."""

    def __init__(self, vocabulary: Sequence[Any], length: int) -> None:
        from tracr.rasp import rasp  # type: ignore[import-not-found]

        self.rasp: Any = rasp
        self.vocabulary = vocabulary
        self.length = length
        self.made: dict[Any, Any] = {}

    def program(self, node: Node) -> Any:
        """Translate a program to Tracr; a mean remains a numerical s-op."""
        return self.base(node, numerical=True) if self.bases(node) == [node] else self.sop(node)

    # S-ops: elementwise operations on bases ------------------------------------------------------

    def sop(self, node: Node) -> Any:
        """Translate an s-op to an s-op of Tracr with categorical values."""
        if node not in self.made:
            self.made[node] = self._sop(node)
        return self.made[node]

    def _sop(self, node: Node) -> Any:
        rasp, bases = self.rasp, self.bases(node)
        if not bases:
            value = self.value(node, {})
            return rasp.Map(lambda _: value, rasp.tokens)
        texts = all(isinstance(token, str) for token in self.vocabulary)
        if bases == [node] or (node.op == "tokens" and node.cast in ("asis", "str" if texts else "")):
            return self.base(bases[0])
        if bases == ["indices"] and node.op == "indices":
            return self.base("indices")
        first, *others = bases
        if not others:
            return rasp.Map(lambda v: self.value(node, {first: v}), self.base(first, numerical=True))
        *middle, last = others
        together = self.base(first)
        for base in middle:
            together = rasp.SequenceMap(_pair, together, self.base(base))

        def combined(values: Any, value: Any) -> Any:
            if values is None or value is None:
                return None
            listed = values if middle else (values,)
            return self.value(node, dict(zip(bases, (*listed, value), strict=True)))

        return rasp.SequenceMap(combined, together, self.base(last))

    def bases(self, node: Node) -> list[Any]:
        """Return the s-ops from which the elementwise operations of a node are computed."""
        found: dict[Any, None] = {}
        stack = [node]
        while stack:
            part = stack.pop()
            if part.op in ("tokens", "indices"):
                found[part.op] = None
            elif _is_elementwise(part):
                stack += part.inputs
            elif part.op != "constant":
                found[part] = None
        return list(found)

    def value(self, node: Node, here: dict[Any, Any]) -> Any:
        """Compute the value of a node at one position, from the values of its bases there."""
        if node in here:
            return here[node]
        values: dict[Node, Any] = {part: v for part, v in here.items() if isinstance(part, Node)}
        for part in postorder(node, into=lambda part: part not in here):
            if part.op == "tokens":
                values[part] = _DOMAIN.token(here["tokens"], part.cast)
            elif part.op == "indices":
                values[part] = here["indices"]
            elif part.op == "constant":
                values[part] = part.value
            else:
                inputs = [values[i] for i in part.inputs]
                values[part] = _DOMAIN.meanings[part.op](*inputs, **part.attributes)
        return values[node]

    def base(self, base: Any, numerical: bool = False) -> Any:
        """Translate an s-op that is not elementwise; with ``numerical``, a mean remains numerical."""
        rasp = self.rasp
        if base == "tokens":
            return rasp.tokens
        if base == "indices":
            return rasp.indices
        if ("base", base) not in self.made:
            self.made["base", base] = self._base(base)
        made = self.made["base", base]
        if numerical or rasp.is_categorical(made):
            return made
        if ("categorical", base) not in self.made:
            self.made["categorical", base] = rasp.categorical(rasp.Map(lambda v: v, made))
        return self.made["categorical", base]

    def _base(self, node: Node) -> Any:
        rasp = self.rasp
        if node.op == "length":
            return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE))
        if node.op == "selector_width":
            return rasp.SelectorWidth(self.selector(node.inputs[0]))
        if node.op != "aggregate":
            raise TranslationError(f"{node.op} has no counterpart")
        selector, values = self.selector(node.inputs[0]), node.inputs[1]
        bits = self.possible(values)
        if bits is not None and all(not isinstance(v, str) and v in (0, 1) for v in bits):
            bases = self.bases(values)
            inner = self.base(bases[0]) if len(bases) == 1 else self.sop(values)
            if len(bases) == 1:
                numbers = rasp.Map(lambda v: int(self.value(values, {bases[0]: v})), inner)
            else:
                numbers = rasp.Map(int, inner)
            return rasp.numerical(rasp.Aggregate(selector, rasp.numerical(numbers), default=0))
        return rasp.Aggregate(selector, self.sop(values), default=None)

    def possible(self, node: Node) -> set[Any] | None:
        """Return the possible values of an s-op, or None if they are unknown or too many.

        For ``aggregate``, these are the values of single keys and the default.
        """
        bases = self.bases(node)
        sets: list[Iterable[Any]] = []
        for base in bases:
            if base == "tokens":
                sets.append(self.vocabulary)
            elif base == "indices":
                sets.append(range(self.length))
            elif base.op in ("selector_width", "length"):
                sets.append(range(self.length + 1))
            else:
                known = self.possible(base.inputs[1]) if base.op == "aggregate" else None
                if known is None:
                    return None
                sets.append(known | {base.default})
        if len(bases) == 1 and bases[0] is node:
            return set(sets[0])
        if reduce(lambda size, one: size * len(list(one)), sets, 1) > 20_000:
            return None
        values = set()
        for combination in product(*sets):
            try:
                values.add(self.value(node, dict(zip(bases, combination, strict=True))))
            except (ArithmeticError, TypeError, ValueError):
                continue
        return values

    # Selectors ------------------------------------------------------------------------------------

    def selector(self, node: Node) -> Any:
        """Translate a selector, which may be composed of several selectors, to one ``Select``."""
        parts = list(postorder(node, into=lambda part: sort_of(part) is Sort.SELECTOR))
        selects = [part for part in parts if part.op == "select"]
        if any(part.op == "best" for part in parts):
            raise TranslationError("best has no counterpart")
        keys, key_values = self._side([part.inputs[0] for part in selects])
        queries, query_values = self._side([part.inputs[1] for part in selects])

        key_values, query_values = cache(key_values), cache(query_values)

        def predicate(key: Any, query: Any) -> bool:
            if key is None or query is None:
                return False
            k, q = key_values(key), query_values(query)
            holds: dict[Node, bool] = {}
            for part in parts:
                match part.op:
                    case "select":
                        try:
                            sides = k[part.inputs[0]], q[part.inputs[1]]
                            holds[part] = bool(COMPARISONS[part.predicate].holds(*sides))
                        except (TypeError, ArithmeticError, ValueError):
                            holds[part] = False
                    case "selector_and":
                        holds[part] = holds[part.inputs[0]] and holds[part.inputs[1]]
                    case "selector_or":
                        holds[part] = holds[part.inputs[0]] or holds[part.inputs[1]]
                    case "selector_not":
                        holds[part] = not holds[part.inputs[0]]
            return holds[node]

        return self.rasp.Select(keys, queries, predicate)

    def _side(self, nodes: list[Node]) -> tuple[Any, Callable[[Any], dict[Node, Any]]]:
        """Translate the keys or the queries of a selector to one s-op.

        Also return a function that maps each value of this s-op to the values of ``nodes``.
        """
        bases: dict[Any, None] = {}
        for node in nodes:
            bases.update(dict.fromkeys(self.bases(node)))
        listed = list(bases)
        if len(listed) < 2:
            base = listed[0] if listed else "tokens"
            return self.base(base), lambda v: {node: self.value(node, {base: v}) for node in nodes}
        distinct = [node for node in dict.fromkeys(nodes) if self.bases(node)]
        fixed = {node: self.value(node, {}) for node in nodes if not self.bases(node)}
        together = self.sop(distinct[0])
        if len(distinct) == 1:
            return together, lambda v: fixed | {distinct[0]: v}
        for node in distinct[1:]:
            together = self.rasp.SequenceMap(_pair, together, self.sop(node))
        return together, lambda v: fixed | dict(zip(distinct, v, strict=True))


def _pair(a: Any, b: Any) -> tuple[Any, ...] | None:
    if a is None or b is None:
        return None
    return (*(a if isinstance(a, tuple) else (a,)), b)


def _is_elementwise(node: Node) -> bool:
    return node.op in _DOMAIN.meanings


# Tracr's network ----------------------------------------------------------------------------------


class Network:
    """The network that Tracr compiles from one program."""

    def __init__(self, program: Any, vocabulary: Sequence[Any], length: int) -> None:
        from tracr.compiler import (  # type: ignore[import-not-found]
            basis_inference,
            craft_graph_to_model,
            expr_to_craft_graph,
            nodes,
            rasp_to_graph,
            validating,
        )
        from tracr.craft import bases, transformers  # type: ignore[import-not-found]
        from tracr.rasp import rasp

        unsupported = validating.static_validate(program)
        if unsupported:
            raise NotImplementedError(unsupported[0].reason)
        graph = rasp_to_graph.extract_rasp_graph(program)
        basis_inference.infer_bases(graph.graph, graph.sink, set(vocabulary), length)
        bos = bases.BasisDirection(rasp.tokens.label, _BOS)
        expr_to_craft_graph.add_craft_components_to_rasp_graph(
            graph.graph, bos_dir=bos, mlp_exactness=100
        )
        self.model = craft_graph_to_model.craft_graph_to_model(graph.graph, graph.sources)
        self.categorical = rasp.is_categorical(program)
        spaces = bases.VectorSpaceWithBasis
        self.words = spaces.from_values(rasp.tokens.label, {*vocabulary, _BOS, _PAD})
        self.places = spaces.from_values(rasp.indices.label, range(length))
        self.outputs = spaces(graph.sink[nodes.OUTPUT_BASIS])
        self.space = bases.join_vector_spaces(
            self.model.residual_space, self.words, self.places, self.outputs
        )
        self.bases, self.transformers, self.rasp = bases, transformers, rasp

    def sizes(self) -> Row:
        """Return the layers, heads, d_model and hidden units of the network."""
        half, heads, units, total = -1, 0, 0, 0
        for block in self.model.blocks:
            is_mlp = isinstance(block, self.transformers.MLP)
            half += 1
            half += half % 2 != is_mlp
            if is_mlp:
                units = max(units, block.fst.output_space.num_dims)
                total += block.fst.output_space.num_dims
            else:
                heads = max(heads, block.as_multi().num_heads)
        sizes = {"layers": half // 2 + 1, "heads": heads, "d_model": self.space.num_dims}
        return sizes | {"d_mlp": units, "units": total}

    def answer(self, tokens: Sequence[Any]) -> list[Any]:
        """Run the network on tokens, and return the decoded output at each token."""
        directions = self.space.basis
        place = {direction: n for n, direction in enumerate(directions)}
        stream = np.zeros((len(tokens) + 1, len(directions)), np.float32)
        one = place.get(self.bases.BasisDirection("one"))
        for row, token in enumerate((_BOS, *tokens)):
            stream[row, place[self.bases.BasisDirection(self.rasp.tokens.label, token)]] = 1
            if row:
                index = self.bases.BasisDirection(self.rasp.indices.label, row - 1)
                stream[row, place[index]] = 1
        if one is not None:
            stream[:, one] = 1
        after = self.model.apply(self.bases.VectorInBasis(directions, stream))
        values = after.project(self.outputs).magnitudes[1:]
        if not self.categorical:
            return [float(row[0]) for row in values]
        decoded = self.outputs.basis
        return [decoded[int(row.argmax())].value for row in values]


def draw_inputs(case: Case, length: int, count: int) -> list[list[Any]]:
    """Return the shortest, the longest and random inputs of a case; the random seed is fixed."""
    chance = random.Random(f"{case.suite} {case.name} {length}")
    sizes = [1, length, length, *(chance.randrange(1, length + 1) for _ in range(count - 3))]
    return [chance.choices(case.vocabulary, k=size) for size in sizes]


def _is_right(actual: Any, expected: Any) -> bool:
    if expected is None:  # The output of Tracr's network is not defined at this position.
        return True
    if isinstance(expected, (bool, int, float)) and isinstance(actual, (bool, int, float)):
        return abs(actual - expected) <= _CLOSE
    return bool(actual == expected)


def measure(case: Case, length: int) -> Row:
    """Return the sizes of Tracr's network, and the number of inputs with correct outputs."""
    if case.tracr is not None:
        program = case.tracr()
    else:
        program = Translation(case.vocabulary, length).program(node_of(case.make(length)))
    network = Network(program, case.vocabulary, length)
    right = compared = 0
    for tokens in draw_inputs(case, length, _INPUTS):
        try:
            expected = program(tokens)
        except (ArithmeticError, TypeError, ValueError):
            continue  # The program is also undefined in Tracr's evaluation.
        compared += 1
        right += all(map(_is_right, network.answer(tokens), expected))
    return network.sizes() | {"inputs": compared, "right": right}


def main() -> None:
    """Record the sizes of all cases that the file does not contain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracr", type=Path, required=True, help="checkout of google-deepmind/tracr")
    parser.add_argument("--interpbench", type=Path, help="checkout of FlyingPumba/InterpBench")
    parser.add_argument("--weiss", type=Path, help="checkout of tech-srl/RASP")
    parser.add_argument("--sizes", default=",".join(map(str, LENGTHS)), help="lengths, with commas")
    parser.add_argument("--again", action="store_true", help="Record stored cases again.")
    parser.add_argument("--output", type=Path, default=FILE, help="JSON file to update")
    arguments = parser.parse_args()
    make_importable(arguments.tracr)
    cases = list(everyday())
    if arguments.weiss:
        cases += weiss(arguments.weiss)
    if arguments.interpbench:
        cases += interpbench(arguments.interpbench, arguments.tracr)
    stored: dict[str, Row] = (
        json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    )
    lengths = sorted(map(int, arguments.sizes.split(",")))
    for length in lengths:
        for case in cases:
            key = f"{case.suite} {case.name} {length}"
            if key in stored and not arguments.again:
                continue
            stored[key] = _shorter_stop(stored, case, length) or run_limited(
                lambda case=case, length=length: measure(case, length),  # type: ignore[misc]
                SECONDS,
            )
            for name in ("cpu_seconds", "peak_mb"):  # These values depend on the machine.
                stored[key].pop(name, None)
            lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in stored.items())
            arguments.output.write_text("{\n" + lines + "\n}\n")


def _shorter_stop(stored: dict[str, Row], case: Case, length: int) -> Row | None:
    """Return the row of a shorter length at which the case exceeded its limits, or None.

    The case is then assumed to exceed the limits at this length, so it is not run.
    """
    for shorter in LENGTHS:
        row = stored.get(f"{case.suite} {case.name} {shorter}", {})
        if shorter < length and str(row.get("reason", "")).startswith("stopped"):
            return dict(row)
    return None


if __name__ == "__main__":
    main()
