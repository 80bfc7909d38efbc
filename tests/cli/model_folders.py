"""Folders of tiny random models of the transformers library, each with a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.torch.tiny_models import KINDS

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

WORDS = ("[PAD]", "[EOS]", "[UNK]", "the", "cat", "sat", "on", "a", "mat", "dog", "ran", ".")
#: The class of the saved model, and changes of its config.
CLASSES = {
    "bert": ("BertModel", {}),
    "gpt2": ("GPT2LMHeadModel", {"n_positions": 32}),
    "t5": ("T5ForConditionalGeneration", {"decoder_start_token_id": 0}),
    "vit": ("ViTModel", {}),
}


def save_tokenizer(folder: Path, *, padded: bool = True) -> None:
    """Save a tokenizer of words. Its words are separated by spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "[PAD]", "eos_token": "[EOS]"} if padded else {}
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )
    fast.save_pretrained(folder)


def save_model(folder: Path, kind: str, **config: Any) -> Path:
    """Save a model and its tokenizer, and return the folder."""
    name, own, _ = KINDS[kind]
    saved, changes = CLASSES[kind]
    text = {} if kind == "vit" else {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    chosen = getattr(transformers, f"{name}Config")(**own | text | changes | config)
    torch.manual_seed(0)
    model = getattr(transformers, saved)(chosen)
    for parameter in model.parameters():  # the library's initial values are close to 0
        torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder
