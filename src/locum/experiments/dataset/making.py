"""Create one item of a dataset, for sweeps of the kind ``circuit``.

A program is compiled, and the network is compared with dense execution on all inputs or a sample. The
circuit is checked by interventions. Then the folder of the item is written, completely or not at all.
A program is rejected if it does not compile, if its answer does not depend on the tokens, or if a check
of the network or of the circuit fails. In the tier ``trained``, the network is trained instead of
compiled. Random programs are drawn again until a program is accepted, up to a maximum number of draws.
File errors are raised, because they are no reason to reject a program.

The *shape* of a program is its graph without numbers, tables and names. Programs that differ only in
constants, tables, predicates of selectors or the order of two summands have the same shape. Items with
the same shape are either all training items or all test items.

>>> from locum import indices, select, selector_width, tokens
>>> one = selector_width(select(tokens, "a", "==")) + indices
>>> other = indices + selector_width(select(tokens, "b", "!="))
>>> shape_of(one.node) == shape_of(other.node) != shape_of(indices.node)
True
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError, LocumError
from locum.experiments.circuits import check_circuit
from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.dataset.agreement import (
    Inputs,
    RejectedProgramError,
    depends_on_tokens,
    examples_for,
    idle_heads,
    inputs_for,
    pairs_for,
    with_answers,
    worst_error,
)
from locum.experiments.dataset.drawing import draw_program
from locum.experiments.dataset.parts import faithfulness, runs_of
from locum.experiments.dataset.program_families import SOURCES
from locum.experiments.dataset.scoring import Truth
from locum.experiments.dataset.softening import soften
from locum.experiments.dataset.trained_alignment import align, targets_of
from locum.experiments.dataset.trained_items import OUTSIDE, inputs_of, label_network
from locum.files import Content, make_folder, write_folder
from locum.graph import Atom, Node, postorder, stable_hash
from locum.graph.printer import to_rasp
from locum.networks.compiler import compile as compile_program
from locum.networks.compiler import count_layers
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.folder.saving import contents
from locum.networks.transformer.weights import SOFTMAX
from locum.rasp.handles import SOp

#: Tiers: compiled networks, and networks that are trained to compute programs.
PLAIN, TRAINED = TIERS = ("plain", "trained")
ITEMS = "items"
RANDOM = "random"
#: Possible numbers of layers of an item.
LAYERS = range(1, 9)
#: Maximum number of draws of a random program.
_ATTEMPTS = 240
#: Largest number of inputs for which circuits are checked on all inputs, and size of the sample
#: otherwise.
_MOST_CHECKED, _SAMPLED = 400, 60
#: Number of pairs, in addition to the pairs of the examples, on which the necessary edges alone must
#: preserve every answer.
_PAIRS = 160
#: Gap between attention scores to which heads are softened: e^−64 is below the rounding error of
#: float64. The compiler's gaps, often 2048, would multiply rounding errors of gradients by the same
#: factor.
_SHARPNESS = 64.0
#: Smallest change of a real-valued answer that counts when a head is ablated.
_CHANGE = 1e-4
#: Maximum number of inputs of each length on which heads are ablated.
_FITTED = 150
#: Depths of nested attention to draw for a given number of layers. For many layers, the table contains
#: only the depths that most often lead to this number.
_DEPTHS = {1: (1,), 2: (1, 2), 3: (2, 3), 4: (3, 4), 5: (3, 4), 6: (5,), 7: (5, 6), 8: (7,)}
#: Vocabularies and lengths of the longest input of random programs.
_RANDOM_SIZES = (("ab", 5), ("abc", 4), ("abc", 4), ("abcd", 3), ("ab", 6))


@dataclass(frozen=True)
class Blueprint:
    """A program to compile for the dataset, and its compile options."""

    name: str
    family: str
    program: SOp
    vocabulary: tuple[Atom, ...]
    length: int
    causal: bool = False
    fixed: bool = False
    fold: bool = False


def require_packages(tier: str) -> None:
    """Raise ``InputError`` if a package that a tier needs is not installed."""
    if tier == TRAINED and importlib.util.find_spec("torch") is None:
        raise InputError("the tier trained needs torch: pip install 'locum[torch]'")


def make(
    folder: str,
    source: str,
    attention: str = SOFTMAX,
    tier: str = PLAIN,
    length: int | None = None,
    tokens: int | None = None,
    layers: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Write the item of a named program, or of a random program with ``layers`` layers, to ``folder``.

    Return a dictionary with the row of the index. If the program is rejected, the row is None, and the
    dictionary contains the reason.
    """
    require_packages(tier)
    if source == RANDOM:
        assert layers is not None
        return _first_item(Path(folder), _drawn(layers, seed), attention, tier, layers)
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
    return _first_item(Path(folder), [blueprint], attention, tier)


@dataclass(frozen=True)
class Item:
    """The row of the index and the files of an item."""

    row: dict[str, Any]
    files: dict[str, Content]


def _first_item(
    folder: Path,
    blueprints: Iterable[Blueprint],
    attention: str,
    tier: str,
    layers: int | None = None,
) -> dict[str, Any]:
    """Write the item of the first blueprint that is not rejected, and return the result of
    :func:`make`.

    If all are rejected, or if the training of a network fails, the result contains the last reason.
    """
    reason = ""
    for blueprint in blueprints:
        try:
            if tier == TRAINED:
                item = _trained_item(blueprint)
            else:
                item = _compiled_item(blueprint, attention, layers)
        except TrainingFailedError as error:  # another program would take as long
            return {"row": None, "reason": str(error)}
        except LocumError as error:
            reason = str(error)[:300]
            continue
        place = folder / item.row["folder"]
        make_folder(place.parent)
        write_folder(place, item.files)
        hashes = {"program": item.row["program_hash"]}
        return {"row": item.row, "reason": "", "hashes": hashes}
    return {"row": None, "reason": reason}


def _drawn(layers: int, seed: int) -> Iterator[Blueprint]:
    for attempt in range(_ATTEMPTS):
        draw = random.Random(f"{seed}, {layers}, {attempt}")
        letters, length = draw.choice(_RANDOM_SIZES)
        program = draw_program(draw, tuple(letters), draw.choice(_DEPTHS[layers]))
        yield Blueprint(RANDOM, RANDOM, program, tuple(letters), length)


def _compiled_item(blueprint: Blueprint, attention: str, layers: int | None = None) -> Item:
    """Compile a program, and check the network and its circuit."""
    program = blueprint.program.node
    if layers and not _answers_differ(blueprint):
        raise RejectedProgramError("the answer does not depend on the tokens")
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
        raise RejectedProgramError(f"the network has {depth} layers")
    model = compile_program(program, name=blueprint.name, **options)
    if (depth := len(model.weights.layers)) not in allowed:
        raise RejectedProgramError(f"the network has {depth} layers")
    identity = _identity(program, blueprint, attention)
    draw = random.Random(identity)
    undefined = [token for token, _ in model.config.undefined]
    known = [token for token in blueprint.vocabulary if token not in undefined]
    inputs = inputs_for(known, model.config.lengths, draw)
    # This check comes before the slower run of the program on all inputs.
    _require_alive(model, inputs, _CHANGE)
    inputs = with_answers(inputs, program)
    if not depends_on_tokens(inputs):
        raise RejectedProgramError("the answer does not depend on the tokens")
    error = worst_error(model, inputs)
    tolerance = max(1e-9, 4 * error, 1.01 * model.error_bound) if error < 1 else error
    if not tolerance < 0.05:
        raise RejectedProgramError(
            f"the largest error of the network is {error:.2g}, which exceeds the tolerance"
        )
    if not any(layer.attention for layer in model.weights.layers):
        raise RejectedProgramError("the network has no head")
    if tolerance > _CHANGE:
        _require_alive(model, inputs, tolerance)
    circuit = check_circuit(model, most=_MOST_CHECKED if inputs.space <= _MOST_CHECKED else _SAMPLED)
    if not circuit.checked["complete"]:
        raise RejectedProgramError("replacing all unnecessary edges changes an answer")
    if inputs.complete and attention == SOFTMAX:
        smooth, moved = soften(model, circuit, inputs.rows, _SHARPNESS)
        softer = worst_error(smooth, inputs)
        if softer <= tolerance:
            model, circuit, error = smooth, moved, softer
    examples = examples_for(inputs, draw)
    _check_label(model, circuit, [*examples["pairs"], *pairs_for(inputs, draw, _PAIRS)])
    tolerance = max(tolerance, 4 * error)
    # The compiler's bound is valid only for the compiled weights. Other weights are certified by all
    # inputs.
    own = model.error_bound if np.isfinite(model.error_bound) else None
    bound = tolerance if inputs.complete else own
    report = {} if bound is None else {"error_bound": bound}
    model = CompiledTransformer(replace(model.config, report=report), model.weights)
    certificate = {
        "agrees": True,
        "inputs": inputs.count,
        "all_inputs": inputs.complete,
        "inputs_there_are": inputs.space,
        "largest_error": error,
        "tolerance": tolerance,
        "certified_error_bound": bound,
        "compared_with": "dense execution of program.rasp",
        "circuit_checked": circuit.checked,
    }
    row = _row(identity, PLAIN, blueprint, model, circuit, inputs, certificate)
    return Item(row, _files(program, model, circuit, examples, certificate))


class TrainingFailedError(RejectedProgramError):
    """An error that is raised if training produced no acceptable network."""


def _trained_item(blueprint: Blueprint) -> Item:
    """Train a network for a program, and check its answers and its circuit."""
    from locum.experiments.dataset import (
        interchange_training as training,
    )  # importing torch takes seconds

    blueprint = replace(blueprint, causal=False, fixed=True)
    program, length = blueprint.program.node, blueprint.length
    identity = _identity(program, blueprint, TRAINED)
    seed = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4])
    targets = targets_of(align(program, seed=seed), blueprint.vocabulary, length)
    run = training.train(targets, len(blueprint.vocabulary), seed=seed)
    figures = run.figures
    components = targets.alignment.components
    told = {
        "seed": run.seed,
        "steps": run.steps,
        "failed_runs": len(run.failed),
        "answers": figures.answers,
        "interventions": {
            part.name: share for part, share in zip(components, figures.interventions, strict=True)
        },
        "outside": figures.outside,
        "outside_changed": figures.outside_changed,
        "pairs": targets.space**2,
        "required": {
            "answers": 1.0,
            "interventions": training.LEAST_AGREEMENT,
            "outside": training.LARGEST_EFFECT,
            "outside_changed": 0.0,
        },
        "alignment": {part.name: part.label for part in components},
        "curve": run.curve,
    }
    if not figures.is_accepted:
        raise TrainingFailedError(
            f"no training run was accepted: answers {figures.answers:.1%}, interventions "
            f"{min(figures.interventions):.1%}, outside {figures.outside:.2g}"
        )
    draw, inputs = random.Random(identity), inputs_of(targets)
    examples = examples_for(inputs, draw)
    pairs = [*examples["pairs"], *pairs_for(inputs, draw, _PAIRS)]
    model, circuit = label_network(targets, run.tensors, blueprint.vocabulary, pairs, blueprint.name)
    if worst_error(model, inputs):
        raise TrainingFailedError("the network answers differently in float64")
    certificate = {
        "agrees": True,
        "inputs": inputs.count,
        "all_inputs": True,
        "inputs_there_are": inputs.space,
        "largest_error": 0.0,
        "tolerance": 0.0,
        "certified_error_bound": None,
        "compared_with": "dense execution of program.rasp",
        "circuit_checked": circuit.checked,
        "training": told,
    }
    row = _row(identity, TRAINED, blueprint, model, circuit, inputs, certificate)
    return Item(row, _files(program, model, circuit, examples, certificate))


def _answers_differ(blueprint: Blueprint) -> bool:
    """Return whether answers differ between a few random inputs; a quick test before compiling."""
    draw = random.Random(0)
    first, *rows = (draw.choices(blueprint.vocabulary, k=blueprint.length) for _ in range(12))
    answer = blueprint.program(first)
    return any(blueprint.program(row) != answer for row in rows)


def _identity(program: Node, blueprint: Blueprint, attention: str) -> str:
    """Return a readable name of an item that includes a hash of its program and options."""
    what = [stable_hash(program), list(map(repr, blueprint.vocabulary)), blueprint.length, attention]
    digest = hashlib.sha256(json.dumps([*what, blueprint.causal, blueprint.fixed]).encode()).hexdigest()
    title = blueprint.name.rpartition("/")[2]
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in title).strip("-").lower()
    return f"{plain or 'program'}-{digest[:12]}"


def _require_alive(model: CompiledTransformer, inputs: Inputs, change: float) -> None:
    """Reject a network that has idle heads for the tolerance ``change``."""
    if idle := idle_heads(model, inputs, _FITTED, change):
        raise RejectedProgramError(f"ablating {idle[0]} changes no answer")


def _check_label(model: CompiledTransformer, circuit: Circuit, pairs: list[dict[str, Any]]) -> None:
    """Reject a circuit if a head has no necessary edge, or if other edges affect ``pairs``."""
    truth = Truth(circuit.data())
    if truth.true_heads != set(truth.heads):
        raise RejectedProgramError("a head has no edge that is necessary")
    runs = runs_of(CompiledNetwork(model), pairs)
    if faithfulness(runs, truth, truth.edges) < 1:
        raise RejectedProgramError("on other pairs, replacing unnecessary edges changes an answer")


def _files(
    program: Node,
    model: CompiledTransformer,
    circuit: Circuit,
    examples: dict[str, Any],
    certificate: dict[str, Any],
) -> dict[str, Content]:
    return {
        "program.rasp": to_rasp(program) + "\n",
        **contents(model.config, model.weights),
        "circuit.json": json.dumps(circuit.data(), ensure_ascii=False, indent=1) + "\n",
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
    circuit: Circuit,
    inputs: Inputs,
    certificate: dict[str, Any],
) -> dict[str, Any]:
    shape, layers = shape_of(blueprint.program.node), model.weights.layers
    return {
        "id": f"{tier}/{identity}",
        "circuit": identity,
        "tier": tier,
        "split": split_of(shape) if blueprint.family != RANDOM else f"{RANDOM}_{split_of(shape)}",
        "name": blueprint.name,
        "family": blueprint.family,
        "program_hash": stable_hash(blueprint.program.node),
        "shape": shape,
        "attention": model.config.attention,
        "causal": blueprint.causal,
        "layers": len(layers),
        "heads": sum(layer.attention.heads for layer in layers if layer.attention),
        "true_heads": sum(node.kind == "head" and node.role != OUTSIDE for node in circuit.nodes),
        "hidden_units": sum(len(layer.feed_forward.b_in) for layer in layers if layer.feed_forward),
        "d_model": model.weights.W_E.shape[1],
        "parameters": sum(tensor.size for _, tensor in model.weights.named()),
        "vocabulary": len(blueprint.vocabulary),
        "shortest": model.config.lengths[0],
        "longest": model.config.lengths[1],
        "inputs": inputs.count,
        "all_inputs": inputs.complete,
        "largest_error": float(certificate["largest_error"]),
        "tolerance": float(certificate["tolerance"]),
        "edges": len(circuit.edges),
        "necessary_edges": len(circuit.necessary),
        "sufficient_edges": sum(bool(edge.sufficient) for edge in circuit.edges),
        "circuit_on_all_inputs": bool(circuit.checked["all inputs"]),
        "folder": f"{ITEMS}/{tier}/{identity}",
    }


#: Operations whose inputs may be in any order.
_COMMUTATIVE = frozenset(
    ("add", "multiply", "and", "or", "equal", "not_equal", "minimum", "maximum")
) | frozenset(("selector_and", "selector_or"))
#: Operations that count as equal in the shape of a program.
_ALIKE = {
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), "ordered"),
    **dict.fromkeys(("equal", "not_equal"), "compared"),
    **dict.fromkeys(("minimum", "maximum"), "extreme"),
    **dict.fromkeys(("add", "subtract"), "sum"),
    **dict.fromkeys(("and", "or"), "logic"),
    **dict.fromkeys(("selector_and", "selector_or"), "selector logic"),
}
#: One shape in this many belongs to the test split.
_TEST = 5
TRAIN, TEST = "train", "test"


def shape_of(root: Node) -> str:
    """Return a hash of 16 hexadecimal digits, which is the same for all programs of one shape."""
    shapes: dict[Node, str] = {}
    for node in postorder(root):
        below = [shapes[part] for part in node.inputs]
        op = _ALIKE.get(node.op, node.op)
        if node.op in _COMMUTATIVE or op in ("ordered", "sum"):
            below.sort()
        # Negations do not change the shape.
        if node.op in ("not", "negate", "selector_not"):
            shapes[node] = below[0]
            continue
        shapes[node] = hashlib.sha256(repr((op, below)).encode()).hexdigest()[:16]
    return shapes[root]


def split_of(shape: str) -> str:
    """Return the split to which a shape belongs.

    >>> split_of("0000000000000000"), split_of("0000000000000001")
    ('test', 'train')
    """
    return TEST if int(shape, 16) % _TEST == 0 else TRAIN


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for settings of :func:`make` that do not fit together.

    >>> check_settings({"source": "random", "layers": 9})
    Traceback (most recent call last):
    locum.errors.InputError: layers: expected 1 to 8 for a random program, got 9
    """
    source = settings["source"]
    if source == RANDOM:
        if settings["layers"] not in LAYERS:
            most = LAYERS[-1]
            raise InputError(
                f"layers: expected 1 to {most} for a random program, got {settings['layers']}"
            )
        return
    if source not in SOURCES:
        raise InputError(
            f"source: expected random, or a program such as {min(SOURCES)}, got {source!r}"
        )
    known = len(SOURCES[source].vocabulary)
    if settings["length"] is None or settings["length"] < 1:
        raise InputError(f"length: expected 1 or more for a named program, got {settings['length']}")
    if settings["tokens"] is None or not 1 <= settings["tokens"] <= known:
        raise InputError(f"tokens: expected 1 to {known} for {source}, got {settings['tokens']}")
