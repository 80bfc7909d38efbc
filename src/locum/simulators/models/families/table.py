"""The families that are read: the reader of each, and the classes whose objects it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.simulators.checking import choose
from locum.simulators.models.families.bert import (
    albert,
    bert,
    distilbert,
    electra,
    mpnet,
    roberta,
)
from locum.simulators.models.families.description import Description
from locum.simulators.models.families.encoder_decoder import bart, t5
from locum.simulators.models.families.gpt import gpt2, gpt_neox, opt
from locum.simulators.models.families.live import is_live, live_source
from locum.simulators.models.families.llama import llama, mistral, qwen2
from locum.simulators.models.families.source import Source
from locum.simulators.models.families.vit import vit
from locum.simulators.models.folders import read_config, read_folder, read_tensors
from locum.simulators.models.forms import FORMS


class Family(NamedTuple):
    """One family: its title, its reader, its classes, and the prefix of the tensors of its base."""

    title: str
    read: Callable[[Source], Description]
    classes: tuple[str, ...]
    prefix: str


FAMILIES: dict[str, Family] = {
    "bert": Family("BERT", bert, ("BertModel", "BertForMaskedLM"), "bert."),
    "distilbert": Family(
        "DistilBERT", distilbert, ("DistilBertModel", "DistilBertForMaskedLM"), "distilbert."
    ),
    "roberta": Family("RoBERTa", roberta, ("RobertaModel", "RobertaForMaskedLM"), "roberta."),
    "xlm-roberta": Family("XLM-R", roberta, ("XLMRobertaModel", "XLMRobertaForMaskedLM"), "roberta."),
    "camembert": Family("CamemBERT", roberta, ("CamembertModel", "CamembertForMaskedLM"), "roberta."),
    "electra": Family("ELECTRA", electra, ("ElectraModel", "ElectraForMaskedLM"), "electra."),
    "albert": Family("ALBERT", albert, ("AlbertModel", "AlbertForMaskedLM"), "albert."),
    "mpnet": Family("MPNet", mpnet, ("MPNetModel", "MPNetForMaskedLM"), "mpnet."),
    "vit": Family("ViT", vit, ("ViTModel", "ViTForImageClassification"), "vit."),
    "t5": Family("T5", t5, ("T5Model", "T5ForConditionalGeneration", "T5EncoderModel"), ""),
    "bart": Family("BART", bart, ("BartModel", "BartForConditionalGeneration"), "model."),
    "gpt2": Family("GPT-2", gpt2, ("GPT2Model", "GPT2LMHeadModel"), "transformer."),
    "opt": Family("OPT", opt, ("OPTModel", "OPTForCausalLM"), "model."),
    "gpt_neox": Family("GPT-NeoX", gpt_neox, ("GPTNeoXModel", "GPTNeoXForCausalLM"), "gpt_neox."),
    "llama": Family("Llama", llama, ("LlamaModel", "LlamaForCausalLM"), "model."),
    "qwen2": Family("Qwen2", qwen2, ("Qwen2Model", "Qwen2ForCausalLM"), "model."),
    "mistral": Family("Mistral", mistral, ("MistralModel", "MistralForCausalLM"), "model."),
}


def describe(model: Any, form: str = "factored") -> tuple[Description, Source]:
    """Read a folder or a live model of any family."""
    choose(form, FORMS, "form")
    if not is_live(model):
        source = folder_source(model, form)
        family = _family(source.family, source.where)
    else:
        name = type(model).__name__
        family = _family(str(model.config.model_type), name)
        source = live_source(model, form)
        if name not in family.classes:
            raise InputError(
                f"objects of the class {name} are not simulated: of the family {family.title}, "
                f"{', '.join(family.classes)} are"
            )
    description = family.read(source)
    words, count = description.stack.words, source.config.get("vocab_size")
    if words is not None and count is not None and count != len(words):
        raise InputError(
            f"{source.where}: expected a table of {count!r:.60} words (vocab_size), got {len(words)}"
        )
    return description, source


def _family(name: str, where: str) -> Family:
    family = FAMILIES.get(name)
    if family is None:
        raise InputError(
            f"{where}: the architecture {name!r} (model_type) is not simulated: "
            f"{', '.join(FAMILIES)} are"
        )
    return family


def folder_source(path: str | Path, form: str = "factored") -> Source:
    """Read the config and the tensors of a folder, those of its base without their prefix."""
    folder = read_folder(path)
    config = read_config(folder)
    family = FAMILIES.get(str(config.get("model_type")))
    named = config.get("architectures")
    architecture = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    if family is not None and architecture not in ("", *family.classes):
        if not (folder / "modules.json").is_file():  # which takes the model without its head
            raise InputError(
                f"{folder}: the head of {architecture} (architectures in config.json) is not "
                f"simulated: of the family {family.title}, {', '.join(family.classes)} are; try "
                "transformers.AutoModel.from_pretrained(folder), which is the model without it"
            )
        architecture = ""
    tensors = read_tensors(folder, config)
    prefix = "" if family is None else family.prefix
    tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return Source(str(folder), config, tensors, architecture, folder, form)
