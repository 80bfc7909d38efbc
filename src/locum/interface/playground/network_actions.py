"""Ablate heads of a program's compiled network, change its temperature, and export it as a file."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import numpy as np

from locum.errors import InputError, LocumError
from locum.execution import run as run_program
from locum.interface.playground.panes import texts
from locum.interface.playground.weights_pane import agrees, compiled, draw_inputs
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.folder import saving
from locum.networks.transformer.weights import HARD

#: Number of random inputs on which a changed network is compared with the program, and their seed.
OTHERS, SEED = 40, 0
#: Maximum size of a file in bytes. Answers have a limited size, and base64 adds a third to the size of
#: the file.
MAX_FILE = 2_500_000
FORMATS = ("onnx", "safetensors", "notebook")


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


# Files --------------------------------------------------------------------------------------------


def export(
    source: str,
    typed: str,
    name: str | None,
    kind: str,
    **options: Any,
) -> dict[str, Any]:
    """Return the network as a file in base64: ONNX, safetensors in a zip archive, or a notebook.

    The notebook compiles the same program with softmax heads, and runs the network in TransformerLens.
    """
    if kind == "notebook":  # TransformerLens has neither hard attention nor symbolic feed-forwards
        options["attention"] = "softmax"
        if options["feed_forward"] == "exact":
            options["feed_forward"] = "relu"
    settings = dict(options)
    program, name, model, _ = compiled(source, typed, name, settings)
    if kind == "onnx":
        file, content = "network.onnx", _onnx(model)
    elif kind == "safetensors":
        file, content = "network.zip", _archive(model)
    else:
        model.transformer_lens_config()  # raises an error if TransformerLens cannot run this network
        text = json.dumps(_notebook(source, program.tokens, name, model, settings), indent=1)
        file, content = "network.ipynb", text.encode()
    if len(content) > MAX_FILE:
        raise InputError(
            f"expected a file of at most {MAX_FILE:,} bytes, got {len(content):,}; try a shorter "
            "length, or `locum compile -o FOLDER`"
        )
    return {"file": file, "base64": base64.b64encode(content).decode()}


def _onnx(model: CompiledTransformer) -> bytes:
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            "the package onnx is not installed on the server of the playground; "
            "try the safetensors file, and load(folder).to_onnx(path) on your machine"
        ) from None
    from locum.networks.transformer.exports.onnx_graph import onnx_bytes

    return onnx_bytes(model.config, model.weights)


def _archive(model: CompiledTransformer) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in saving.contents(model.config, model.weights).items():
            whole = content if isinstance(content, (str, bytes)) else b"".join(content)
            archive.writestr(f"network/{file}", whole)
    return buffer.getvalue()


_TITLE = """# {name} in TransformerLens

The network below was compiled from a RASP program. Its circuit labels heads and groups of hidden units.
The notebook needs `pip install 'locum[torch,lens]'`."""
_COMPILE = """import locum
from locum.rasp import Session

source = {source!r}
example = {example!r}
session = Session(example)
session.script(source)
program = session.value_of({name!r})
model = locum.compile(program, {settings})
print(model.report())"""
_RUN = """import torch

hooked = model.to_transformer_lens()


def answers(words, hooks=()):
    with torch.no_grad():
        logits = hooked.run_with_hooks(
            model.transformer_lens_inputs(words), return_type="logits", fwd_hooks=list(hooks),
            **start
        )
    return model.decode(logits.numpy(), words)


start = {{"start_at_layer": 0}} if model.config.vocabulary is None else {{}}
words = [list(example)]
print(answers(words), "expected", [program(word) for word in words])"""
_ABLATE = """def silence(head):
    def hook_function(activation, hook):
        activation[..., head, :] = 0.0
        return activation

    return hook_function


for layer, heads in enumerate(model.architecture.heads):
    for head in range(heads):
        hook = (f"blocks.{layer}.attn.hook_z", silence(head))
        print(f"without head {layer}.{head}:", answers(words, [hook])[0])"""


def _notebook(
    source: str, example: Any, name: str, model: CompiledTransformer, settings: dict[str, Any]
) -> dict[str, Any]:
    config = model.config
    given = {
        "length": config.lengths[1],
        **{k: v for k, v in settings.items() if v not in (None, False)},
    }
    if config.vocabulary is None:
        given["numeric"] = True
        if config.ranges:
            given["ranges"] = config.ranges[0]
    else:
        given["vocabulary"] = list(config.vocabulary)
    written = ", ".join(f"{key}={value!r}" for key, value in given.items())
    cells = [
        ("markdown", _TITLE.format(name=name)),
        ("code", _COMPILE.format(source=source, example=example, name=name, settings=written)),
        ("code", _RUN.format()),
        ("markdown", "## Ablate each head\n\nA hook replaces the output of a head by 0."),
        ("code", _ABLATE),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel},
        "cells": [
            {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text}
            | ({"outputs": [], "execution_count": None} if kind == "code" else {})
            for number, (kind, text) in enumerate(cells)
        ],
    }  # fmt: skip
