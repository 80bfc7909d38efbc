"""Train a transformer to compute a program through a given circuit: strict interchange training (SIIT).

Training starts from random weights. Each step draws pairs of inputs and runs the network twice: on the
other inputs, and on the clean inputs with patched components. In each pair, at most one component of
the circuit is patched. The target is the output of the program with the s-ops of this component taken
from the other input. A random set of components outside of the circuit is also patched, with their
outputs on the other input with permuted positions. These components must not change the answer.

:func:`train` returns the weights, a training curve and the figures that decide whether a network is
accepted:

- ``answers``: the fraction of inputs on which all answers are correct. This fraction must be 1.
- ``interventions``: for each component of the circuit, the fraction of pairs on which the patched
  network returns the program's output, among pairs for which this output is defined. These fractions
  must be at least :data:`LEAST_AGREEMENT`.
- ``outside``: the largest change of a probability if components outside of the circuit are patched, all
  at once or one at a time. Each pair has one permutation of positions. This change must be at most
  :data:`LARGEST_EFFECT`, and no answer may change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from locum.experiments.dataset.trained_alignment import Targets

#: Minimum fraction of agreeing interventions on a component, and maximum effect of components outside
#: of the circuit.
LEAST_AGREEMENT, LARGEST_EFFECT = 0.99, 0.05
#: Number of axes of the residual stream and of a head, and number of hidden units of a layer.
D_MODEL, D_HEAD, D_MLP = 32, 8, 64
#: Maximum numbers of steps of a training run and of runs, pairs in a batch, and steps between
#: measurements.
STEPS, ATTEMPTS, _BATCH, _INTERVAL = 800, 2, 64, 50
_RATE, _WARMUP = 4e-3, 40
#: Figures at which a run ends early: minimum agreement and maximum effect.
_GOOD_AGREEMENT, _GOOD_EFFECT = 0.999, 0.03
#: Maximum number of pairs per forward pass in measurements.
_CHUNK = 2048


@dataclass(frozen=True)
class Figures:
    """The figures that decide whether a trained network is accepted."""

    answers: float
    interventions: tuple[float, ...]
    outside: float
    outside_changed: float

    @property
    def is_accepted(self) -> bool:
        """Whether all figures meet the requirements."""
        return (
            self.answers == 1
            and min(self.interventions) >= LEAST_AGREEMENT
            and self.outside <= LARGEST_EFFECT
            and self.outside_changed == 0
        )

    @property
    def is_good(self) -> bool:
        """Whether the figures exceed the requirements, so that further training is unnecessary."""
        good = min(self.interventions) >= _GOOD_AGREEMENT and self.outside <= _GOOD_EFFECT
        return self.is_accepted and good


@dataclass(frozen=True)
class TrainingRun:
    """The result of a training run: weights, figures, and training curve.

    Each row of the curve contains the step, the loss, and three figures: ``answers``, the minimum of
    ``interventions``, and ``outside``.
    """

    tensors: dict[str, np.ndarray[Any, Any]]
    figures: Figures
    curve: tuple[tuple[int, float, float, float, float], ...]
    seed: int
    steps: int
    failed: tuple[Figures, ...] = field(default=())


def train(targets: Targets, vocabulary: int, *, seed: int = 0, steps: int = STEPS) -> TrainingRun:
    """Train up to :data:`ATTEMPTS` networks until one is accepted, and return the last training run."""
    failed: list[Figures] = []
    for attempt in range(ATTEMPTS):
        found = _Trainer(targets, vocabulary, seed * ATTEMPTS + attempt).run(steps)
        if found.figures.is_accepted or attempt + 1 == ATTEMPTS:
            break
        failed.append(found.figures)
    return TrainingRun(
        found.tensors, found.figures, found.curve, found.seed, found.steps, tuple(failed)
    )


class _Trainer:
    def __init__(self, targets: Targets, vocabulary: int, seed: int) -> None:
        self.targets, self.seed = targets, seed
        self.draw = torch.Generator().manual_seed(seed)
        alignment = targets.alignment
        self.layers, self.heads = alignment.layers, alignment.heads
        length = len(targets.rows[0])
        tokens = {
            token: number
            for number, token in enumerate(dict.fromkeys(t for r in targets.rows for t in r))
        }
        self.ids = torch.tensor([[tokens[token] for token in row] for row in targets.rows])
        self.answers = torch.tensor(targets.answers)
        none = [-100] * length
        #: Targets by [component, clean input, other input, position]; −100: undefined.
        self.changed = torch.tensor(
            [[[a or none for a in row] for row in part] for part in targets.interchanged]
        )
        #: Mask [component, layer, part] of the part that is patched for each component. The parts of a
        #: layer are its heads, then its feed-forward. The last row marks no part.
        parts = self.heads + 1
        self.inside = torch.zeros(len(alignment.components) + 1, self.layers, parts, dtype=torch.bool)
        for number, component in enumerate(alignment.components):
            place = self.heads if component.head is None else component.head
            self.inside[number, component.layer, place] = True
        self.outside = ~self.inside.any(dim=0)
        self.weights = self._start(vocabulary, length, len(targets.outputs))

    def _start(self, vocabulary: int, length: int, outputs: int) -> dict[str, Tensor]:
        def normal(*shape: int, scale: float) -> Tensor:
            return (torch.randn(*shape, generator=self.draw) * scale).requires_grad_()

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, requires_grad=True)

        wide, inner = D_MODEL**-0.5, D_HEAD**-0.5
        weights = {
            "embed.W_E": normal(vocabulary, D_MODEL, scale=0.7),
            "pos_embed.W_pos": normal(length + 1, D_MODEL, scale=0.7),
        }
        for layer in range(self.layers):
            attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
            for letter in "QKV":
                scale = wide if letter == "V" else wide * D_HEAD**-0.25
                weights[f"{attn}.W_{letter}"] = normal(self.heads, D_MODEL, D_HEAD, scale=scale)
                weights[f"{attn}.b_{letter}"] = zeros(self.heads, D_HEAD)
            weights[f"{attn}.W_O"] = normal(self.heads, D_HEAD, D_MODEL, scale=inner * 0.5)
            weights[f"{attn}.b_O"] = zeros(D_MODEL)
            weights[f"{mlp}.W_in"] = normal(D_MODEL, D_MLP, scale=(2 / D_MODEL) ** 0.5)
            weights[f"{mlp}.b_in"] = zeros(D_MLP)
            weights[f"{mlp}.W_out"] = normal(D_MLP, D_MODEL, scale=D_MLP**-0.5 * 0.5)
            weights[f"{mlp}.b_out"] = zeros(D_MODEL)
        weights["unembed.W_U"] = normal(D_MODEL, outputs, scale=wide)
        weights["unembed.b_U"] = zeros(outputs)
        return weights

    def forward(
        self,
        ids: Tensor,
        other: list[Tensor] | None = None,
        patched: Tensor | None = None,
        order: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the logits, and the outputs of the heads and hidden units of each layer.

        ``patched`` [input, layer, part] marks the parts whose outputs are taken from ``other``.
        ``order`` [input, position] is a permutation of the position embeddings.
        """
        w = self.weights
        start = torch.zeros(len(ids), 1, D_MODEL)
        places = w["pos_embed.W_pos"].expand(len(ids), -1, -1)
        if order is not None:
            first = torch.zeros(len(ids), 1, dtype=order.dtype)
            places = w["pos_embed.W_pos"][torch.cat([first, order + 1], dim=1)]
        stream = torch.cat([start, w["embed.W_E"][ids]], dim=1) + places
        given = []
        for layer in range(self.layers):
            attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
            q, k, v = (
                torch.einsum("bpd,hde->bphe", stream, w[f"{attn}.W_{letter}"]) + w[f"{attn}.b_{letter}"]
                for letter in "QKV"
            )
            pattern = torch.einsum("bqhe,bkhe->bhqk", q, k).softmax(dim=-1)
            z = torch.einsum("bhqk,bkhe->bqhe", pattern, v)
            if other is not None and patched is not None:
                mask = patched[:, layer, : self.heads][:, None, :, None]
                z = torch.where(mask, other[2 * layer], z)
            stream = stream + torch.einsum("bphe,hed->bpd", z, w[f"{attn}.W_O"]) + w[f"{attn}.b_O"]
            units = torch.relu(stream @ w[f"{mlp}.W_in"] + w[f"{mlp}.b_in"])
            if other is not None and patched is not None:
                mask = patched[:, layer, self.heads][:, None, None]
                units = torch.where(mask, other[2 * layer + 1], units)
            stream = stream + units @ w[f"{mlp}.W_out"] + w[f"{mlp}.b_out"]
            given += [z, units]
        return stream[:, 1:] @ w["unembed.W_U"] + w["unembed.b_U"], given

    def run(self, steps: int) -> TrainingRun:
        """Train for at most ``steps`` steps, and return the result."""
        optimiser = torch.optim.Adam(list(self.weights.values()), lr=_RATE, betas=(0.9, 0.99))
        curve: list[tuple[int, float, float, float, float]] = []
        step = 0
        for step in range(1, steps + 1):
            share = min(step / _WARMUP, 0.5 * (1 + math.cos(math.pi * step / steps)) + 0.02)
            for group in optimiser.param_groups:
                group["lr"] = _RATE * share
            loss = self._loss()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
            optimiser.step()
            if step % _INTERVAL == 0 or step == steps:
                found = self.measure()
                curve.append(
                    (step, loss.item(), found.answers, min(found.interventions), found.outside)
                )
                if found.is_good:
                    break
        tensors = {name: tensor.detach().numpy().copy() for name, tensor in self.weights.items()}
        return TrainingRun(tensors, found, tuple(curve), self.seed, step)

    def _loss(self) -> Tensor:
        rows = len(self.ids)
        clean, other = (torch.randint(rows, (_BATCH,), generator=self.draw) for _ in range(2))
        chosen = torch.randint(len(self.inside), (_BATCH,), generator=self.draw)
        coins = torch.rand(_BATCH, self.layers, self.heads + 1, generator=self.draw)
        often = torch.rand(_BATCH, 1, 1, generator=self.draw)
        patched = self.inside[chosen] | (self.outside & (coins < often))
        usual = torch.arange(self.ids.shape[1]).expand(_BATCH, -1)
        twice = torch.cat([self.ids[other], self.ids[other]])
        logits, both = self.forward(twice, order=torch.cat([usual, self._orders(_BATCH)]))
        given, moved = [v[:_BATCH] for v in both], [v[_BATCH:] for v in both]
        changed, _ = self.forward(self.ids[clean], self._mixed(given, moved), patched)
        last = len(self.inside) - 1
        wanted = torch.where(
            (chosen == last)[:, None],
            self.answers[clean],
            self.changed[chosen.clamp(max=last - 1), clean, other],
        )
        right = torch.nn.functional.cross_entropy(
            logits[:_BATCH].flatten(0, 1), self.answers[other].flatten()
        )
        followed = torch.nn.functional.cross_entropy(changed.flatten(0, 1), wanted.flatten())
        return right + 2 * followed

    def _orders(self, count: int) -> Tensor:
        """Return ``count`` permutations of positions, of which every third is the identity."""
        length = self.ids.shape[1]
        drawn = torch.rand(count, length, generator=self.draw).argsort(dim=1)
        drawn[::3] = torch.arange(length)
        return drawn

    def _mixed(self, given: list[Tensor], moved: list[Tensor]) -> list[Tensor]:
        """Return outputs for patching: ``moved`` for components outside of the circuit, ``given`` for
        others.
        """
        mixed = []
        for layer in range(self.layers):
            apart = self.outside[layer, : self.heads][:, None]
            mixed.append(torch.where(apart, moved[2 * layer], given[2 * layer]))
            units = self.outside[layer, self.heads]
            mixed.append(torch.where(units, moved[2 * layer + 1], given[2 * layer + 1]))
        return mixed

    @torch.no_grad()
    def measure(self) -> Figures:
        """Return the figures of the network on all inputs and, if its answers are correct, on all
        pairs.
        """
        logits, given = self.forward(self.ids)
        answers = float((logits.argmax(-1) == self.answers).all(dim=1).double().mean())
        if answers < 1:  # not accepted for any interventions
            return Figures(answers, (0.0,) * len(self.changed), 1.0, 1.0)
        likely = logits.softmax(-1)
        rows = len(self.ids)
        pairs = torch.cartesian_prod(torch.arange(rows), torch.arange(rows))
        agree = torch.zeros(len(self.changed))
        count = torch.zeros(len(self.changed))
        effect, flipped, total = 0.0, 0, 0
        for part in torch.split(pairs, _CHUNK):
            clean, other = part[:, 0], part[:, 1]
            source = [value[other] for value in given]
            for number in range(len(self.changed)):
                wanted = self.changed[number, clean, other]
                defined = (wanted >= 0).all(dim=1)
                patched = self.inside[number].expand(len(part), -1, -1)
                found, _ = self.forward(self.ids[clean], source, patched)
                same = (found.argmax(-1) == wanted).all(dim=1)
                agree[number] += float((same & defined).sum())
                count[number] += float(defined.sum())
            _, turned = self.forward(self.ids[other], order=self._orders(len(part)))
            changes = torch.zeros(len(part), dtype=torch.bool)
            for mask in self._masks():
                found, _ = self.forward(self.ids[clean], turned, mask.expand(len(part), -1, -1))
                effect = max(effect, float((found.softmax(-1) - likely[clean]).abs().max()))
                changes |= (found.argmax(-1) != logits[clean].argmax(-1)).any(dim=1)
            flipped += int(changes.sum())
            total += len(part)
        shares = tuple(float(share) for share in agree / count.clamp(min=1))
        return Figures(answers, shares, effect, flipped / total)

    def _masks(self) -> list[Tensor]:
        """Return the sets of outside components to patch in a measurement: all together, and each
        alone.

        Each component is also patched alone, because the effects of two components can cancel each
        other.
        """
        masks = [self.outside]
        for place in self.outside.nonzero():
            alone = torch.zeros_like(self.outside)
            alone[tuple(place)] = True
            masks.append(alone)
        return masks
