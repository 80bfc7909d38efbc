"""The model's own forward pass: that of the transformers library, where it is installed.

The folder is loaded by the library itself, from safetensors and without code of the model's own, so
that a misreading of the folder by this package shows as an error.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from locum.execution.arrays import Array

#: What a comparison says it is with.
TRANSFORMERS, FORMULA = "transformers' own forward pass", "a plain formula of ours"
#: The classes of norms that round to float32.
_ROUNDED = ("RMSNorm", "T5LayerNorm")


class Reference(NamedTuple):
    """States after the embeddings and each layer, and attentions [text, head, query, key] of each."""

    states: list[Array]
    attentions: list[Array]
    seconds: float


def reference(
    folder: Path, dtype: str, ids: Array, attention_mask: Array, layers: int
) -> Reference | None:
    """Run the first layers of a folder by transformers on padded token ids; None where it cannot."""
    model = _loaded(folder, dtype, num_hidden_layers=layers)
    if model is None:
        return None
    import torch

    inputs: dict[str, Any] = {
        "input_ids": torch.as_tensor(ids),
        "attention_mask": torch.as_tensor(attention_mask).long(),
        "output_hidden_states": True,
        "output_attentions": True,
    }
    with torch.no_grad():
        model(input_ids=inputs["input_ids"][:, :1])  # the first run is slower
        began = time.perf_counter()
        outputs = model(**inputs)
    seconds = time.perf_counter() - began
    return Reference(list(outputs.hidden_states), list(outputs.attentions), seconds)


class Outputs(NamedTuple):
    """What a folder's own class gives: outputs by name, states, and attentions if asked for."""

    outputs: dict[str, Array]
    states: list[Array]
    attentions: list[Array]
    #: What computed it.
    by: str = TRANSFORMERS


def reference_outputs(
    folder: Path,
    dtype: str,
    inputs: Mapping[str, Any],
    architecture: str,
    attentions: bool = False,
) -> Outputs | None:
    """Run a folder's own class by transformers; None where the library cannot."""
    model = _loaded(folder, dtype, architecture)
    if model is None:
        return None
    import torch

    tensors = {name: torch.as_tensor(np.asarray(value)).long() for name, value in inputs.items()}
    maps: Sequence[Any] = ()
    with torch.no_grad():
        if attentions:
            maps = model(**tensors, output_attentions=True).attentions
        by = TRANSFORMERS + (_in_double(model) if dtype == "float64" else "")
        outputs = model(**tensors, output_hidden_states=True)
    named = {name: getattr(outputs, name, None) for name in ("logits", "pooler_output")}
    states = getattr(outputs, "last_hidden_state", None)
    named["last_hidden_state"] = outputs.hidden_states[-1] if states is None else states
    return Outputs(
        {name: value.numpy() for name, value in named.items() if value is not None},
        [state.numpy() for state in outputs.hidden_states],
        [each.numpy() for each in maps],
        by,
    )


def _in_double(model: Any) -> str:
    """Let a model of float64 compute in float64 what the library rounds to float32; say what that is.

    These are norms by the root mean square, and the softmax of some models' eager attention.
    """
    with contextlib.suppress(ValueError):  # where the library has no other attention for it
        model.set_attn_implementation("sdpa")
    norms = [part for part in model.modules() if type(part).__name__.endswith(_ROUNDED)]
    for norm in norms:
        norm.forward = functools.partial(_root_mean_square, norm)
    return " (its norms in float64, too)" if norms else ""


def _root_mean_square(norm: Any, x: Any) -> Any:
    return norm.weight * x * (x.square().mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()


def reference_text(
    folder: Path, dtype: str, prompt: list[int], max_new_tokens: int | None, encodes: bool = False
) -> list[int] | None:
    """Continue a prompt greedily by transformers itself; None where the library cannot.

    ``max_new_tokens``: None where the library decides it by the generation config.
    ``encodes``: whether the prompt is an encoder's, and the text of its decoder is given.
    """
    model = _loaded(folder, dtype, "AutoModelForSeq2SeqLM" if encodes else "AutoModelForCausalLM")
    if model is None:
        return None
    import torch

    ids = torch.tensor([prompt])
    length = {} if max_new_tokens is None else {"max_new_tokens": max_new_tokens}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generated = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, num_beams=1, **length
        )
    return [int(one) for one in generated[0, 1 if encodes else len(prompt) :]]


def _loaded(folder: Path, dtype: str, kind: str = "", **settings: Any) -> Any:
    """Load the model in this type, all of its weights from the file.

    None if the library is not installed, or refuses the folder. ``kind`` is a class of the library's.
    """
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, on versions and settings
        import torch
        import transformers

        loader: Any = getattr(transformers, kind, transformers.AutoModel)
        logging: Any = transformers.utils.logging
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            model, loading = loader.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                attn_implementation="eager",
                output_loading_info=True,
                **settings,
            )
        except (OSError, ValueError, KeyError, RuntimeError, TypeError):
            return None
        finally:
            logging.set_verbosity(verbosity)
            logging.enable_progress_bar()
    missing = [name for name in loading["missing_keys"] if not name.startswith("pooler.")]
    if missing or loading.get("mismatched_keys"):
        return None
    return model.to(getattr(torch, dtype)).eval()
