"""ViT: an image as rows of patches, and a first row of its own; norms before each part."""

from __future__ import annotations

from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, below, is_tensor
from locum.simulators.models.families.description import Description, Output, Stack
from locum.simulators.models.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    epsilon,
    flag,
    only,
    size,
    size_or_none,
)
from locum.simulators.models.families.parts import attention_of_linears, feed_forward_of_linears
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.stage import Stage
from locum.simulators.modules.encoder import Encoder


def _lengths(default: int) -> Field:
    return Field(default, "a positive integer, or two", lambda v: bool(_pair(v)))


def _pair(value: Any) -> tuple[int, int] | None:
    both = value if isinstance(value, (list, tuple)) else (value, value)
    fits = len(both) == 2 and all(type(side) is int and side > 0 for side in both)
    return (both[0], both[1]) if fits else None


VIT = {
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "intermediate_size": size(3072),
    "hidden_act": activation("gelu"),
    "layer_norm_eps": epsilon(1e-12),
    "image_size": _lengths(224),
    "patch_size": _lengths(16),
    "num_channels": size(3),
    "qkv_bias": flag(True),
    "pooler_output_size": size_or_none(None),
    "pooler_act": activation("tanh"),
    "is_encoder_decoder": only(False, "a ViT is an encoder"),
}
#: What the parts of a layer are called: now, and in older folders.
_NAMES = ("layers.{}", *(f"attention.{part}_proj" for part in "qkvo"), "mlp.fc1", "mlp.fc2")
_OLDER = (
    "encoder.layer.{}",
    *(f"attention.attention.{part}" for part in ("query", "key", "value")),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)


def vit(source: Source) -> Description:
    """Read a ViT."""
    values = source.fields(VIT)
    d, heads, hidden, small = (
        values[name]
        for name in ("hidden_size", "num_attention_heads", "intermediate_size", "layer_norm_eps")
    )
    channels, bias = values["num_channels"], values["qkv_bias"]
    image, patch = _pair(values["image_size"]), _pair(values["patch_size"])
    assert image is not None
    assert patch is not None
    where, *parts = _NAMES if source.has("layers.0.mlp.fc1.weight") else _OLDER
    layers = []
    for number in range(values["num_hidden_layers"]):
        name = where.format(number)
        *attention, inner, outer = (f"{name}.{part}" for part in parts)
        layers.append(
            Encoder(
                attention_of_linears(source, attention, d, heads, bias=bias),
                *feed_forward_of_linears(source, inner, outer, d, hidden),
                activation=ACTIVATIONS[values["hidden_act"]],
                norm="pre",
                norm1=source.norm(f"{name}.layernorm_before", d),
                norm2=source.norm(f"{name}.layernorm_after", d),
                epsilon=small,
            )
        )
    kernel = source.tensor("embeddings.patch_embeddings.projection.weight", d, channels, *patch)
    own = source.tensor("embeddings.patch_embeddings.projection.bias", d)
    first = source.tensor("embeddings.cls_token", 1, 1, d).reshape(1, d)
    count = (image[0] // patch[0]) * (image[1] // patch[1])
    stack = Stack(
        layers,
        heads,
        None,
        Stage().product(kernel.reshape(d, -1).T).add("types").add("positions"),
        source.tensor("embeddings.position_embeddings", 1, count + 1, d).reshape(count + 1, d),
        types=below(first, own.reshape(1, d)),
        final=source.layer_norm(Stage(), "layernorm", d, small),
        ends_normed=False,
    )
    outputs = {}
    if source.architecture == "ViTForImageClassification":
        labels = source.tensor("classifier.weight", None, d).shape[0]
        outputs["logits"] = Output(Stage().product(*source.linear("classifier", d, labels)), True)
    elif source.has("pooler.dense.weight"):
        pooled = Stage().product(*source.linear("pooler.dense", d, values["pooler_output_size"] or d))
        outputs["pooler_output"] = Output(pooled.activate(ACTIVATIONS[values["pooler_act"]]), True)
    return Description(
        "vit",
        source.where,
        stack,
        outputs=outputs,
        patches=lambda pixels: _patches(pixels, channels, image, patch),
    )


def _patches(pixels: Array, channels: int, image: tuple[int, int], patch: tuple[int, int]) -> Array:
    """List the patches of every image, a row for each, behind a row of zeros."""
    if tuple(pixels.shape[1:]) != (channels, *image):
        expected = "×".join(map(str, (channels, *image)))
        got = "×".join(map(str, pixels.shape[1:]))
        raise InputError(f"expected images of {expected}, got {got}")
    (height, width), (rows, columns) = patch, (image[0] // patch[0], image[1] // patch[1])
    cut = pixels[:, :, : rows * height, : columns * width]
    split = cut.reshape(len(pixels), channels, rows, height, columns, width)
    if is_tensor(split):
        split = split.permute(0, 2, 4, 1, 3, 5).reshape(len(pixels), rows * columns, -1)
        padded = split.new_zeros(len(pixels), 1 + rows * columns, split.shape[2])
    else:
        split = split.transpose(0, 2, 4, 1, 3, 5).reshape(len(pixels), rows * columns, -1)
        padded = np.zeros((len(pixels), 1 + rows * columns, split.shape[2]))
    padded[:, 1:] = split
    return padded.reshape(-1, padded.shape[2])
