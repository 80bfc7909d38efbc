"""Check a hypothesis about a trained model: a program that describes how the model computes its
answers.

:func:`check_hypothesis` runs the model and the program on the same inputs and reports:

- *answers*: how often the answers agree, and the shortest counterexamples;
- *heads*: for a selector of the program, the head of the model with the most similar attention
  pattern;
- *interventions*: how often the model and the program agree if an s-op is replaced by its value on
  another input.

The verdict depends on the answers and, on request, on the interventions. The other parts are evidence
about the mechanism, from a sample of at most 400 inputs. Heads are selected on one half of the sample
and measured on the other half. An intervention is tried at the layers whose residual streams predict
the s-op best. The layer is selected on one half of the pairs, and the agreement is measured on the
other half.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution import run
from locum.experiments.circuits.hypothesis_examples import Example, Reading, is_id
from locum.experiments.circuits.program_interchange import interchange
from locum.graph import Atom, Node, Sort, postorder, sort_of
from locum.graph.atoms import short
from locum.graph.labels import Labels
from locum.graph.node import node_of
from locum.networks.transformer import CompiledTransformer

if TYPE_CHECKING:
    from locum.torch.observed_model import Observation, ObservedModel

Array = np.ndarray[Any, Any]
#: Maximum number of inputs per forward pass.
_BATCH = 256
#: Maximum number of inputs on which residual streams and attention patterns are recorded.
_OBSERVED = 400
#: Maximum number of s-ops and of heads in a report. Those that are computed last are kept.
_MOST_PARTS = 24
#: Maximum number of counterexamples in a report.
_SHOWN = 5
#: Maximum number of distinct numbers that are treated as classes when a layer is chosen.
_MOST_CLASSES = 64
#: Minimum number of inputs for interventions, and of pairs for interventions on an s-op.
_LEAST = 8
#: Maximum number of pairs of inputs for each s-op, and of layers at which interventions are tried.
_PAIRS, _SITES = 160, 4
#: Ridge penalty of linear predictions, relative to the mean variance of a dimension.
_RIDGE = 1e-4
#: Largest difference between equal real-valued answers, relative to the absolute program answer or 1.
_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Counterexample:
    """An input on which the model and the program differ, and the position of the first difference
    among the compared answers.
    """

    tokens: tuple[Atom, ...]
    position: int
    model: Atom
    program: Atom


@dataclass(frozen=True)
class HeadMatch:
    """A selector of the program, and the head of the model with the most similar attention pattern."""

    label: str
    layer: int
    head: int
    #: Mean total variation distance between the rows of the two patterns, from 0 to 1.
    distance: float
    #: Distance of uniform attention over the visible tokens, as a baseline.
    uniform: float
    rows: int


@dataclass(frozen=True)
class Intervention:
    """The result of replacing an s-op by its value on another input, in the model and in the
    program.
    """

    label: str
    #: Number of layers before the residual stream; 0 for the embeddings.
    layer: int
    dimensions: int
    pairs: int
    #: Fraction of pairs on which all compared answers of the model and the program agree, and the same
    #: fraction for a random subspace.
    agreement: float
    random: float


@dataclass(frozen=True)
class HypothesisReport:
    """The report on a hypothesis about a model; ``holds`` is the verdict."""

    model: str
    program: str
    inputs: int
    answers: int
    #: Fraction of single answers, and of whole inputs, on which the model and the program agree.
    agreement: float
    input_agreement: float
    required: float
    required_interventions: float | None
    counterexamples: tuple[Counterexample, ...]
    heads: tuple[HeadMatch, ...]
    interventions: tuple[Intervention, ...]
    notes: tuple[str, ...]
    seed: int
    reasons: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the model agrees with the program as often as required."""
        return not self.reasons


def check_hypothesis(
    model: Any,
    program: Any,
    inputs: Sequence[Any],
    *,
    vocabulary: Mapping[Any, int] | None = None,
    labels: Mapping[Any, int] | None = None,
    answers: str = "each",
    prefix: Sequence[int] = (),
    suffix: Sequence[int] = (),
    agreement: float = 1.0,
    interventions: float | None = None,
    seed: int = 0,
) -> HypothesisReport:
    """Compare a trained model with a program on inputs, and return a report.

    ``model`` is a model of transformers or TransformerLens, a compiled network, or another
    ``torch.nn.Module`` that maps token ids to logits. An input is a list or string of tokens of the
    program, or a mapping with ``tokens``, ``ids`` and, optionally, ``places`` and ``answers``.
    ``vocabulary`` maps the tokens of a list or string to ids; without it, tokens must be ids.
    ``prefix`` and ``suffix`` are ids around these tokens. ``labels`` maps answers to classes; by
    default, the class of an answer is its token id. A compiled network uses its own vocabulary and
    classes.

    ``answers`` is where the model returns its answers: at ``"each"`` token, or at the ``"last"`` or
    ``"first"`` position.

    The hypothesis holds if at least the fraction ``agreement`` of answers is equal. With
    ``interventions``, at least one s-op must also be tested by interchange interventions, and each
    tested s-op must reach this fraction.
    """
    root = node_of(program)
    if sort_of(root) is not Sort.SOP:
        raise InputError("program: expected an s-op, got a selector; try to aggregate over it")
    for name, share in (("agreement", agreement), ("interventions", interventions)):
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{name}: expected a share from 0 to 1, got {share}; try {name}=0.95")
    if not inputs:
        raise InputError('inputs: expected one or more inputs, got none; try [["a", "b"]]')
    for name, around in (("prefix", prefix), ("suffix", suffix)):
        if not all(map(is_id, around)):
            raise InputError(f"{name}: expected token ids, got {around!r}; try {name}=[0]")
    observed, reading = _observed(model, Reading(vocabulary, labels, prefix, suffix, answers))
    check = _Check(observed, root, reading, seed)
    check.is_compiled = isinstance(model, CompiledTransformer)
    check.read(inputs)
    return check.report(agreement, interventions)


def _observed(model: Any, reading: Reading) -> tuple[ObservedModel, Reading]:
    try:
        from locum.torch.observed_model import observe
    except ModuleNotFoundError:
        raise InputError("a check of a model needs torch: try pip install 'locum[models]'") from None
    if not isinstance(model, CompiledTransformer):
        if "Classification" in type(model).__name__ and reading.labels is None:
            raise InputError(
                f"labels: expected a class of each answer of {type(model).__name__}, got none; "
                "try labels={answer: class}"
            )
        return observe(model), reading
    tokens, outputs = model.config.vocabulary, model.config.outputs
    if tokens is None:
        raise InputError(
            "model: expected a network with a vocabulary, got one of numbers; "
            "try locum.compile(program, vocabulary=...)"
        )
    for name, given in (("vocabulary", reading.vocabulary), ("labels", reading.labels)):
        if given is not None:
            raise InputError(
                f"{name}: expected none for a compiled network, which has its own, got "
                f"{short(dict(given))}; try without {name}"
            )
    known = {token: number for number, token in enumerate(tokens)}
    classes = None if outputs is None else {value: i for i, value in enumerate(outputs)}
    return observe(model.to_torch()), replace(reading, vocabulary=known, labels=classes)


class _Check:
    """The comparison of a model with a program on the same inputs."""

    def __init__(self, observed: ObservedModel, root: Node, reading: Reading, seed: int) -> None:
        self.observed, self.root, self.reading, self.seed = observed, root, reading, seed
        self.label = Labels(longest=120)
        self.examples: list[Example] = []
        self.expected: list[list[Atom]] = []
        #: Whether answers are numbers instead of classes, and whether the model is a compiled network,
        #: whose possible answers are known.
        self.is_real, self.is_compiled = False, False
        self.classes: dict[Any, int] = {}
        self.values: dict[int, Atom] = {}
        self.size = 0

    # Answers ----------------------------------------------------------------------------------------

    def read(self, inputs: Sequence[Any]) -> None:
        """Read ``inputs``, run the program on them, and store distinct inputs with their outputs."""
        seen: set[str] = set()
        for entry in inputs:
            example = self.reading.example(entry)
            try:
                expected: list[Atom] = run(self.root, list(example.tokens))
            except ExecutionError as error:
                raise InputError(
                    f"inputs: expected inputs for which the program has a value, got "
                    f"{short(list(example.tokens))}: {error}; try inputs without it"
                ) from None
            key = repr(example)  # repeated inputs count once; 1, 1.0 and True differ
            if key not in seen:
                seen.add(key)
                self.examples.append(example)
                self.expected.append(expected)
        repeated = len(inputs) - len(self.examples)
        if repeated:
            self.observed.note(f"repeated inputs: {repeated:,} of {len(inputs):,} are not counted")

    def _batches(self, places: Sequence[int]) -> Iterator[tuple[list[int], Any]]:
        """Yield batches of examples of one length, with their token ids."""
        import torch

        by_length: dict[int, list[int]] = {}
        for place in places:
            by_length.setdefault(len(self.examples[place].ids), []).append(place)
        for group in by_length.values():
            for start in range(0, len(group), _BATCH):
                part = group[start : start + _BATCH]
                yield part, torch.tensor([self.examples[place].ids for place in part])

    def _run_model(self, places: Sequence[int]) -> dict[int, list[Any]]:
        """Return the compared answers of the model for each example."""
        found: dict[int, list[Any]] = {}
        for part, ids in self._batches(places):
            self._require_ids(ids)
            try:
                logits = self.observed.logits(ids)
            except IndexError as error:  # a module with unknown vocabulary size or context length
                raise InputError(
                    f"inputs: expected token ids and positions that the model has, got ids up to "
                    f"{int(ids.max())} at {ids.shape[1]} positions: {error}; try another vocabulary or "
                    "prefix, or shorter inputs"
                ) from None
            if np.isnan(logits).any():
                raise InputError(
                    "model: expected logits, got nan, on the input "
                    f"{short(list(self.examples[part[0]].tokens))} or another one of its length; try a "
                    "model of float32, or of more training steps with a lower learning rate"
                )
            if not self.size:
                self._read_classes(logits)
            for row, place in enumerate(part):
                found[place] = self._answers(logits[row], self.examples[place])
        return found

    def _require_ids(self, ids: Any) -> None:
        config = getattr(self.observed.model, "config", None)
        known = getattr(config, "vocab_size", None)
        longest = getattr(config, "max_position_embeddings", None)
        if known is not None and int(ids.max()) >= known:
            raise InputError(
                f"inputs: expected token ids from 0 to {known - 1}, got {int(ids.max())}; "
                "try another vocabulary"
            )
        if longest is not None and ids.shape[1] > longest:
            raise InputError(
                f"inputs: expected at most {longest} positions, got {ids.shape[1]}; try shorter inputs"
            )

    def _read_classes(self, logits: Array) -> None:
        self.size = logits.shape[-1]
        if logits.ndim == 2 and self.reading.answers == "each":
            raise InputError(
                "answers: expected first or last for a model with one answer to each input, got each; "
                'try answers="last"'
            )
        self.is_real = self.size == 1
        if self.is_real:
            return
        distinct: dict[Any, Atom] = {}
        for example, expected in zip(self.examples, self.expected, strict=True):
            for place, _ in example.answers:
                key, labels = _key(expected[place]), self.reading.labels
                # A compiled network cannot return an answer that is not among its outputs.
                if not self.is_compiled or any(_key(label) == key for label in labels or ()):
                    distinct.setdefault(key, expected[place])
        numbers = self.reading.label_ids(list(distinct.values()), self.size)
        self.classes = dict(zip(distinct, numbers, strict=True))
        self.values = dict(zip(numbers, distinct.values(), strict=True))

    def _answers(self, logits: Array, example: Example) -> list[Any]:
        rows = logits[None] if logits.ndim == 1 else logits
        places = [0 if logits.ndim == 1 else place for _, place in example.answers]
        if self.is_real:
            return [float(rows[place, 0]) for place in places]
        return [int(rows[place].argmax()) for place in places]

    def _wanted(self, answers: Sequence[Atom], example: Example) -> list[Any]:
        """Return the program's answers as numbers or classes of the model; −1 if the class is unknown.

        A string is NaN for a model whose answers are numbers.
        """
        chosen = [answers[place] for place, _ in example.answers]
        if self.is_real:
            return [float("nan") if isinstance(value, str) else float(value) for value in chosen]
        return [self.classes.get(_key(value), -1) for value in chosen]

    def _equal(self, found: Any, wanted: Any) -> bool:
        if self.is_real:
            return bool(abs(found - wanted) <= _TOLERANCE * max(1.0, abs(wanted)))
        return bool(found == wanted)

    def _name(self, answer: Any) -> Atom:
        if self.is_real:
            return float(answer)
        return self.values[answer] if answer in self.values else self.reading.class_name(answer)

    @cached_property
    def found(self) -> dict[int, list[Any]]:
        """Answers of the model for each example."""
        return self._run_model(range(len(self.examples)))

    @cached_property
    def right(self) -> list[list[bool]]:
        """For each example, whether each answer of the model equals the answer of the program."""
        return [
            [
                self._equal(one, other)
                for one, other in zip(self.found[place], self._wanted(expected, example), strict=True)
            ]
            for place, (example, expected) in enumerate(zip(self.examples, self.expected, strict=True))
        ]

    def _counterexamples(self) -> tuple[Counterexample, ...]:
        wrong = [place for place, row in enumerate(self.right) if not all(row)]
        wrong.sort(key=lambda place: len(self.examples[place].tokens))
        shown = []
        for place in wrong[:_SHOWN]:
            example, first = self.examples[place], self.right[place].index(False)
            position = example.answers[first][0]
            name = self._name(self.found[place][first])
            shown.append(Counterexample(example.tokens, position, name, self.expected[place][position]))
        return tuple(shown)

    def report(self, required: float, interventions: float | None) -> HypothesisReport:
        """Return the complete report.

        ``required`` and ``interventions`` are the fractions of agreement that the hypothesis must
        reach.
        """
        flat = [answer for row in self.right for answer in row]
        share = float(np.mean(flat))
        whole = float(np.mean([all(row) for row in self.right]))
        mechanism = _Mechanism(self)
        heads, changed = mechanism.heads(), mechanism.interventions()
        reasons = []
        if share < required:
            reasons.append(f"{share:.1%} of answers agree, and {required:.1%} are required")
        if interventions is not None:
            if not changed:
                reasons.append("interventions are required, and none could be made")
            reasons += [
                f"{part.label}: {part.agreement:.1%} of interventions agree, and "
                f"{interventions:.1%} are required"
                for part in changed
                if part.agreement < interventions
            ]
        return HypothesisReport(
            self.observed.name,
            Labels()(self.root),
            len(self.examples),
            len(flat),
            share,
            whole,
            required,
            interventions,
            self._counterexamples(),
            heads,
            changed,
            tuple(self.observed.notes),
            self.seed,
            tuple(reasons),
        )


def _key(value: Atom) -> Any:
    """Return a key of an answer; equal numbers of different types have the same key."""
    return (isinstance(value, str), value)


class _Mechanism:
    """The analysis of heads and interventions on a sample of the inputs of a check."""

    def __init__(self, check: _Check) -> None:
        self.check, self.observed = check, check.observed
        self.draw = random.Random(check.seed)
        places = list(range(len(check.examples)))
        self.draw.shuffle(places)
        self.places = places[:_OBSERVED]
        half = len(self.places) // 2
        self.first, self.second = self.places[:half], self.places[half:]
        self.seen: dict[int, tuple[Observation, int]] = {}
        for part, ids in check._batches(self.places):
            observation = self.observed.observe(ids)
            self.seen |= {place: (observation, row) for row, place in enumerate(part)}
        #: Whether no observed head attends to later positions.
        self.is_causal = all(
            not np.triu(pattern, 1).any()
            for observation in {id(seen): seen for seen, _ in self.seen.values()}.values()
            for pattern in observation.patterns.values()
        )
        nodes = [node for node in postorder(check.root) if not node.free]
        reads: dict[Node, bool] = {}
        for node in postorder(check.root):
            reads[node] = node.op == "tokens" or any(reads[part] for part in node.inputs)
        #: S-ops that are interchanged: the last ones that depend on the tokens. Other s-ops
        #: have the same values on all inputs of one length. They are omitted, and so are the tokens.
        self.sops = [n for n in nodes if sort_of(n) is Sort.SOP and n.inputs and reads[n]][
            -_MOST_PARTS:
        ]
        self.selectors: dict[Node, Node] = {}
        for node in nodes:
            if node.op in ("aggregate", "selector_width"):
                self.selectors.setdefault(node.inputs[0], node)
        self._values: dict[Node, dict[int, list[Atom]]] = {}

    def values(self, sop: Node) -> dict[int, list[Atom]]:
        """Return the values of an s-op on every observed example."""
        if sop not in self._values:
            self._values[sop] = {
                place: run(sop, list(self.check.examples[place].tokens)) for place in self.places
            }
        return self._values[sop]

    # Heads ------------------------------------------------------------------------------------------

    def heads(self) -> tuple[HeadMatch, ...]:
        """Match the last selectors of the program with the heads of the model whose attention patterns
        are most similar.
        """
        found = [self._match(selector) for selector in list(self.selectors)[-_MOST_PARTS:]]
        return tuple(match for match in found if match is not None)

    def _target(self, selector: Node, place: int) -> Array:
        """Return the attention pattern of a selector on one example.

        Each row has equal weights for the selected keys, or zeros if no key is selected.
        """
        chosen = np.asarray(run(selector, list(self.check.examples[place].tokens)), dtype=float)
        pattern: Array = chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1)
        return pattern

    def _seen_pattern(self, place: int, head: tuple[int, int]) -> Array | None:
        observation, row = self.seen[place]
        if head not in observation.patterns:
            return None
        at = list(self.check.examples[place].places)
        whole = observation.patterns[head][row][at]
        kept = whole[:, at]
        return np.concatenate([kept, whole.sum(axis=1, keepdims=True) - kept.sum(1, keepdims=True)], 1)

    def _match(self, selector: Node) -> HeadMatch | None:
        targets = {place: self._target(selector, place) for place in self.places}
        names = {head for observation, _ in self.seen.values() for head in observation.patterns}
        if not names:
            return None
        scored = {head: self._distance(head, targets, self.first or self.second) for head in names}
        best = min(sorted(scored), key=lambda head: scored[head][0])
        distance, uniform, rows = self._distance(best, targets, self.second)
        if not rows:
            return None
        return HeadMatch(self.check.label(selector), *best, distance, uniform, rows)

    def _distance(
        self, head: tuple[int, int], targets: Mapping[int, Array], places: Sequence[int]
    ) -> tuple[float, float, int]:
        """Return the mean distance of a head from ``targets``, the distance of uniform attention, and
        the number of rows.

        Rows in which the selector selects no key are omitted. Without rows, both distances are
        infinite.
        """
        away, flat = [], []
        for place in places:
            target, pattern = targets[place], self._seen_pattern(place, head)
            if pattern is None:
                continue
            size = len(target)
            wide = np.concatenate([target, np.zeros((size, 1))], axis=1)
            visible = np.tril(np.ones((size, size))) if self.is_causal else np.ones((size, size))
            even = np.concatenate([visible / visible.sum(1, keepdims=True), np.zeros((size, 1))], 1)
            rows = target.sum(axis=1) > 0
            away += list(np.abs(pattern - wide).sum(axis=1)[rows] / 2)
            flat += list(np.abs(even - wide).sum(axis=1)[rows] / 2)
        if not away:
            return float("inf"), float("inf"), 0
        return float(np.mean(away)), float(np.mean(flat)), len(away)

    # Layers -----------------------------------------------------------------------------------------

    @property
    def _layers(self) -> int:
        return min((len(seen.streams) for seen, _ in self.seen.values()), default=0)

    def _stream(self, layer: int, places: Sequence[int]) -> Array:
        rows = []
        for place in places:
            observation, row = self.seen[place]
            rows.append(observation.streams[layer][row][list(self.check.examples[place].places)])
        return np.concatenate(rows)

    def _scores(self, sop: Node) -> list[float]:
        """Return how well a linear function of each residual stream predicts an s-op.

        The function is fitted on one half of the inputs. The score on the other half is the accuracy
        or, for an s-op with many numeric values, R².
        """
        values = self.values(sop)
        train = [value for place in self.first for value in values[place]]
        test = [value for place in self.second for value in values[place]]
        classes = {key: number for number, key in enumerate(dict.fromkeys(map(_key, train)))}
        numeric = not any(isinstance(value, str) for value in (*train, *test))
        scores = []
        for layer in range(self._layers):
            known, unseen = self._stream(layer, self.first), self._stream(layer, self.second)
            if len(classes) > _MOST_CLASSES and numeric:
                right = np.array(test, float)
                away = _regress(known, np.array(train, float), unseen) - right
                scores.append(1 - float(np.mean(away**2)) / (float(np.var(right)) or 1.0))
            else:
                numbers = np.array([classes[_key(value)] for value in train])
                expected = np.array([classes.get(_key(value), -1) for value in test])
                scores.append(float(np.mean(_discriminate(known, numbers, unseen) == expected)))
        return scores

    # Interventions ----------------------------------------------------------------------------------

    def interventions(self) -> tuple[Intervention, ...]:
        """Replace each s-op of ``sops`` by its value on another input, in the program and in the
        model.
        """
        if not self._layers:
            return ()
        if len(self.places) < _LEAST:
            self.observed.note(f"interventions are left out: they need {_LEAST} inputs or more")
            return ()
        found = [self._interchanged(sop) for sop in self.sops]
        return tuple(part for part in found if part is not None)

    def _pairs(self, sop: Node) -> list[tuple[int, int, list[Any]]]:
        """Return pairs of inputs for which the intervention changes the program's answers, with the
        changed answers.

        The model must answer both inputs correctly.
        """
        check = self.check
        good = [place for place in self.places if all(check.right[place])]
        groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for place in good:
            example = check.examples[place]
            groups.setdefault((len(example.ids), example.places), []).append(place)
        large = [group for group in groups.values() if len(group) > 1]
        drawn = [
            tuple(self.draw.sample(self.draw.choice(large), 2)) for _ in range(4 * _PAIRS * bool(large))
        ]
        drawn = list(dict.fromkeys(drawn))
        tokens = [(check.examples[a].tokens, check.examples[b].tokens) for a, b in drawn]
        pairs: list[tuple[int, int, list[Any]]] = []
        for (clean, other), answers in zip(drawn, interchange(check.root, [sop], tokens), strict=True):
            if answers is None or len(pairs) == _PAIRS:
                continue
            wanted = check._wanted(answers, check.examples[clean])
            before = check._wanted(check.expected[clean], check.examples[clean])
            if wanted != before and -1 not in wanted:
                pairs.append((clean, other, wanted))
        return pairs

    def _interchanged(self, sop: Node) -> Intervention | None:
        pairs = self._pairs(sop)
        if len(pairs) < _LEAST:
            self.observed.note(
                f"{self.check.label(sop)}: no interventions, since on too few pairs the model is right "
                "and the program's answer changes"
            )
            return None
        scores = self._scores(sop)
        order = sorted(range(self._layers), key=lambda layer: -scores[layer])
        sites = [layer for layer in order if scores[layer] >= max(scores) - 0.05][:_SITES]
        tuned, held = pairs[::2], pairs[1::2]
        bases = {layer: self._basis(sop, layer) for layer in sites}
        rates = {layer: self._rate(layer, bases[layer], tuned) for layer in sites}
        layer = max(sites, key=lambda site: rates[site])
        basis = bases[layer]
        generator = np.random.default_rng(self.check.seed)
        control = np.linalg.qr(generator.normal(size=(basis.shape[1], len(basis))))[0].T
        random_rate = self._rate(layer, control, held)
        return Intervention(
            self.check.label(sop),
            layer,
            len(basis),
            len(held),
            self._rate(layer, basis, held),
            random_rate,
        )

    def _basis(self, sop: Node, layer: int) -> Array:
        """Return an orthonormal basis of the differences between mean residual streams for different
        values of an s-op.
        """
        values = self.values(sop)
        stream = self._stream(layer, self.first)
        keys = [_key(value) for place in self.first for value in values[place]]
        rows: dict[Any, list[int]] = {}
        for number, key in enumerate(keys):
            rows.setdefault(key, []).append(number)
        means = np.stack([stream[part].mean(axis=0) for part in rows.values()])
        _, sizes, basis = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
        kept: Array = basis[sizes > 1e-6 * max(float(sizes[0]), 1e-30)]
        return kept

    def _rate(self, layer: int, basis: Array, pairs: Sequence[tuple[int, int, list[Any]]]) -> float:
        """Return the fraction of pairs for which the changed model returns the answers of the changed
        program.

        The residual stream at ``layer`` is changed in the subspace spanned by ``basis``.
        """
        import torch

        check, agree = self.check, 0
        groups: dict[int, list[tuple[int, int, list[Any]]]] = {}
        for pair in pairs:
            groups.setdefault(len(check.examples[pair[0]].ids), []).append(pair)
        for group in groups.values():
            ids = torch.tensor([check.examples[clean].ids for clean, _, _ in group])
            moved = np.zeros((*ids.shape, basis.shape[1]))
            for row, (clean, other, _) in enumerate(group):
                at = list(check.examples[clean].places)
                one, two = (self._stream(layer, [place]) for place in (clean, other))
                moved[row, at] = (two - one) @ basis.T @ basis
            shift = torch.from_numpy(moved)

            def change(stream: Any, shift: Any = shift) -> Any:
                return stream + shift.to(stream.dtype).to(stream.device)

            logits = self.observed.changed(ids, layer, change)
            for row, (clean, _, wanted) in enumerate(group):
                example = check.examples[clean]
                answers = check._answers(logits[row], example)
                agree += all(map(check._equal, answers, wanted))
        return agree / len(pairs)


def _solve(rows: Array, right: Array) -> Array:
    """Return C⁻¹ ``right``, where C is the regularised covariance matrix of the centred ``rows``."""
    size = rows.shape[1]
    covariance = rows.T @ rows / len(rows)
    penalty = _RIDGE * max(float(np.trace(covariance)) / size, 1e-30)
    solved: Array = np.linalg.solve(covariance + penalty * np.eye(size), right)
    return solved


def _discriminate(train: Array, classes: Array, test: Array) -> Array:
    """Return the classes of ``test`` predicted by a linear discriminant fitted to ``train``.

    >>> rows = np.array([[0.0], [0.1], [1.0], [1.1], [2.0], [2.1]])
    >>> _discriminate(rows, np.array([0, 0, 1, 1, 2, 2]), np.array([[1.2]]))
    array([1])
    """
    numbers = np.unique(classes)
    means = np.stack([train[classes == number].mean(axis=0) for number in numbers])
    shares = np.array([np.mean(classes == number) for number in numbers])
    inside = train - means[np.searchsorted(numbers, classes)]
    # If all rows of each class are equal, use the covariance of all rows.
    spread = inside if float((inside**2).sum()) > 0 else train - train.mean(axis=0)
    weights = _solve(spread, means.T)
    scores = test @ weights - (means * weights.T).sum(axis=1) / 2 + np.log(shares)
    predicted: Array = numbers[scores.argmax(axis=1)]
    return predicted


def _regress(train: Array, values: Array, test: Array) -> Array:
    """Return the values at ``test`` predicted by a ridge regression with an intercept, fitted to
    ``train``.
    """
    rows = train - train.mean(axis=0)
    weights = _solve(rows, rows.T @ (values - values.mean()) / len(rows))
    predicted: Array = (test - train.mean(axis=0)) @ weights + values.mean()
    return predicted
