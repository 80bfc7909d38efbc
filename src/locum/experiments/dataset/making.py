"""Create one circuit of a dataset in the requested tiers, for sweeps of the kind ``circuit``.

A program is compiled, and the network is compared with dense execution on all inputs or a sample. The
circuit is checked by interventions. Then one folder is written for each tier that is possible,
completely or not at all. A program is rejected if it does not compile, if its answer does not depend on
the tokens, or if a check of the network or of the circuit fails. In the tier ``trained``, the network
is trained instead of compiled. Random programs are drawn again until a program is accepted, up to a
maximum number of draws. File errors are raised, because they are no reason to reject a program.

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
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError, LocumError
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
from locum.experiments.dataset.labelled import Labelled
from locum.experiments.dataset.parts import faithfulness, runs_of, unchanged_share
from locum.experiments.dataset.program_families import SOURCES
from locum.experiments.dataset.scoring import Truth
from locum.experiments.dataset.softening import TIE, soften
from locum.experiments.dataset.tiers import (
    PLAIN,
    SOFT,
    TIERS,
    TRAINED,
    WeightOptions,
    decoding_error,
    in_tier,
    measure_weights,
)
from locum.experiments.dataset.trained_alignment import align, targets_of
from locum.experiments.dataset.trained_items import inputs_of, label_network
from locum.experiments.dataset.verify import Network
from locum.files import Content, make_folder, write_folder
from locum.graph import Atom, Node, postorder, stable_hash
from locum.graph.printer import to_rasp
from locum.networks.compiler import compile as compile_program
from locum.networks.compiler import count_layers
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.weights import SOFTMAX, Array
from locum.rasp.handles import SOp

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
#: Largest error of a real-valued answer in tiers with softer heads and tables.
_SOFT_ERROR = 0.0125
#: Gap between attention scores to which heads of the plain tier are softened: e^−64 is below the
#: rounding error of float64. The compiler's gaps, often 2048, would multiply rounding errors of
#: gradients by the same factor.
_SHARPNESS = 64.0
#: Smallest change of a real-valued answer that counts when a head is ablated.
_CHANGE = 1e-4
#: Maximum number of inputs of each length on which heads are ablated and weights are measured.
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


def make(
    folder: str,
    source: str,
    attention: str,
    tiers: list[str],
    length: int | None = None,
    tokens: int | None = None,
    layers: int | None = None,
    seed: int = 0,
    sharpness: float = WeightOptions.sharpness,
    tread: float = WeightOptions.tread,
    d_model: int | None = None,
) -> dict[str, Any]:
    """Write the item of a named program, or of a random program with ``layers`` layers, to ``folder``.

    Return a dictionary with the rows of the index, one for each tier that was written. If the program
    is rejected, there are no rows, and the dictionary contains the reason.
    """
    weights = WeightOptions(sharpness, tread, d_model)
    if source == RANDOM:
        assert layers is not None
        return _first_item(Path(folder), _drawn(layers, seed), attention, tiers, weights, layers)
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
    return _first_item(Path(folder), [blueprint], attention, tiers, weights)


@dataclass(frozen=True)
class Item:
    """The content of an item: the files of its folders, and the result of :func:`make`."""

    #: Files of each folder, by the path of the folder in the dataset.
    folders: dict[str, dict[str, Content]]
    #: Result of :func:`make`.
    told: dict[str, Any]


def _first_item(
    folder: Path,
    blueprints: Iterable[Blueprint],
    attention: str,
    tiers: list[str],
    weights: WeightOptions,
    layers: int | None = None,
) -> dict[str, Any]:
    """Write the item of the first blueprint that is not rejected, and return the result of
    :func:`make`.

    If all are rejected, or if the training of a network fails, the result contains the last reason.
    """
    reason = ""
    for blueprint in blueprints:
        try:
            if tiers == [TRAINED]:
                item = _trained_item(blueprint)
            else:
                item = _item(blueprint, attention, tiers, weights, layers)
        except TrainingFailedError as error:  # another program would take as long
            return {"rows": [], "reason": str(error)}
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


def _item(
    blueprint: Blueprint,
    attention: str,
    tiers: list[str],
    weights: WeightOptions,
    layers: int | None = None,
) -> Item:
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
    network = Labelled.of(model, model.circuit).network
    # This check comes before the slower run of the program on all inputs.
    _require_alive(network, batches_of(network, inputs, _FITTED), _CHANGE)
    inputs = with_answers(inputs, program)
    if not depends_on_tokens(inputs):
        raise RejectedProgramError("the answer does not depend on the tokens")
    return _checked(blueprint, model, inputs, identity, [t for t in tiers if t in TIERS], draw, weights)


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
    labelled = label_network(targets, run.tensors, blueprint.vocabulary, pairs, blueprint.name)
    network = labelled.network
    error = worst_error(network, batches_of(network, inputs), expected_answers(network, inputs))
    if error:
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
        "circuit_checked": labelled.circuit.checked,
        "training": told,
    }
    row = _row(identity, TRAINED, blueprint, labelled, inputs, certificate)
    files = _files(program, labelled, examples, certificate)
    hashes = {"program": stable_hash(program)}
    return Item({row["folder"]: files}, {"rows": [row], "reason": "", "left_out": {}, "hashes": hashes})


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


def _checked(
    blueprint: Blueprint,
    model: CompiledTransformer,
    inputs: Inputs,
    identity: str,
    tiers: list[str],
    draw: random.Random,
    weights: WeightOptions,
) -> Item:
    """Check the plain network and its circuit, then create the network of each tier."""
    program = blueprint.program.node
    unlabelled = Labelled.of(model, model.circuit).network
    batches, expected = batches_of(unlabelled, inputs), expected_answers(unlabelled, inputs)
    some = [ids[:_FITTED] for ids in batches]
    error = worst_error(unlabelled, batches, expected)
    tolerance = max(1e-9, 4 * error, 1.01 * model.error_bound) if error < 1 else error
    if not tolerance < 0.05:
        raise RejectedProgramError(
            f"the largest error of the network is {error:.2g}, which exceeds the tolerance"
        )
    if not any(map(unlabelled.heads, range(len(unlabelled.layers)))):
        raise RejectedProgramError("the network has no head")
    if tolerance > _CHANGE:
        _require_alive(unlabelled, some, tolerance)
    circuit = check_circuit(model, most=_MOST_CHECKED if inputs.space <= _MOST_CHECKED else _SAMPLED)
    if not circuit.checked["complete"]:
        raise RejectedProgramError("replacing all unnecessary edges changes an answer")
    plain = Labelled.of(model, circuit)
    if inputs.complete and model.config.attention == SOFTMAX:
        # Units that round, units at their kinks and large scores have different gradients in other
        # bases.
        smooth = soften(plain, batches, sharpness=_SHARPNESS)
        plain = smooth if worst_error(smooth.network, batches, expected) <= tolerance else plain
    examples = examples_for(inputs, draw)
    _check_label(plain, [*examples["pairs"], *pairs_for(inputs, draw, _PAIRS)])
    making = _TierMaking(plain, inputs, batches, expected, examples["pairs"], tolerance, weights)
    rows, folders, left_out = [], {}, {}
    for tier in tiers:
        if tier != PLAIN and model.config.attention != SOFTMAX:
            continue
        seed = int.from_bytes(hashlib.sha256(f"{identity} {tier}".encode()).digest()[:8])
        try:
            labelled, error, allowed = making.make(tier, np.random.default_rng(seed))
        except InputError as problem:
            left_out[tier] = str(problem)
            continue
        # The compiler's bound is valid only for the compiled weights. Other weights are certified by
        # all inputs.
        own = model.error_bound if tier == PLAIN and np.isfinite(model.error_bound) else None
        bound = allowed if inputs.complete else own
        report = {} if bound is None else {"error_bound": bound}
        # In networks with softer tables and norms, equal scores differ slightly.
        tie = weights.sharpness / 10 if tier in SOFT else TIE
        labelled = replace(labelled, config=labelled.config | {"report": report})
        certificate = {
            "agrees": True,
            "inputs": inputs.count,
            "all_inputs": inputs.complete,
            "inputs_there_are": inputs.space,
            "largest_error": error,
            "tolerance": allowed,
            "weights": measure_weights(labelled, some, tie),
            "certified_error_bound": bound,
            "logits_differ_from_plain_by": decoding_error(labelled, plain, some),
            "compared_with": "dense execution of program.rasp",
            "circuit_checked": circuit.checked,
        }
        row = _row(identity, tier, blueprint, labelled, inputs, certificate)
        folders[row["folder"]] = _files(program, labelled, examples, certificate)
        rows.append(row)
    if not rows:
        raise RejectedProgramError(f"all tiers were rejected: {left_out}")
    hashes = {"program": stable_hash(program)}
    return Item(folders, {"rows": rows, "reason": "", "left_out": left_out, "hashes": hashes})


@dataclass(frozen=True)
class _TierMaking:
    """A plain network, and the properties that the networks of other tiers must preserve."""

    plain: Labelled
    inputs: Inputs
    batches: Sequence[Array]
    expected: Sequence[Any]
    pairs: list[dict[str, Any]]
    tolerance: float
    weights: WeightOptions

    def make(self, tier: str, generator: np.random.Generator) -> tuple[Labelled, float, float]:
        """Return the network of a tier, its largest error, and the tolerance for the certificate.

        ``InputError`` is raised if the network has no valid version in this tier, for example if
        answers are wrong.
        """
        allowed = _SOFT_ERROR if tier in SOFT else self.tolerance
        batches = self.batches if self.inputs.complete else ()

        def right(candidate: Labelled) -> bool:
            error = worst_error(candidate.network, self.batches, self.expected)
            return error <= allowed and self._is_faithful(candidate)

        labelled = in_tier(tier, self.plain, batches, right, generator, self.weights)
        error = worst_error(labelled.network, self.batches, self.expected)
        if not error <= allowed:
            raise InputError(
                f"the largest error of its answers is {error:.2g}, which exceeds the tolerance"
            )
        if tier in SOFT:
            if not self._is_faithful(labelled):
                raise InputError("a patch of edges that are not necessary changes an answer")
            if self._effects(labelled) < self._effects(self.plain):
                raise InputError("a patch of a necessary edge changes no answer")
        return labelled, error, max(self.tolerance, 4 * error)

    def _is_faithful(self, labelled: Labelled) -> bool:
        """Return whether replacing unnecessary edges changes no answer, all together and one at a
        time.
        """
        truth, runs = Truth(labelled.circuit.data()), runs_of(labelled.network, self.pairs)
        rest = [edge for edge in truth.candidates if edge not in truth.edges]
        return all(unchanged_share(runs, edges) == 1 for edges in (rest, *([edge] for edge in rest)))

    def _effects(self, labelled: Labelled) -> int:
        """Return the number of true edges that change an answer if replaced together with all
        unnecessary edges.

        Edges that carry only the length are not counted, because a decoy may write to the same part.
        """
        pairs = [pair | {"elsewhere": None} for pair in self.pairs]
        truth, runs = Truth(labelled.circuit.data()), runs_of(labelled.network, pairs)
        rest = [edge for edge in truth.candidates if edge not in truth.edges]
        return sum(unchanged_share(runs, [edge, *rest]) < 1 for edge in truth.edges)


def _require_alive(network: Network, batches: Sequence[Array], change: float) -> None:
    """Reject a network that has idle heads for the tolerance ``change``."""
    if idle := idle_heads(network, batches, change):
        raise RejectedProgramError(f"ablating {idle[0]} changes no answer")


def _check_label(plain: Labelled, pairs: list[dict[str, Any]]) -> None:
    """Reject a circuit if a head has no necessary edge, or if other edges affect ``pairs``."""
    truth = Truth(plain.circuit.data())
    if truth.true_heads != set(truth.heads):
        raise RejectedProgramError("a head has no edge that is necessary")
    runs = runs_of(plain.network, pairs)
    if faithfulness(runs, truth, truth.edges) < 1:
        raise RejectedProgramError("on other pairs, replacing unnecessary edges changes an answer")


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
        "split": split_of(shape) if blueprint.family != RANDOM else f"{RANDOM}_{split_of(shape)}",
        "name": blueprint.name,
        "family": blueprint.family,
        "program_hash": stable_hash(blueprint.program.node),
        "shape": shape,
        "attention": config["attention"],
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
        "shortest": config["lengths"][0],
        "longest": config["lengths"][1],
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


def problem_of_circuit(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of an invalid setting with a description of the problem, or None.

    >>> problem_of_circuit({"source": "random", "tiers": ["plain"], "layers": 9})
    ('layers', 'expected 1 to 8 for a random program, got 9')
    """
    source = settings["source"]
    if source != RANDOM and source not in SOURCES:
        return "source", f"there is no program {source!r}: expected random, or such as {min(SOURCES)}"
    unknown = [
        tier for tier in settings["tiers"] if tier not in TIERS and settings["tiers"] != [TRAINED]
    ]
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
    """Return whether all items written by a case exist in its folder.

    >>> items_exist({"folder": "nowhere"}, {"rows": [{"folder": "items/plain/a"}]})
    False
    """
    place = Path(settings["folder"])
    return all((place / row["folder"] / "certificate.json").is_file() for row in result["rows"])
