"""What a model is run on: texts, token ids, pixels, or a dict of these, as the library has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locum.errors import InputError
from locum.execution.arrays import Array, numpy_of
from locum.simulators.matrices import real_numbers
from locum.simulators.models.sentence import Sentence
from locum.simulators.models.tokenising import tokenised
from locum.simulators.modules.masks import require_binary, require_some_key
from locum.simulators.modules.module import Numbers

#: What the library's tokenizers and processors give, as far as it is simulated.
NAMES = (
    *("input_ids", "attention_mask", "token_type_ids", "pixel_values"),
    *("decoder_input_ids", "decoder_attention_mask"),
)


@dataclass(frozen=True)
class Inputs:
    """Ids and masks [text, position] of a stack, and its token types."""

    ids: Numbers
    #: 1 at tokens that count; None if all do.
    mask: Numbers | None = None
    types: Numbers | None = None
    #: The rows of the table of positions, where they do not follow from ids and mask.
    at: NDArray[Any] | None = None

    @property
    def attended(self) -> Numbers:
        """Return the mask, ones if there is none."""
        return np.ones(self.ids.shape) if self.mask is None else self.mask


def read_inputs(
    inputs: Any, folder: Path | None, longest: int | None, pad: int, sentence: Sentence
) -> dict[str, Any]:
    """Read inputs by the names that transformers gives them; lists are padded by the id ``pad``.

    ``sentence`` says how texts are cut.
    """
    if isinstance(inputs, Mapping):
        unknown = sorted(str(name) for name in inputs if name not in NAMES)
        if unknown:
            raise InputError(f"{', '.join(unknown)} is not simulated: expected {', '.join(NAMES)}")
        return {str(name): value for name, value in inputs.items() if value is not None}
    if isinstance(inputs, str):
        inputs = [inputs]
    if hasattr(inputs, "ndim") and inputs.ndim == 4:
        return {"pixel_values": inputs}
    if not isinstance(inputs, (list, tuple)):
        return {"input_ids": inputs}
    if not inputs:
        raise InputError("expected one text or more, or lists of token ids, got an empty list")
    if any(isinstance(text, str) for text in inputs):
        if folder is None:
            raise InputError(
                "a live model has no tokenizer: expected token ids, or what its tokenizer gives, got "
                "text; try the folder that it was loaded from"
            )
        texts = [text for text in inputs if isinstance(text, str)]
        made = iter(tokenised(folder, texts, longest or 10**9, sentence))
        inputs = [next(made).numbers if isinstance(text, str) else text for text in inputs]
    if all(isinstance(text, (list, tuple)) for text in inputs):
        lengths = [len(text) for text in inputs]
        n = max(lengths)
        ids = [[*text, *([pad] * (n - len(text)))] for text in inputs]
        mask = np.array([[1.0] * size + [0.0] * (n - size) for size in lengths])
        return {"input_ids": ids} | ({"attention_mask": mask} if min(lengths) < n else {})
    return {"input_ids": inputs}


def read_ids(value: Any, name: str, vocabulary: int, longest: int | None) -> Numbers:
    """Read token ids [text, position]: integers of the table, and nothing that only equals them."""
    _require_integers(value, name)
    ids = numpy_of(real_numbers(value, name, copy=False))
    if ids.ndim == 1:
        ids = ids[None]
    if ids.ndim != 2 or 0 in ids.shape:
        raise InputError(f"{name}: expected token ids [text, position], got the shape {ids.shape}")
    if longest is not None and ids.shape[1] > longest:
        raise InputError(f"expected at most {longest} tokens, got {ids.shape[1]}")
    wrong = ids[(ids < 0) | (ids >= vocabulary)]
    if wrong.size:
        raise InputError(f"expected tokens from 0 to {vocabulary - 1}, got {int(wrong[0])}")
    return ids


def _require_integers(value: Any, name: str) -> None:
    """Refuse booleans, which are masks, and floating-point numbers, as the library does."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        try:
            array = np.asarray(value)
        except ValueError:  # ragged: described elsewhere
            return
        if not array.size:  # so is what is empty
            return
        dtype = array.dtype
    kind = str(dtype).removeprefix("torch.")
    if kind.startswith(("bool", "float", "bfloat")):
        raise InputError(f"expected token ids as integers in {name}, got {kind}")


def read_padding(value: Any, name: str, ids: Numbers) -> Numbers | None:
    """Read an attention mask of the shape of the ids; None if all tokens count."""
    if value is None:
        return None
    mask = numpy_of(real_numbers(value, name, copy=False))
    if mask.ndim == 1:
        mask = mask[None]
    if mask.shape != ids.shape:
        raise InputError(f"{name}: expected the shape {ids.shape} of the ids, got {mask.shape}")
    require_binary(mask, name)
    require_some_key(mask, name)
    return None if mask.all() else mask


def read_types(value: Any, ids: Numbers, count: int) -> Numbers | None:
    """Read token types of the shape of the ids."""
    if value is None:
        return None
    types = read_ids(value, "token_type_ids", count, None)
    if types.shape != ids.shape:
        raise InputError(f"token_type_ids: expected the shape {ids.shape}, got {types.shape}")
    return types


def read_pixels(value: Any) -> Array:
    """Read images [image, channel, y, x]."""
    pixels = real_numbers(value, "pixel_values", copy=False)
    if pixels.ndim != 4 or 0 in pixels.shape:
        shape = tuple(pixels.shape)
        raise InputError(f"pixel_values: expected [image, channel, y, x], got the shape {shape}")
    return pixels
