"""Load a pretrained model and its tokenizer from a folder with the transformers library.

Nothing is downloaded, and no code in the folder is executed. Weights are read only from safetensors or
GGUF files, since pickled weights can execute code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from locum.errors import InputError

#: Floating-point dtypes in which a model can run.
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model with its tokenizer."""

    model: Any
    #: The tokenizer, or None if the folder contains none.
    tokenizer: Any
    folder: Path
    #: Names of parameters that the folder does not contain and that have random values.
    missing: Sequence[str] = ()

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the model consists of an encoder and a decoder."""
        return bool(getattr(self.model.config, "is_encoder_decoder", False))

    def encode(self, texts: Sequence[str], *, pad_left: bool = False) -> dict[str, torch.Tensor]:
        """Return the inputs of the model for texts, padded to the length of the longest text.

        With ``pad_left``, the padding precedes each text.
        """
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
        """Return the vocabulary tokens of token ids as strings."""
        return [str(token) for token in self.tokenizer.convert_ids_to_tokens(ids.tolist())]


def load_pretrained(
    folder: Path, *, generates: bool = False, answers: bool = False, dtype: str | None = None
) -> Pretrained:
    """Load the model and the tokenizer from a folder.

    With ``generates``, the model has a language-model head. With ``answers``, the model has the head
    with which it was saved, the tokenizer is optional, and missing weights raise an error.
    """
    try:
        import transformers
    except ModuleNotFoundError:
        raise InputError("--model needs transformers: try pip install 'locum[models]'") from None
    if not folder.is_dir():
        raise InputError(f"--model: expected the folder of a model, got {folder}")
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
        elif answers:
            kind = _saved_class(transformers, config)
        tokenizer = _tokenizer(transformers, folder, options)
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
    if tokenizer is None and not answers:
        raise InputError(
            f"--model: expected a tokenizer in {folder}, got none; try "
            "tokenizer.save_pretrained(folder), or locum.torch.simulate(model, input_ids=...) in Python"
        )
    missing = sorted(loading["missing_keys"])
    if answers and missing:
        raise InputError(
            f"--model: expected all weights in {folder}, got none of {', '.join(missing[:3])}; "
            "try model.save_pretrained(folder) of the whole model"
        )
    return Pretrained(model.eval(), tokenizer, folder, missing)


def _saved_class(transformers: Any, config: Any) -> Any:
    """Return the transformers class with which a model was saved."""
    names = getattr(config, "architectures", None) or []
    kind = getattr(transformers, names[0], None) if names else None
    if kind is None or not hasattr(kind, "from_pretrained"):
        raise ValueError(f"the configuration names no class of transformers: {names}")
    return kind


def _tokenizer(transformers: Any, folder: Path, options: dict[str, Any]) -> Any:
    """Return the tokenizer in a folder, or None if the folder contains no files of a tokenizer."""
    names = ("*token*", "vocab*", "*.model", "tekken.json")
    if "gguf_file" not in options and not any(any(folder.glob(name)) for name in names):
        return None
    return transformers.AutoTokenizer.from_pretrained(folder, **options)
