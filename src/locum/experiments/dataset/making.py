"""Make one circuit of a dataset, in every tier that is asked for: the function of the kind ``circuit``.

A program is compiled, run on all its inputs and compared with dense execution, its circuit is checked
by interventions, and for each tier a folder is written: completely, or not at all. A program that is
constant, has an idle head or an incomplete circuit is rejected with the reason; random programs are
drawn again until one has the layers that are asked for. An error of a file is raised: it is no reason
to reject a program.

The shape of a program is its graph without numbers, tables and names. Programs that differ in
constants, in tables, in predicates or in the order of a sum have one shape. All items of one shape are
on one side of the split: a near-duplicate of a training item is never a test item.

>>> from locum import indices, select, selector_width, tokens
>>> one = selector_width(select(tokens, "a", "==")) + indices
>>> other = indices + selector_width(select(tokens, "b", "!="))
>>> shape_of(one.node) == shape_of(other.node) != shape_of(indices.node)
True
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import LocumError
from locum.experiments.circuits import check_circuit
from locum.experiments.dataset.agreement import (
    Inputs,
    RejectedProgramError,
    batches_of,
    depends_on_tokens,
    examples_for,
    expected_answers,
    idle_heads,
    inputs_for,
    pairs_for,
    with_answers,
    worst_error,
)
from locum.experiments.dataset.drawing import draw_program
from locum.experiments.dataset.labelled import Labelled, with_stairs
from locum.experiments.dataset.parts import Truth, faithfulness, runs_of
from locum.experiments.dataset.program_families import SOURCES
from locum.experiments.dataset.tiers import PLAIN, TIERS, decoding_error, in_tier
from locum.experiments.dataset.verify import Network
from locum.files import Content, make_folder, write_folder
from locum.graph import Atom, Node, postorder, stable_hash
from locum.graph.printer import to_rasp
from locum.networks.compiler import compile as compile_program
from locum.networks.compiler import count_layers
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.weights import Array
from locum.rasp.handles import SOp

ITEMS = "items"
RANDOM = "random"
#: Layers that an item may have.
LAYERS = range(1, 9)
#: How often a random program is drawn again.
_ATTEMPTS = 240
#: Circuits are checked on all inputs where there are at most so many, else on a sample of so many.
_MOST_CHECKED, _SAMPLED = 400, 60
#: Pairs on which necessary edges alone have to keep every answer.
_PAIRS = 160
#: What a real-valued answer has to change by, at least, when a head is ablated.
_CHANGE = 1e-4
#: Inputs on which heads are ablated and decoders fitted, of each length.
_FITTED = 150
#: How deep attention is nested in programs that should have so many layers; of deep ones, only what
#: most often has as many.
_DEPTHS = {1: (1,), 2: (1, 2), 3: (2, 3), 4: (3, 4), 5: (3, 4), 6: (5,), 7: (5, 6), 8: (7,)}
#: What random programs are for: tokens and the longest input.
_RANDOM_SIZES = (("ab", 5), ("abc", 4), ("abc", 4), ("abcd", 3), ("ab", 6))


@dataclass(frozen=True)
class Blueprint:
    """A program, and what to compile it for."""

    name: str
    family: str
    program: SOp
    vocabulary: tuple[Atom, ...]
    length: int
    causal: bool = False
    fixed: bool = False
    fold: bool = False


def make(
    folder: str,
    source: str,
    attention: str,
    tiers: list[str],
    length: int | None = None,
    tokens: int | None = None,
    layers: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Write the item of a named source, or of a random program with so many layers, into ``folder``.

    Returns the rows of the index, one for each tier; none, and the reason, if it is rejected.
    """
    if source == RANDOM:
        assert layers is not None
        return _first_item(Path(folder), _drawn(layers, seed), attention, tiers, layers)
    known = SOURCES[source]
    assert length is not None
    assert tokens is not None
    blueprint = Blueprint(
        source,
        known.family,
        known.make(length),
        known.vocabulary[:tokens],
        length,
        known.causal,
        known.fixed,
        known.fold,
    )
    return _first_item(Path(folder), [blueprint], attention, tiers)


@dataclass(frozen=True)
class Item:
    """What an item consists of: the files of its folders, and what is told of it."""

    #: The files of each folder, by the folder's place in the dataset.
    folders: dict[str, dict[str, Content]]
    #: What :func:`make` returns.
    told: dict[str, Any]


def _first_item(
    folder: Path,
    blueprints: Iterable[Blueprint],
    attention: str,
    tiers: list[str],
    layers: int | None = None,
) -> dict[str, Any]:
    """Write the first item that is not rejected; return its rows, or the last reason."""
    reason = ""
    for blueprint in blueprints:
        try:
            item = _item(blueprint, attention, tiers, layers)
        except LocumError as error:
            reason = str(error)[:300]
            continue
        for place, files in item.folders.items():
            make_folder((folder / place).parent)
            write_folder(folder / place, files)
        return item.told
    return {"rows": [], "reason": reason}


def _drawn(layers: int, seed: int) -> Iterator[Blueprint]:
    for attempt in range(_ATTEMPTS):
        draw = random.Random(f"{seed}, {layers}, {attempt}")
        letters, length = draw.choice(_RANDOM_SIZES)
        program = draw_program(draw, tuple(letters), draw.choice(_DEPTHS[layers]))
        yield Blueprint(RANDOM, RANDOM, program, tuple(letters), length)


def _item(blueprint: Blueprint, attention: str, tiers: list[str], layers: int | None = None) -> Item:
    program = blueprint.program.node
    if layers and not _answers_differ(blueprint):
        raise RejectedProgramError("its answer does not depend on the tokens")
    options: dict[str, Any] = {
        "length": blueprint.length,
        "vocabulary": blueprint.vocabulary,
        "attention": attention,
        "feed_forward": "relu",
        "causal": blueprint.causal,
        "fixed": blueprint.fixed,
        "reuse_slots": False,
        "fold": blueprint.fold,
    }
    allowed = (layers,) if layers else LAYERS
    if (depth := count_layers(program, **options)) not in allowed:
        raise RejectedProgramError(f"it has {depth} layers")
    model = compile_program(program, name=blueprint.name, **options)
    if (depth := len(model.weights.layers)) not in allowed:
        raise RejectedProgramError(f"it has {depth} layers")
    identity = _identity(program, blueprint, attention)
    draw = random.Random(identity)
    undefined = [token for token, _ in model.config.undefined]
    known = [token for token in blueprint.vocabulary if token not in undefined]
    inputs = inputs_for(known, model.config.lengths, draw)
    network = Labelled.of(model, model.circuit).network
    # Before the program is run on all inputs, which takes longer.
    _require_alive(network, batches_of(network, inputs, _FITTED), _CHANGE)
    inputs = with_answers(inputs, program)
    if not depends_on_tokens(inputs):
        raise RejectedProgramError("its answer does not depend on the tokens")
    return _checked(blueprint, model, inputs, identity, [t for t in tiers if t in TIERS], draw)


def _answers_differ(blueprint: Blueprint) -> bool:
    """Return whether a few inputs have different answers; a look before the work of compiling."""
    draw = random.Random(0)
    first, *rows = (draw.choices(blueprint.vocabulary, k=blueprint.length) for _ in range(12))
    answer = blueprint.program(first)
    return any(blueprint.program(row) != answer for row in rows)


def _identity(program: Node, blueprint: Blueprint, attention: str) -> str:
    """Name an item: readable, and by a hash of what it is."""
    what = [stable_hash(program), list(map(repr, blueprint.vocabulary)), blueprint.length, attention]
    digest = hashlib.sha256(json.dumps([*what, blueprint.causal, blueprint.fixed]).encode()).hexdigest()
    title = blueprint.name.rpartition("/")[2]
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in title).strip("-").lower()
    return f"{plain or 'program'}-{digest[:12]}"


def _checked(
    blueprint: Blueprint,
    model: CompiledTransformer,
    inputs: Inputs,
    identity: str,
    tiers: list[str],
    draw: random.Random,
) -> Item:
    """Check the plain network and its circuit, then make each tier."""
    program = blueprint.program.node
    unlabelled = Labelled.of(model, model.circuit).network
    batches, expected = batches_of(unlabelled, inputs), expected_answers(unlabelled, inputs)
    some = [ids[:_FITTED] for ids in batches]
    error = worst_error(unlabelled, batches, expected)
    tolerance = max(1e-9, 4 * error, 1.01 * model.error_bound) if error < 1 else error
    if not tolerance < 0.05:
        raise RejectedProgramError(f"the network is off by {error:.2g}")
    if not any(map(unlabelled.heads, range(len(unlabelled.layers)))):
        raise RejectedProgramError("it has no head")
    if tolerance > _CHANGE:
        _require_alive(unlabelled, some, tolerance)
    circuit = check_circuit(model, most=_MOST_CHECKED if inputs.space <= _MOST_CHECKED else _SAMPLED)
    if not circuit.checked["complete"]:
        raise RejectedProgramError("the edges that are necessary are not all that matter")
    plain = Labelled.of(model, circuit)
    examples = examples_for(inputs, draw)
    _check_label(plain, [*examples["pairs"], *pairs_for(inputs, draw, _PAIRS)])

    def right(candidate: Labelled) -> bool:
        return worst_error(candidate.network, batches, expected) <= tolerance

    rows, folders, left_out = [], {}, {}
    smooth = with_stairs(plain, batches) if inputs.complete and set(tiers) != {PLAIN} else plain
    for tier in tiers:
        if tier != PLAIN and model.config.attention != "softmax":
            continue
        seed = int.from_bytes(hashlib.sha256(f"{identity} {tier}".encode()).digest()[:8])
        labelled = in_tier(
            tier, plain if tier == PLAIN else smooth, some, right, np.random.default_rng(seed)
        )
        error = worst_error(labelled.network, batches, expected)
        if not error <= tolerance:
            left_out[tier] = f"its answers are off by {error:.2g}"
            continue
        certificate = {
            "agrees": True,
            "inputs": inputs.count,
            "all_inputs": inputs.complete,
            "inputs_there_are": inputs.space,
            "largest_error": error,
            "tolerance": tolerance,
            "certified_error_bound": model.error_bound if np.isfinite(model.error_bound) else None,
            "logits_differ_from_plain_by": decoding_error(labelled, plain, some),
            "compared_with": "dense execution of program.rasp",
            "circuit_checked": circuit.checked,
        }
        row = _row(identity, tier, blueprint, model, labelled, inputs, certificate)
        folders[row["folder"]] = _files(program, labelled, examples, certificate)
        rows.append(row)
    if not rows:
        raise RejectedProgramError(f"no tier is right: {left_out}")
    hashes = {"program": stable_hash(program)}
    return Item(folders, {"rows": rows, "reason": "", "left_out": left_out, "hashes": hashes})


def _require_alive(network: Network, batches: Sequence[Array], change: float) -> None:
    """Turn down a network with a head without which no answer changes by more than that."""
    if idle := idle_heads(network, batches, change):
        raise RejectedProgramError(f"ablating {idle[0]} changes no answer")


def _check_label(plain: Labelled, pairs: list[dict[str, Any]]) -> None:
    """Turn down a circuit that lacks something which only other pairs of inputs show."""
    truth = Truth(plain.circuit)
    if truth.true_heads != set(truth.heads):
        raise RejectedProgramError("a head has no edge that is necessary")
    runs = runs_of(plain.network, pairs)
    if faithfulness(runs, truth, truth.edges) < 1:
        raise RejectedProgramError("on other pairs, edges matter that were not found to be necessary")


def _files(
    program: Node, labelled: Labelled, examples: dict[str, Any], certificate: dict[str, Any]
) -> dict[str, Content]:
    return {
        "program.rasp": to_rasp(program) + "\n",
        **labelled.files(),
        "examples.json": _json(examples),
        "certificate.json": _json(certificate),
    }


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _row(
    identity: str,
    tier: str,
    blueprint: Blueprint,
    model: CompiledTransformer,
    labelled: Labelled,
    inputs: Inputs,
    certificate: dict[str, Any],
) -> dict[str, Any]:
    shape = shape_of(blueprint.program.node)
    config = labelled.config
    heads = [len((layer.get("attention") or {"kinds": ()})["kinds"]) for layer in config["layers"]]
    units = [(layer.get("feed_forward") or {"d_mlp": 0})["d_mlp"] for layer in config["layers"]]
    edges = labelled.circuit.edges
    return {
        "id": f"{tier}/{identity}",
        "circuit": identity,
        "tier": tier,
        "split": split_of(shape),
        "name": blueprint.name,
        "family": blueprint.family,
        "program_hash": stable_hash(blueprint.program.node),
        "shape": shape,
        "attention": model.config.attention,
        "causal": blueprint.causal,
        "layers": len(heads),
        "heads": sum(heads),
        "heads_in_layers": " ".join(map(str, heads)),
        "true_heads": len(
            {node.id for node in labelled.circuit.nodes if node.kind == "head" and node.role != "decoy"}
        ),
        "hidden_units": sum(units),
        "d_model": labelled.width,
        "slots": len(labelled.directions),
        "parameters": sum(int(tensor.size) for tensor in labelled.tensors.values()),
        "vocabulary": len(blueprint.vocabulary),
        "shortest": model.config.lengths[0],
        "longest": model.config.lengths[1],
        "inputs": inputs.count,
        "all_inputs": inputs.complete,
        "largest_error": float(certificate["largest_error"]),
        "tolerance": float(certificate["tolerance"]),
        "edges": len(edges),
        "necessary_edges": sum(bool(edge.necessary) for edge in edges),
        "sufficient_edges": sum(bool(edge.sufficient) for edge in edges),
        "circuit_on_all_inputs": bool(labelled.circuit.checked["all inputs"]),
        "folder": f"{ITEMS}/{tier}/{identity}",
    }


#: Operations whose inputs may stand in any order.
_COMMUTATIVE = frozenset(
    ("add", "multiply", "and", "or", "equal", "not_equal", "minimum", "maximum")
) | frozenset(("selector_and", "selector_or"))
#: Comparisons, whichever way round: operations that differ in a direction alone.
_ALIKE = {
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), "ordered"),
    **dict.fromkeys(("equal", "not_equal"), "compared"),
    **dict.fromkeys(("minimum", "maximum"), "extreme"),
    **dict.fromkeys(("add", "subtract"), "sum"),
    **dict.fromkeys(("and", "or"), "logic"),
    **dict.fromkeys(("selector_and", "selector_or"), "selector logic"),
}
#: One in so many shapes is for testing.
_TEST = 5
TRAIN, TEST = "train", "test"


def shape_of(root: Node) -> str:
    """Return 16 hexadecimal digits, equal for programs of one shape."""
    shapes: dict[Node, str] = {}
    for node in postorder(root):
        below = [shapes[part] for part in node.inputs]
        op = _ALIKE.get(node.op, node.op)
        if node.op in _COMMUTATIVE or op in ("ordered", "sum"):
            below.sort()
        # Negations turn a question round, and are not another question.
        if node.op in ("not", "negate", "selector_not"):
            shapes[node] = below[0]
            continue
        shapes[node] = hashlib.sha256(repr((op, below)).encode()).hexdigest()[:16]
    return shapes[root]


def split_of(shape: str) -> str:
    """Return the side of the split that a shape is on.

    >>> split_of("0000000000000000"), split_of("0000000000000001")
    ('test', 'train')
    """
    return TEST if int(shape, 16) % _TEST == 0 else TRAIN


def problem_of_circuit(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting that is wrong and what is wrong with it, if one is.

    >>> problem_of_circuit({"source": "random", "tiers": ["plain"], "layers": 9})
    ('layers', 'expected 1 to 8 for a random program, got 9')
    """
    source = settings["source"]
    if source != RANDOM and source not in SOURCES:
        return "source", f"there is no program {source!r}: expected random, or such as {min(SOURCES)}"
    unknown = [tier for tier in settings["tiers"] if tier not in TIERS]
    if unknown or not settings["tiers"]:
        return "tiers", f"expected one or more of {', '.join(TIERS)}, got {settings['tiers']}"
    if source == RANDOM:
        if settings["layers"] not in LAYERS:
            most = LAYERS[-1]
            return "layers", f"expected 1 to {most} for a random program, got {settings['layers']}"
        return None
    known = len(SOURCES[source].vocabulary)
    if settings["length"] is None or settings["length"] < 1:
        return "length", f"expected 1 or more for a named program, got {settings['length']}"
    if settings["tokens"] is None or not 1 <= settings["tokens"] <= known:
        return "tokens", f"expected 1 to {known} for {source}, got {settings['tokens']}"
    return None


def items_exist(settings: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Return whether all items that a case wrote are in its folder.

    >>> items_exist({"folder": "nowhere"}, {"rows": [{"folder": "items/plain/a"}]})
    False
    """
    place = Path(settings["folder"])
    return all((place / row["folder"] / "certificate.json").is_file() for row in result["rows"])
