"""Ablate heads of a program's compiled network, and change its temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import InputError, LocumError
from locum.execution import run as run_program
from locum.interface.playground.panes import texts
from locum.interface.playground.weights_pane import agrees, compiled, draw_inputs
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.weights import HARD

#: Number of random inputs on which a changed network is compared with the program, and their seed.
OTHERS, SEED = 40, 0


def intervene(
    source: str, typed: str, name: str | None, ablated: list[str], temperature: float, **options: Any
) -> dict[str, Any]:
    """Run the compiled network with ablated heads, and with scores divided by ``temperature``.

    The outputs of the heads in ``ablated``, named ``layer.head``, are replaced by zero. The result
    contains the output on the input, the attention patterns, and the number of random inputs on which
    the output is wrong.
    """
    program, name, model, _ = compiled(source, typed, name, options)
    heads = sorted({_head(model, each) for each in ablated})
    kinds = {
        kind for layer in model.weights.layers if layer.attention for kind in layer.attention.kinds
    }
    if temperature != 1 and HARD in kinds:
        raise InputError(
            "temperature: expected 1, since the pattern of hard attention does not depend on it, got "
            f"{temperature:g}; try softmax attention"
        )
    patterns: dict[int, Any] = {}
    hooks = _hooks(model, heads, temperature)
    shown = [(f"blocks.{layer}.attn.hook_pattern", _keep(patterns, layer)) for layer in _layers(model)]
    node = program.sop(name)[1].node
    bound = model.config.report.get("error_bound")
    expected = list(run_program(node, program.tokens))
    output, problem = _run(model, program.tokens, [*hooks, *shown])
    wrong = tried = 0
    for word in draw_inputs(model, OTHERS, SEED):
        try:
            right = list(run_program(node, word))
        except LocumError:
            continue  # the program is undefined on this input
        found, _ = _run(model, word, hooks)
        tried += 1
        wrong += found is None or not all(map(lambda x, y: agrees(x, y, bound), found, right))
    return {
        "name": name,
        "expected": texts(expected),
        "output": None if output is None else texts(output),
        "problem": problem,
        "places": [
            output is not None and agrees(one, other, bound)
            for one, other in zip(output or expected, expected, strict=True)
        ],
        "patterns": [patterns.get(layer, []) for layer in range(len(model.weights.layers))],
        "tried": tried,
        "wrong": wrong,
    }


def _layers(model: CompiledTransformer) -> list[int]:
    return [number for number, layer in enumerate(model.weights.layers) if layer.attention is not None]


def _head(model: CompiledTransformer, name: str) -> tuple[int, int]:
    counts = {n: model.weights.layers[n].attention.heads for n in _layers(model)}  # type: ignore[union-attr]
    known = [f"{layer}.{head}" for layer, count in counts.items() for head in range(count)]
    if name not in known:
        raise InputError(
            f"ablated: expected heads of the network ({', '.join(known)}), got {name[:20]!r}"
        )
    layer, _, head = name.partition(".")
    return int(layer), int(head)


def _hooks(model: CompiledTransformer, heads: list[tuple[int, int]], temperature: float) -> list[Any]:
    def silence(head: int) -> Any:
        def call(activation: Any, hook: Any) -> Any:
            changed = activation.copy()
            changed[..., head, :] = 0.0
            return changed

        return call

    hooks: list[Any] = [(f"blocks.{layer}.attn.hook_z", silence(head)) for layer, head in heads]
    if temperature != 1:
        hooks += [
            (f"blocks.{layer}.attn.hook_attn_scores", lambda scores, hook: scores / temperature)
            for layer in _layers(model)
        ]
    return hooks


def _keep(patterns: dict[int, Any], layer: int) -> Any:
    def call(pattern: Any, hook: Any) -> None:
        patterns[layer] = np.round(np.asarray(pattern[0], dtype=np.float64), 4).tolist()

    return call


def _run(model: CompiledTransformer, word: Any, hooks: list[Any]) -> tuple[list[Any] | None, str]:
    try:
        return list(model.run_with_hooks(word, hooks)), ""
    except LocumError as error:
        return None, str(error)
