"""Load a pretrained model and its tokenizer from a folder with the transformers library.

Nothing is downloaded, no code of the folder runs, and weights are read from safetensors or GGUF files
only: pickled weights can run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from locum.errors import InputError

#: Types of numbers in which a model can run.
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Pretrained:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any
    folder: Path
    #: Parameters that the folder lacks: they have random values.
    missing: Sequence[str] = ()

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the model has an encoder and a decoder."""
        return bool(getattr(self.model.config, "is_encoder_decoder", False))

    def encode(self, texts: Sequence[str], *, pad_left: bool = False) -> dict[str, torch.Tensor]:
        """Return the inputs of the model for a batch of texts, padded to the longest one."""
        if pad_left:
            self.tokenizer.padding_side = "left"
        padding = len(texts) > 1
        if padding and self.tokenizer.pad_token_id is None:
            if self.tokenizer.eos_token_id is None:
                raise InputError(
                    f"{self.folder}: expected one text, got {len(texts)}: the tokenizer has no padding "
                    "token; try one --text"
                )
            self.tokenizer.pad_token = self.tokenizer.eos_token
        encoded = self.tokenizer(list(texts), return_tensors="pt", padding=padding)
        if not encoded["input_ids"].shape[-1]:
            raise InputError(
                "texts: expected at least one token, got none; try another text, or save the tokenizer "
                "into the folder"
            )
        return dict(encoded)

    def tokens(self, ids: torch.Tensor) -> list[str]:
        """Return token ids as the tokens of the vocabulary."""
        return [str(token) for token in self.tokenizer.convert_ids_to_tokens(ids.tolist())]


def load_pretrained(folder: Path, *, generates: bool = False, dtype: str | None = None) -> Pretrained:
    """Load the model and the tokenizer of a folder, with the head for tokens if it ``generates``."""
    try:
        import transformers
    except ModuleNotFoundError:
        raise InputError("--model needs transformers: try pip install 'locum[models]'") from None
    if not folder.is_dir():
        raise InputError(f"--model: expected a folder of a model, got {folder}, which is none")
    if dtype is not None and dtype not in DTYPES:
        raise InputError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    weights: dict[str, Any] = {"dtype": getattr(torch, dtype) if dtype else "auto"}
    quantised = sorted(folder.glob("*.gguf"))
    if quantised and not list(folder.glob("*.safetensors")):
        options["gguf_file"] = quantised[0].name
    else:
        weights["use_safetensors"] = True
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **options)
        kind: Any = transformers.AutoModel
        if generates and getattr(config, "is_encoder_decoder", False):
            kind = transformers.AutoModelForSeq2SeqLM
        elif generates:
            kind = transformers.AutoModelForCausalLM
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        model, loading = kind.from_pretrained(folder, **options, **weights, output_loading_info=True)
    except Exception as error:  # the files of a folder can cause any error in the library
        problem = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"--model: expected a folder that transformers loads from safetensors, got {folder}: "
            f"{problem}; try model.save_pretrained(folder) and tokenizer.save_pretrained(folder)"
        ) from error
    if model.main_input_name != "input_ids":
        raise InputError(
            f"--model: expected a model that reads text, got one that reads {model.main_input_name}; "
            "try locum.torch.simulate(model, ...) in Python"
        )
    return Pretrained(model.eval(), tokenizer, folder, sorted(loading["missing_keys"]))
