"""Score edges by gradients: edge attribution patching (EAP), and EAP with integrated gradients.

For each pair of inputs, an edge contributes a product of two terms, summed over positions and axes. The
score of the edge is the absolute value of the mean contribution. The first term is the replacement
signal of the writer minus its clean signal. The second term is the gradient of a metric with respect to
the input of the reader. With ``steps`` > 1, gradients are averaged over interpolations between the
embeddings of the two inputs (integrated gradients).

The metric of a pair is the logit of the clean answer minus the logit of the other answer, summed over
positions. If both answers are the same, the strongest alternative replaces the other answer. For
real-valued answers, the metric is the output times s, summed over positions. Here s is the sign of the
clean answer minus the other answer, or 0 if both are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from locum.experiments.circuits.patching import CompiledNetwork, PathPatching
from locum.experiments.dataset.baseline import scored
from locum.experiments.dataset.parts import runs_of
from locum.experiments.dataset.scoring import OUTPUT, Truth
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.path_patching import Path
from locum.networks.transformer.weights import Array

#: Largest relative difference between logits or answers that are considered equal.
_TIE = 1e-6


def by_attribution(
    model: CompiledTransformer, truth: Truth, pairs: Sequence[dict[str, Any]], steps: int = 1
) -> dict[str, Any]:
    """Return scores of edges, computed by attribution."""
    module = model.to_torch()
    module.set_use_split_qkv_input(True)
    module.set_use_hook_mlp_in(True)
    edges = dict.fromkeys(truth.candidates, 0.0)
    for run in runs_of(CompiledNetwork(model), pairs):
        gradients = _gradients(module, run, steps)
        changes = {w: run.difference(Path.read(w, OUTPUT)) for w in truth.writers}
        for writer, reader in truth.candidates:
            edges[writer, reader] += float((changes[writer] * gradients[reader]).sum()) / len(pairs)
    return scored({edge: abs(value) for edge, value in edges.items()})


def _gradients(module: Any, run: PathPatching, steps: int) -> dict[str, Array]:
    """Return the mean gradient of the metric at every reader, [pair, position, d_model]."""
    sums: dict[str, Array] = defaultdict(lambda: np.zeros(()))
    clean, other = (
        {name: torch.as_tensor(cache[f"hook_{name}"]) for name in ("embed", "pos_embed")}
        for cache in (run.clean, run.other)
    )
    for step in range(steps):
        share = step / steps
        mixed = {name: clean[name] + share * (other[name] - clean[name]) for name in clean}
        for reader, gradient in _backward(module, run, mixed).items():
            sums[reader] = sums[reader] + gradient / steps
    return sums


def _backward(module: Any, run: PathPatching, embedded: dict[str, Tensor]) -> dict[str, Array]:
    kept: dict[str, Tensor] = {}

    def keep(value: Tensor, hook: Any) -> None:
        value.retain_grad()
        kept[hook.name] = value

    def replace(value: Tensor, hook: Any) -> Tensor:
        return embedded[hook.name.removeprefix("hook_")].requires_grad_()

    hooks: list[Any] = [("hook_embed", replace), ("hook_pos_embed", replace)]
    last = len(module.blocks) - 1
    for number, block in enumerate(module.blocks):
        names = [f"hook_{letter}_input" for letter in "qkv"] * (block.attn is not None)
        names += ["hook_mlp_in"] * (block.mlp is not None) + ["hook_resid_post"] * (number == last)
        hooks += [(f"blocks.{number}.{name}", keep) for name in names]
    sink = int(module.config.sink)
    size = embedded["embed"].shape[1] - sink
    module.zero_grad()
    logits = module.run_with_hooks(torch.zeros(run.size, size, dtype=torch.int64), hooks)
    _metric(logits, run).backward()  # type: ignore[no-untyped-call]
    gradients: dict[str, Array] = {}
    for name, value in kept.items():
        assert value.grad is not None
        gradient = value.grad.numpy()
        block, _, hook = name.rpartition(".hook_")
        if hook == "resid_post":
            gradients[OUTPUT] = gradient
        elif hook == "mlp_in":
            gradients[f"{block}.mlp"] = gradient
        else:
            for head in range(gradient.shape[2]):
                gradients[f"{block}.attn.head.{head}.{hook[0]}"] = gradient[:, :, head]
    return gradients


def _metric(logits: Tensor, run: PathPatching) -> Tensor:
    if not run.network.is_categorical:
        difference = run.answers - run.other_answers
        # Treat answers that differ only by rounding as equal.
        equal = np.abs(difference) <= _TIE * (1 + np.abs(run.answers).max())
        return (logits[..., 0] * torch.as_tensor(np.where(equal, 0.0, np.sign(difference)))).sum()
    clean, other = (torch.as_tensor(answers)[..., None] for answers in (run.answers, run.other_answers))
    rest = logits.detach().scatter(-1, clean, -torch.inf)
    # Of alternatives that differ only by rounding, the first is chosen.
    near = rest >= rest.amax(dim=-1, keepdim=True) - _TIE * (1 + logits.detach().abs().amax())
    other = torch.where(clean == other, near.to(torch.int64).argmax(dim=-1, keepdim=True), other)
    return (logits.gather(-1, clean) - logits.gather(-1, other)).sum()
